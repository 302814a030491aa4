//! The family: which cells of a run are gated, fixed after the pilot and before the first round.
//!
//! Closed loop: throughput, its intermittent stalls, CPU time per request, and p99. Open loop, where throughput is what was asked
//! for: p50 and p99. Whatever else the user wrote a tolerance for comes on top. A quantile that too few exchanges lie beyond is not
//! gated: the highest one that is supported stands in for it, under its tolerance.

use std::collections::BTreeSet;

use httpbench_core::model::{Metric, Nanos, Ratio};
use serde::Serialize;

use super::cell::Compared;
use super::decide::ALPHA;
use crate::measure::{MeasuredPackage, MeasuredScenario};

/// Exchanges that must lie beyond a quantile in every arm's round. With 100, the quantile's own rank wanders by 10 %.
pub const SUPPORT: f64 = 100.0;

/// 1 − 0.9 is not quite 0.1 in binary.
const ROUNDING: f64 = 1e-6;

/// Quantiles, the highest first.
const QUANTILES: [Metric; 4] = [Metric::P99, Metric::P95, Metric::P90, Metric::P50];

/// A cell that can fail a build.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gated {
    /// Index of the scenario in its package.
    #[serde(skip)]
    pub scenario: usize,
    /// What is compared.
    #[serde(rename = "metric")]
    pub compared: Compared,
    /// The relative change that is accepted.
    pub tolerance: Ratio,
    /// The quantile that this one stands in for.
    pub stands_for: Option<Metric>,
}

/// A tolerance that the user wrote for a quantile which the plan does not support.
#[derive(Clone, Debug, PartialEq)]
pub struct Unsupported {
    /// The scenario.
    pub scenario: String,
    /// The quantile.
    pub metric: Metric,
    /// Exchanges that are expected beyond it in a round.
    pub beyond: f64,
    /// The `duration` that would support it.
    pub duration: Nanos,
}

/// A quantile that is gated by default and cannot be in a scenario, because too few exchanges lie beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NotGated {
    /// Index of the scenario in its package.
    #[serde(skip)]
    pub scenario: usize,
    /// The quantile.
    pub metric: Metric,
    /// Exchanges that are expected beyond it in a round.
    pub beyond: f64,
    /// The quantile that is judged in its place; `None` where not even p50 is supported.
    pub instead: Option<Metric>,
}

/// The gated cells of a package.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// In the order of the scenarios.
    pub cells: Vec<Gated>,
    /// What would have been a cell with more exchanges in a round: never left out silently.
    pub not_gated: Vec<NotGated>,
    /// The chance of a false `regressed`, before confirmation, that this package may spend.
    pub alpha: f64,
}

impl Family {
    /// Fixes the cells of a package whose pilot has run.
    ///
    /// `share` is the part of α that this package gets of a run of several (Bonferroni): its scenarios over all scenarios. The
    /// scenarios that are `left_out` have nothing to be compared with.
    ///
    /// # Errors
    ///
    /// When the user wrote tolerances that the plan cannot support.
    pub fn fix(package: &MeasuredPackage, share: f64, left_out: &[String]) -> Result<Self, Vec<Unsupported>> {
        let mut cells = Vec::new();
        let mut not_gated = Vec::new();
        let mut unsupported = Vec::new();
        for (index, scenario) in package.scenarios.iter().enumerate() {
            if scenario.failure.is_some() || left_out.iter().any(|name| name == scenario.name()) {
                continue;
            }
            let mut seen = BTreeSet::new();
            for metric in gated_metrics(scenario) {
                let gated = match resolve(scenario, metric) {
                    Resolved::Gated => Some(metric),
                    Resolved::NotGated { beyond, instead } => {
                        not_gated.push(NotGated { scenario: index, metric, beyond, instead });
                        instead
                    }
                    Resolved::Refused(refused) => {
                        unsupported.push(refused);
                        None
                    }
                };
                if let Some(gated) = gated.filter(|gated| seen.insert(*gated)) {
                    // A tolerance that the user wrote for the stand-in itself is the one that is meant.
                    let own = gated == metric || scenario.load.tolerance_written.contains(&gated);
                    let (judged, stands_for) = if own { (gated, None) } else { (metric, Some(metric)) };
                    let tolerance = tolerance_of(scenario, judged);
                    cells.push(Gated { scenario: index, compared: Compared::Metric(gated), tolerance, stands_for });
                }
                if metric == Metric::Throughput {
                    let tolerance = tolerance_of(scenario, metric);
                    cells.push(Gated { scenario: index, compared: Compared::Stalls, tolerance, stands_for: None });
                }
            }
        }
        if unsupported.is_empty() { Ok(Self { cells, not_gated, alpha: ALPHA * share }) } else { Err(unsupported) }
    }
}

/// What a metric becomes in a scenario.
enum Resolved {
    Gated,
    NotGated { beyond: f64, instead: Option<Metric> },
    Refused(Unsupported),
}

fn gated_metrics(scenario: &MeasuredScenario) -> Vec<Metric> {
    let usual: &[Metric] = if scenario.load.arrival_rate.is_some() {
        &[Metric::P50, Metric::P99]
    } else {
        &[Metric::Throughput, Metric::CpuPerRequest, Metric::P99]
    };
    let written = scenario.load.tolerance_written.iter().filter(|metric| !usual.contains(metric));
    usual.iter().chain(written).copied().collect()
}

fn tolerance_of(scenario: &MeasuredScenario, metric: Metric) -> Ratio {
    // Every metric that can be gated has a built-in tolerance or one that the user wrote.
    scenario.load.tolerance.get(&metric).copied().unwrap_or_default()
}

fn resolve(scenario: &MeasuredScenario, metric: Metric) -> Resolved {
    let Some(quantile) = metric.quantile() else { return Resolved::Gated };
    let exchanges = scenario.pilot.as_ref().map_or(0.0, |pilot| pilot.exchanges_a_round);
    let supported = |metric: Metric| metric.quantile().is_some_and(|q| exchanges * (1.0 - q) >= SUPPORT - ROUNDING);
    if supported(metric) {
        return Resolved::Gated;
    }
    let beyond = exchanges * (1.0 - quantile);
    if scenario.load.tolerance_written.contains(&metric) && beyond > 0.0 {
        return Resolved::Refused(Unsupported {
            scenario: scenario.name().to_owned(),
            metric,
            beyond,
            duration: enough(scenario.load.duration, beyond),
        });
    }
    let instead = QUANTILES.into_iter().filter(|&other| other < metric).find(|&other| supported(other));
    Resolved::NotGated { beyond, instead }
}

/// The loaded time that would put [`SUPPORT`] exchanges beyond the quantile, with a tenth to spare, in whole seconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a duration in seconds")]
fn enough(duration: Nanos, beyond: f64) -> Nanos {
    Nanos::from_secs((duration.as_secs_f64() * SUPPORT / beyond * 1.1).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::sample::{package, scenario};
    use crate::measure::{MeasuredScenario, Pilot, SliceScheme};

    fn piloted(exchanges_a_round: f64) -> MeasuredScenario {
        let mut scenario = scenario("list", &[], Vec::new());
        let scheme = SliceScheme::new(&scenario.load, 16, None);
        scenario.pilot = Some(Pilot { scheme, exchanges_a_round });
        scenario
    }

    fn names(family: &Family) -> Vec<&'static str> {
        family.cells.iter().map(|cell| cell.compared.name()).collect()
    }

    #[test]
    fn closed_loop_gates_throughput_stalls_cpu_and_p99() {
        let family = Family::fix(&package(vec![piloted(10_000.0)]), 1.0, &[]).expect("supported");
        assert_eq!(names(&family), ["throughput", "stalls", "cpu-per-request", "p99"]);
        assert_eq!(family.cells[3].stands_for, None);
    }

    #[test]
    fn open_loop_gates_p50_and_p99() {
        let mut scenario = piloted(10_000.0);
        scenario.load.arrival_rate = Some(1_000.0);
        let family = Family::fix(&package(vec![scenario]), 1.0, &[]).expect("supported");
        assert_eq!(names(&family), ["p50", "p99"]);
    }

    #[test]
    fn highest_supported_quantile_stands_in_for_p99_under_its_tolerance_and_that_is_told() {
        let family = Family::fix(&package(vec![piloted(1_000.0)]), 1.0, &[]).expect("a stand-in");
        let [not_gated] = family.not_gated[..] else { panic!("{family:?}") };
        assert_eq!((not_gated.metric, not_gated.instead), (Metric::P99, Some(Metric::P90)));
        assert!((not_gated.beyond - 10.0).abs() < 1e-6, "{}", not_gated.beyond);
        assert_eq!(names(&family), ["throughput", "stalls", "cpu-per-request", "p90"]);
        assert_eq!((family.cells[3].stands_for, family.cells[3].tolerance), (Some(Metric::P99), Ratio(0.10)));
    }

    #[test]
    fn twenty_thousand_exchanges_support_p99_and_150_no_quantile_at_all() {
        let many = Family::fix(&package(vec![piloted(20_000.0)]), 1.0, &[]).expect("supported");
        assert!(names(&many).contains(&"p99") && many.not_gated.is_empty());
        let few = Family::fix(&package(vec![piloted(150.0)]), 1.0, &[]).expect("nothing was written");
        assert_eq!(names(&few), ["throughput", "stalls", "cpu-per-request"]);
        assert_eq!((few.not_gated[0].metric, few.not_gated[0].instead), (Metric::P99, None), "it is told");
    }

    #[test]
    fn stand_in_with_a_tolerance_of_its_own_is_judged_by_that() {
        let mut scenario = piloted(1_000.0);
        scenario.load.tolerance.insert(Metric::P90, Ratio(0.5));
        scenario.load.tolerance_written.insert(Metric::P90);
        let family = Family::fix(&package(vec![scenario]), 1.0, &[]).expect("p90 is supported");
        assert_eq!((family.cells[3].compared.name(), family.cells[3].stands_for), ("p90", None));
        assert_eq!(family.cells[3].tolerance, Ratio(0.5));
    }

    #[test]
    fn stand_in_that_is_gated_already_is_not_gated_twice() {
        let mut scenario = piloted(250.0);
        scenario.load.arrival_rate = Some(1_000.0);
        let family = Family::fix(&package(vec![scenario]), 1.0, &[]).expect("p50 is supported");
        assert_eq!(names(&family), ["p50"]);
    }

    #[test]
    fn tolerance_that_the_user_wrote_is_refused_with_the_duration_that_would_do() {
        let mut scenario = piloted(1_000.0);
        scenario.load.duration = Nanos::from_secs(12);
        scenario.load.tolerance_written.insert(Metric::P99);
        let refused = Family::fix(&package(vec![scenario]), 1.0, &[]).expect_err("10 exchanges beyond p99");
        assert_eq!((refused[0].metric, refused[0].duration), (Metric::P99, Nanos::from_secs(132)));
    }

    #[test]
    fn scenario_that_failed_is_in_no_family() {
        let mut scenario = piloted(10_000.0);
        scenario.failure = Some(crate::error::Error::new(crate::exit_code::ExitCode::ServerFailed, "it died"));
        assert!(Family::fix(&package(vec![scenario]), 1.0, &[]).expect("nothing is unsupported").cells.is_empty());
    }
}
