//! One HTTP/1.1 connection: writes the rendered request, and feeds what comes back to the decoder.
//!
//! Reads and writes go on at once, so a server that answers before it has read a large body is heard. All connections of a
//! worker read into one buffer, which stays in the cache; what an answer needs to be kept is kept by its decoder.
//! Invariant: a read that does not fill the buffer is not repeated before the socket is ready again (tokio clears its
//! readiness), so an exchange costs one write and one read.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::decode::{Decoder, Ended};
use super::framing::{Wanted, field};
use super::remembered::RememberedHead;
use super::stream::Stream;
use crate::engine::clock::Clock;
use crate::engine::driver::{After, Answer, Body, Connection, Driver, Failure, Opened, Opening, Traffic};
use crate::model::{Nanos, Reuse};
use crate::scenario::WireRequest;

/// Large enough that a large body takes few reads, small enough for a core's own cache.
const BUFFER: usize = 64 * 1024;

/// The same where each connection has its own.
const SMALL_BUFFER: usize = 16 * 1024;

/// The most of a body that is kept for a check.
pub(in crate::engine) const MAX_KEPT_BODY: usize = 8 * 1024 * 1024;

/// Opens raw connections to one server, for one worker and one request.
pub(in crate::engine) struct RawDriver<S: Stream> {
    target: S::Target,
    shared: Rc<Shared>,
}

/// What all connections of a driver use in turn.
struct Shared {
    clock: Clock,
    memory: RefCell<Memory>,
    keep: Keep,
    /// What an answer must say for its connection to be used again.
    wanted: Wanted,
}

struct Memory {
    buffer: Box<[u8]>,
    head: RememberedHead,
}

/// Whether bodies are kept for a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    Body,
    Nothing,
}

impl<S: Stream> RawDriver<S> {
    /// For `request`, at `target`. With [`Reuse::Close`] no connection is used again, whatever the request itself says.
    pub(in crate::engine) fn new(target: S::Target, request: &WireRequest, reuse: Reuse, clock: Clock) -> Self {
        let memory = Memory { buffer: vec![0; BUFFER].into_boxed_slice(), head: RememberedHead::default() };
        let shared = Shared {
            clock,
            memory: RefCell::new(memory),
            keep: if request.check.needs_body() { Keep::Body } else { Keep::Nothing },
            wanted: match reuse {
                Reuse::Keep => Wanted::by(&request.bytes),
                Reuse::Close => Wanted::Closed,
            },
        };
        Self { target, shared: Rc::new(shared) }
    }
}

impl<S: Stream> Driver for RawDriver<S> {
    type Connection = RawConnection<S>;

    async fn connect(&self) -> io::Result<Opened<RawConnection<S>>> {
        let asked = self.shared.clock.now();
        let stream = S::open(&self.target).await?;
        let tls = stream.handshake();
        let connect = self.shared.clock.now() - asked - tls.unwrap_or_default();
        let connection = RawConnection { stream, shared: Rc::clone(&self.shared), exchange: Exchange::default() };
        Ok(Opened { connection, opening: Some(Opening { connect, tls }) })
    }
}

/// One connection.
pub(in crate::engine) struct RawConnection<S> {
    stream: S,
    shared: Rc<Shared>,
    exchange: Exchange,
}

/// The exchange that is going on, and the bytes of those before.
#[derive(Default)]
struct Exchange {
    decoder: Decoder,
    body: Vec<u8>,
    traffic: Traffic,
    /// Bytes of the request that are not written yet.
    unwritten: usize,
    /// Bytes of the answer, interim ones included.
    received: u64,
    body_bytes: u64,
    first_byte: Option<Nanos>,
    write_error: Option<io::Error>,
}

impl<S: Stream> Connection for RawConnection<S> {
    #[inline]
    fn begin(&mut self, request: &WireRequest) {
        self.begin_with(request.is_head, request.bytes.len());
    }

    #[inline]
    fn poll_exchange(&mut self, cx: &mut Context<'_>, request: &WireRequest) -> Poll<Result<Answer, Failure>> {
        self.poll_bytes(cx, &request.bytes)
    }

    fn body(&self) -> Body<'_> {
        Body::kept(&self.exchange.body)
    }

    fn field(&self, name: &str) -> Option<String> {
        field(self.shared.memory.borrow().head.bytes(), name)
    }

    fn is_quiet(&mut self) -> bool {
        self.stream.is_quiet()
    }

    fn abandon(self) {
        self.stream.close_abruptly();
    }

    fn take_traffic(&mut self) -> Traffic {
        let mut traffic = std::mem::take(&mut self.exchange.traffic);
        if let Some((sent, received)) = self.stream.wire() {
            (traffic.sent, traffic.received) = (sent, received);
        }
        traffic
    }
}

impl<S: Stream> RawConnection<S> {
    /// The same connection with a memory of its own: the fields of its last answer are then its own too, even if others
    /// had an answer while the rest of this one was on its way.
    pub(super) fn apart(self) -> Self {
        let Shared { clock, keep, wanted, .. } = *self.shared;
        let memory = Memory { buffer: vec![0; SMALL_BUFFER].into_boxed_slice(), head: RememberedHead::default() };
        let shared = Rc::new(Shared { clock, memory: RefCell::new(memory), keep, wanted });
        Self { shared, ..self }
    }

    /// Gets ready for an exchange whose request has so many bytes.
    #[inline]
    pub(super) fn begin_with(&mut self, is_head: bool, length: usize) {
        let exchange = &mut self.exchange;
        exchange.decoder.begin(is_head);
        exchange.body.clear();
        exchange.unwritten = length;
        exchange.received = 0;
        exchange.body_bytes = 0;
        exchange.first_byte = None;
        // What is left of the last exchange cannot have an error: its connection would not be used again.
        debug_assert!(exchange.write_error.is_none());
    }

    /// Goes on with the exchange whose request is these bytes, each time the same.
    #[inline]
    pub(super) fn poll_bytes(&mut self, cx: &mut Context<'_>, request: &[u8]) -> Poll<Result<Answer, Failure>> {
        let Self { stream, shared, exchange } = self;
        let memory = &mut *shared.memory.borrow_mut();
        if exchange.unwritten > 0 {
            exchange.write(cx, stream, request);
            // Right after a write there is nothing to read yet, which tokio mostly knows.
            match stream.poll_arrival(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(exchange.broken(error))),
            }
        }
        loop {
            let piece = match stream.poll_receive(cx, &mut memory.buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(exchange.ended()),
                Poll::Ready(Ok(length)) => &memory.buffer[..length],
                Poll::Ready(Err(error)) => return Poll::Ready(Err(exchange.broken(error))),
            };
            if let Some(end) = exchange.feed(piece, &mut memory.head, shared) {
                return Poll::Ready(end);
            }
        }
    }

    /// More of the request may be written: so many bytes after those that [`RawConnection::begin_with`] was told.
    pub(super) fn write_also(&mut self, length: usize) {
        self.exchange.unwritten += length;
    }

    /// Whether the server said `100` since this was asked last.
    pub(super) fn was_told_to_continue(&mut self) -> bool {
        self.exchange.decoder.was_told_to_continue()
    }

    /// The stream, for looking at what went through it.
    pub(in crate::engine) fn into_stream(self) -> S {
        self.stream
    }
}

impl Exchange {
    /// Writes as much as goes. A failure is kept: the server may have answered before it closed, so reading comes first.
    #[inline]
    fn write<S: Stream>(&mut self, cx: &mut Context<'_>, stream: &mut S, request: &[u8]) {
        while self.unwritten > 0 && self.write_error.is_none() {
            // The socket nearly always takes it, so tokio's registration for more is left for when it does not.
            let tried = match stream.try_write(self.unwritten(request)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match Pin::new(&mut *stream).poll_write(cx, self.unwritten(request)) {
                        Poll::Pending => return,
                        Poll::Ready(written) => written,
                    }
                }
                tried => tried,
            };
            match tried {
                Ok(0) => self.write_error = Some(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.unwritten -= written;
                    self.traffic.sent += written as u64;
                }
                Err(error) => self.write_error = Some(error),
            }
        }
    }

    #[inline]
    fn unwritten<'a>(&self, request: &'a [u8]) -> &'a [u8] {
        &request[request.len() - self.unwritten..]
    }

    #[inline]
    fn feed(&mut self, piece: &[u8], memory: &mut RememberedHead, shared: &Shared) -> Option<Result<Answer, Failure>> {
        self.traffic.received += piece.len() as u64;
        self.received += piece.len() as u64;
        let (body, keep) = (&mut self.body, shared.keep);
        let fed = match self.decoder.feed(piece, memory, |bytes| {
            if keep == Keep::Body {
                let room = (MAX_KEPT_BODY + 1).saturating_sub(body.len());
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
        }) {
            Ok(fed) => fed,
            Err(error) => return Some(Err(Failure::Protocol(Box::new(error)))),
        };
        self.traffic.body += fed.body;
        self.body_bytes += fed.body;
        if !self.decoder.is_complete() {
            // The final head may begin in the same piece as an interim one ends; the time is that of the read.
            if self.first_byte.is_none() && self.decoder.is_in_final_head() {
                self.first_byte = Some(shared.clock.now());
            }
            return None;
        }
        let whole = fed.taken == piece.len() && self.unwritten == 0;
        let keep = whole && shared.wanted.allows(self.decoder.reuse());
        Some(Ok(self.answer(if keep { After::Open } else { After::Spent })))
    }

    #[inline]
    fn answer(&self, after: After) -> Answer {
        Answer { status: self.decoder.status(), first_byte: self.first_byte, body_bytes: self.body_bytes, after }
    }

    #[cold]
    fn ended(&mut self) -> Result<Answer, Failure> {
        if self.decoder.end() == Ended::Complete {
            return Ok(self.answer(After::Ended));
        }
        Err(match (self.write_error.take(), self.received) {
            (Some(source), received) => Failure::broken(received, source),
            (None, 0) => Failure::ClosedEarly,
            (None, received) => Failure::Truncated { received },
        })
    }

    #[cold]
    fn broken(&mut self, source: io::Error) -> Failure {
        Failure::broken(self.received, source)
    }
}
