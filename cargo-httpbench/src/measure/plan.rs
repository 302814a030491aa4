//! How a scenario's loaded time is cut into slices: a pure function of what the pilot saw.

use httpbench_core::model::{Nanos, SlicePlan};

use crate::config::LoadSettings;

/// The shortest slice. Below it, the ends weigh more than the middle.
const SHORTEST_SLICE: Nanos = Nanos::from_millis(50);

/// A slice holds at least this many median service times of a connection.
const EXCHANGES_IN_A_SLICE: u64 = 4;

/// In an open loop, also this many gaps between two starts: with fewer, a start more or less would weigh.
const STARTS_IN_A_SLICE: f64 = 10.0;

/// Slices of a round: at least two, so that a round has an inner spread, and at most 16, beyond which the recorded
/// spread of a round's value did not shrink any more.
const FEWEST_SLICES: u64 = 2;
const MOST_SLICES: u64 = 16;

/// The least lead-in of a slice: connections fall into step in it.
const SHORTEST_LEAD_IN: Nanos = Nanos::from_millis(5);

/// The slices of every round of one scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceScheme {
    /// Slices of each arm in a round.
    pub count: u64,
    /// Their length, before jitter.
    pub length: Nanos,
    /// The part of each that is left out of its throughput.
    pub lead_in: Nanos,
    /// Whether the loaded time had to grow so that the fewest slices fit.
    pub stretched: bool,
}

impl SliceScheme {
    /// Cuts a round's share of the loaded time into slices.
    ///
    /// `p50` is the pilot's median service time, `None` where it saw no good exchange.
    #[must_use]
    pub fn new(load: &LoadSettings, rounds: u32, p50: Option<Nanos>) -> Self {
        let p50 = p50.unwrap_or(Nanos::ZERO);
        let starts = load.arrival_rate.map_or(Nanos::ZERO, starts_time);
        let shortest = load.slice.unwrap_or_else(|| SHORTEST_SLICE.max(p50 * EXCHANGES_IN_A_SLICE).max(starts));
        let share = load.duration / u64::from(rounds.max(1));
        let fitting = share.0 / shortest.0.max(1);
        let count = match load.slice {
            Some(_) => fitting.max(FEWEST_SLICES),
            None => fitting.clamp(FEWEST_SLICES, MOST_SLICES),
        };
        let length = load.slice.unwrap_or_else(|| shortest.max(share / count));
        let lead_in = SHORTEST_LEAD_IN.max(p50 * 2).min(length / 2);
        Self { count, length, lead_in, stretched: fitting < FEWEST_SLICES }
    }

    /// Loaded time of each arm in a round.
    #[must_use]
    pub fn loaded(&self) -> Nanos {
        self.length * self.count
    }

    /// The slices of one round, for so many arms.
    ///
    /// Slice by slice every arm has its turn, with the same length, so that the arms' slices pair up. The order of the arms is
    /// drawn for two turns at once and reversed in the second (ABBA or BAAB): what grows or wanes steadily over a round then
    /// weighs on every arm alike. Lengths are jittered by up to 20 %, so that no slice keeps step with something periodic in a
    /// server.
    #[must_use]
    pub fn slices(&self, arms: usize, random: &mut fastrand::Rng) -> Vec<SlicePlan> {
        let mut slices = Vec::new();
        let mut order: Vec<usize> = (0..arms).collect();
        for turn in 0..self.count {
            if turn % 2 == 0 {
                random.shuffle(&mut order);
            } else {
                order.reverse();
            }
            let length = Nanos(self.length.0 / 1_000 * random.u64(800..=1_200));
            slices.extend(order.iter().map(|&arm| SlicePlan { arm, length, lead_in: self.lead_in, requests: None }));
        }
        slices
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates after 584 years")]
fn starts_time(per_second: f64) -> Nanos {
    Nanos((STARTS_IN_A_SLICE / per_second * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn load(duration: Nanos, slice: Option<Nanos>) -> LoadSettings {
        LoadSettings {
            connections: 64,
            threads: None,
            duration,
            warm_up: Nanos::ZERO,
            slice,
            request_timeout: Nanos::from_secs(10),
            connect_timeout: Nanos::from_secs(3),
            arrival_rate: None,
            tolerance: BTreeMap::new(),
            tolerance_written: BTreeSet::new(),
            limits: Vec::new(),
        }
    }

    #[test]
    fn six_seconds_over_five_rounds_are_sixteen_slices_of_75_milliseconds() {
        let scheme = SliceScheme::new(&load(Nanos::from_secs(6), None), 5, Some(Nanos::from_micros(400)));
        assert_eq!(scheme.count, 16);
        assert_eq!(scheme.length, Nanos::from_millis(75));
        assert_eq!(scheme.lead_in, Nanos::from_millis(5));
        assert!(!scheme.stretched);
    }

    #[test]
    fn slow_exchanges_make_longer_and_fewer_slices() {
        let scheme = SliceScheme::new(&load(Nanos::from_secs(6), None), 5, Some(Nanos::from_millis(100)));
        assert_eq!((scheme.count, scheme.length), (3, Nanos::from_millis(400)));
        assert_eq!(scheme.lead_in, Nanos::from_millis(200), "two median service times, but at most half a slice");
    }

    #[test]
    fn time_that_cannot_hold_two_slices_is_stretched() {
        let scheme = SliceScheme::new(&load(Nanos::from_secs(1), None), 5, Some(Nanos::from_millis(100)));
        assert_eq!((scheme.count, scheme.length), (2, Nanos::from_millis(400)));
        assert!(scheme.stretched);
    }

    #[test]
    fn rare_starts_make_longer_slices() {
        let open = |per_second| LoadSettings { arrival_rate: Some(per_second), ..load(Nanos::from_secs(6), None) };
        let scheme = SliceScheme::new(&open(20.0), 5, Some(Nanos::from_millis(1)));
        assert_eq!((scheme.count, scheme.length), (2, Nanos::from_millis(600)), "500 ms hold ten starts");
        let scheme = SliceScheme::new(&open(2_000.0), 5, Some(Nanos::from_millis(1)));
        assert_eq!((scheme.count, scheme.length), (16, Nanos::from_millis(75)));
        let scheme = SliceScheme::new(&open(1.0), 5, Some(Nanos::from_millis(1)));
        assert_eq!((scheme.count, scheme.length, scheme.stretched), (2, Nanos::from_secs(10), true));
    }

    #[test]
    fn slice_that_the_user_set_is_kept() {
        let scheme = SliceScheme::new(&load(Nanos::from_secs(6), Some(Nanos::from_millis(20))), 5, None);
        assert_eq!((scheme.count, scheme.length), (60, Nanos::from_millis(20)));
    }

    #[test]
    fn jitter_stays_within_a_fifth_and_follows_the_seed() {
        let scheme = SliceScheme::new(&load(Nanos::from_secs(6), None), 5, None);
        let slices = scheme.slices(1, &mut fastrand::Rng::with_seed(7));
        assert_eq!(slices, scheme.slices(1, &mut fastrand::Rng::with_seed(7)));
        assert_eq!(slices.len(), 16);
        for slice in slices {
            assert!((Nanos::from_millis(60)..=Nanos::from_millis(90)).contains(&slice.length), "{slice:?}");
        }
    }

    #[test]
    fn arms_take_turns_with_equal_lengths_and_mirrored_orders() {
        let scheme = SliceScheme::new(&load(Nanos::from_secs(12), None), 16, None);
        let slices = scheme.slices(2, &mut fastrand::Rng::with_seed(3));
        assert_eq!(slices.len(), 2 * 15);
        for block in slices.chunks_exact(4) {
            let arms: Vec<usize> = block.iter().map(|slice| slice.arm).collect();
            assert!(arms == [0, 1, 1, 0] || arms == [1, 0, 0, 1], "{arms:?}");
            assert_eq!(block[0].length, block[1].length);
            assert_eq!(block[2].length, block[3].length);
        }
    }

    #[test]
    fn both_orders_are_drawn_about_equally_often() {
        let scheme = SliceScheme::new(&load(Nanos::from_secs(12), None), 16, None);
        let mut random = fastrand::Rng::with_seed(11);
        let first = (0..200).filter(|_| scheme.slices(2, &mut random)[0].arm == 0).count();
        assert!((70..=130).contains(&first), "{first} of 200");
    }
}
