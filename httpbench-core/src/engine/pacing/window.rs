//! One thread's part of a schedule in one window.
//!
//! Of T threads, thread i has the starts i, i + T, i + 2·T … of each window. What is due in a window is due in no other:
//! loaded time stands still between two of them, so neither their ends nor their number change how many starts there are.

use super::{Arrivals, Pace, Start};
use crate::model::Nanos;

/// When starts are due that a schedule does not have: those after a ramp down to zero.
const NEVER: Nanos = Nanos(u64::MAX);

/// Which part of the starts a thread has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Part {
    /// The thread, below `threads`.
    pub(in crate::engine) thread: u32,
    /// Among so many, at least one.
    pub(in crate::engine) threads: u32,
}

/// Where a window begins in its arm's schedule. Every thread computes the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Origin {
    /// Loaded time of earlier windows.
    loaded: Nanos,
    /// The first start that is due then or later.
    first: Start,
}

impl Origin {
    /// Of an arm's first window.
    pub(in crate::engine) fn of(arrivals: &Arrivals) -> Self {
        Self { loaded: Nanos::ZERO, first: arrivals.first() }
    }
}

/// See the [module](self). Remembers which start is the thread's next.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Window {
    arrivals: Arrivals,
    loaded: Nanos,
    length: Nanos,
    /// Number of the first start after the window's, where these are counted.
    end: u64,
    threads: u64,
    /// The thread's last start, or the window's first.
    last: Start,
    next: Start,
}

impl Window {
    /// Of `length`, or until as many starts of all threads together, whichever ends it first.
    pub(in crate::engine) fn new(
        arrivals: Arrivals,
        origin: Origin,
        length: Nanos,
        starts: Option<u64>,
        part: Part,
    ) -> Self {
        let Origin { loaded, first } = origin;
        let end = starts.map_or(u64::MAX, |starts| first.number.saturating_add(starts));
        let next = arrivals.later(first, first.number + u64::from(part.thread));
        Self { arrivals, loaded, length, end, threads: part.threads.into(), last: first, next }
    }

    /// What to do `elapsed` after the window's start.
    pub(in crate::engine) fn pace(&self, elapsed: Nanos) -> Pace {
        if self.is_used_up() {
            return Pace::Stop;
        }
        let due = self.next.due - self.loaded;
        if due >= self.length {
            // The window lasts as long as it was asked for, so that the next one does not begin early.
            return if elapsed < self.length { Pace::Wait { until: self.length } } else { Pace::Stop };
        }
        if elapsed >= due { Pace::SendNow { intended: due } } else { Pace::Wait { until: due } }
    }

    /// The thread's next start is taken, whatever becomes of it.
    pub(in crate::engine) fn take(&mut self) {
        self.last = self.next;
        self.next = self.after_next();
    }

    /// Whether the start that the thread took is the last one, of all threads together, in a window that is ended by their
    /// number.
    pub(in crate::engine) fn took_the_last(&self) -> bool {
        self.last.number.saturating_add(1) == self.end
    }

    /// Whether the thread has taken all starts of a window that is ended by their number, or as many as there will be.
    pub(in crate::engine) fn is_used_up(&self) -> bool {
        let is_counted = self.end < u64::MAX;
        self.next.number >= self.end || (is_counted && self.next.due == NEVER)
    }

    /// When the thread's next start but one is due, if this window has it.
    pub(in crate::engine) fn following(&self) -> Option<Nanos> {
        let Start { number, due } = self.after_next();
        let due = due - self.loaded;
        (number < self.end && due < self.length).then_some(due)
    }

    fn after_next(&self) -> Start {
        self.arrivals.later(self.next, self.next.number.saturating_add(self.threads))
    }

    /// Where the arm's next window begins, once the thread has taken its starts of this one. If their number ended it, that
    /// is where the next start is due.
    pub(in crate::engine) fn end(&self) -> Origin {
        let end = self.loaded + self.length;
        let mut first = self.last;
        while first.due < end && first.number < self.end {
            first = self.arrivals.later(first, first.number + 1);
        }
        Origin { loaded: first.due.min(end), first }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ramp::Ramp;
    use super::*;

    const ALONE: Part = Part { thread: 0, threads: 1 };

    /// All starts of a window, asked for when it is long over, and the window then.
    fn starts(mut window: Window) -> (Vec<Nanos>, Window) {
        let mut starts = Vec::new();
        loop {
            match window.pace(Nanos(u64::MAX)) {
                Pace::SendNow { intended } => starts.push(intended),
                Pace::Wait { .. } => panic!("there is nothing left to wait for"),
                Pace::Stop => return (starts, window),
            }
            window.take();
        }
    }

    fn first_window(arrivals: Arrivals, length: Nanos, starts: Option<u64>) -> Window {
        Window::new(arrivals, Origin::of(&arrivals), length, starts, ALONE)
    }

    #[test]
    fn window_waits_for_each_start_and_for_its_own_end() {
        let mut window = first_window(Arrivals::Constant { per_second: 1_000.0 }, Nanos::from_micros(2_500), None);
        let millis = Nanos::from_millis;
        assert_eq!(window.pace(Nanos(0)), Pace::SendNow { intended: millis(0) });
        window.take();
        assert_eq!(window.pace(Nanos(0)), Pace::Wait { until: millis(1) });
        assert_eq!(window.pace(Nanos(999_999)), Pace::Wait { until: millis(1) });
        assert_eq!(window.pace(millis(1)), Pace::SendNow { intended: millis(1) });
        // Late by more than a start: the schedule stands, and the next one is due already.
        assert_eq!(window.pace(Nanos(2_400_000)), Pace::SendNow { intended: millis(1) });
        assert_eq!(window.following(), Some(millis(2)));
        window.take();
        // What was due is sent after the end as well.
        assert_eq!(window.pace(millis(9)), Pace::SendNow { intended: millis(2) });
        assert_eq!(window.following(), None, "3 ms is in the next window");
        window.take();
        assert_eq!(window.pace(Nanos(2_400_000)), Pace::Wait { until: Nanos(2_500_000) });
        assert_eq!(window.pace(Nanos(2_500_000)), Pace::Stop);
    }

    #[test]
    fn counted_window_ends_with_its_last_start() {
        let mut window = first_window(Arrivals::Constant { per_second: 1_000.0 }, Nanos::from_secs(60), Some(2));
        window.take();
        assert!(!window.took_the_last() && window.following().is_none());
        assert_eq!(window.pace(Nanos::from_millis(1)), Pace::SendNow { intended: Nanos::from_millis(1) });
        window.take();
        assert!(window.is_used_up() && window.took_the_last());
        assert_eq!(window.pace(Nanos::from_millis(1)), Pace::Stop, "at once");
        let next = Window::new(window.arrivals, window.end(), Nanos::from_secs(60), Some(1), ALONE);
        assert_eq!((next.next.number, next.pace(Nanos(0))), (2, Pace::SendNow { intended: Nanos(0) }));
    }

    #[test]
    fn counted_window_ends_when_its_schedule_has_no_more_starts() {
        let arrivals = Arrivals::Ramp(Ramp { from: 10.0, to: 0.0, over: Nanos::from_secs(1) });
        // Five within the second, and one at its end.
        let (starts, window) = starts(first_window(arrivals, NEVER, Some(100)));
        assert_eq!((starts.len(), starts[5]), (6, Nanos::from_secs(1)));
        assert_eq!(window.pace(Nanos::from_secs(1)), Pace::Stop, "at once");
        // Without a number, the window lasts as long as it was asked for.
        let mut window = first_window(arrivals, Nanos::from_secs(3), None);
        (0..6).for_each(|_| window.take());
        assert_eq!(window.pace(Nanos::from_secs(1)), Pace::Wait { until: Nanos::from_secs(3) });
    }

    #[test]
    fn two_seconds_of_1000_a_second_are_2000_starts_a_millisecond_apart() {
        // LG-46
        let arrivals = Arrivals::Constant { per_second: 1_000.0 };
        let (starts, _) = starts(first_window(arrivals, Nanos::from_secs(2), None));
        assert_eq!(starts.len(), 2_000);
        assert!(starts.iter().zip(0..).all(|(start, millis)| *start == Nanos::from_millis(millis)));
    }

    #[test]
    fn slow_schedule_goes_on_over_windows_shorter_than_its_gaps() {
        // 3 a second in slices of 50 ms: one in every sixth or seventh, not one in each.
        let arrivals = Arrivals::Constant { per_second: 3.0 };
        let mut origin = Origin::of(&arrivals);
        let slices = (0..60).map(|_| {
            let (starts, window) = starts(Window::new(arrivals, origin, Nanos::from_millis(50), None, ALONE));
            origin = window.end();
            starts.len()
        });
        let counts: Vec<_> = slices.collect();
        assert_eq!(counts.iter().sum::<usize>(), 9);
        assert!(counts.iter().all(|count| *count <= 1), "{counts:?}");
    }

    #[test]
    fn ten_million_counted_starts_are_as_many() {
        let arrivals = Arrivals::Constant { per_second: 1e7 };
        let mut window = first_window(arrivals, Nanos::from_secs(3_600), Some(10_000_000));
        let mut taken = 0_u64;
        while window.pace(Nanos(u64::MAX)) != Pace::Stop {
            window.take();
            taken += 1;
        }
        assert_eq!(taken, 10_000_000);
    }

    fn any_arrivals() -> impl Strategy<Value = Arrivals> {
        let rates = || 0.5_f64..20_000.0;
        let ramp = (rates(), rates(), 0_u64..2_000_000_000)
            .prop_map(|(from, to, over)| Arrivals::Ramp(Ramp { from, to, over: Nanos(over) }));
        prop_oneof![
            rates().prop_map(|per_second| Arrivals::Constant { per_second }),
            (rates(), any::<u64>()).prop_map(|(per_second, seed)| Arrivals::Poisson { per_second, seed }),
            ramp,
        ]
    }

    proptest! {
        #[test]
        fn threads_starts_interleave_to_exactly_the_schedule_and_windows_continue_it(
            arrivals in any_arrivals(),
            threads in 1_u32..9,
            windows in prop::collection::vec((1_u64..200_000_000, prop::option::of(1_u64..400)), 1..6),
        ) {
            // Loaded times of all starts, in their order, and where the schedule stands after the windows.
            let mut together = Vec::new();
            let mut origin = Origin::of(&arrivals);
            for (length, counted) in windows {
                let length = Nanos(length);
                let parts = (0..threads).map(|thread| {
                    starts(Window::new(arrivals, origin, length, counted, Part { thread, threads }))
                });
                let parts: Vec<_> = parts.collect();
                let counts = parts.iter().map(|(starts, _)| starts.len());
                prop_assert!(counts.clone().max().unwrap_or(0) - counts.clone().min().unwrap_or(0) <= 1);
                if let Some(counted) = counted {
                    prop_assert!(counts.sum::<usize>() as u64 <= counted);
                }
                let mut window: Vec<_> = parts.iter().flat_map(|(starts, _)| starts.clone()).collect();
                prop_assert!(window.iter().all(|start| *start < length));
                window.sort_unstable();
                together.extend(window.iter().map(|start| origin.loaded + *start));
                // All threads agree on where the next window begins: after the last start of this one.
                let next = parts[0].1.end();
                prop_assert!(parts.iter().all(|(_, window)| window.end() == next));
                prop_assert_eq!(next.first.number, together.len() as u64);
                let ended_by_count = counted.is_some_and(|counted| window.len() as u64 == counted);
                prop_assert!(next.loaded == origin.loaded + length || (ended_by_count && next.loaded == next.first.due));
                origin = next;
            }
            let mut start = arrivals.first();
            for (number, due) in together.into_iter().enumerate() {
                start = arrivals.later(start, number as u64);
                prop_assert_eq!(due, start.due);
            }
            prop_assert_eq!(arrivals.later(start, origin.first.number).due, origin.first.due);
        }
    }
}
