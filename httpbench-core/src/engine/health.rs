//! What the engine itself uses: a load generator that is the bottleneck measures itself.
//!
//! Only facts, which travel in the recording; whether they spoil a measurement is for the command to judge.

use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use crate::model::Nanos;

/// The CPU time that the calling thread has used. Zero where the system does not tell.
pub(super) fn thread_cpu() -> Nanos {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Nanos::ZERO, nanos)
}

/// A CPU clock's reading as a span.
pub(super) fn nanos(time: TimeSpec) -> Nanos {
    Duration::from(time).into()
}
