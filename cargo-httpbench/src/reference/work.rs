//! A known amount of CPU work.

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Work in steps, each of which needs the result of the one before, so that no processor does two at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work(pub u64);

impl Work {
    /// Does it. Memory is not touched, so neighbours' caches make no difference.
    #[inline(never)]
    pub fn run(self) {
        let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
        for _ in 0..self.0 {
            // A step of Marsaglia's xorshift64 ("Xorshift RNGs", 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        black_box(state);
    }

    /// What takes so long at this speed.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of steps; saturates after centuries"
    )]
    pub fn lasting(seconds: f64, steps_per_second: f64) -> Self {
        Self((seconds.max(0.0) * steps_per_second).round() as u64)
    }
}

/// How fast this machine does steps, by the CPU time of this thread: the best of several short trials, because whatever disturbs one makes
/// it slower.
#[must_use]
pub fn steps_per_second() -> f64 {
    const TRIALS: u32 = 30;
    const STEPS: u64 = 300_000;
    let trial = |_| {
        let start = cpu_time();
        Work(STEPS).run();
        cpu_time().saturating_sub(start)
    };
    let best = (0..TRIALS).map(trial).filter(|time| !time.is_zero()).min().unwrap_or(Duration::from_millis(1));
    STEPS as f64 / best.as_secs_f64()
}

/// What this thread has used of a processor; where the system does not tell, time that passed.
fn cpu_time() -> Duration {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let own = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    own.map_or_else(|_| BEGIN.elapsed(), Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_proportional_to_time_and_never_negative() {
        assert_eq!(Work::lasting(0.002, 1e6), Work(2_000));
        assert_eq!(Work::lasting(-1.0, 1e6), Work(0));
    }

    #[test]
    fn machine_has_a_speed() {
        assert!(steps_per_second() > 1e5);
    }
}
