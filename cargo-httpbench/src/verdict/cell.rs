//! Cells: one scenario and one metric, compared between two arms round by round.

use std::fmt;

use httpbench_core::model::{Direction, Metric, Ratio};
use serde::{Serialize, Serializer};

/// What a cell compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compared {
    /// A metric's value of a round. For throughput and CPU time per request: a robust mean over the round's slice pairs.
    Metric(Metric),
    /// Intermittent stalls: the plain mean of throughput over the round's slice pairs. A stall that hits few slices (garbage
    /// collection, a checkpoint, a sync to disk) shows only here. Judged under throughput's tolerance.
    Stalls,
}

impl Compared {
    /// The name in reports and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metric(metric) => metric.name(),
            Self::Stalls => "stalls",
        }
    }

    /// What has this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "stalls" => Some(Self::Stalls),
            metric => metric.parse().ok().map(Self::Metric),
        }
    }

    /// The metric whose values, tolerance, unit and direction it has.
    #[must_use]
    pub const fn metric(self) -> Metric {
        match self {
            Self::Metric(metric) => metric,
            Self::Stalls => Metric::Throughput,
        }
    }

    /// Which way is better.
    #[must_use]
    pub const fn direction(self) -> Direction {
        self.metric().direction()
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl Serialize for Compared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A difference between the arms: the logarithm of the ratio of their values, positive where the candidate is worse.
///
/// Logarithms, because ratios multiply: twice as slow and twice as fast are equally far from no change, and exchanging the
/// arms changes the sign and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Difference(pub f64);

impl Difference {
    /// Of a round's two values. `None` where one of them is missing or not positive: no zero enters a logarithm.
    #[must_use]
    pub fn of(compared: Compared, baseline: f64, candidate: f64) -> Option<Self> {
        (baseline > 0.0 && candidate > 0.0).then(|| Self::from_log_ratio(compared, candidate.ln() - baseline.ln()))
    }

    /// Of the logarithm of candidate / baseline.
    #[must_use]
    pub fn from_log_ratio(compared: Compared, log_ratio: f64) -> Self {
        match compared.direction() {
            Direction::HigherIsBetter => Self(-log_ratio),
            Direction::LowerIsBetter => Self(log_ratio),
        }
    }

    /// The relative change that a person reads: candidate / baseline − 1.
    #[must_use]
    pub fn change(self, compared: Compared) -> f64 {
        match compared.direction() {
            Direction::HigherIsBetter => (-self.0).exp_m1(),
            Direction::LowerIsBetter => self.0.exp_m1(),
        }
    }

    /// The difference that a tolerance accepts, in either direction: ln(1 + t).
    ///
    /// A tolerance of 3 % accepts a latency up to a ratio of 1.03 and, by symmetry, a throughput down to 1 / 1.03. One bound for
    /// both directions keeps exchanged arms mirror images.
    #[must_use]
    pub fn accepted(tolerance: Ratio) -> Self {
        Self(tolerance.0.ln_1p())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THROUGHPUT: Compared = Compared::Metric(Metric::Throughput);
    const P99: Compared = Compared::Metric(Metric::P99);

    #[test]
    fn lower_throughput_and_higher_latency_are_both_worse() {
        assert!(Difference::of(THROUGHPUT, 1_000.0, 900.0).expect("positive").0 > 0.0);
        assert!(Difference::of(P99, 1_000.0, 1_100.0).expect("positive").0 > 0.0);
    }

    #[test]
    fn change_is_told_as_candidate_over_baseline() {
        for compared in [THROUGHPUT, P99, Compared::Stalls] {
            let difference = Difference::of(compared, 200.0, 190.0).expect("positive");
            assert!((difference.change(compared) - -0.05).abs() < 1e-12);
        }
    }

    #[test]
    fn exchanged_arms_change_the_sign_and_nothing_else() {
        let there = Difference::of(P99, 3.0, 5.0).expect("positive");
        let back = Difference::of(P99, 5.0, 3.0).expect("positive");
        assert!((there.0 + back.0).abs() < 1e-15);
    }

    #[test]
    fn zero_never_enters_a_logarithm() {
        assert_eq!(Difference::of(P99, 0.0, 1.0), None);
        assert_eq!(Difference::of(P99, 1.0, 0.0), None);
        assert_eq!(Difference::of(P99, f64::NAN, 1.0), None);
    }

    #[test]
    fn three_percent_accept_a_ratio_of_103_and_of_its_inverse() {
        let bound = Difference::accepted(Ratio(0.03));
        assert!((bound.change(P99) - 0.03).abs() < 1e-12);
        assert!((bound.change(THROUGHPUT) - (1.0 / 1.03 - 1.0)).abs() < 1e-12);
        assert!(Difference::accepted(Ratio(0.99)) < Difference::accepted(Ratio(1.0)));
    }
}
