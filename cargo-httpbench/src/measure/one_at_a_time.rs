//! Arms that cannot run at once: a round's slices are dealt out to the arms, and what came of each is put together again.
//!
//! Pure functions. Who starts and stops the servers is the campaign's affair. What comes out is laid out like the round of two
//! arms side by side: slice `k` of one arm stands beside slice `k` of the other, of the same length, as the verdict pairs them.

use httpbench_core::model::{EngineUsage, Recording, SlicePlan, SliceRecording};

use super::MeasuredRound;

/// What it costs, in numbers, that the arms do not run at once (158 recorded rounds of a server of 125,000/s on two cores).
pub const ONE_AT_A_TIME_COST: &str = "where both ways were recorded, throughput estimated from 12 rounds had a standard deviation of 4.8 % this way \
     (one window of 0.8 s for each arm) instead of 1.0 % side by side";

/// The slices of one arm, for a plan that has no other.
pub(super) fn slices_of(arm: usize, slices: &[SlicePlan]) -> Vec<SlicePlan> {
    slices.iter().filter(|slice| slice.arm == arm).map(|slice| SlicePlan { arm: 0, ..*slice }).collect()
}

/// One round of the rounds that each arm had alone, by the index of the arm. `slices` is the plan of which [`slices_of`] gave each
/// its part. `None` where a part is not of this plan.
pub(super) fn merge(slices: &[SlicePlan], alone: Vec<MeasuredRound>) -> Option<MeasuredRound> {
    let arms = alone.len();
    let mut merged = MeasuredRound {
        recording: Recording { arms: Vec::new(), slices: Vec::new(), engine: EngineUsage::default() },
        memory: Vec::new(),
        reference: None,
    };
    let mut parts = Vec::new();
    for MeasuredRound { recording, memory, .. } in alone {
        let engine = &mut merged.recording.engine;
        engine.cpu += recording.engine.cpu;
        engine.wall += recording.engine.wall;
        // The same threads drive one arm after the other.
        engine.threads = engine.threads.max(recording.engine.threads);
        merged.recording.arms.push(only(recording.arms)?);
        merged.memory.push(only(memory)?);
        parts.push(recording.slices.into_iter());
    }
    for &SlicePlan { arm, .. } in slices {
        let slice = parts.get_mut(arm)?.next()?;
        let mut cpu = vec![None; arms];
        cpu[arm] = slice.cpu.first().copied().flatten();
        merged.recording.slices.push(SliceRecording { arm, cpu, ..slice });
    }
    parts.iter_mut().all(|part| part.next().is_none()).then_some(merged)
}

fn only<T>(items: Vec<T>) -> Option<T> {
    let mut items = items.into_iter();
    items.next().filter(|_| items.next().is_none())
}

#[cfg(test)]
mod tests {
    use httpbench_core::model::{ArmRecording, Metric, Nanos};

    use super::*;
    use crate::measure::{BASELINE, CANDIDATE};
    use crate::server::Memory;
    use crate::verdict::{Compared, log_ratio};

    fn plan(arms: &[usize]) -> Vec<SlicePlan> {
        let slice = |(index, &arm)| SlicePlan {
            arm,
            length: Nanos::from_millis(60 + 10 * (index as u64 / 2)),
            lead_in: Nanos::from_millis(5),
            requests: None,
        };
        arms.iter().enumerate().map(slice).collect()
    }

    /// What the engine answers if one arm alone goes through these slices: so many good exchanges in each, of 1 ms each.
    fn alone(slices: &[SlicePlan], good: &[u64], cpu: Nanos, peak_bytes: u64) -> MeasuredRound {
        let mut arm = ArmRecording::default();
        let recorded = slices.iter().zip(good).map(|(slice, &good)| {
            arm.counts.started += good;
            arm.counts.good += good;
            (0..good).for_each(|_| arm.service.record(Nanos::from_millis(1)));
            SliceRecording {
                arm: slice.arm,
                good,
                span: slice.length - slice.lead_in,
                completed: good,
                scheduled: 0,
                begun: 0,
                wall: slice.length,
                cpu: vec![Some(cpu)],
                engine_cpu: Nanos::from_millis(1),
            }
        });
        let slices: Vec<SliceRecording> = recorded.collect();
        let wall = slices.iter().map(|slice| slice.wall).sum();
        MeasuredRound {
            recording: Recording {
                arms: vec![arm],
                engine: EngineUsage { cpu: Nanos::from_millis(slices.len() as u64), wall, threads: 2 },
                slices,
            },
            memory: vec![Some(Memory { resident_bytes: 1, peak_bytes, shared_bytes: 0 })],
            reference: None,
        }
    }

    #[test]
    fn each_arm_gets_its_own_slices_in_their_order_and_of_equal_lengths() {
        let plan = plan(&[1, 0, 0, 1]);
        let parts = [CANDIDATE, BASELINE].map(|arm| slices_of(arm, &plan));
        assert!(parts.iter().flatten().all(|slice| slice.arm == 0));
        assert_eq!(parts[0], parts[1]);
        assert_eq!(parts[0].iter().map(|slice| slice.length.0 / 1_000_000).collect::<Vec<_>>(), [60, 70]);
    }

    #[test]
    fn slices_pair_up_again_with_the_arms_and_the_cpu_times_in_their_places() {
        let plan = plan(&[1, 0, 0, 1]);
        let candidate = alone(&slices_of(CANDIDATE, &plan), &[100, 110], Nanos(7_000), 20);
        let baseline = alone(&slices_of(BASELINE, &plan), &[50, 55], Nanos(9_000), 10);
        let merged = merge(&plan, vec![candidate, baseline]).expect("both are of this plan");
        let slices: Vec<_> = merged.recording.slices.iter().map(|it| (it.arm, it.good, it.cpu.clone())).collect();
        assert_eq!(
            slices,
            [
                (1, 50, vec![None, Some(Nanos(9_000))]),
                (0, 100, vec![Some(Nanos(7_000)), None]),
                (0, 110, vec![Some(Nanos(7_000)), None]),
                (1, 55, vec![None, Some(Nanos(9_000))]),
            ]
        );
        for pair in merged.recording.slices.chunks_exact(2) {
            assert_eq!(pair[0].wall, pair[1].wall);
        }
        assert_eq!(merged.recording.arms.iter().map(|arm| arm.counts.good).collect::<Vec<_>>(), [210, 105]);
        let engine = EngineUsage { cpu: Nanos::from_millis(4), wall: Nanos::from_millis(260), threads: 2 };
        assert_eq!(merged.recording.engine, engine);
        let peaks = [CANDIDATE, BASELINE].map(|arm| merged.value_of(arm, Metric::PeakMemory));
        assert_eq!(peaks, [Some(20.0), Some(10.0)]);
    }

    #[test]
    fn verdict_reads_the_ratios_of_a_merged_round() {
        let plan = plan(&[0, 1, 1, 0]);
        let candidate = alone(&slices_of(CANDIDATE, &plan), &[200, 200], Nanos(4_000), 1);
        let baseline = alone(&slices_of(BASELINE, &plan), &[100, 100], Nanos(1_000), 1);
        let merged = merge(&plan, vec![candidate, baseline]).expect("both are of this plan");
        for (metric, ratio) in [(Metric::Throughput, 2.0_f64), (Metric::CpuPerRequest, 2.0), (Metric::P99, 1.0)] {
            let found = log_ratio(&merged, Compared::Metric(metric)).expect("both arms have values");
            assert!((found - ratio.ln()).abs() < 1e-9, "{metric}: {found}");
        }
        assert!(merged.server_cores_busy().is_some());
    }

    #[test]
    fn parts_of_another_plan_are_refused() {
        let plan = plan(&[0, 1, 1, 0]);
        let whole = || alone(&slices_of(0, &plan), &[1, 1], Nanos(1), 1);
        let short = alone(&slices_of(0, &plan[..2]), &[1], Nanos(1), 1);
        assert!(merge(&plan, vec![whole(), whole()]).is_some());
        assert!(merge(&plan, vec![whole(), short]).is_none());
        assert!(merge(&plan[..2], vec![whole(), whole()]).is_none());
        assert!(merge(&plan, vec![whole()]).is_none());
    }
}
