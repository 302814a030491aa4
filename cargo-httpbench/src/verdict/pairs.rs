//! What one round says of two arms: the logarithm of candidate / baseline, metric by metric.
//!
//! Slices come in pairs that follow each other closely, one of each arm, so that what drifts more slowly than a pair hits both. For
//! throughput and CPU time per request, a round's value is a robust mean over its pairs; the plain mean, in which a stall of a
//! single slice counts in full, stands beside it as the cell of intermittent stalls.

use httpbench_core::model::{Metric, Nanos, SliceRecording};

use super::Compared;
use crate::measure::{BASELINE, CANDIDATE, MeasuredRound};
use crate::stats::interquartile_mean;

/// The round's log-ratio of a cell; `None` where an arm has no value.
#[must_use]
pub fn log_ratio(round: &MeasuredRound, compared: Compared) -> Option<f64> {
    match compared {
        Compared::Metric(Metric::Throughput) => interquartile_mean(&pairs(round, throughput)),
        Compared::Metric(Metric::CpuPerRequest) => interquartile_mean(&pairs(round, cpu_per_request)),
        Compared::Stalls => plain(round, Metric::Throughput),
        Compared::Metric(metric) => plain(round, metric),
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

fn ratio(candidate: f64, baseline: f64) -> Option<f64> {
    (candidate > 0.0 && baseline > 0.0).then(|| (candidate / baseline).ln())
}

#[expect(clippy::cast_precision_loss, reason = "counts of a slice")]
fn throughput(slice: &SliceRecording, _arm: usize) -> Option<f64> {
    (slice.span > Nanos::ZERO).then(|| slice.good as f64 / slice.span.as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "counts of a slice")]
fn cpu_per_request(slice: &SliceRecording, arm: usize) -> Option<f64> {
    let cpu = slice.cpu.get(arm).copied().flatten()?;
    (slice.completed > 0).then(|| cpu.0 as f64 / slice.completed as f64)
}
