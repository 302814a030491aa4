//! Which of the addresses that programs bind sockets to have a port that is to be another one. Pure.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use nix::libc;

/// The length of `struct sockaddr_in`, and the two that the kernel accepts for `struct sockaddr_in6`: without and with a scope.
const VERSION_4: usize = 16;
const VERSION_6_SHORT: usize = 24;
pub(super) const VERSION_6: usize = 28;

/// Where the port lies in both, in network byte order.
pub(super) const PORT: u64 = 2;

/// The address, if it is one whose port is to be another: fixed, and reached through the loopback interface.
pub(super) fn fixed_port(bytes: &[u8]) -> Option<SocketAddr> {
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
    use super::*;

    fn version_4(address: [u8; 4], port: u16) -> Vec<u8> {
        let family = u16::try_from(libc::AF_INET).expect("a small constant").to_ne_bytes();
        [&family[..], &port.to_be_bytes(), &address, &[0; 8]].concat()
    }

    fn version_6(address: &str, port: u16) -> Vec<u8> {
        let family = u16::try_from(libc::AF_INET6).expect("a small constant").to_ne_bytes();
        let address: Ipv6Addr = address.parse().expect("an address");
        [&family[..], &port.to_be_bytes(), &[0; 4], &address.octets(), &7_u32.to_ne_bytes()].concat()
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
