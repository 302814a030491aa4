//! When the next exchange starts: a pure function of the time that passed and of what was sent.
//!
//! Who sends it, and how one waits, is left to [starts](super::starts). Nothing here reads a clock. Invariant: the
//! schedules of a window's threads, put together, are the schedule that was asked for, start by start.

use crate::model::Nanos;

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

/// A schedule of starts.
pub(super) trait Pacing: Copy + 'static {
    /// What to do `elapsed` after the window's start, with `sent` exchanges started by it.
    fn next(&self, elapsed: Nanos, sent: u64) -> Pace;
}

/// Start `k` is due at `k / arrival rate`, whatever the server does: an arm's starts are numbered through all its windows,
/// and of T threads thread i has those with the numbers i, i + T, i + 2·T … of each window.
///
/// The schedule runs in loaded time: it stands still between two windows, so neither their ends nor their number change
/// how many starts there are. What is due in a window is due in no other.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConstantArrivals {
    per_second: f64,
    /// Loaded time of earlier windows.
    loaded: Nanos,
    length: Nanos,
    /// Number of this thread's first start.
    first: u64,
    threads: u64,
}

/// Which part of the starts a thread has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The thread, below `threads`.
    pub(super) thread: u32,
    /// Among so many, at least one.
    pub(super) threads: u32,
}

impl ConstantArrivals {
    /// A window of `length`, after windows of the same arm of `loaded` together. `per_second` is positive and finite.
    pub(super) fn new(per_second: f64, loaded: Nanos, length: Nanos, part: Part) -> Self {
        let first = first_due(per_second, loaded) + u64::from(part.thread);
        Self { per_second, loaded, length, first, threads: part.threads.into() }
    }
}

impl Pacing for ConstantArrivals {
    fn next(&self, elapsed: Nanos, sent: u64) -> Pace {
        let number = self.first.saturating_add(sent.saturating_mul(self.threads));
        let due = due(self.per_second, number) - self.loaded;
        if due >= self.length {
            // The window lasts as long as it was asked for, so that the next one does not begin early.
            return if elapsed < self.length { Pace::Wait { until: self.length } } else { Pace::Stop };
        }
        if elapsed >= due { Pace::SendNow { intended: due } } else { Pace::Wait { until: due } }
    }
}

/// When a start is due, in loaded time. Computed from its number, so that no error adds up.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates after 584 years")]
#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 starts")]
fn due(per_second: f64, number: u64) -> Nanos {
    Nanos((number as f64 * 1e9 / per_second).round() as u64)
}

/// The number of the first start that is due at `time` or later.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and only a first guess")]
#[expect(clippy::cast_precision_loss, reason = "only a first guess")]
fn first_due(per_second: f64, time: Nanos) -> u64 {
    let mut number = (time.0 as f64 * per_second / 1e9).floor() as u64;
    while number > 0 && due(per_second, number - 1) >= time {
        number -= 1;
    }
    while due(per_second, number) < time {
        number += 1;
    }
    number
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All starts of a window, asked for when it is long over.
    fn starts(pacing: impl Pacing) -> Vec<Nanos> {
        let paces = (0..).map(|sent| pacing.next(Nanos(u64::MAX), sent));
        paces
            .map_while(|pace| match pace {
                Pace::SendNow { intended } => Some(intended),
                Pace::Wait { .. } => panic!("there is nothing left to wait for"),
                Pace::Stop => None,
            })
            .collect()
    }

    fn alone(per_second: f64, length: Nanos) -> ConstantArrivals {
        ConstantArrivals::new(per_second, Nanos::ZERO, length, Part { thread: 0, threads: 1 })
    }

    #[test]
    fn constant_arrivals_wait_for_each_start_and_for_the_windows_end() {
        let pacing = alone(1_000.0, Nanos::from_micros(2_500));
        let millis = Nanos::from_millis;
        assert_eq!(pacing.next(Nanos(0), 0), Pace::SendNow { intended: millis(0) });
        assert_eq!(pacing.next(Nanos(0), 1), Pace::Wait { until: millis(1) });
        assert_eq!(pacing.next(Nanos(999_999), 1), Pace::Wait { until: millis(1) });
        assert_eq!(pacing.next(millis(1), 1), Pace::SendNow { intended: millis(1) });
        // Late by more than a start: the schedule stands, and the next one is due already.
        assert_eq!(pacing.next(Nanos(2_400_000), 1), Pace::SendNow { intended: millis(1) });
        assert_eq!(pacing.next(Nanos(2_400_000), 2), Pace::SendNow { intended: millis(2) });
        assert_eq!(pacing.next(Nanos(2_400_000), 3), Pace::Wait { until: Nanos(2_500_000) });
        assert_eq!(pacing.next(Nanos(2_500_000), 3), Pace::Stop);
        // What was due is sent after the end as well.
        assert_eq!(pacing.next(millis(9), 2), Pace::SendNow { intended: millis(2) });
    }

    #[test]
    fn two_seconds_of_1000_a_second_are_2000_starts_a_millisecond_apart() {
        let starts = starts(alone(1_000.0, Nanos::from_secs(2)));
        assert_eq!(starts.len(), 2_000);
        assert!(starts.iter().zip(0..).all(|(start, millis)| *start == Nanos::from_millis(millis)));
    }

    #[test]
    fn slow_schedule_goes_on_over_windows_shorter_than_its_gaps() {
        // 3 a second in slices of 50 ms: one in every sixth or seventh, not one in each.
        let slices = (0..60).map(|slice| {
            let loaded = Nanos::from_millis(50) * slice;
            let part = Part { thread: 0, threads: 1 };
            starts(ConstantArrivals::new(3.0, loaded, Nanos::from_millis(50), part)).len()
        });
        let counts: Vec<_> = slices.collect();
        assert_eq!(counts.iter().sum::<usize>(), 9);
        assert!(counts.iter().all(|count| *count <= 1), "{counts:?}");
    }

    proptest! {
        #[test]
        fn threads_starts_interleave_to_exactly_the_schedule(
            per_second in 0.5_f64..20_000.0,
            threads in 1_u32..9,
            lengths in prop::collection::vec(1_u64..200_000_000, 1..6),
        ) {
            let mut together = Vec::new();
            let mut loaded = Nanos::ZERO;
            for length in lengths.into_iter().map(Nanos) {
                let parts = (0..threads).map(|thread| {
                    starts(ConstantArrivals::new(per_second, loaded, length, Part { thread, threads }))
                });
                let parts: Vec<_> = parts.collect();
                let counts = parts.iter().map(Vec::len);
                prop_assert!(counts.clone().max().unwrap_or(0) - counts.min().unwrap_or(0) <= 1);
                let mut window: Vec<_> = parts.concat();
                prop_assert!(window.iter().all(|start| *start < length));
                window.sort_unstable();
                together.extend(window.into_iter().map(|start| loaded + start));
                loaded += length;
            }
            let expected = starts(alone(per_second, loaded));
            prop_assert_eq!(together, expected);
        }

        #[test]
        fn first_due_start_is_the_first(per_second in 0.001_f64..1e7, time in 0_u64..100_000_000_000) {
            let number = first_due(per_second, Nanos(time));
            prop_assert!(due(per_second, number) >= Nanos(time));
            prop_assert!(number == 0 || due(per_second, number - 1) < Nanos(time));
        }
    }
}
