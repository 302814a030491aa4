//! The engine's one clock: the system's monotonic nanoseconds, the same on every thread.
//!
//! Wall-clock time is never read, so a stepped system clock changes nothing.

use std::time::Instant;

use nix::time::{ClockId, clock_gettime};

use crate::model::Nanos;

/// Stands for the system's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(());

impl Clock {
    /// Of this system.
    pub(super) fn new() -> Self {
        Self(())
    }

    /// The time since a moment before the engine began.
    ///
    /// Asked once an exchange, so it is read without std's [`Instant`], whose checked differences cost as much again.
    #[inline]
    #[expect(clippy::cast_sign_loss, reason = "a monotonic clock starts at zero")]
    pub(super) fn now(self) -> Nanos {
        let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Unix system has a monotonic clock");
        Nanos((time.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec() as u64))
    }

    /// That time as tokio's timer wants it.
    pub(super) fn at(self, time: Nanos) -> tokio::time::Instant {
        tokio::time::Instant::from_std(Instant::now() + (time - self.now()).as_duration())
    }
}
