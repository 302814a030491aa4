//! What the engine itself uses: a load generator that is the bottleneck measures itself.
//!
//! Only facts, which travel in the recording; whether they spoil a measurement is for the command to judge.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use crate::model::Nanos;

/// The CPU time that the calling thread has used. Zero where the system does not tell.
pub(super) fn thread_cpu() -> Nanos {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Nanos::ZERO, nanos)
}

/// A kernel's time as a span. A negative one, which no CPU clock shows, is zero.
pub(super) fn nanos(time: TimeSpec) -> Nanos {
    let part = |value: i64| u64::try_from(value).unwrap_or_default();
    Nanos::from_secs(part(time.tv_sec())) + Nanos(part(time.tv_nsec()))
}
