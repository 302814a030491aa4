//! The reference server as one more arm: its slices stand between those of the others, and what came of them is taken out of the
//! round before anybody else sees it.
//!
//! Invariant: a round that was measured beside the reference server is, but for [`MeasuredRound::reference`](super::MeasuredRound),
//! what it would be without.

use httpbench_core::model::{Nanos, Recording, SlicePlan};

/// It has one slice for so many of each arm. Its share of the time is small, and still so is its share of the ratio's spread: a
/// comparison without executables accepts 10 % at least.
const TURNS: usize = 4;

/// Puts slices of arm `reference` into a plan in which `arms` arms take turns: in the middle of every four turns, and at least one.
pub(super) fn with_reference(slices: Vec<SlicePlan>, arms: usize, reference: usize) -> Vec<SlicePlan> {
    let turns = slices.len() / arms.max(1);
    let mut all = Vec::with_capacity(slices.len() + turns / TURNS + 1);
    for (index, turn) in slices.chunks(arms.max(1)).enumerate() {
        all.extend_from_slice(turn);
        let is_middle = index % TURNS == TURNS / 2 - 1 || (index == 0 && turns < TURNS / 2);
        if let Some(last) = turn.last().filter(|_| is_middle) {
            all.push(SlicePlan { arm: reference, ..*last });
        }
    }
    all
}

/// Takes the reference server, the arm after the first `arms`, out of a recording. What is left knows nothing of it.
pub(super) fn split(mut recording: Recording, arms: usize) -> (Recording, Option<Recording>) {
    if recording.arms.len() <= arms {
        return (recording, None);
    }
    let mut reference =
        Recording { arms: recording.arms.split_off(arms), slices: Vec::new(), engine: recording.engine };
    let (others, slices) = recording.slices.into_iter().partition(|slice| slice.arm < arms);
    (recording.slices, reference.slices) = (others, slices);
    for slice in &mut recording.slices {
        slice.cpu.truncate(arms);
    }
    for slice in &mut reference.slices {
        slice.cpu.drain(..arms.min(slice.cpu.len()));
        slice.arm = 0;
    }
    reference.engine.cpu = reference.slices.iter().map(|slice| slice.engine_cpu).sum();
    reference.engine.wall = reference.slices.iter().map(|slice| slice.wall).sum();
    let engine = &mut recording.engine;
    engine.cpu = Nanos(engine.cpu.0.saturating_sub(reference.engine.cpu.0));
    engine.wall = Nanos(engine.wall.0.saturating_sub(reference.engine.wall.0));
    (recording, Some(reference))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::SliceScheme;
    use crate::measure::sample::{beside, round};

    fn arms_of(count: u64, arms: usize) -> Vec<usize> {
        let scheme =
            SliceScheme { count, length: Nanos::from_millis(50), lead_in: Nanos::from_millis(5), stretched: false };
        let slices = scheme.slices(arms, &mut fastrand::Rng::with_seed(1));
        with_reference(slices, arms, arms).iter().map(|slice| slice.arm).collect()
    }

    #[test]
    fn reference_has_a_slice_for_four_of_each_arm_and_breaks_no_pair() {
        assert_eq!(arms_of(8, 1), [0, 0, 1, 0, 0, 0, 0, 1, 0, 0]);
        let two = arms_of(16, 2);
        assert_eq!(two.iter().filter(|arm| **arm == 2).count(), 4);
        let pairs: Vec<usize> = two.into_iter().filter(|arm| *arm < 2).collect();
        assert!(pairs.chunks(2).all(|pair| pair[0] != pair[1]));
        for few in [1, 2, 3] {
            assert_eq!(arms_of(few, 1).iter().filter(|arm| **arm == 1).count(), 1, "{few}");
        }
    }

    #[test]
    fn what_is_left_is_what_it_would_be_without() {
        let alone = round(1_000, Nanos::from_millis(1));
        let both = beside(alone.clone(), round(500, Nanos::from_millis(2)));
        let (left, reference) = split(both.recording, 1);
        assert_eq!(left, alone.recording);
        let reference = reference.expect("there was one");
        assert_eq!((reference.arms.len(), reference.slices[0].arm, reference.slices[0].good), (1, 0, 500));
        assert_eq!(reference.slices[0].cpu, [Some(Nanos::from_millis(5))]);
        assert_eq!(split(alone.recording, 1).1, None);
    }
}
