//! Listening TCP sockets, asked of the kernel by sock_diag(7).
//!
//! `/proc/net/tcp` tells the same, but walks through the whole table of connections for it: 5 ms and more for each of two
//! files where that table is large (262,144 buckets), again and again while a server starts. This reads the listeners alone.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;

use super::sockets::Listener;

/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h).
const BY_FAMILY: u16 = 20;

/// `TCP_LISTEN` (net/tcp_states.h), as a bit.
const LISTENING: u32 = 1 << 10;

/// The sizes of `struct nlmsghdr`, `struct inet_diag_req_v2` and `struct inet_diag_msg` (linux/netlink.h, linux/inet_diag.h).
const HEADER: usize = 16;
const REQUEST: usize = 56;
const MESSAGE: usize = 72;

/// Every listening socket of both families.
pub(super) fn listeners() -> io::Result<Vec<Listener>> {
    let socket =
        socket(AddressFamily::Netlink, SockType::Datagram, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkSockDiag)?;
    // The kernel answers at once; a bound all the same.
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(1, 0))?;
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let family = u8::try_from(family).map_err(io::Error::other)?;
        send(socket.as_raw_fd(), &request(family), MsgFlags::empty())?;
        let mut buffer = vec![0; 32 * 1024];
        loop {
            let length = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            if take(&buffer[..length], &mut found)? == Dump::Over {
                break;
            }
        }
    }
    Ok(found)
}

/// Whether more answers come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dump {
    GoesOn,
    Over,
}

/// Asks for all listening sockets of a family: a header, and a request that is zero but for these fields.
fn request(family: u8) -> [u8; HEADER + REQUEST] {
    let mut bytes = [0; HEADER + REQUEST];
    let flags = u16::try_from(libc::NLM_F_REQUEST | libc::NLM_F_DUMP).expect("two constants below 2^16");
    bytes[0..4].copy_from_slice(&u32::try_from(HEADER + REQUEST).expect("a constant of 72").to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes[HEADER] = family;
    bytes[HEADER + 1] = u8::try_from(libc::IPPROTO_TCP).expect("a constant of 6");
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&LISTENING.to_ne_bytes());
    bytes
}

/// Takes the sockets out of one answer.
fn take(mut bytes: &[u8], found: &mut Vec<Listener>) -> io::Result<Dump> {
    while !bytes.is_empty() {
        let truncated = || io::Error::new(io::ErrorKind::InvalidData, "an answer of sock_diag is cut off");
        let length = read_u32(bytes, 0).ok_or_else(truncated)? as usize;
        let message = bytes.get(HEADER..length).ok_or_else(truncated)?;
        match i32::from(read_u16(bytes, 4).ok_or_else(truncated)?) {
            libc::NLMSG_DONE => return Ok(Dump::Over),
            libc::NLMSG_ERROR => {
                let error = read_u32(message, 0).ok_or_else(truncated)?.cast_signed();
                return Err(io::Error::from_raw_os_error(error.saturating_neg()));
            }
            _ => found.push(listener(message).ok_or_else(truncated)?),
        }
        // Messages are aligned to four bytes.
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(Dump::GoesOn)
}

/// Reads `struct inet_diag_msg`. Port and address are in network byte order, everything else in ours.
fn listener(message: &[u8]) -> Option<Listener> {
    let message: &[u8; MESSAGE] = message.first_chunk()?;
    let port = u16::from_be_bytes([message[4], message[5]]);
    let address = if i32::from(message[0]) == libc::AF_INET {
        IpAddr::from(*message[8..].first_chunk::<4>()?)
    } else {
        IpAddr::from(Ipv6Addr::from(*message[8..].first_chunk::<16>()?)).to_canonical()
    };
    let (user, inode) = (read_u32(message, 64)?, read_u32(message, 68)?);
    Some(Listener { address: SocketAddr::new(address, port), inode: inode.into(), user })
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn kernel_and_proc_agree_on_our_own_listeners() {
        let mut sockets =
            vec![TcpListener::bind("127.0.0.1:0").expect("a port"), TcpListener::bind("0.0.0.0:0").expect("a port")];
        sockets.extend(TcpListener::bind("[::]:0").ok());
        let (asked, read) = (
            listeners().expect("the kernel answers"),
            super::super::sockets::in_proc().expect("the tables are readable"),
        );
        for socket in sockets {
            let address = socket.local_addr().expect("an address");
            let find = |all: &[Listener]| all.iter().find(|listener| listener.address == address).copied();
            assert!(find(&asked).is_some(), "{address} is missing in {asked:?}");
            assert_eq!(find(&asked), find(&read));
        }
    }

    #[test]
    fn cut_off_and_failing_answers_are_errors() {
        let mut refused = [0; 36];
        refused[0] = 36;
        refused[4] = 2;
        refused[16..20].copy_from_slice(&(-libc::EPERM).to_ne_bytes());
        assert_eq!(take(&refused, &mut Vec::new()).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(take(&refused[..10], &mut Vec::new()).is_err());
        assert!(take(&[0; 16], &mut Vec::new()).is_err(), "a message shorter than its header");
    }
}
