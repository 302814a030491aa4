//! The one place with `unsafe` outside the engine: taking over the control channel's file descriptor.

use std::io;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::socket::{SockType, UnixAddr, getsockname, getsockopt, sockopt};

/// Takes over an inherited Unix stream socket, as one that children of this process do not inherit.
///
/// May be called once in a process: the descriptor has one owner.
pub(crate) fn inherited_socket(descriptor: RawFd) -> io::Result<UnixStream> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let refused = || io::Error::from(io::ErrorKind::InvalidInput);
    if descriptor <= STANDARD_ERROR {
        return Err(refused());
    }
    // Fails on what is closed, no socket, or a socket of another family.
    getsockname::<UnixAddr>(descriptor)?;
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(refused());
    }
    // SAFETY: the descriptor is open, as `getsockname` just found. It is none of the standard streams, this function hands
    // it out only once, and nothing else in this process knows of it: the command made it for us before `main`, and named
    // it in a variable that is ours alone.
    let inherited = unsafe { UnixStream::from_raw_fd(descriptor) };
    if getsockopt(&inherited, sockopt::SockType)? != SockType::Stream {
        return Err(refused());
    }
    // The inherited descriptor lacks close-on-exec, or we would not have it. The copy has the flag, and the original ends
    // here: a process that a scenario starts must not hold the channel open when we are gone.
    inherited.try_clone()
}

/// The highest of the standard streams' descriptors.
const STANDARD_ERROR: RawFd = 2;

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{AsRawFd, IntoRawFd};

    use super::*;

    #[test]
    fn what_is_no_unix_socket_is_refused_and_left_open() {
        let file = File::open("/dev/null").expect("opens");
        for wrong in [0, 2, -1, file.as_raw_fd(), 1_000_000] {
            assert!(inherited_socket(wrong).is_err(), "{wrong}");
        }
        assert!(file.metadata().is_ok());
    }

    #[test]
    fn socket_is_taken_over_once() {
        let (mut near, far) = UnixStream::pair().expect("a pair");
        let descriptor = far.into_raw_fd();
        let taken = inherited_socket(descriptor).expect("taken over");
        assert_ne!(taken.as_raw_fd(), descriptor);
        let (_near, other) = UnixStream::pair().expect("a pair");
        let second = inherited_socket(other.as_raw_fd()).expect_err("has an owner");
        assert_eq!(second.kind(), io::ErrorKind::InvalidInput);
        drop(taken);
        assert_eq!(near.read(&mut [0]).expect("an end"), 0, "the original is closed too");
    }
}
