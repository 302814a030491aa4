//! What a round says of the candidate beside the reference server: ratios that a later round, at another time, can be held against.
//!
//! The machine may be slower by then; the reference server is so, too, and the ratio is not. Slices of the two are not paired, because the
//! reference server has fewer; so a round's value is the difference of robust means, where a pair of arms has the robust mean of differences.

use std::collections::BTreeMap;

use httpbench_core::model::{Metric, Recording, SliceRecording};

use super::Compared;
use super::pairs::{cpu_per_request, ratio, throughput};
use crate::measure::{CANDIDATE, MeasuredRound};
use crate::reference;
use crate::stats::interquartile_mean;

/// A round's candidate beside the reference server.
#[derive(Clone, Debug, PartialEq)]
pub struct AgainstReference {
    /// Logarithms of candidate / reference.
    pub log_ratios: BTreeMap<Compared, f64>,
    /// What the reference server was.
    pub reference: ReferenceState,
}

/// How the reference server did in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReferenceState {
    /// [`reference::VERSION`] of whoever measured.
    pub version: u32,
    /// Its throughput, which tells whether it was steady.
    pub throughput: f64,
    /// Exchanges with it that failed.
    pub failed: u64,
}

impl AgainstReference {
    /// What a round says; `None` if it was not measured beside the reference server, or that answered nothing.
    #[must_use]
    pub fn of(round: &MeasuredRound) -> Option<Self> {
        let beside = round.reference.as_ref()?;
        let alone = MeasuredRound { recording: beside.clone(), memory: Vec::new(), reference: None };
        let own_throughput = alone.value(Metric::Throughput)?;
        let plain = |metric: Metric| ratio(round.value(metric)?, alone.value(metric)?);
        let robust = |value: fn(&SliceRecording, usize) -> Option<f64>| {
            Some(robust_mean(&round.recording, value)? - robust_mean(beside, value)?)
        };
        let mut log_ratios = BTreeMap::new();
        let mut insert = |compared: Compared, value: Option<f64>| value.map(|value| log_ratios.insert(compared, value));
        insert(Compared::Metric(Metric::Throughput), robust(throughput));
        insert(Compared::Metric(Metric::CpuPerRequest), robust(cpu_per_request));
        insert(Compared::Stalls, plain(Metric::Throughput));
        for metric in [Metric::P50, Metric::P90, Metric::P95, Metric::P99] {
            insert(Compared::Metric(metric), plain(metric));
        }
        let failed = beside.arms.iter().map(|arm| arm.counts.failed()).sum();
        let reference = ReferenceState { version: reference::VERSION, throughput: own_throughput, failed };
        Some(Self { log_ratios, reference })
    }
}

/// The interquartile mean of the logarithms of the first arm's slices.
fn robust_mean(recording: &Recording, value: fn(&SliceRecording, usize) -> Option<f64>) -> Option<f64> {
    let slices = recording.slices.iter().filter(|slice| slice.arm == CANDIDATE);
    let logarithms: Vec<f64> =
        slices.filter_map(|slice| value(slice, CANDIDATE)).filter(|value| *value > 0.0).map(f64::ln).collect();
    interquartile_mean(&logarithms)
}

#[cfg(test)]
mod tests {
    use httpbench_core::model::Nanos;

    use super::*;
    use crate::measure::sample::round;

    #[test]
    fn ratios_are_those_of_the_round_and_the_same_on_a_slower_machine() {
        let of = |good: u64, reference: u64| {
            let mut candidate = round(good, Nanos(1_000_000_000 / good));
            candidate.reference = Some(round(reference, Nanos(1_000_000_000 / reference)).recording);
            AgainstReference::of(&candidate).expect("both answered")
        };
        let (fast, slow) = (of(1_000, 5_000), of(850, 4_250));
        for compared in [Compared::Metric(Metric::Throughput), Compared::Stalls, Compared::Metric(Metric::P99)] {
            let (fast, slow) = (fast.log_ratios[&compared], slow.log_ratios[&compared]);
            assert!((fast - slow).abs() < 0.01, "{compared}: {fast} {slow}");
        }
        assert!((fast.log_ratios[&Compared::Stalls] - 0.2_f64.ln()).abs() < 1e-12);
        assert_eq!((fast.reference.throughput, fast.reference.failed), (5_000.0, 0));
    }

    #[test]
    fn round_without_the_reference_server_says_nothing() {
        assert_eq!(AgainstReference::of(&round(10, Nanos(5))), None);
    }
}
