//! Other ports for programs that insist on one: how two servers that both call `bind("127.0.0.1:3000")` run side by side.
//!
//! A seccomp filter lets every `bind` of a program and of its whole tree wait until the supervisor has answered it
//! (seccomp_unotify(2)). The supervisor reads the address out of the caller's memory, takes the caller's socket by
//! pidfd_getfd(2), binds it to another port itself, and answers 0. The socket is the same open file description, so its
//! options (SO_REUSEPORT, IPV6_V6ONLY) are what the program has set. Which port is whose is decided here; whether a program
//! is to be redirected at all, elsewhere.
//!
//! This is no fence: a program that wants to can get around it. What cannot be redirected is let through to the kernel, and
//! the command is told.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command};
use std::thread;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{SockType, SockaddrStorage, bind, getsockname, getsockopt, sockopt};
use serde::{Deserialize, Serialize};

use super::platform::{BindCall, answer, filter_bind, next_bind, read_address, still_waits, take_socket};
use super::wire::Report;

/// Calls that are answered before the supervisor looks at its other descriptors again.
const AT_ONCE: u32 = 64;

/// Ports of one program that the command is told of. A program that walks through thousands would only fill its mail.
const TOLD: usize = 64;

/// The length of `struct sockaddr_in`, and the two that the kernel accepts for `struct sockaddr_in6`: without and with a scope.
const VERSION_4: usize = 16;
const VERSION_6_SHORT: usize = 24;
const VERSION_6: usize = 28;

/// A fixed port that a program asked for, and the one that it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirected {
    /// What it asked for.
    pub from: u16,
    /// What it got. The same, if it asked for the port that was meant for it.
    pub to: u16,
}

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

/// Why a caller's memory or socket was refused, in words.
fn refused(error: Errno) -> String {
    let why = match error {
        Errno::EPERM | Errno::EACCES => {
            "its sockets may not be taken: Yama (/proc/sys/kernel/yama/ptrace_scope), a container, or another user forbids it"
        }
        Errno::ENOSYS => "this kernel has no pidfd_getfd, which Linux has since 5.6",
        _ => "its socket cannot be taken",
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
        Self { launch, binds, ports: Ports { own, given: HashMap::new() } }
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
        let mut buffer = [0; VERSION_6];
        let read = read_address(call, &mut buffer);
        let asked = match read {
            Ok(length) => fixed_port(&buffer[..length])?,
            // The kernel will say so, too.
            Err(Errno::EFAULT | Errno::ESRCH) => return None,
            Err(error) => {
                report(Report::NotRedirected { id: self.launch, why: refused(error) });
                return None;
            }
        };
        let socket = take_socket(call);
        // From here on it is certain that the memory and the socket were those of the caller, and not of a later process.
        if !still_waits(self.binds.as_fd(), call) {
            return None;
        }
        let socket = match socket {
            Ok(socket) => socket,
            Err(Errno::EBADF) => return None,
            Err(error) => {
                report(Report::NotRedirected { id: self.launch, why: refused(error) });
                return None;
            }
        };
        // A stream socket with a fixed port is a listener. (Clients that choose their own port exist, and do not mind.)
        if getsockopt(&socket, sockopt::SockType) != Ok(SockType::Stream) {
            return None;
        }
        match self.ports.bind(&socket, asked) {
            Ok(None) => Some(Ok(())),
            Ok(Some(redirected)) => {
                if self.ports.given.len() <= TOLD {
                    report(Report::Redirected { id: self.launch, redirected });
                }
                Some(Ok(()))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

/// Which fixed port has become which.
#[derive(Debug)]
struct Ports {
    own: u16,
    given: HashMap<u16, u16>,
}

impl Ports {
    /// Binds a socket to the port that `asked` stands for. What is new is returned.
    fn bind(&mut self, socket: &OwnedFd, asked: SocketAddr) -> Result<Option<Redirected>, Errno> {
        let from = asked.port();
        if let Some(&to) = self.given.get(&from) {
            let there = at(asked, to);
            return match bind_to(socket, there) {
                // Kernels before 5.19 let a signal tear a call away that we have carried out already; it comes again.
                Err(Errno::EINVAL) if bound_to(socket) == Some(there) => Ok(None),
                bound => bound.map(|()| None),
            };
        }
        let own_is_free = !self.given.values().any(|&given| given == self.own);
        let bound = match bind_to(socket, at(asked, if own_is_free { self.own } else { 0 })) {
            // Somebody else was faster.
            Err(Errno::EADDRINUSE) if own_is_free => bind_to(socket, at(asked, 0)),
            bound => bound,
        };
        bound?;
        let to = bound_to(socket).ok_or(Errno::EADDRNOTAVAIL)?.port();
        self.given.insert(from, to);
        Ok(Some(Redirected { from, to }))
    }
}

fn at(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

fn bind_to(socket: &OwnedFd, address: SocketAddr) -> Result<(), Errno> {
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address))
}

fn bound_to(socket: &OwnedFd) -> Option<SocketAddr> {
    let address: SockaddrStorage = getsockname(socket.as_raw_fd()).ok()?;
    let version_4 = || Some(SocketAddrV4::from(*address.as_sockaddr_in()?).into());
    let version_6 = || Some(SocketAddrV6::from(*address.as_sockaddr_in6()?).into());
    version_4().or_else(version_6)
}

/// The address, if it is one whose port is to be another: fixed, and reached through the loopback interface.
fn fixed_port(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let address: SocketAddr = match i32::from(family) {
        libc::AF_INET if bytes.len() >= VERSION_4 => {
            SocketAddrV4::new(Ipv4Addr::from(*bytes[4..].first_chunk::<4>()?), port).into()
        }
        libc::AF_INET6 if bytes.len() >= VERSION_6_SHORT => {
            let flow = u32::from_be_bytes(*bytes[4..].first_chunk()?);
            let scope = bytes[VERSION_6_SHORT..].first_chunk().map_or(0, |scope| u32::from_ne_bytes(*scope));
            SocketAddrV6::new(Ipv6Addr::from(*bytes[8..].first_chunk::<16>()?), port, flow, scope).into()
        }
        _ => return None,
    };
    let ip = address.ip().to_canonical();
    (port != 0 && (ip.is_loopback() || ip.is_unspecified())).then_some(address)
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::{AddressFamily, SockFlag, socket};

    use super::*;

    fn version_4(address: [u8; 4], port: u16) -> Vec<u8> {
        let family = u16::try_from(libc::AF_INET).unwrap().to_ne_bytes();
        [&family[..], &port.to_be_bytes(), &address, &[0; 8]].concat()
    }

    fn version_6(address: &str, port: u16) -> Vec<u8> {
        let family = u16::try_from(libc::AF_INET6).unwrap().to_ne_bytes();
        let address: Ipv6Addr = address.parse().unwrap();
        [&family[..], &port.to_be_bytes(), &[0; 4], &address.octets(), &7_u32.to_ne_bytes()].concat()
    }

    fn stream_socket() -> OwnedFd {
        socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap()
    }

    #[test]
    fn one_port_becomes_one_port_and_a_call_that_comes_again_succeeds_again() {
        let mut ports = Ports { own: 0, given: HashMap::new() };
        let asked = "127.0.0.1:3000".parse().unwrap();
        let (first, second) = (stream_socket(), stream_socket());
        let redirected = ports.bind(&first, asked).unwrap().expect("it is new");
        assert_eq!(bound_to(&first), Some(at(asked, redirected.to)));
        assert_eq!(ports.bind(&first, asked), Ok(None), "as after a signal");
        assert_eq!(ports.bind(&second, asked), Err(Errno::EADDRINUSE));
        assert_eq!(ports.bind(&first, at(asked, 3001)), Err(Errno::EINVAL), "bound already");
        let other = ports.bind(&second, at(asked, 3001)).unwrap().expect("it is new");
        assert_eq!((other.from, other.to == redirected.to), (3001, false));
    }

    #[test]
    fn first_fixed_port_becomes_the_own_one_unless_somebody_was_faster() {
        let asked = "127.0.0.1:3000".parse().unwrap();
        let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let own = holder.local_addr().unwrap().port();
        let mut ports = Ports { own, given: HashMap::new() };
        let redirected = ports.bind(&stream_socket(), asked).unwrap().expect("it is new");
        assert!(![own, 0, 3000].contains(&redirected.to), "{redirected:?}");
        drop(holder);
        let mut ports = Ports { own, given: HashMap::new() };
        assert_eq!(ports.bind(&stream_socket(), asked), Ok(Some(Redirected { from: 3000, to: own })));
        // Its holder is gone again: it still stands for 3000, so the program's own wish for it goes elsewhere.
        let wish = ports.bind(&stream_socket(), at(asked, own)).unwrap().expect("it is new");
        assert_ne!(wish.to, own);
    }

    #[test]
    fn fixed_ports_on_loopback_and_wildcard_addresses_are_redirected_and_others_are_not() {
        let seen = |bytes: &[u8]| fixed_port(bytes).map(|address| address.to_string());
        assert_eq!(seen(&version_4([127, 0, 0, 1], 3000)).as_deref(), Some("127.0.0.1:3000"));
        assert_eq!(seen(&version_4([0, 0, 0, 0], 80)).as_deref(), Some("0.0.0.0:80"));
        assert_eq!(seen(&version_4([127, 0, 0, 1], 0)), None, "any port");
        assert_eq!(seen(&version_4([192, 168, 1, 5], 80)), None, "an address of the outside");
        assert_eq!(seen(&version_6("::", 80)).as_deref(), Some("[::%7]:80"));
        assert_eq!(seen(&version_6("::1", 80)[..VERSION_6_SHORT]).as_deref(), Some("[::1]:80"));
        assert_eq!(seen(&version_6("::ffff:127.0.0.1", 80)).as_deref(), Some("[::ffff:127.0.0.1%7]:80"));
        assert_eq!(seen(&version_6("fe80::1", 80)), None);
        assert_eq!(seen(&version_4([127, 0, 0, 1], 3000)[..15]), None, "cut off");
        assert_eq!(seen(&version_6("::1", 80)[..23]), None, "cut off");
        assert_eq!(seen(b"\x01\0/run/x.sock"), None, "a Unix socket");
        assert_eq!(seen(&[]), None);
    }
}
