//! Waiting for descriptors, without any notion of what they mean.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// At least one descriptor can be read, or is at its end.
    Readable,
    /// The time is over.
    TimedOut,
}

/// Waits until a descriptor can be read or is at its end. `None` waits for ever. A time is never cut short.
pub(crate) fn readable(descriptors: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<Woken> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut polled: Vec<_> = descriptors.iter().map(|&fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match poll(&mut polled, left.map_or(PollTimeout::NONE, round_up)) {
            Ok(0) if left.is_some_and(|left| left.is_zero()) => return Ok(Woken::TimedOut),
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(Woken::Readable),
            Err(error) => return Err(error.into()),
        }
    }
}

/// `poll` counts whole milliseconds: rounding down would spin through the last one.
fn round_up(left: Duration) -> PollTimeout {
    let millis = left.as_nanos().div_ceil(1_000_000);
    PollTimeout::try_from(i32::try_from(millis).unwrap_or(i32::MAX)).unwrap_or(PollTimeout::MAX)
}
