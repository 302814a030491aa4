//! Limits: absolute bounds, which need no baseline.
//!
//! A limit is judged on the median of the rounds' values and, if that exceeds it, once more on fresh rounds alone; only
//! both together fail a build. Errors and check failures are counted instead: what was answered wrongly was. A metric
//! without samples fails its limit, because a gate that saw nothing must not pass.

use httpbench_core::model::{Direction, Limit, Metric};
use serde::Serialize;

use crate::measure::{MeasuredRound, MeasuredScenario, values};
use crate::stats::median;

/// Errors and check failures that are accepted where no limit says otherwise: none.
const DEFAULT_ERRORS: Limit = Limit { metric: Metric::Errors, bound: 0.0 };

/// What became of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LimitVerdict {
    /// Of which metric.
    pub metric: Metric,
    /// The bound, in the metric's base unit.
    pub bound: f64,
    /// What was compared with it; `None` without samples.
    pub value: Option<f64>,
    /// The result.
    pub state: LimitState,
}

/// Whether a limit held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitState {
    /// It held.
    Held,
    /// Exceeded at first, but not on the fresh rounds.
    NotConfirmed,
    /// Exceeded, and again on the fresh rounds.
    Exceeded,
    /// Nothing was seen that could be compared: counts as exceeded.
    NoSamples,
}

impl LimitState {
    /// Whether it fails a build.
    #[must_use]
    pub fn fails(self) -> bool {
        matches!(self, Self::Exceeded | Self::NoSamples)
    }
}

/// Judges every limit of a scenario, the one on errors always among them.
#[must_use]
pub fn judge_limits(scenario: &MeasuredScenario) -> Vec<LimitVerdict> {
    limits(scenario).map(|limit| judge(limit, scenario)).collect()
}

/// The metrics whose limits the first rounds exceed, so that fresh rounds are worth their time.
#[must_use]
pub fn first_exceeded(scenario: &MeasuredScenario) -> Vec<Metric> {
    limits(scenario)
        .filter(|limit| limit.metric != Metric::Errors)
        .filter(|limit| median(&values(&scenario.rounds, limit.metric)).is_some_and(|value| exceeds(*limit, value)))
        .map(|limit| limit.metric)
        .collect()
}

/// The scenario's limit on errors and check failures.
pub(crate) fn errors_limit(scenario: &MeasuredScenario) -> Limit {
    scenario.load.limits.iter().copied().find(|limit| limit.metric == Metric::Errors).unwrap_or(DEFAULT_ERRORS)
}

/// Whether more exchanges failed than a bound on their share accepts. Of none, none failed.
#[expect(clippy::cast_precision_loss, reason = "counts")]
pub(crate) fn too_many_failed(failed: u64, started: u64, bound: f64) -> bool {
    started > 0 && failed as f64 / started as f64 > bound
}

fn limits(scenario: &MeasuredScenario) -> impl Iterator<Item = Limit> {
    let others = scenario.load.limits.iter().copied().filter(|limit| limit.metric != Metric::Errors);
    others.collect::<Vec<_>>().into_iter().chain([errors_limit(scenario)])
}

fn judge(limit: Limit, scenario: &MeasuredScenario) -> LimitVerdict {
    let Limit { metric, bound } = limit;
    let first = match metric {
        Metric::Errors => failed_share(scenario),
        _ => median(&values(&scenario.rounds, metric)),
    };
    let (value, state) = match first {
        None => (None, LimitState::NoSamples),
        Some(value) if !exceeds(limit, value) => (Some(value), LimitState::Held),
        Some(value) if metric == Metric::Errors => (Some(value), LimitState::Exceeded),
        Some(value) => confirm(limit, value, &scenario.confirmation),
    };
    LimitVerdict { metric, bound, value, state }
}

/// The fresh rounds decide; without any, the first ones stand.
fn confirm(limit: Limit, first: f64, fresh: &[MeasuredRound]) -> (Option<f64>, LimitState) {
    match median(&values(fresh, limit.metric)) {
        Some(value) if !exceeds(limit, value) => (Some(value), LimitState::NotConfirmed),
        Some(value) => (Some(value), LimitState::Exceeded),
        None => (Some(first), LimitState::Exceeded),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
fn failed_share(scenario: &MeasuredScenario) -> Option<f64> {
    let counts = scenario.counts();
    (counts.started > 0).then(|| counts.failed() as f64 / counts.started as f64)
}

fn exceeds(limit: Limit, value: f64) -> bool {
    match limit.metric.direction() {
        Direction::HigherIsBetter => value < limit.bound,
        Direction::LowerIsBetter => value > limit.bound,
    }
}

#[cfg(test)]
mod tests {
    use httpbench_core::model::Nanos;

    use super::*;
    use crate::measure::sample::{failing_round, round, scenario};

    fn rounds(millis: &[u64]) -> Vec<MeasuredRound> {
        millis.iter().map(|&millis| round(1_000, Nanos::from_millis(millis))).collect()
    }

    fn state_of(scenario: &MeasuredScenario, metric: Metric) -> LimitState {
        judge_limits(scenario).into_iter().find(|limit| limit.metric == metric).expect("that limit is set").state
    }

    #[test]
    fn limit_is_judged_on_the_median_of_the_rounds() {
        let scenario = scenario("index", &[(Metric::P99, 5e6)], rounds(&[1, 2, 90]));
        assert_eq!(state_of(&scenario, Metric::P99), LimitState::Held);
        assert!(first_exceeded(&scenario).is_empty());
    }

    #[test]
    fn limit_that_fresh_rounds_hold_does_not_fail_the_build() {
        let mut scenario = scenario("index", &[(Metric::P99, 5e6)], rounds(&[9, 9, 9]));
        assert_eq!(first_exceeded(&scenario), [Metric::P99]);
        scenario.confirmation = rounds(&[4, 4, 4]);
        assert_eq!(state_of(&scenario, Metric::P99), LimitState::NotConfirmed);
        scenario.confirmation = rounds(&[9, 9, 4]);
        assert_eq!(state_of(&scenario, Metric::P99), LimitState::Exceeded);
    }

    #[test]
    fn throughput_limit_is_the_least_that_is_accepted() {
        let enough = scenario("index", &[(Metric::Throughput, 900.0)], rounds(&[1]));
        assert_eq!(state_of(&enough, Metric::Throughput), LimitState::Held);
        let short = scenario("index", &[(Metric::Throughput, 1_100.0)], rounds(&[1]));
        assert_eq!(state_of(&short, Metric::Throughput), LimitState::Exceeded);
    }

    #[test]
    fn one_failure_exceeds_the_limit_that_nobody_set() {
        let scenario = scenario("index", &[], vec![failing_round(10_000, 1)]);
        let verdict = judge_limits(&scenario)[0];
        assert_eq!((verdict.metric, verdict.value), (Metric::Errors, Some(0.0001)));
        assert_eq!(verdict.state, LimitState::Exceeded);
    }

    #[test]
    fn failures_within_their_limit_are_accepted() {
        let scenario = scenario("index", &[(Metric::Errors, 0.001)], vec![failing_round(10_000, 9)]);
        assert_eq!(state_of(&scenario, Metric::Errors), LimitState::Held);
    }

    #[test]
    fn limit_on_a_metric_without_samples_fails() {
        let scenario = scenario("index", &[(Metric::P99, 5e6)], vec![failing_round(10, 10)]);
        assert_eq!(state_of(&scenario, Metric::P99), LimitState::NoSamples);
        assert!(LimitState::NoSamples.fails());
    }
}
