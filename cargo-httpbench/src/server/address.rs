//! Which address to connect to, and which listener the kernel would give that connection to. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// How strongly a listener claims a connection. The kernel picks the strongest (`compute_score` in net/ipv4/inet_hashtables.c),
/// and deals out connections among equals (SO_REUSEPORT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Claim {
    /// `[::]` takes IPv4 connections that nobody else wants, unless it is IPv6 only.
    OtherFamily,
    /// All addresses of the family.
    AnyAddress,
    /// This very address.
    Exact,
}

/// The claim of a listener on connections to `target`.
pub(super) fn claim(listener: SocketAddr, target: SocketAddr) -> Option<Claim> {
    if listener.port() != target.port() {
        return None;
    }
    match (listener.ip(), target.ip()) {
        (ours, theirs) if ours == theirs => Some(Claim::Exact),
        (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(_)) | (IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V6(_)) => {
            Some(Claim::AnyAddress)
        }
        (IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(_)) => Some(Claim::OtherFamily),
        _ => None,
    }
}

/// The addresses to try for a server that listens at `bound` (one port), the best first.
pub(super) fn targets(bound: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut targets = Vec::new();
    for address in bound {
        let port = address.port();
        match address.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => targets.push(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
                // Whether it takes IPv4 as well can only be tried.
                targets.push(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
                targets.push(SocketAddr::from((Ipv6Addr::LOCALHOST, port)));
            }
            _ => targets.push(*address),
        }
    }
    // IPv4 loopback, other loopback, the rest: what most servers and clients are tested with.
    targets.sort_by_key(|target| (!target.ip().is_loopback(), target.ip() != Ipv4Addr::LOCALHOST, *target));
    targets.dedup();
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    fn targets_of(bound: &[&str]) -> Vec<String> {
        targets(&bound.iter().map(|text| at(text)).collect::<Vec<_>>()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn wildcards_are_reached_by_loopback_and_specific_addresses_as_they_are() {
        assert_eq!(targets_of(&["0.0.0.0:80"]), ["127.0.0.1:80"]);
        assert_eq!(targets_of(&["[::]:80"]), ["127.0.0.1:80", "[::1]:80"]);
        assert_eq!(targets_of(&["[::]:80", "0.0.0.0:80"]), ["127.0.0.1:80", "[::1]:80"]);
        assert_eq!(targets_of(&["192.168.1.5:80"]), ["192.168.1.5:80"]);
        assert_eq!(targets_of(&["[::1]:80"]), ["[::1]:80"]);
        assert_eq!(targets_of(&["192.168.1.5:80", "[::1]:80"]), ["[::1]:80", "192.168.1.5:80"]);
    }

    #[test]
    fn more_specific_listener_gets_the_connection() {
        let target = at("127.0.0.1:80");
        let claims: Vec<_> =
            ["127.0.0.1:80", "0.0.0.0:80", "[::]:80"].into_iter().map(|listener| claim(at(listener), target)).collect();
        assert_eq!(claims, [Some(Claim::Exact), Some(Claim::AnyAddress), Some(Claim::OtherFamily)]);
        assert!(claims[0] > claims[1] && claims[1] > claims[2]);
        for other in ["127.0.0.1:81", "127.0.0.2:80", "[::1]:80"] {
            assert_eq!(claim(at(other), target), None, "{other}");
        }
        assert_eq!(claim(at("0.0.0.0:80"), at("[::1]:80")), None);
    }
}
