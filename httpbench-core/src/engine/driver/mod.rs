//! What carries exchanges to a server: a [`Driver`] connects, a [`Connection`] exchanges.
//!
//! A connection knows neither timing nor recording, neither timeouts nor redo: those belong to the one
//! [worker loop](super::worker). Chosen once per run, then called statically.

#[cfg(feature = "http2")]
pub(super) mod http2;
#[cfg(feature = "http2")]
pub(super) mod http2_request;
mod metered;
pub(super) mod pipeline;
pub(super) mod raw;
pub(super) mod route;
pub(super) mod shared;
#[cfg(feature = "tls")]
pub(super) mod tls;

use std::io;
use std::task::{Context, Poll};

use nix::errno::Errno;

use crate::model::{ErrorClass, Nanos};
use crate::scenario::WireRequest;

use raw::ProtocolError;

/// Opens connections to one server.
pub(super) trait Driver: 'static {
    /// What it opens.
    type Connection: Connection;

    /// Opens one, or joins one that carries several exchanges at once.
    async fn connect(&self) -> io::Result<Opened<Self::Connection>>;
}

/// A connection that is ready for its first exchange.
#[derive(Debug)]
pub(super) struct Opened<C> {
    /// The connection.
    pub(super) connection: C,
    /// What it took to open it; `None` if somebody else opened it.
    pub(super) opening: Option<Opening>,
}

/// What it took to open a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    /// Until the transport was connected, without TLS.
    pub(super) connect: Nanos,
    /// From then to the end of the TLS handshake, where there is one.
    pub(super) tls: Option<Nanos>,
}

/// One connection to a server.
pub(super) trait Connection: 'static {
    /// Gets ready for a new exchange. The last one must have ended with [`After::Open`].
    fn begin(&mut self, request: &WireRequest);

    /// Goes on with the exchange that was begun with the same request. Polled instead of awaited, so that nothing lies
    /// between a task and its socket.
    fn poll_exchange(&mut self, cx: &mut Context<'_>, request: &WireRequest) -> Poll<Result<Answer, Failure>>;

    /// The body of the last answer, where the driver was told to keep it.
    fn body(&self) -> Body<'_>;

    /// The value of the first header called so in the last answer, where the driver keeps it. A driver's connections may
    /// share that memory: what another one received since then may stand in its place.
    fn field(&self, name: &str) -> Option<String>;

    /// Why the last answer, complete as it is, is wrong whatever its check says. Asked once for each answer.
    fn objection(&mut self) -> Option<String> {
        None
    }

    /// Whether the idle connection can carry another exchange: the server has neither closed it nor sent anything.
    fn is_quiet(&mut self) -> bool;

    /// Closes a connection that the server would have kept open, without leaving a local port in TIME_WAIT.
    fn abandon(self);

    /// What went over the wire since the last call.
    fn take_traffic(&mut self) -> Traffic;

    /// What following redirects took since the last call.
    fn take_hops(&mut self) -> Option<Box<Hops>> {
        None
    }
}

/// A complete answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// The final status.
    pub(super) status: u16,
    /// When the first byte of the final head came. `None`: in the same read as the last byte of the answer.
    pub(super) first_byte: Option<Nanos>,
    /// Bytes of the body.
    pub(super) body_bytes: u64,
    /// Whether the connection can be used again.
    pub(super) after: After,
}

/// What is left of a connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// It is ready for the next exchange.
    Open,
    /// The server has ended it.
    Ended,
    /// It must be closed by us: somebody said so, or it carries what it should not.
    Spent,
}

/// A body, as far as it was kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It was longer than what is kept.
    TooLong,
}

impl<'a> Body<'a> {
    /// What was kept of one: one byte beyond the bound is the mark of a body that is too long.
    fn kept(body: &'a [u8]) -> Self {
        if body.len() > raw::MAX_KEPT_BODY { Self::TooLong } else { Self::Whole(body) }
    }
}

/// Bytes that went over the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    /// Bytes of requests written.
    pub(super) sent: u64,
    /// Bytes of answers read, heads and framing included.
    pub(super) received: u64,
    /// Bytes of bodies among them.
    pub(super) body: u64,
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.body += other.body;
    }
}

/// What following redirects took, beyond the exchanges that they are part of.
#[derive(Debug, Default)]
pub(super) struct Hops {
    /// Redirects that were followed.
    pub(super) redirected: u64,
    /// Requests that were sent once more on a new connection.
    pub(super) redone: u64,
    /// Connections that were opened on the way.
    pub(super) openings: Vec<Opening>,
}

/// Why an exchange broke.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// No connection could be opened.
    #[error("no connection could be opened: {0}")]
    Connect(io::Error),
    /// No connection was opened in time.
    #[error("no connection could be opened within {0:?}")]
    ConnectTimeout(std::time::Duration),
    /// The answer was not complete in time.
    #[error("no whole answer within {0:?}")]
    RequestTimeout(std::time::Duration),
    /// The answer was not complete when a slice's drain had to end.
    #[error("no whole answer within {0:?} after the end of its slice")]
    DrainTimeout(std::time::Duration),
    /// It was due, and no connection was free for it before a slice's drain had to end.
    #[error("never sent: no connection was free within {0:?} after the end of its slice")]
    NeverSent(std::time::Duration),
    /// It was one of the calls of a session that had ended before them.
    #[error("never sent: the connection of its session ended after {made} of {calls} calls")]
    SessionOver {
        /// Calls made, the last of which may have broken.
        made: u64,
        /// Calls that the session should have had.
        calls: u64,
        /// What ended it.
        class: ErrorClass,
    },
    /// The server closed the connection without a byte of an answer.
    #[error("the server closed the connection before it sent a byte of the answer")]
    ClosedEarly,
    /// The server closed the connection within the answer.
    #[error("the server closed the connection within the answer, after {received} bytes of it")]
    Truncated {
        /// Bytes of the answer, its head included.
        received: u64,
    },
    /// Reading or writing failed.
    #[error("the connection broke after {received} bytes of the answer: {source}")]
    Broken {
        /// Bytes of the answer, its head included.
        received: u64,
        /// What the operating system says.
        source: io::Error,
    },
    /// It was not answered before its connection came to an end, through no fault of its own. It may be sent once more.
    #[error(transparent)]
    Unanswered(Box<Failure>),
    /// Its connection was given up.
    #[error("another exchange on its connection had no whole answer in time")]
    GivenUp,
    /// The server ended the connection, and said that it had not processed the stream.
    #[cfg(feature = "http2")]
    #[error("the server ended the connection and did not process the request (GOAWAY, {0})")]
    GoneAway(String),
    /// The server reset the stream.
    #[cfg(feature = "http2")]
    #[error("the server reset the stream after {received} bytes of the answer's body ({reason})")]
    StreamReset {
        /// Bytes of the body.
        received: u64,
        /// Its code.
        reason: String,
    },
    /// What came is not HTTP/2, or breaks its rules.
    #[cfg(feature = "http2")]
    #[error("HTTP/2 failed: {0}")]
    Http2(String),
    /// It broke after a redirect had been followed.
    #[error("after a redirect to {to}: {source}")]
    Redirected {
        /// Where to.
        to: String,
        /// What happened there.
        source: Box<Failure>,
    },
    /// TLS could not be established, or broke.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// What came is not HTTP.
    #[error(transparent)]
    Protocol(Box<ProtocolError>),
}

impl Failure {
    /// Why a connection could not be opened.
    pub(super) fn to_connect(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(failure) => failure,
            Err(error) => explain_tls(&error).map_or(Self::Connect(error), Self::Tls),
        }
    }

    /// What broke a connection, so many bytes into an answer.
    pub(super) fn broken(received: u64, source: io::Error) -> Self {
        match (source.kind(), received) {
            // The end of a secured stream without `close_notify`. Framing by length or chunks has told the same already; a
            // body that lasts until the end may lack anything, since anybody can cut a connection (RFC 9112, section 9.8).
            (io::ErrorKind::UnexpectedEof, 0) => Self::ClosedEarly,
            (io::ErrorKind::UnexpectedEof, received) => Self::Truncated { received },
            _ => explain_tls(&source).map_or(Self::Broken { received, source }, Self::Tls),
        }
    }

    /// The class that it counts in.
    pub(super) fn class(&self) -> ErrorClass {
        match self {
            Self::Connect(error) | Self::Broken { source: error, .. } => class_of(error),
            Self::ConnectTimeout(_) => ErrorClass::ConnectTimeout,
            Self::RequestTimeout(_) | Self::DrainTimeout(_) | Self::NeverSent(_) => ErrorClass::RequestTimeout,
            #[cfg(feature = "http2")]
            Self::GoneAway(_) | Self::StreamReset { .. } => ErrorClass::Reset,
            #[cfg(feature = "http2")]
            Self::Http2(_) => ErrorClass::Protocol,
            Self::GivenUp => ErrorClass::RequestTimeout,
            Self::Unanswered(failure) => failure.class(),
            Self::SessionOver { class, .. } => *class,
            Self::ClosedEarly => ErrorClass::ClosedEarly,
            Self::Redirected { source, .. } => source.class(),
            Self::Truncated { .. } => ErrorClass::Truncated,
            Self::Tls(_) => ErrorClass::Tls,
            Self::Protocol(_) => ErrorClass::Protocol,
        }
    }

    /// Whether the connection went away before any byte of the answer: on a reused connection, the sign that the server
    /// had closed it while it was idle.
    pub(super) fn is_unanswered_end(&self) -> bool {
        match self {
            Self::ClosedEarly => true,
            Self::Broken { received: 0, source } => class_of(source) == ErrorClass::Reset,
            _ => false,
        }
    }
}

/// What an error says of TLS; `None` if it does not.
#[cfg(feature = "tls")]
fn explain_tls(error: &io::Error) -> Option<String> {
    tls::explain(error)
}

/// Nothing speaks TLS here.
#[cfg(not(feature = "tls"))]
fn explain_tls(_error: &io::Error) -> Option<String> {
    None
}

fn class_of(error: &io::Error) -> ErrorClass {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EMFILE) => return ErrorClass::NoDescriptors,
        Some(Errno::ENFILE) => return ErrorClass::FileTableFull,
        Some(Errno::EADDRNOTAVAIL) => return ErrorClass::NoLocalPort,
        _ => {}
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ErrorClass::Refused,
        // A write after the server's reset says EPIPE, where a read says ECONNRESET.
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            ErrorClass::Reset
        }
        io::ErrorKind::TimedOut => ErrorClass::ConnectTimeout,
        _ => ErrorClass::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_this_machine_are_told_from_the_servers_faults() {
        for (errno, class) in [
            (Errno::EMFILE, ErrorClass::NoDescriptors),
            (Errno::ENFILE, ErrorClass::FileTableFull),
            (Errno::EADDRNOTAVAIL, ErrorClass::NoLocalPort),
            (Errno::ECONNREFUSED, ErrorClass::Refused),
            (Errno::ECONNRESET, ErrorClass::Reset),
            (Errno::EPIPE, ErrorClass::Reset),
            (Errno::ENETUNREACH, ErrorClass::Other),
        ] {
            assert_eq!(Failure::Connect(errno.into()).class(), class, "{errno}");
        }
    }
}
