//! Other ports for programs that insist on one: how two servers that both call `bind("127.0.0.1:3000")` run side by side.
//!
//! A seccomp filter lets every `bind` of a program and of its whole tree wait until the supervisor has answered it
//! (seccomp_unotify(2)). The supervisor reads the address out of the caller's memory, takes the caller's socket by
//! pidfd_getfd(2), binds it to another port itself, and answers 0. The socket is the same open file description, so its
//! options (SO_REUSEPORT, IPV6_V6ONLY) are what the program has set. Which port is whose is decided here; whether a program
//! is to be redirected at all, elsewhere.
//!
//! Where sockets may not be taken (Docker's default profile forbids pidfd_getfd, but not `/proc/PID/mem`), the port is changed
//! in the caller's memory instead, and the kernel carries the call out.
//!
//! This is no fence: a program that wants to can get around it. What cannot be redirected is let through to the kernel, and
//! the command is told.

mod address;
mod ports;

use std::fs::{File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command};
use std::thread;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{SockType, getsockopt, sockopt};

use self::address::{PORT, VERSION_6, fixed_port};
use self::ports::Ports;
use super::launch::Redirected;
use super::platform::{BindCall, answer, filter_bind, next_bind, protocol_of, still_waits, take_socket};
use super::wire::Report;

/// Calls that are answered before the supervisor looks at its other descriptors again.
const AT_ONCE: u32 = 64;

/// Ports of one program that the command is told of. A program that walks through thousands would only fill its mail.
const TOLD: usize = 64;

/// The protocols of stream sockets, as the kernel calls them. Go listens by MPTCP where it can.
const STREAMS: [&str; 4] = ["TCP", "TCPv6", "MPTCP", "MPTCPv6"];

/// Whether anybody can still call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    InUse,
    Over,
}

/// Starts a program whose calls of `bind`, and those of its whole tree, arrive at the returned descriptor.
///
/// A filter belongs to a thread, and children inherit it from the one that starts them. So a thread that lives no longer than
/// this takes the filter upon itself, and nothing has to run between `fork` and `exec`.
pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, OwnedFd)> {
    let filtered = || {
        let binds = filter_bind().map_err(explained)?;
        Ok((command.spawn()?, binds))
    };
    let spawned = thread::scope(|scope| Ok(thread::Builder::new().spawn_scoped(scope, filtered)?.join()));
    spawned.and_then(|joined| joined.unwrap_or_else(|_| Err(io::Error::other("the thread that starts it panicked"))))
}

/// Why a filter was refused, in words.
fn explained(error: io::Error) -> io::Error {
    let why = match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EBUSY) => "a sandbox around this process watches its system calls already",
        Some(Errno::EPERM | Errno::EACCES) => "a sandbox around this process forbids seccomp filters",
        Some(Errno::ENOSYS | Errno::EINVAL) => "this kernel has no seccomp notifications, which Linux has since 5.6",
        _ => "no seccomp filter can be installed",
    };
    io::Error::new(error.kind(), format!("{why}: {error}"))
}

/// Why a caller's memory and socket were refused, in words.
fn refused(error: &io::Error) -> String {
    let why = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "its memory and its sockets are out of reach: Yama (/proc/sys/kernel/yama/ptrace_scope), a container, or another user \
             forbids it"
        }
        _ => "its memory and its sockets cannot be reached",
    };
    format!("{why}: {error}")
}

/// The calls of one launched program's tree.
#[derive(Debug)]
pub(super) struct Redirection {
    launch: u64,
    binds: OwnedFd,
    ports: Ports,
}

impl Redirection {
    /// For a program that was started by [`spawn`]. Its first fixed port becomes `own`.
    pub(super) fn new(launch: u64, binds: OwnedFd, own: u16) -> Self {
        Self { launch, binds, ports: Ports::new(own) }
    }

    /// Readable when calls wait, and when nobody is left who could call.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.binds.as_fd()
    }

    /// Answers calls that wait, without waiting for any.
    pub(super) fn go_on(&mut self, report: &mut dyn FnMut(Report)) -> State {
        for _ in 0..AT_ONCE {
            let mut polled = [PollFd::new(self.binds.as_fd(), PollFlags::POLLIN)];
            // An interrupted look finds nothing; the next one is soon.
            let events = match poll(&mut polled, PollTimeout::ZERO) {
                Ok(1..) => polled[0].revents().unwrap_or(PollFlags::empty()),
                _ => return State::InUse,
            };
            if !events.contains(PollFlags::POLLIN) {
                return State::Over;
            }
            let call = match next_bind(self.binds.as_fd()) {
                Ok(Some(call)) => call,
                Ok(None) => continue,
                Err(error) => {
                    // Without the listener, callers get ENOSYS: better than to wait for ever.
                    report(Report::NotRedirected { id: self.launch, why: error.to_string() });
                    return State::Over;
                }
            };
            let result = self.decide(&call, report);
            if let Err(error) = answer(self.binds.as_fd(), &call, result) {
                report(Report::NotRedirected { id: self.launch, why: error.to_string() });
                return State::Over;
            }
        }
        State::InUse
    }

    /// What `bind` is to return. `None`: what the kernel says.
    fn decide(&mut self, call: &BindCall, report: &mut dyn FnMut(Report)) -> Option<Result<(), Errno>> {
        let asked = match self.read(call) {
            Ok(asked) => asked?,
            Err(error) => return self.give_up(error, report),
        };
        let socket = match take_socket(call) {
            Ok(socket) => socket,
            Err(Errno::EBADF) => return None,
            Err(Errno::EPERM | Errno::EACCES | Errno::ENOSYS) => {
                return match self.rewrite(call, asked) {
                    Ok(new) => {
                        self.tell(new, report);
                        None
                    }
                    Err(error) => self.give_up(error, report),
                };
            }
            Err(error) => return self.give_up(error.into(), report),
        };
        // If the caller is gone, the socket may be that of a later process with its id. And a stream socket with a fixed port is
        // a listener. (Clients that choose their own port exist, and do not mind.)
        if !still_waits(self.binds.as_fd(), call) || getsockopt(&socket, sockopt::SockType) != Ok(SockType::Stream) {
            return None;
        }
        let bound = self.ports.bind(&socket, asked);
        Some(bound.map(|new| self.tell(new, report)))
    }

    /// Reads the address that a caller passed. `None`: its port is not to be another one.
    fn read(&self, call: &BindCall) -> io::Result<Option<SocketAddr>> {
        let memory = self.memory(call, File::options().read(true))?;
        let mut buffer = [0; VERSION_6];
        let wanted = call.length.min(buffer.len());
        match memory.read_at(&mut buffer[..wanted], call.address) {
            Ok(length) => Ok(fixed_port(&buffer[..length])),
            // No memory there: the kernel will say so, too.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where sockets may not be taken: changes the port in the caller's memory, for the kernel to see it there. What is new is
    /// returned.
    fn rewrite(&mut self, call: &BindCall, asked: SocketAddr) -> io::Result<Option<Redirected>> {
        if !STREAMS.contains(&&*protocol_of(call)?) {
            return Ok(None);
        }
        let memory = self.memory(call, File::options().write(true))?;
        let Some(chosen) = self.ports.choose(asked)? else { return Ok(None) };
        memory.write_all_at(&chosen.to.to_be_bytes(), call.address + PORT)?;
        Ok(chosen.is_new)
    }

    /// A caller's memory, and of nobody else: it was opened while the caller waited.
    fn memory(&self, call: &BindCall, options: &OpenOptions) -> io::Result<File> {
        let memory = options.open(format!("/proc/{}/mem", call.thread))?;
        if still_waits(self.binds.as_fd(), call) { Ok(memory) } else { Err(Errno::ESRCH.into()) }
    }

    fn tell(&self, new: Option<Redirected>, report: &mut dyn FnMut(Report)) {
        if let Some(redirected) = new.filter(|_| self.ports.count() <= TOLD) {
            report(Report::Redirected { id: self.launch, redirected });
        }
    }

    /// Lets a call through, and tells why, unless it is gone.
    fn give_up(&self, error: io::Error, report: &mut dyn FnMut(Report)) -> Option<Result<(), Errno>> {
        if !matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT)) {
            report(Report::NotRedirected { id: self.launch, why: refused(&error) });
        }
        None
    }
}
