//! Listening TCP sockets, and who holds them as `/proc/PID/fd` shows it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::SocketAddr;

use crate::process::tree::{descendants, name_of};

/// A socket that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listener {
    /// Where. IPv4 addresses in IPv6 clothes (`::ffff:127.0.0.1`) are IPv4 here.
    pub(super) address: SocketAddr,
    /// The kernel's number of the socket.
    pub(super) inode: u64,
    /// Whose it is.
    pub(super) user: u32,
}

/// Every listening TCP socket of our network namespace.
#[cfg(target_os = "linux")]
pub(super) fn listeners() -> io::Result<Vec<Listener>> {
    // A sandbox may refuse netlink sockets.
    super::diag::listeners().or_else(|_| in_proc())
}

/// The same from `/proc/net/tcp` and `/proc/net/tcp6`.
#[cfg(target_os = "linux")]
pub(super) fn in_proc() -> io::Result<Vec<Listener>> {
    use procfs::net::{TcpState, tcp, tcp6};

    let mut entries = tcp().map_err(io::Error::other)?;
    // Absent where the kernel has no IPv6.
    entries.extend(tcp6().unwrap_or_default());
    let listening = entries.into_iter().filter(|entry| entry.state == TcpState::Listen);
    Ok(listening
        .map(|entry| Listener {
            address: SocketAddr::new(entry.local_address.ip().to_canonical(), entry.local_address.port()),
            inode: entry.inode,
            user: entry.uid,
        })
        .collect())
}

/// Refuses: there is no `/proc` to read.
#[cfg(not(target_os = "linux"))]
pub(super) fn listeners() -> io::Result<Vec<Listener>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "finding a server's port works on Linux only so far"))
}

/// The sockets that descendants of `root` hold.
pub(super) fn held_below(root: u32) -> HashSet<u64> {
    descendants(root).into_iter().flat_map(|member| held_by(member.pid)).collect()
}

/// The sockets that one process holds, as far as we may know.
fn held_by(pid: u32) -> impl Iterator<Item = u64> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| {
        let target = fs::read_link(descriptor.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}

/// Names whoever holds a socket.
pub(super) fn holder(listener: &Listener) -> String {
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if held_by(pid).any(|inode| inode == listener.inode) {
            let name = name_of(pid).unwrap_or_else(|| "?".to_owned());
            return format!("`{name}` (pid {pid})");
        }
    }
    format!("a process of user {} that cannot be seen from here", listener.user)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn own_listener_is_found_with_its_holder() {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address");
        let all = listeners().expect("the tables are readable");
        let listener = all.iter().find(|listener| listener.address == address).expect("it listens");
        assert!(held_by(std::process::id()).any(|inode| inode == listener.inode));
        assert!(holder(listener).contains(&format!("(pid {})", std::process::id())), "{}", holder(listener));
        assert!(!held_below(std::process::id()).contains(&listener.inode), "a process is not its own descendant");
    }
}
