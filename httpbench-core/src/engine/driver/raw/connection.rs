//! One HTTP/1.1 connection: writes the rendered request, and feeds what comes back to the decoder.
//!
//! Reads and writes go on at once, so a server that answers before it has read a large body is heard. All connections of a
//! worker read into one buffer, which stays in the cache; what an answer needs to be kept is kept by its decoder.
//! Invariant: a read that does not fill the buffer is not repeated before the socket is ready again (tokio clears its
//! readiness), so an exchange costs one write and one read.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::ReadBuf;

use super::decode::{Decoder, Ended, RememberedHead};
use super::framing::{Reuse, asks_to_close, field};
use super::stream::Stream;
use crate::engine::clock::Clock;
use crate::engine::driver::{After, Answer, Body, Connection, Driver, Failure, Traffic};
use crate::model::Nanos;
use crate::scenario::WireRequest;

/// Large enough that a large body takes few reads, small enough for a core's own cache.
const BUFFER: usize = 64 * 1024;

/// The most of a body that is kept for a check.
pub(in crate::engine) const MAX_KEPT_BODY: usize = 8 * 1024 * 1024;

/// Opens raw connections to one server, for one worker and one request.
pub(in crate::engine) struct RawDriver<S> {
    address: SocketAddr,
    shared: Rc<Shared>,
    stream: std::marker::PhantomData<fn() -> S>,
}

/// What all connections of a driver use in turn.
struct Shared {
    clock: Clock,
    memory: RefCell<Memory>,
    keep: Keep,
    /// What the request itself says of the connection.
    reuse: Reuse,
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

impl<S> RawDriver<S> {
    /// For `request`, at `address`.
    pub(in crate::engine) fn new(address: SocketAddr, request: &WireRequest, clock: Clock) -> Self {
        let memory = Memory { buffer: vec![0; BUFFER].into_boxed_slice(), head: RememberedHead::default() };
        let shared = Shared {
            clock,
            memory: RefCell::new(memory),
            keep: if request.check.needs_body() { Keep::Body } else { Keep::Nothing },
            reuse: if asks_to_close(&request.bytes) { Reuse::Close } else { Reuse::Keep },
        };
        Self { address, shared: Rc::new(shared), stream: std::marker::PhantomData }
    }
}

impl<S: Stream> Driver for RawDriver<S> {
    type Connection = RawConnection<S>;

    async fn connect(&self) -> io::Result<RawConnection<S>> {
        Ok(RawConnection {
            stream: S::open(self.address).await?,
            shared: Rc::clone(&self.shared),
            decoder: Decoder::default(),
            body: Vec::new(),
            traffic: Traffic::default(),
            current: Current::default(),
        })
    }
}

/// One connection.
pub(in crate::engine) struct RawConnection<S> {
    stream: S,
    shared: Rc<Shared>,
    decoder: Decoder,
    body: Vec<u8>,
    traffic: Traffic,
    current: Current,
}

/// The exchange that is going on.
#[derive(Debug, Default)]
struct Current {
    written: usize,
    received: u64,
    body_bytes: u64,
    first_byte: Option<Nanos>,
    write_error: Option<io::Error>,
}

impl<S: Stream> Connection for RawConnection<S> {
    #[inline]
    async fn exchange(&mut self, request: &WireRequest) -> Result<Answer, Failure> {
        self.decoder.begin(request.is_head);
        self.body.clear();
        self.current = Current::default();
        poll_fn(|cx| self.poll_exchange(cx, &request.bytes)).await
    }

    fn body(&self) -> Body<'_> {
        // One byte beyond the bound is kept as the mark of a body that is too long.
        if self.body.len() > MAX_KEPT_BODY { Body::TooLong } else { Body::Whole(&self.body) }
    }

    fn server(&self) -> Option<String> {
        field(self.shared.memory.borrow().head.bytes(), "server")
    }

    fn is_quiet(&mut self) -> bool {
        self.stream.is_quiet()
    }

    fn abandon(self) {
        self.stream.close_abruptly();
    }

    fn take_traffic(&mut self) -> Traffic {
        std::mem::take(&mut self.traffic)
    }
}

impl<S: Stream> RawConnection<S> {
    /// The stream, for looking at what went through it.
    pub(in crate::engine) fn into_stream(self) -> S {
        self.stream
    }

    #[inline]
    fn poll_exchange(&mut self, cx: &mut Context<'_>, request: &[u8]) -> Poll<Result<Answer, Failure>> {
        if self.current.written < request.len() {
            self.poll_write(cx, request);
        }
        let shared = Rc::clone(&self.shared);
        let memory = &mut *shared.memory.borrow_mut();
        loop {
            let mut buffer = ReadBuf::new(&mut memory.buffer);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(self.broken(error))),
            }
            let piece = buffer.filled();
            if piece.is_empty() {
                return Poll::Ready(self.ended());
            }
            if let Some(end) = self.feed(piece, &mut memory.head, request.len()) {
                return Poll::Ready(end);
            }
        }
    }

    /// Writes as much as goes. A failure is kept: the server may have answered before it closed, so reading comes first.
    fn poll_write(&mut self, cx: &mut Context<'_>, request: &[u8]) {
        while self.current.written < request.len() && self.current.write_error.is_none() {
            match Pin::new(&mut self.stream).poll_write(cx, &request[self.current.written..]) {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => self.current.write_error = Some(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(written)) => {
                    self.current.written += written;
                    self.traffic.sent += written as u64;
                }
                Poll::Ready(Err(error)) => self.current.write_error = Some(error),
            }
        }
    }

    #[inline]
    fn feed(
        &mut self,
        piece: &[u8],
        memory: &mut RememberedHead,
        request: usize,
    ) -> Option<Result<Answer, Failure>> {
        self.traffic.received += piece.len() as u64;
        self.current.received += piece.len() as u64;
        let (body, keep) = (&mut self.body, self.shared.keep);
        let fed = match self.decoder.feed(piece, memory, |bytes| {
            if keep == Keep::Body {
                let room = (MAX_KEPT_BODY + 1).saturating_sub(body.len());
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
        }) {
            Ok(fed) => fed,
            Err(error) => return Some(Err(Failure::Protocol(error))),
        };
        self.traffic.body += fed.body;
        self.current.body_bytes += fed.body;
        if !self.decoder.is_complete() {
            // The final head may begin in the same piece as an interim one ends; the time is that of the read.
            if self.current.first_byte.is_none() && self.decoder.is_in_final_head() {
                self.current.first_byte = Some(self.shared.clock.now());
            }
            return None;
        }
        let whole = fed.taken == piece.len() && self.current.written == request;
        let keep = whole && self.decoder.reuse() == Reuse::Keep && self.shared.reuse == Reuse::Keep;
        Some(Ok(self.answer(if keep { After::Open } else { After::Spent })))
    }

    #[inline]
    fn answer(&self, after: After) -> Answer {
        Answer {
            status: self.decoder.status(),
            first_byte: self.current.first_byte,
            body_bytes: self.current.body_bytes,
            after,
        }
    }

    #[cold]
    fn ended(&mut self) -> Result<Answer, Failure> {
        if self.decoder.end() == Ended::Complete {
            return Ok(self.answer(After::Ended));
        }
        Err(match (self.current.write_error.take(), self.current.received) {
            (Some(source), received) => Failure::Broken { received, source },
            (None, 0) => Failure::ClosedEarly,
            (None, received) => Failure::Truncated { received },
        })
    }

    #[cold]
    fn broken(&mut self, source: io::Error) -> Failure {
        Failure::Broken { received: self.current.received, source }
    }
}
