//! When the next exchange starts: pure functions of the time that passed and of the starts before.
//!
//! [`Arrivals`] is a schedule of starts in loaded time, [`Window`] one thread's part of it in one window. Who takes a
//! start, and how one waits for it, is left to [starts](super::starts). Nothing here reads a clock. Invariant: the starts
//! of a window's threads, put together, are those of the schedule, start by start, and the windows continue it.

mod poisson;
mod ramp;
mod window;

pub(super) use window::{Origin, Part, Window};

use crate::model::{Nanos, Schedule};
use ramp::Ramp;

/// What is to be done next. All times count from the window's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// An exchange starts at once.
    SendNow {
        /// When it should have.
        intended: Nanos,
    },
    /// Nothing starts before `until`, which is later than now.
    Wait {
        /// When to ask again.
        until: Nanos,
    },
    /// No more starts in this window.
    Stop,
}

/// A start of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Start {
    /// Counted through all windows of an arm.
    pub(super) number: u64,
    /// When, in loaded time: it stands still between two windows.
    pub(super) due: Nanos,
}

/// A schedule of starts, whatever the server does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arrivals {
    /// Start `k` is due at `k / per_second`.
    Constant {
        /// Positive and finite.
        per_second: f64,
    },
    /// The gap before each start is exponentially distributed.
    Poisson {
        /// On average; positive and finite.
        per_second: f64,
        /// What the gaps are drawn from.
        seed: u64,
    },
    /// Start `k` is due when the integral of the arrival rate reaches `k`.
    Ramp(Ramp),
}

impl Arrivals {
    /// The plan's; `None` for a closed loop. Those of sessions are the opening of connections.
    pub(super) fn of(schedule: Schedule) -> Option<Self> {
        Some(match schedule {
            Schedule::Closed => return None,
            Schedule::Constant { per_second } | Schedule::Sessions { per_second, .. } => Self::Constant { per_second },
            Schedule::Poisson { per_second, seed } => Self::Poisson { per_second, seed },
            Schedule::Ramp { from, to, over } => Self::Ramp(Ramp { from, to, over }),
        })
    }

    /// The first start of all.
    pub(super) fn first(&self) -> Start {
        let due = match self {
            Self::Constant { .. } | Self::Ramp(_) => Nanos::ZERO,
            Self::Poisson { per_second, seed } => poisson::gap(*per_second, *seed, 0),
        };
        Start { number: 0, due }
    }

    /// Start `number`, seen from one that is not later.
    pub(super) fn later(&self, from: Start, number: u64) -> Start {
        let due = match self {
            // Computed from the number, so that no error adds up.
            Self::Constant { per_second } => nanos(number as f64 / per_second),
            Self::Ramp(ramp) => ramp.due(number),
            Self::Poisson { per_second, seed } => {
                let gaps = (from.number..number).map(|before| poisson::gap(*per_second, *seed, before + 1));
                from.due + gaps.sum()
            }
        };
        Start { number, due }
    }
}

/// Seconds as nanoseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates after 584 years")]
fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many starts from the first one on.
    fn starts(arrivals: Arrivals, count: u64) -> Vec<Nanos> {
        let mut start = arrivals.first();
        let step = |number| {
            start = arrivals.later(start, number);
            start.due
        };
        (0..count).map(step).collect()
    }

    #[test]
    fn constant_arrivals_are_evenly_spaced_and_no_error_adds_up() {
        let starts = starts(Arrivals::Constant { per_second: 3_000.0 }, 30_001);
        assert_eq!(starts[..4], [0, 333_333, 666_667, 1_000_000].map(Nanos));
        assert_eq!(starts[30_000], Nanos::from_secs(10));
    }

    #[test]
    fn poisson_arrivals_are_those_of_their_seed_with_exponential_gaps() {
        // LG-50: 1,000 a second for 5 s.
        let arrivals = |seed| starts(Arrivals::Poisson { per_second: 1_000.0, seed }, 5_000);
        assert_eq!(arrivals(7), arrivals(7));
        assert_ne!(arrivals(7), arrivals(8));
        for seed in [1, 7, 42] {
            let starts = arrivals(seed);
            let gaps: Vec<_> =
                [Nanos::ZERO].iter().chain(&starts).zip(&starts).map(|(a, b)| (*b - *a).as_secs_f64() * 1e3).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let sd = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
            assert!((0.97..1.03).contains(&mean), "mean {mean} ms with seed {seed}");
            assert!((0.95..1.05).contains(&(sd / mean)), "sd {sd} ms with seed {seed}");
            // The median of an exponential distribution is ln 2, and a share of 1/e is longer than the mean.
            let longer = gaps.iter().filter(|gap| **gap > 1.0).count() as f64 / gaps.len() as f64;
            assert!((0.34..0.40).contains(&longer), "{longer} of the gaps are longer than 1 ms");
        }
    }

    #[test]
    fn numbers_of_poisson_arrivals_in_equal_spans_vary_as_they_should() {
        // The variance of the counts equals their mean: gaps that depended on one another would change it.
        let starts = starts(Arrivals::Poisson { per_second: 1_000.0, seed: 3 }, 400_000);
        let mut counts = vec![0_f64; 3_900];
        for start in starts {
            if let Some(count) = counts.get_mut((start.0 / 100_000_000) as usize) {
                *count += 1.0;
            }
        }
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64;
        assert!((99.0..101.0).contains(&mean), "{mean}");
        assert!((0.92..1.08).contains(&(variance / mean)), "variance {variance}, mean {mean}");
    }

    #[test]
    fn millions_of_starts_a_second_keep_their_arrival_rate() {
        // Gaps of 100 ns are whole nanoseconds: rounding must not add up.
        for seed in [0, u64::MAX] {
            let last = starts(Arrivals::Poisson { per_second: 1e7, seed }, 1_000_000)[999_999];
            assert!((0.095..0.105).contains(&last.as_secs_f64()), "{last:?}");
        }
    }
}
