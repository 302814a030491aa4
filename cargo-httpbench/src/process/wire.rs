//! What the command and a supervisor say to each other: JSON lines over a socket pair, descriptors beside them.
//!
//! Both ends are the same executable, so there is no version.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, sendmsg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ended::Ended;
use super::launch::{Bind, Redirected};
use super::platform::{RECEIVE, adopt};

/// Descriptors that one message may bring: standard input, output, error, and one more.
const DESCRIPTORS: usize = 4;

/// What the command asks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// Start a program.
    Launch(Box<Program>),
    /// SIGTERM to every descendant; SIGKILL to what is left after the grace.
    Stop { grace_ms: u64 },
    /// SIGSTOP to every descendant. Acknowledged.
    Freeze,
    /// SIGCONT to every descendant. Acknowledged.
    Thaw,
}

/// A program to start, as far as text can tell.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Program {
    /// Answers name it.
    pub(crate) id: u64,
    /// The executable.
    pub(crate) program: OsString,
    /// Its arguments.
    pub(crate) args: Vec<OsString>,
    /// Its working directory.
    pub(crate) current_dir: OsString,
    /// Its whole environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The cores it may use; empty: all of the command's.
    pub(crate) cores: Vec<u32>,
    /// What becomes of the ports that it asks for.
    pub(crate) bind: Bind,
    /// What the descriptors of this message are, in their order.
    pub(crate) roles: Vec<Role>,
}

/// What a descriptor is to the program. A standard stream that is not sent is the null device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// Descriptor 0.
    Stdin,
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
    /// Any other number, which this environment variable tells.
    Extra(OsString),
}

/// What a supervisor reports.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Report {
    /// It watches. The folder that it will remove at the end, if one was asked for.
    Watching { folder: Option<OsString> },
    /// It cannot watch.
    Unable { why: String },
    /// To [`Ask::Launch`].
    Spawned { id: u64, pid: u32 },
    /// To [`Ask::Launch`].
    SpawnFailed { id: u64, why: String },
    /// A launched program ended. Its own children may live on.
    Exited { id: u64, ended: Ended },
    /// The tree of a launched program asked for a fixed port for the first time, and got this one.
    Redirected { id: u64, redirected: Redirected },
    /// The tree of a launched program asked for a fixed port, and could not be given another one.
    NotRedirected { id: u64, why: String },
    /// To [`Ask::Stop`]: no descendant is left, but for those named.
    Gone { killed: bool, left: Vec<u32> },
}

/// Sends one message, with descriptors beside its first byte.
pub(crate) fn send<M: Serialize>(mut socket: &UnixStream, message: &M, descriptors: &[OwnedFd]) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut sent = 0;
    if !descriptors.is_empty() {
        let raw: Vec<_> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let beside = [ControlMessage::ScmRights(&raw)];
        sent = loop {
            match sendmsg::<UnixAddr>(socket.as_raw_fd(), &[IoSlice::new(&line)], &beside, MsgFlags::empty(), None) {
                Err(Errno::EINTR) => {}
                other => break other?,
            }
        };
    }
    socket.write_all(&line[sent..])
}

/// Puts lines together again.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    closed: bool,
}

impl Receiver {
    /// Reads what has arrived, without waiting.
    pub(crate) fn fill(&mut self, socket: &UnixStream) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        let mut beside = nix::cmsg_space!([std::os::fd::RawFd; DESCRIPTORS]);
        while !self.closed {
            let mut parts = [IoSliceMut::new(&mut buffer)];
            let received = match recvmsg::<UnixAddr>(socket.as_raw_fd(), &mut parts, Some(&mut beside), RECEIVE) {
                Ok(received) => received,
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => continue,
                // The other end died with messages of ours unread.
                Err(Errno::ECONNRESET) => {
                    self.closed = true;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            for message in received.cmsgs()? {
                if let ControlMessageOwned::ScmRights(raw) = message {
                    self.descriptors.extend(adopt(&raw));
                }
            }
            let length = received.bytes;
            self.closed = length == 0;
            self.bytes.extend_from_slice(&buffer[..length]);
        }
        Ok(())
    }

    /// The next whole message.
    pub(crate) fn next<M: DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        let Some(end) = self.bytes.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        Ok(Some(serde_json::from_slice(&line)?))
    }

    /// Takes the first `count` descriptors that arrived.
    pub(crate) fn take_descriptors(&mut self, count: usize) -> Vec<OwnedFd> {
        self.descriptors.drain(..count.min(self.descriptors.len())).collect()
    }

    /// Whether the other end is gone.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn messages_and_their_descriptors_arrive_in_order() {
        let (near, far) = UnixStream::pair().expect("two sockets");
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let program = Program {
            id: 7,
            program: "server".into(),
            args: vec!["x".repeat(10_000).into()],
            current_dir: "/".into(),
            env: vec![("A".into(), "b=c".into())],
            cores: vec![1],
            bind: Bind::AsAsked,
            roles: vec![Role::Stdout],
        };
        send(&near, &Ask::Launch(Box::new(program)), &[OwnedFd::from(writer)]).expect("sent");
        send(&near, &Ask::Freeze, &[]).expect("sent");
        drop(near);
        let mut receiver = Receiver::default();
        receiver.fill(&far).expect("received");
        let Some(Ask::Launch(program)) = receiver.next().expect("whole messages") else { panic!("not the launch") };
        assert_eq!((program.id, program.args[0].len(), program.roles), (7, 10_000, vec![Role::Stdout]));
        let mut descriptors = receiver.take_descriptors(1);
        let mut file = std::fs::File::from(descriptors.pop().expect("a descriptor"));
        file.write_all(b"through").expect("written");
        drop(file);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("read");
        assert_eq!(text, "through");
        assert!(matches!(receiver.next().expect("whole messages"), Some(Ask::Freeze)));
        assert!(receiver.next::<Ask>().expect("whole messages").is_none());
        assert!(receiver.is_closed());
    }
}
