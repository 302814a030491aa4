//! JSON lines over a Unix stream socket.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// One end of the control channel.
#[derive(Debug)]
pub struct Channel {
    reader: BufReader<UnixStream>,
    line: Vec<u8>,
}

/// Why a message was not sent or received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The socket failed, or the time set by [`Channel::set_timeout`] passed.
    #[error("the control channel failed")]
    Io(#[from] io::Error),
    /// The other side said what this version does not understand.
    #[error("a message on the control channel is not understood: {text}")]
    Malformed {
        /// The start of the line.
        text: String,
        /// What the parser minds.
        source: serde_json::Error,
    },
}

impl Channel {
    /// Takes one end of a connected pair.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        Self { reader: BufReader::new(stream), line: Vec::new() }
    }

    /// Another handle on the same socket, for a thread that only writes. What is buffered for reading stays with `self`.
    ///
    /// # Errors
    ///
    /// When the file descriptor cannot be duplicated.
    pub fn writer(&self) -> io::Result<UnixStream> {
        self.reader.get_ref().try_clone()
    }

    /// The socket itself, for polling. Nothing may be read from it but through [`Channel::receive`].
    #[must_use]
    pub fn socket(&self) -> &UnixStream {
        self.reader.get_ref()
    }

    /// Bounds how long [`Channel::receive`] waits for a message to go on. `None` waits for ever.
    ///
    /// # Errors
    ///
    /// When the socket refuses the option.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.reader.get_ref().set_read_timeout(timeout)
    }

    /// Sends one message.
    ///
    /// # Errors
    ///
    /// When the other side is gone.
    pub fn send<M: Serialize>(&self, message: &M) -> Result<(), ChannelError> {
        send(self.reader.get_ref(), message)
    }

    /// Waits for the next message. `None` when the other side closed the channel.
    ///
    /// After a timeout ([`io::ErrorKind::WouldBlock`]) it can be called again; a message that has arrived in part is kept.
    ///
    /// # Errors
    ///
    /// When the socket fails or the message is not understood.
    pub fn receive<M: DeserializeOwned>(&mut self) -> Result<Option<M>, ChannelError> {
        if self.reader.read_until(b'\n', &mut self.line)? == 0 && self.line.is_empty() {
            return Ok(None);
        }
        let line = std::mem::take(&mut self.line);
        serde_json::from_slice(&line).map(Some).map_err(|source| ChannelError::Malformed {
            text: String::from_utf8_lossy(&line).chars().take(120).collect(),
            source,
        })
    }
}

/// Sends one message over a handle from [`Channel::writer`].
///
/// # Errors
///
/// When the other side is gone.
pub(crate) fn send<M: Serialize>(mut stream: &UnixStream, message: &M) -> Result<(), ChannelError> {
    let mut line = serde_json::to_vec(message).map_err(io::Error::from)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Ask;

    #[test]
    fn message_that_arrives_in_two_parts_survives_a_timeout_between_them() {
        let (mut near, far) = UnixStream::pair().expect("a socket pair");
        let mut channel = Channel::new(far);
        channel.set_timeout(Some(Duration::from_millis(5))).expect("a timeout");
        near.write_all(br#"{"ask":"#).expect("written");
        let error = channel.receive::<Ask>().expect_err("only half a message is there");
        assert!(matches!(error, ChannelError::Io(_)), "{error:?}");
        near.write_all(b"\"list\"}\n").expect("written");
        assert_eq!(channel.receive::<Ask>().expect("whole"), Some(Ask::List));
    }

    #[test]
    fn closed_channel_is_the_end_and_not_an_error() {
        let (near, far) = UnixStream::pair().expect("a socket pair");
        drop(near);
        assert!(Channel::new(far).receive::<Ask>().expect("an end").is_none());
    }

    #[test]
    fn foreign_text_is_named_in_the_error() {
        let (mut near, far) = UnixStream::pair().expect("a socket pair");
        near.write_all(b"hello there\n").expect("written");
        let error = Channel::new(far).receive::<Ask>().expect_err("not a message");
        assert!(error.to_string().contains("hello there"), "{error}");
    }
}
