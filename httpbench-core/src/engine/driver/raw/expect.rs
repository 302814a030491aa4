//! `Expect: 100-continue` (RFC 9110, section 10.1.1): the body waits until the server wants it.
//!
//! Wraps the raw driver for requests that say so, so that others pay nothing. The head is sent alone. The body follows once
//! the server says `100`, or after a wait, since servers may ignore the expectation: one second, as curl waits, but no
//! longer than half of the request timeout, so that the wait alone is never a timeout. A final answer before that counts as
//! it is: the body is not sent, and the connection, which still owes it, is dropped. HTTP/1.0 knows no expectation: the
//! body follows at once, as it does where there is none.
//!
//! Each of these connections remembers its own last head, so that whoever wraps it (redirects are followed from here) can
//! ask for its fields at any time.
//!
//! Leaves everything else to the [connection](super::connection). The wait is part of the service time.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::connection::{RawConnection, RawDriver};
use super::framing::expects_continue;
use super::stream::Stream;
use crate::engine::driver::{After, Answer, Body, Connection, Driver, Failure, Opened, Traffic};
use crate::model::Nanos;
use crate::scenario::WireRequest;

/// The longest wait for `100`.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Opens connections on which a body may have to wait.
pub(in crate::engine) struct ContinueDriver<S: Stream> {
    raw: RawDriver<S>,
    wait: Duration,
}

impl<S: Stream> ContinueDriver<S> {
    /// On connections of `raw`, for exchanges with that timeout.
    pub(in crate::engine) fn new(raw: RawDriver<S>, request_timeout: Nanos) -> Self {
        Self { raw, wait: LONGEST_WAIT.min(request_timeout.as_duration() / 2) }
    }
}

impl<S: Stream> Driver for ContinueDriver<S> {
    type Connection = ContinueConnection<S>;

    async fn connect(&self) -> io::Result<Opened<ContinueConnection<S>>> {
        let Opened { connection: raw, opening } = self.raw.connect().await?;
        let connection = ContinueConnection { raw: raw.apart(), wait: self.wait, held: None };
        Ok(Opened { connection, opening })
    }
}

/// See the [module](self).
pub(in crate::engine) struct ContinueConnection<S> {
    raw: RawConnection<S>,
    wait: Duration,
    held: Option<Held>,
}

/// A body that waits.
struct Held {
    /// Where it begins.
    from: usize,
    /// Until then at most.
    until: Pin<Box<Sleep>>,
}

impl<S: Stream> ContinueConnection<S> {
    /// The stream, for looking at what went through it.
    pub(in crate::engine) fn into_stream(self) -> S {
        self.raw.into_stream()
    }
}

impl<S: Stream> Connection for ContinueConnection<S> {
    fn begin(&mut self, request: &WireRequest) {
        self.held = expects_continue(&request.bytes)
            .map(|from| Held { from, until: Box::pin(tokio::time::sleep_until(Instant::now() + self.wait)) });
        // One that came too late belongs to the last exchange.
        self.raw.was_told_to_continue();
        self.raw.begin_with(request.is_head, self.held.as_ref().map_or(request.bytes.len(), |held| held.from));
    }

    fn poll_exchange(&mut self, cx: &mut Context<'_>, request: &WireRequest) -> Poll<Result<Answer, Failure>> {
        if let Some(held) = &mut self.held {
            if let Poll::Ready(ended) = self.raw.poll_bytes(cx, &request.bytes[..held.from]) {
                let after = |after| if after == After::Open { After::Spent } else { after };
                return Poll::Ready(ended.map(|answer| Answer { after: after(answer.after), ..answer }));
            }
            if !self.raw.was_told_to_continue() && held.until.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.raw.write_also(request.bytes.len() - held.from);
            self.held = None;
        }
        self.raw.poll_bytes(cx, &request.bytes)
    }

    fn body(&self) -> Body<'_> {
        self.raw.body()
    }

    fn field(&self, name: &str) -> Option<String> {
        self.raw.field(name)
    }

    fn is_quiet(&mut self) -> bool {
        self.raw.is_quiet()
    }

    fn abandon(self) {
        self.raw.abandon();
    }

    fn take_traffic(&mut self) -> Traffic {
        self.raw.take_traffic()
    }
}
