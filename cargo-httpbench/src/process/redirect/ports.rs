//! Which fixed port of a program has become which.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{SockaddrStorage, bind, getsockname};

use crate::process::Redirected;

/// The ports of one launched program's tree. Everybody in it who asks for the same gets the same.
#[derive(Debug)]
pub(super) struct Ports {
    own: u16,
    given: HashMap<u16, u16>,
}

impl Ports {
    /// The first fixed port will become `own`, if that is free.
    pub(super) fn new(own: u16) -> Self {
        Self { own, given: HashMap::new() }
    }

    /// How many fixed ports have been asked for.
    pub(super) fn count(&self) -> usize {
        self.given.len()
    }

    /// Binds a socket to the port that `asked` stands for. What is new is returned.
    pub(super) fn bind(&mut self, socket: &OwnedFd, asked: SocketAddr) -> Result<Option<Redirected>, Errno> {
        let from = asked.port();
        if let Some(&to) = self.given.get(&from) {
            let there = at(asked, to);
            return match bind_to(socket, there) {
                // Kernels before 5.19 let a signal tear a call away that we have carried out already; it comes again.
                Err(Errno::EINVAL) if bound_to(socket) == Some(there) => Ok(None),
                bound => bound.map(|()| None),
            };
        }
        let own_is_left = !self.is_given(self.own);
        let bound = match bind_to(socket, at(asked, if own_is_left { self.own } else { 0 })) {
            // Somebody else was faster.
            Err(Errno::EADDRINUSE) if own_is_left => bind_to(socket, at(asked, 0)),
            bound => bound,
        };
        bound?;
        let to = bound_to(socket).ok_or(Errno::EADDRNOTAVAIL)?.port();
        self.given.insert(from, to);
        Ok(Some(Redirected { from, to }))
    }

    /// The port that `asked` stands for, for a socket that we cannot bind ourselves: somebody may be faster. `None`: it is one
    /// of those that we have given, in an address that the program uses again.
    pub(super) fn choose(&mut self, asked: SocketAddr) -> io::Result<Option<Chosen>> {
        let from = asked.port();
        if let Some(&to) = self.given.get(&from) {
            return Ok(Some(Chosen { to, is_new: None }));
        }
        if self.is_given(from) {
            return Ok(None);
        }
        let own = TcpListener::bind(at(asked, if self.is_given(self.own) { 0 } else { self.own }));
        let to = own.or_else(|_| TcpListener::bind(at(asked, 0)))?.local_addr()?.port();
        self.given.insert(from, to);
        Ok(Some(Chosen { to, is_new: Some(Redirected { from, to }) }))
    }

    fn is_given(&self, port: u16) -> bool {
        self.given.values().any(|&given| given == port)
    }
}

/// A port for a program to bind to by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) to: u16,
    /// What was not known before.
    pub(super) is_new: Option<Redirected>,
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

#[cfg(test)]
mod tests {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

    use super::*;

    fn stream_socket() -> OwnedFd {
        socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket")
    }

    #[test]
    fn one_port_becomes_one_port_and_a_call_that_comes_again_succeeds_again() {
        let mut ports = Ports::new(0);
        let asked = "127.0.0.1:3000".parse().expect("an address");
        let (first, second) = (stream_socket(), stream_socket());
        let redirected = ports.bind(&first, asked).expect("the kernel allows it").expect("it is new");
        assert_eq!(bound_to(&first), Some(at(asked, redirected.to)));
        assert_eq!(ports.bind(&first, asked), Ok(None), "as after a signal");
        assert_eq!(ports.bind(&second, asked), Err(Errno::EADDRINUSE));
        assert_eq!(ports.bind(&first, at(asked, 3001)), Err(Errno::EINVAL), "bound already");
        let other = ports.bind(&second, at(asked, 3001)).expect("the kernel allows it").expect("it is new");
        assert_eq!((other.from, other.to == redirected.to), (3001, false));
    }

    #[test]
    fn first_fixed_port_becomes_the_own_one_unless_somebody_was_faster() {
        let asked = "127.0.0.1:3000".parse().expect("an address");
        let holder = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let own = holder.local_addr().expect("an address").port();
        let mut ports = Ports::new(own);
        let redirected = ports.bind(&stream_socket(), asked).expect("the kernel allows it").expect("it is new");
        assert!(![own, 0, 3000].contains(&redirected.to), "{redirected:?}");
        drop(holder);
        let mut ports = Ports::new(own);
        assert_eq!(ports.bind(&stream_socket(), asked), Ok(Some(Redirected { from: 3000, to: own })));
        // Its holder is gone again: it still stands for 3000, so the program's own wish for it goes elsewhere.
        let wish = ports.bind(&stream_socket(), at(asked, own)).expect("the kernel allows it").expect("it is new");
        assert_ne!(wish.to, own);
    }

    #[test]
    fn port_is_chosen_once_and_is_left_alone_when_it_is_asked_for_itself() {
        let mut ports = Ports::new(0);
        let asked = "127.0.0.1:3000".parse().expect("an address");
        let chosen = ports.choose(asked).expect("the kernel allows it").expect("it is fixed");
        assert_eq!(chosen.is_new, Some(Redirected { from: 3000, to: chosen.to }));
        assert_eq!(ports.choose(asked).expect("the kernel allows it"), Some(Chosen { to: chosen.to, is_new: None }));
        assert_eq!(ports.choose(at(asked, chosen.to)).expect("the kernel allows it"), None);
        assert_ne!(ports.choose(at(asked, 3001)).expect("the kernel allows it").map(|other| other.to), Some(chosen.to));
    }
}
