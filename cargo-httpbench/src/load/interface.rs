//! The network interface that leads to an address, and how much it can carry.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use nix::ifaddrs::getifaddrs;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    /// As the system calls it.
    pub(super) name: String,
    /// What it can carry in one direction, where it says so; virtual ones do not.
    pub(super) bits_per_second: Option<u64>,
}

/// The interface on the way to an address; `None` where the system does not tell. Sends nothing.
pub(super) fn towards(ip: IpAddr) -> Option<Interface> {
    let any: IpAddr = if ip.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // Connecting a datagram socket only asks the routing table which local address would be used. The port is any (discard).
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(SocketAddr::new(ip, 9)).ok()?;
    let ours = socket.local_addr().ok()?.ip();
    let name = getifaddrs().ok()?.find(|interface| {
        let address = interface.address.as_ref();
        let v4 = address.and_then(|address| address.as_sockaddr_in()).map(|address| IpAddr::V4(address.ip()));
        let v6 = address.and_then(|address| address.as_sockaddr_in6()).map(|address| IpAddr::V6(address.ip()));
        v4.or(v6) == Some(ours)
    })?;
    Some(Interface { bits_per_second: speed(&name.interface_name), name: name.interface_name })
}

/// `/sys/class/net/NAME/speed` holds megabits per second, −1 or an error where there is no such thing (sysfs-class-net).
fn speed(name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/sys/class/net/{name}/speed")).ok()?;
    text.trim().parse::<u64>().ok().filter(|megabits| *megabits > 0).map(|megabits| megabits * 1_000_000)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_reached_by_its_own_interface_without_a_speed() {
        let interface = towards(Ipv4Addr::LOCALHOST.into()).expect("there is one");
        assert_eq!(interface, Interface { name: "lo".to_owned(), bits_per_second: None });
    }
}
