//! The engine's one clock: monotonic nanoseconds since the round began, the same on every thread.
//!
//! Wall-clock time is never read, so a stepped system clock changes nothing.

use std::time::Instant;

use crate::model::Nanos;

/// Counts from the moment it was made. Copies agree, on other threads too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    epoch: Instant,
}

impl Clock {
    /// Starts at zero.
    pub(super) fn new() -> Self {
        Self { epoch: Instant::now() }
    }

    /// The time since the start.
    #[inline]
    pub(super) fn now(&self) -> Nanos {
        // 64 bits of nanoseconds are 584 years: plain arithmetic on the parts, instead of a checked 128-bit division.
        let since = self.epoch.elapsed();
        Nanos(since.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(since.subsec_nanos())))
    }

    /// That time as tokio's timer wants it.
    pub(super) fn at(&self, time: Nanos) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.epoch + time.as_duration())
    }
}
