//! What lets starts through on one engine thread: the window's end, its number of starts, and a stop from outside.
//!
//! Belongs to the thread alone, so that a closed loop pays a look at two cells for all three. Knows no connection, and
//! leaves schedules to [pacing](super::pacing). Invariant: once stopped, nothing passes any more.

use std::cell::Cell;

use crate::model::Nanos;

/// See the [module](self). Shut until a window opens it.
#[derive(Debug, Default)]
pub(super) struct Gate {
    end: Cell<Nanos>,
    left: Cell<u64>,
    stopped: Cell<Option<Nanos>>,
}

impl Gate {
    /// Lets so many starts through until `end`; without a number, all. Shut for good once stopped.
    pub(super) fn open(&self, end: Nanos, starts: Option<u64>) {
        if self.stopped.get().is_none() {
            self.end.set(end);
            self.left.set(starts.unwrap_or(u64::MAX));
        }
    }

    /// Takes one start, if one may begin `now`.
    #[inline]
    pub(super) fn pass(&self, now: Nanos) -> bool {
        let left = self.left.get();
        let passes = now < self.end.get() && left > 0;
        if passes {
            self.left.set(left - 1);
        }
        passes
    }

    /// Whether the window's number of starts was reached.
    pub(super) fn is_used_up(&self) -> bool {
        self.left.get() == 0
    }

    /// Lets nothing through any more.
    pub(super) fn stop(&self, now: Nanos) {
        if self.stopped.get().is_none() {
            self.stopped.set(Some(now));
            self.end.set(Nanos::ZERO);
        }
    }

    /// When it was stopped.
    pub(super) fn stopped(&self) -> Option<Nanos> {
        self.stopped.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gate_is_shut_before_the_window_after_its_end_and_after_its_last_start() {
        let gate = Gate::default();
        assert!(!gate.pass(Nanos(0)));
        gate.open(Nanos(100), Some(2));
        assert!(gate.pass(Nanos(5)) && !gate.is_used_up());
        assert!(!gate.pass(Nanos(100)), "the end is no part of the window");
        assert!(gate.pass(Nanos(99)) && gate.is_used_up());
        assert!(!gate.pass(Nanos(99)));
        gate.open(Nanos(200), None);
        assert!((0..1_000).all(|_| gate.pass(Nanos(150))));
    }

    #[test]
    fn gate_that_was_stopped_stays_shut() {
        let gate = Gate::default();
        gate.open(Nanos(100), None);
        gate.stop(Nanos(50));
        gate.stop(Nanos(60));
        assert!(!gate.pass(Nanos(50)));
        gate.open(Nanos(200), None);
        assert!(!gate.pass(Nanos(150)));
        assert_eq!(gate.stopped(), Some(Nanos(50)));
    }
}
