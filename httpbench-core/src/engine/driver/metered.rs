//! A byte stream that counts what goes through it: what is on the wire, below TLS and below the frames of HTTP/2.
//!
//! Leaves the bytes as they are. The counts can be read while another task owns the stream.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::raw::Stream;

/// What went through a stream, and how it is to be closed.
#[derive(Debug)]
pub(super) struct Meter {
    sent: Cell<u64>,
    received: Cell<u64>,
    closing: Cell<Closing>,
    #[cfg(feature = "tls")]
    note: std::cell::RefCell<Option<String>>,
    pub(super) socket: RawFd,
}

/// How a stream is closed when it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// As the system does.
    Usual,
    /// See [`Stream::close_abruptly`].
    Abrupt,
}

impl Meter {
    /// Bytes written and read since the last call.
    pub(super) fn take(&self) -> (u64, u64) {
        (self.sent.take(), self.received.take())
    }

    /// Counts bytes that were read past this stream.
    #[cfg(feature = "tls")]
    pub(super) fn add_received(&self, bytes: u64) {
        self.received.set(self.received.get() + bytes);
    }

    /// Keeps what an error above this stream says, for those who are told of it in other words.
    #[cfg(feature = "tls")]
    pub(super) fn note(&self, text: String) {
        *self.note.borrow_mut() = Some(text);
    }

    /// What was kept, if anything.
    #[cfg(feature = "http2")]
    pub(super) fn noted(&self) -> Option<String> {
        #[cfg(feature = "tls")]
        return self.note.borrow().clone();
        #[cfg(not(feature = "tls"))]
        None
    }

    /// Whether the other side has not closed it, as far as has come here.
    pub(super) fn is_open(&self) -> bool {
        let mut byte = [0];
        match recv(self.socket, &mut byte, MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT) {
            Ok(length) => length > 0,
            Err(error) => error == Errno::EAGAIN,
        }
    }

    pub(super) fn close(&self, closing: Closing) {
        self.closing.set(closing);
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Metered<S: Stream> {
    /// Taken when it is dropped.
    stream: Option<S>,
    meter: Rc<Meter>,
}

impl<S: Stream + AsRawFd> Metered<S> {
    pub(super) fn new(stream: S) -> Self {
        let meter = Rc::new(Meter {
            sent: Cell::default(),
            received: Cell::default(),
            closing: Cell::new(Closing::Usual),
            #[cfg(feature = "tls")]
            note: std::cell::RefCell::default(),
            socket: stream.as_raw_fd(),
        });
        Self { stream: Some(stream), meter }
    }

    pub(super) fn meter(&self) -> &Rc<Meter> {
        &self.meter
    }
}

impl<S: Stream> Metered<S> {
    fn stream(&mut self) -> &mut S {
        self.stream.as_mut().expect("taken only by drop")
    }
}

impl<S: Stream> Drop for Metered<S> {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take()
            && self.meter.closing.get() == Closing::Abrupt
        {
            stream.close_abruptly();
        }
    }
}

impl<S: Stream> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        let polled = Pin::new(self.stream()).poll_read(cx, out);
        let read = out.filled().len() - before;
        self.meter.received.set(self.meter.received.get() + read as u64);
        polled
    }
}

impl<S: Stream> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(self.stream()).poll_write(cx, bytes);
        self.count(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(self.stream()).poll_write_vectored(cx, parts);
        self.count(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream()).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream()).poll_shutdown(cx)
    }
}

impl<S: Stream> Metered<S> {
    fn count(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(written)) = written {
            self.meter.sent.set(self.meter.sent.get() + written as u64);
        }
        written
    }
}
