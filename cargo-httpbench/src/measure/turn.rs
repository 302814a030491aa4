//! One measurement at a time on a machine: two at once would measure each other.

use std::io;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use crate::error::Result;
use crate::interrupt::Interrupt;

/// Whoever listens under this name has the turn. An abstract socket (unix(7)) leaves no file behind, belongs to no user, and
/// goes with the process that holds it, however that ends.
const NAME: &str = "cargo-httpbench.turn";

/// How often the holder is asked again.
const PATIENCE: Duration = Duration::from_millis(100);

/// The right to measure, until it is dropped.
#[derive(Debug)]
pub struct Turn(#[expect(dead_code, reason = "held for as long as we measure")] Option<UnixListener>);

impl Turn {
    /// Waits until no other `cargo httpbench` of this machine measures; `waiting` is called once, with who holds the turn.
    ///
    /// Where such a socket cannot be had, nobody is waited for: a courtesy must not stop a measurement.
    ///
    /// # Errors
    ///
    /// When a signal comes while waiting.
    pub fn take(interrupt: &Interrupt, waiting: impl FnOnce(&str)) -> Result<Self> {
        let Ok(address) = address() else { return Ok(Self(None)) };
        let mut waiting = Some(waiting);
        loop {
            match UnixListener::bind_addr(&address) {
                Ok(listener) => return Ok(Self(Some(listener))),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(_) => return Ok(Self(None)),
            }
            if let Some(waiting) = waiting.take() {
                waiting(&holder(&address));
            }
            interrupt.sleep(PATIENCE)?;
        }
    }
}

#[cfg(target_os = "linux")]
fn address() -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;

    SocketAddr::from_abstract_name(NAME)
}

#[cfg(not(target_os = "linux"))]
fn address() -> io::Result<SocketAddr> {
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("no abstract socket can be called {NAME}")))
}

/// Who holds the turn: a listening socket tells its process to everybody who connects.
fn holder(address: &SocketAddr) -> String {
    let Some(pid) = UnixStream::connect_addr(address).ok().and_then(|stream| pid_behind(&stream)) else {
        return "another process".to_owned();
    };
    match std::fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(folder) => format!("process {pid} in {}", folder.display()),
        Err(_) => format!("process {pid}"),
    }
}

#[cfg(target_os = "linux")]
fn pid_behind(stream: &UnixStream) -> Option<i32> {
    use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

    getsockopt(stream, PeerCredentials).ok().map(|credentials| credentials.pid())
}

#[cfg(not(target_os = "linux"))]
fn pid_behind(_: &UnixStream) -> Option<i32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_measurement_waits_for_the_first_and_is_told_who_it_is() {
        let interrupt = Interrupt::deaf().expect("a pipe");
        let first = Turn::take(&interrupt, |_| ()).expect("no signal");
        let (told, hear) = std::sync::mpsc::channel();
        let second = std::thread::spawn(move || {
            Turn::take(&interrupt, |holder| told.send(holder.to_owned()).expect("the test listens")).map(|_| ())
        });
        let holder = hear.recv_timeout(Duration::from_secs(10)).expect("the second one waits");
        assert!(holder.starts_with(&format!("process {} in ", std::process::id())), "{holder}");
        drop(first);
        second.join().expect("no panic").expect("no signal");
    }
}
