//! The byte streams that a raw connection runs on: TCP, Unix domain sockets, or one of them that keeps what went through it.
//!
//! Leaves HTTP to the connection.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use nix::errno::Errno;
#[cfg(target_os = "linux")]
use nix::sys::socket::send;
use nix::sys::socket::{MsgFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::model::{Endpoint, Nanos};

/// The most bytes of an answer that a [`Tap`] keeps.
pub(in crate::engine) const TAP_BOUND: usize = 1024 * 1024;

/// Before a Unix domain socket whose listener's queue was full is tried again.
const QUEUE_FULL: Duration = Duration::from_millis(1);

/// What a raw connection needs of its transport.
pub(in crate::engine) trait Stream: AsyncRead + AsyncWrite + Unpin + Sized + 'static {
    /// What it is told to connect to.
    type Target: 'static;

    /// Connects.
    async fn open(target: &Self::Target) -> io::Result<Self>;

    /// How long the TLS handshake took that was part of [`Stream::open`]; `None` without TLS.
    fn handshake(&self) -> Option<Nanos> {
        None
    }

    /// Writes what the socket takes at once, without registering for more.
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Whether something may have come, as far as that is known without a look at the stream.
    #[inline]
    fn poll_arrival(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Reads what has come, and answers how many bytes; none at the stream's end.
    #[inline]
    fn poll_receive(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        Pin::new(self).poll_read(cx, &mut buffer).map_ok(|()| buffer.filled().len())
    }

    /// Whether the other side has neither closed the stream nor sent anything, asked without waiting.
    fn is_quiet(&mut self) -> bool;

    /// Bytes written and read on the wire since the last call, where those are others than went through the stream.
    fn wire(&mut self) -> Option<(u64, u64)> {
        None
    }

    /// Makes closing it leave no local port in TIME_WAIT.
    fn close_abruptly(self);
}

impl Stream for TcpStream {
    type Target = Endpoint;

    async fn open(endpoint: &Endpoint) -> io::Result<Self> {
        let Endpoint::Tcp(address) = endpoint else { return Err(io::ErrorKind::Unsupported.into()) };
        let stream = Self::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Not by tokio, which looks first whether it knows of room: a socket that carries one request at a time has it. Where
    /// it has not, the caller's `poll_write` finds that out again, and then tokio knows.
    #[inline]
    #[cfg(target_os = "linux")]
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.as_raw_fd(), bytes, MsgFlags::MSG_NOSIGNAL)?)
    }

    #[inline]
    #[cfg(not(target_os = "linux"))]
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::try_write(self, bytes)
    }

    #[inline]
    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_read_ready(cx)
    }

    /// As tokio's `poll_read` does it, with half of its looks at what it knows: that is asked only after there was nothing.
    #[inline]
    fn poll_receive(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut last = None;
            let tried = self.try_io(Interest::READABLE, || {
                let length = recv(self.as_raw_fd(), buffer, MsgFlags::empty())?;
                if length == 0 || length == buffer.len() {
                    return Ok(length);
                }
                // All there was. Said to be nothing, so that tokio does not call the socket readable until it is again:
                // the next read would be a system call in vain.
                last = Some(length);
                Err(io::ErrorKind::WouldBlock.into())
            });
            if let Some(length) = last {
                return Poll::Ready(Ok(length));
            }
            match tried {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(self.poll_read_ready(cx))?,
                read => return Poll::Ready(read),
            }
        }
    }

    fn is_quiet(&mut self) -> bool {
        is_quiet(self.as_raw_fd())
    }

    fn close_abruptly(self) {
        // With a zero linger time the close sends RST. If that option fails, so be it: the port waits for a minute.
        let _ = self.set_zero_linger();
    }
}

fn is_quiet(socket: RawFd) -> bool {
    let mut byte = [0];
    let peeked = recv(socket, &mut byte, MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT);
    peeked == Err(Errno::EAGAIN)
}

impl Stream for UnixStream {
    type Target = Endpoint;

    async fn open(endpoint: &Endpoint) -> io::Result<Self> {
        let Endpoint::Unix(path) = endpoint else { return Err(io::ErrorKind::Unsupported.into()) };
        loop {
            match Self::connect(path).await {
                // Where the listener's queue is full, Linux says so at once instead of waiting as it does for TCP.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(QUEUE_FULL).await,
                connected => return connected,
            }
        }
    }

    #[inline]
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::try_write(self, bytes)
    }

    fn is_quiet(&mut self) -> bool {
        is_quiet(self.as_raw_fd())
    }

    /// These sockets have no ports.
    fn close_abruptly(self) {}
}

/// A stream that keeps what went through it.
#[derive(Debug)]
pub(in crate::engine) struct Tap<S> {
    stream: S,
    /// Every byte written.
    pub(in crate::engine) sent: Vec<u8>,
    /// The first bytes read, up to [`TAP_BOUND`].
    pub(in crate::engine) received: Vec<u8>,
    /// How many bytes were read beyond that.
    pub(in crate::engine) omitted: u64,
}

impl<S: Stream> Stream for Tap<S> {
    type Target = S::Target;

    async fn open(target: &S::Target) -> io::Result<Self> {
        let stream = S::open(target).await?;
        Ok(Self { stream, sent: Vec::new(), received: Vec::new(), omitted: 0 })
    }

    fn handshake(&self) -> Option<Nanos> {
        self.stream.handshake()
    }

    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.try_write(bytes)?;
        self.sent.extend_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn is_quiet(&mut self) -> bool {
        self.stream.is_quiet()
    }

    fn close_abruptly(self) {
        self.stream.close_abruptly();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Tap<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, out);
        let read = &out.filled()[before..];
        let kept = read.len().min(TAP_BOUND - self.received.len());
        self.received.extend_from_slice(&read[..kept]);
        self.omitted += (read.len() - kept) as u64;
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tap<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(written)) = polled {
            self.sent.extend_from_slice(&bytes[..written]);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
