//! What one round says of two arms: the logarithm of candidate / baseline, metric by metric.
//!
//! Slices come in pairs that follow each other closely, one of each arm, so that what drifts more slowly than a pair hits both. For
//! throughput and CPU time per request, a round's value is a robust mean over its pairs; the plain mean, in which a stall of a
//! single slice counts in full, stands beside it as the cell of intermittent stalls.

use httpbench_core::model::{Metric, Nanos, SliceRecording};

use super::Compared;
use crate::measure::{BASELINE, CANDIDATE, MeasuredRound};
use crate::stats::{interquartile_mean, median};

/// The round's log-ratio of a cell; `None` where an arm has no value.
///
/// A round and nothing less: exchanges are not independent of each other, and there is no way to hand them in.
///
/// ```compile_fail,E0308
/// use cargo_httpbench::verdict::{Compared, log_ratio};
/// use httpbench_core::model::{Histogram, Metric};
///
/// log_ratio(&Histogram::default(), Compared::Metric(Metric::P99));
/// ```
#[must_use]
pub fn log_ratio(round: &MeasuredRound, compared: Compared) -> Option<f64> {
    match compared {
        Compared::Metric(Metric::Throughput) => interquartile_mean(&pairs(round, throughput)),
        Compared::Metric(Metric::CpuPerRequest) => interquartile_mean(&pairs(round, cpu_per_request)),
        Compared::Stalls => plain(round, Metric::Throughput),
        Compared::Metric(metric) => plain(round, metric),
    }
}

/// How much more or less of a cell's value a slice has because it comes second in its pair: a relative change, `None` where a cell
/// has no value for a slice.
///
/// The arms' order in a pair is drawn for two pairs at once and reversed in the second (ABBA or BAAB). So the mean of the two
/// log-ratios, second / first, is free of any difference between the arms, and exchanging the arms leaves it as it is; of all of
/// them the median is told. A verdict needs no correction for it: either arm comes second equally often.
#[must_use]
pub fn order_effect<'r>(rounds: impl IntoIterator<Item = &'r MeasuredRound>, compared: Compared) -> Option<f64> {
    let value = value_of_a_slice(compared)?;
    let effects: Vec<f64> = rounds
        .into_iter()
        .flat_map(|round| round.recording.slices.chunks_exact(4))
        .filter(|turns| turns[0].arm == turns[3].arm && turns[1].arm == turns[2].arm && turns[0].arm != turns[1].arm)
        .filter_map(|turns| {
            let of = |slice: &SliceRecording| value(slice, slice.arm);
            let one = ratio(of(&turns[1])?, of(&turns[0])?)?;
            let other = ratio(of(&turns[3])?, of(&turns[2])?)?;
            Some(f64::midpoint(one, other))
        })
        .collect();
    median(&effects).map(f64::exp_m1)
}

/// What a slice alone says of a cell; `None` for what only a whole round has.
fn value_of_a_slice(compared: Compared) -> Option<fn(&SliceRecording, usize) -> Option<f64>> {
    match compared {
        Compared::Metric(Metric::Throughput) => Some(throughput),
        Compared::Metric(Metric::CpuPerRequest) => Some(cpu_per_request),
        _ => None,
    }
}

/// The log-ratio of the arms' values over the whole round.
fn plain(round: &MeasuredRound, metric: Metric) -> Option<f64> {
    ratio(round.value_of(CANDIDATE, metric)?, round.value_of(BASELINE, metric)?)
}

/// The log-ratios of the pairs in which both arms have a value.
fn pairs(round: &MeasuredRound, value: fn(&SliceRecording, usize) -> Option<f64>) -> Vec<f64> {
    round
        .recording
        .slices
        .chunks_exact(2)
        .filter_map(|pair| {
            let of = |arm: usize| pair.iter().find(|slice| slice.arm == arm).and_then(|slice| value(slice, arm));
            ratio(of(CANDIDATE)?, of(BASELINE)?)
        })
        .collect()
}

/// The difference of logarithms and not the logarithm of a quotient, so that exchanged arms give exactly the negative.
pub(super) fn ratio(candidate: f64, baseline: f64) -> Option<f64> {
    (candidate > 0.0 && baseline > 0.0).then(|| candidate.ln() - baseline.ln())
}

/// Good exchanges per second of a slice.
#[expect(clippy::cast_precision_loss, reason = "counts of a slice")]
pub(super) fn throughput(slice: &SliceRecording, _arm: usize) -> Option<f64> {
    (slice.span > Nanos::ZERO).then(|| slice.good as f64 / slice.span.as_secs_f64())
}

/// Nanoseconds of CPU time that an arm used for each completed exchange of a slice.
#[expect(clippy::cast_precision_loss, reason = "counts of a slice")]
pub(super) fn cpu_per_request(slice: &SliceRecording, arm: usize) -> Option<f64> {
    let cpu = slice.cpu.get(arm).copied().flatten()?;
    (slice.completed > 0).then(|| cpu.0 as f64 / slice.completed as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::sample::round;

    const THROUGHPUT: Compared = Compared::Metric(Metric::Throughput);

    /// A round whose slices are these arms' with so many good exchanges in a second each.
    fn round_of(slices: &[(usize, u64)]) -> MeasuredRound {
        let mut made = round(1, Nanos::from_millis(1));
        let like = made.recording.slices[0].clone();
        made.recording.slices =
            slices.iter().map(|&(arm, good)| SliceRecording { arm, good, completed: good, ..like.clone() }).collect();
        made
    }

    #[test]
    fn whoever_is_loaded_second_is_found_out_whatever_the_arms_differ_by() {
        // The baseline is a third faster, and the second of a pair has a tenth more.
        let rounds = [round_of(&[(0, 1_000), (1, 1_650), (1, 1_500), (0, 1_100)])];
        let effect = order_effect(&rounds, THROUGHPUT).expect("two pairs");
        assert!((effect - 0.1).abs() < 1e-9, "{effect}");
        let swapped = [round_of(&[(1, 1_000), (0, 1_650), (0, 1_500), (1, 1_100)])];
        assert_eq!(order_effect(&swapped, THROUGHPUT), Some(effect), "exchanged arms leave it as it is");
        assert_eq!(order_effect(&rounds, Compared::Metric(Metric::P99)), None, "a slice has no quantile");
        assert_eq!(order_effect(&[round_of(&[(0, 1_000), (1, 1_650)])], THROUGHPUT), None, "one pair cannot tell");
    }
}
