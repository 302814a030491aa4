//! HTTP/1.1 pipelining (RFC 9112, section 9.3.2): several requests outstanding on one connection, answered in their order.
//!
//! A task of its own moves a connection's bytes. Requests that are begun in one turn of the runtime go out in one write,
//! and answers that come in one read are handed out together. An exchange's time begins when its request is ready to be
//! sent; waiting for the answers before its own is part of it.
//!
//! When the connection ends, the answer that was being read is cut off, as on a connection that is not shared; those behind
//! it have not begun. If the connection had answered any exchange before, they may be sent once more on another one: the
//! server has closed a connection that was in use, as it may.
//!
//! Leaves the coding to the [decoder](super::raw::Decoder). Invariant: the answers of a connection are those of its
//! requests, in the order in which these were put into the line.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::ReadBuf;
use tokio::task::JoinHandle;

use super::metered::{Closing, Meter};
use super::raw::{Decoder, Ended, MAX_KEPT_BODY, RememberedHead, Wanted, field};
use super::route::{ByteStream, Conduit, Route};
use super::shared::Link;
use super::{After, Answer, Body, Failure, Opening, Traffic};
use crate::model::Nanos;
use crate::scenario::WireRequest;

/// As that of a raw connection.
const BUFFER: usize = 64 * 1024;

/// What all connections have in common.
pub(in crate::engine) struct Common {
    route: Route,
    keeps_body: bool,
    wanted: Wanted,
    memory: RefCell<Memory>,
}

struct Memory {
    buffer: Box<[u8]>,
    head: RememberedHead,
}

impl Common {
    /// For `request`, by `route`.
    pub(in crate::engine) fn new(route: Route, request: &WireRequest) -> Self {
        let memory = Memory { buffer: vec![0; BUFFER].into_boxed_slice(), head: RememberedHead::default() };
        let (keeps_body, wanted) = (request.check.needs_body(), Wanted::by(&request.bytes));
        Self { route, keeps_body, wanted, memory: RefCell::new(memory) }
    }
}

/// See the [module](self).
pub(in crate::engine) struct Pipeline {
    line: Rc<RefCell<Line>>,
    meter: Rc<Meter>,
    task: JoinHandle<()>,
}

/// The exchanges that are outstanding on a connection.
#[derive(Default)]
struct Line {
    /// Requests that are not written yet.
    out: Vec<u8>,
    /// How many bytes of `out` are written.
    written: usize,
    /// Bytes of all requests that are written.
    sent: u64,
    /// Bytes of all requests that were put into the line.
    queued: u64,
    /// In the order of their requests. The first one's answer is being read.
    tickets: VecDeque<Rc<RefCell<Ticket>>>,
    decoder: Decoder,
    /// Whether the decoder has begun with the first ticket.
    is_reading: bool,
    /// A write that failed. The server may have answered before it closed, so reading goes on.
    write_error: Option<io::Error>,
    /// Why no more exchanges can be begun.
    end: Option<End>,
    completed: u64,
    body_bytes: u64,
    /// Whom to tell of more to write.
    task: Option<Waker>,
}

/// How a connection came to its end.
#[derive(Debug)]
enum End {
    /// The server closed it, or said that it will.
    Closed,
    /// It broke.
    Broken(Rc<io::Error>),
    /// An exchange was given up, and nothing that comes can be told from its answer.
    GivenUp,
}

/// A slot's exchange, from its request to the end of its answer, and then the next.
#[derive(Default)]
pub(in crate::engine) struct Exchange {
    ticket: Rc<RefCell<Ticket>>,
    /// Of the last answer, as far as it is kept.
    body: Vec<u8>,
    head: Vec<u8>,
}

/// What the line knows of an exchange.
#[derive(Default)]
struct Ticket {
    stage: Stage,
    /// Whom to tell of the answer.
    slot: Option<Waker>,
    is_head: bool,
    /// The last byte of its request, by the count of its connection.
    end: u64,
    /// Bytes of the answer, interim ones included.
    received: u64,
    body_bytes: u64,
    body: Vec<u8>,
    head: Vec<u8>,
    first_byte: Option<Nanos>,
}

#[derive(Default)]
enum Stage {
    /// Not in the line.
    #[default]
    Out,
    Waiting,
    Ended(Result<Answer, Failure>),
}

impl Ticket {
    fn finish(&mut self, result: Result<Answer, Failure>) {
        self.stage = Stage::Ended(result);
        if let Some(slot) = self.slot.take() {
            slot.wake();
        }
    }
}

impl Line {
    /// Takes what was read. The decoder finds where one answer ends and the next begins.
    fn feed(&mut self, mut piece: &[u8], memory: &mut RememberedHead, common: &Common) {
        while !piece.is_empty() && self.end.is_none() {
            // Bytes that nobody asked for: as on a connection that is not shared.
            let Some(front) = self.tickets.front().map(Rc::clone) else { return self.close(End::Closed) };
            let ticket = &mut *front.borrow_mut();
            if !self.is_reading {
                self.decoder.begin(ticket.is_head);
                self.is_reading = true;
            }
            let Ticket { body, .. } = ticket;
            let fed = match self.decoder.feed(piece, memory, |bytes| {
                if common.keeps_body {
                    let room = (MAX_KEPT_BODY + 1).saturating_sub(body.len());
                    body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
            }) {
                Ok(fed) => fed,
                Err(error) => {
                    self.tickets.pop_front();
                    ticket.finish(Err(Failure::Protocol(Box::new(error))));
                    return self.close(End::Closed);
                }
            };
            ticket.received += fed.taken as u64;
            ticket.body_bytes += fed.body;
            self.body_bytes += fed.body;
            if !self.decoder.is_complete() {
                if ticket.first_byte.is_none() && self.decoder.is_in_final_head() {
                    ticket.first_byte = Some(common.route.clock.now());
                }
                return;
            }
            piece = &piece[fed.taken..];
            let written = self.sent >= ticket.end;
            let keep = written && common.wanted.allows(self.decoder.reuse());
            self.answer(ticket, memory, if keep { After::Open } else { After::Spent });
        }
    }

    /// The answer that was being read is complete.
    fn answer(&mut self, ticket: &mut Ticket, memory: &RememberedHead, after: After) {
        self.tickets.pop_front();
        self.is_reading = false;
        self.completed += 1;
        if after != After::Open {
            // Those who must be sent again come first, so that on the next connection they stand before what this answer's
            // slot begins then: nobody is overtaken for ever.
            self.close(End::Closed);
        }
        ticket.head.clear();
        ticket.head.extend_from_slice(memory.bytes());
        let (first_byte, body_bytes) = (ticket.first_byte, ticket.body_bytes);
        ticket.finish(Ok(Answer { status: self.decoder.status(), first_byte, body_bytes, after }));
    }

    /// Nothing more can be read.
    fn at_end(&mut self, memory: &RememberedHead) {
        if self.is_reading
            && self.decoder.end() == Ended::Complete
            && let Some(front) = self.tickets.front().map(Rc::clone)
        {
            self.answer(&mut front.borrow_mut(), memory, After::Ended);
        }
        if self.end.is_none() {
            let end = self.write_error.take().map_or(End::Closed, |error| End::Broken(Rc::new(error)));
            self.close(end);
        }
    }

    /// No more exchanges can be begun, and those in the line get no answer.
    fn close(&mut self, end: End) {
        for ticket in std::mem::take(&mut self.tickets) {
            let ticket = &mut *ticket.borrow_mut();
            ticket.finish(Err(self.failure(&end, ticket.received)));
        }
        self.end = Some(end);
    }

    /// What the end means to an exchange of whose answer so many bytes came.
    fn failure(&self, end: &End, received: u64) -> Failure {
        let failure = match (end, received) {
            (End::GivenUp, _) => return Failure::Unanswered(Box::new(Failure::GivenUp)),
            (End::Closed, 0) => Failure::ClosedEarly,
            (End::Closed, received) => Failure::Truncated { received },
            (End::Broken(error), received) => Failure::broken(received, again(error)),
        };
        if received == 0 && self.completed > 0 && failure.is_unanswered_end() {
            return Failure::Unanswered(Box::new(failure));
        }
        failure
    }
}

/// The same error for another exchange.
fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Moves a connection's bytes until it ends.
fn poll_line(
    line: &RefCell<Line>,
    stream: &mut Pin<Box<dyn ByteStream>>,
    common: &Common,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let memory = &mut *common.memory.borrow_mut();
    loop {
        let line = &mut *line.borrow_mut();
        if line.end.is_some() {
            return Poll::Ready(());
        }
        if !line.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            line.task = Some(cx.waker().clone());
        }
        line.write(stream, cx);
        let mut buffer = ReadBuf::new(&mut memory.buffer);
        match ready!(stream.as_mut().poll_read(cx, &mut buffer)) {
            Ok(()) if buffer.filled().is_empty() => line.at_end(&memory.head),
            Ok(()) => {
                let length = buffer.filled().len();
                line.feed(&memory.buffer[..length], &mut memory.head, common);
            }
            Err(error) => line.close(End::Broken(Rc::new(error))),
        }
    }
}

impl Line {
    fn write(&mut self, stream: &mut Pin<Box<dyn ByteStream>>, cx: &mut Context<'_>) {
        while self.written < self.out.len() && self.write_error.is_none() {
            match stream.as_mut().poll_write(cx, &self.out[self.written..]) {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => self.write_error = Some(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(length)) => {
                    self.written += length;
                    self.sent += length as u64;
                }
                Poll::Ready(Err(error)) => self.write_error = Some(error),
            }
        }
        self.out.clear();
        self.written = 0;
    }
}

impl Link for Pipeline {
    type Common = Common;
    type Exchange = Exchange;

    async fn open(common: &Rc<Common>) -> io::Result<(Self, Opening)> {
        let Conduit { mut stream, meter, opening, .. } = common.route.open().await?;
        let line = Rc::<RefCell<Line>>::default();
        let (task_line, task_common) = (Rc::clone(&line), Rc::clone(common));
        let task = tokio::task::spawn_local(async move {
            poll_fn(|cx| poll_line(&task_line, &mut stream, &task_common, cx)).await;
        });
        Ok((Self { line, meter, task }, opening))
    }

    fn exchange(&self) -> Exchange {
        Exchange::default()
    }

    fn begin(&self, exchange: &mut Exchange, request: &WireRequest) {
        let ticket = &mut *exchange.ticket.borrow_mut();
        ticket.stage = Stage::Out;
        ticket.is_head = request.is_head;
        ticket.received = 0;
        ticket.body_bytes = 0;
        ticket.body.clear();
        ticket.first_byte = None;
    }

    fn poll_exchange(
        &self,
        exchange: &mut Exchange,
        cx: &mut Context<'_>,
        request: &WireRequest,
    ) -> Poll<Result<Answer, Failure>> {
        let ticket = &mut *exchange.ticket.borrow_mut();
        match std::mem::take(&mut ticket.stage) {
            Stage::Ended(result) => {
                std::mem::swap(&mut exchange.body, &mut ticket.body);
                std::mem::swap(&mut exchange.head, &mut ticket.head);
                return Poll::Ready(result);
            }
            Stage::Waiting => {}
            Stage::Out => {
                let line = &mut *self.line.borrow_mut();
                if let Some(end) = &line.end {
                    return Poll::Ready(Err(line.failure(end, 0)));
                }
                line.out.extend_from_slice(&request.bytes);
                line.queued += request.bytes.len() as u64;
                ticket.end = line.queued;
                line.tickets.push_back(Rc::clone(&exchange.ticket));
                if let Some(task) = &line.task {
                    task.wake_by_ref();
                }
            }
        }
        ticket.stage = Stage::Waiting;
        if !ticket.slot.as_ref().is_some_and(|slot| slot.will_wake(cx.waker())) {
            ticket.slot = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    fn body(exchange: &Exchange) -> Body<'_> {
        Body::kept(&exchange.body)
    }

    fn field(exchange: &Exchange, name: &str) -> Option<String> {
        field(&exchange.head, name)
    }

    fn is_usable(&self) -> bool {
        self.line.borrow().end.is_none() && self.meter.is_open()
    }

    fn abandon(&self, exchange: Exchange) {
        let line = &mut *self.line.borrow_mut();
        line.tickets.retain(|ticket| !Rc::ptr_eq(ticket, &exchange.ticket));
        if line.end.is_none() {
            line.close(End::GivenUp);
        }
        self.meter.close(Closing::Abrupt);
        self.task.abort();
    }

    fn take_traffic(&self) -> Traffic {
        let (sent, received) = self.meter.take();
        Traffic { sent, received, body: std::mem::take(&mut self.line.borrow_mut().body_bytes) }
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.task.abort();
    }
}
