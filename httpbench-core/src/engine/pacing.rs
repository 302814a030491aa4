//! When the next exchange starts: a pure function of the time that passed and of what was sent.
//!
//! The worker asks and obeys; it does not know which pacing it runs. Nothing here reads a clock.

use crate::model::Nanos;

/// What a connection does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// It starts an exchange at once.
    SendNow,
    /// It starts no more in this window.
    Stop,
}

/// A schedule of starts.
pub(super) trait Pacing: Copy + 'static {
    /// What to do `elapsed` after the window's start, with `sent` exchanges started by this connection in it.
    fn next(&self, elapsed: Nanos, sent: u64) -> Pace;
}

/// Each connection sends as soon as its last answer is complete, until the window is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClosedLoop {
    /// No exchange starts at or after this time.
    pub(super) length: Nanos,
}

impl Pacing for ClosedLoop {
    #[inline]
    fn next(&self, elapsed: Nanos, _sent: u64) -> Pace {
        if elapsed < self.length { Pace::SendNow } else { Pace::Stop }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_loop_sends_until_the_window_is_over() {
        let pacing = ClosedLoop { length: Nanos(100) };
        assert_eq!(pacing.next(Nanos(0), 0), Pace::SendNow);
        assert_eq!(pacing.next(Nanos(99), 1_000_000), Pace::SendNow);
        assert_eq!(pacing.next(Nanos(100), 0), Pace::Stop);
        assert_eq!(pacing.next(Nanos(u64::MAX), 0), Pace::Stop);
    }
}
