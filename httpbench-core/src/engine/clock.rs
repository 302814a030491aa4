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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    #[test]
    fn clock_runs_with_the_monotonic_clock_of_std_and_never_backwards() {
        let clock = Clock::new();
        let (mut last, begun) = (clock.now(), Instant::now());
        for _ in 0..10_000 {
            let next = clock.now();
            assert!(next >= last);
            last = next;
        }
        let ahead = clock.at(clock.now() + Nanos::from_secs(10)).into_std() - begun;
        assert!((Duration::from_secs(10)..Duration::from_secs(30)).contains(&ahead), "{ahead:?}");
    }

    #[test]
    fn nothing_in_the_engine_reads_the_time_of_day() {
        // LG-65: a system clock that is stepped back by an hour cannot change what nobody looks at.
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine")];
        let mut files = 0;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("the engine's sources") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                files += 1;
                let source = fs::read_to_string(&path).expect("a source file");
                for clock in [concat!("System", "Time"), concat!("CLOCK_REAL", "TIME"), concat!("gettime", "ofday")] {
                    assert!(!source.contains(clock), "{} reads {clock}", path.display());
                }
            }
        }
        assert!(files > 10, "only {files} files");
    }
}
