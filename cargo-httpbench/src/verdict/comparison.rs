//! All cells of a package, compared: what is said, what it rests on, and why not more.

use httpbench_core::model::Metric;
use serde::Serialize;

use super::cell::{Compared, Difference};
use super::decide::{Decision, Evidence, Looks, Verdict, confirms, decide, fewest_rounds};
use super::family::{Family, Gated, NotGated};
use super::limits::{errors_limit, too_many_failed};
use super::pairs::{log_ratio, order_effect};
use super::saturation::judge_saturation;
use crate::measure::{Arms, BASELINE, CANDIDATE, MeasuredPackage, MeasuredRound, MeasuredScenario, values_of};
use crate::stats::{detectable_shift, median, standard_deviation};

/// More than this share of a scenario's rounds discarded for what happened outside: nothing is concluded.
const MOST_DISTURBED: f64 = 0.25;

/// What a cell came to.
#[derive(Clone, Debug, PartialEq)]
pub struct CellReport {
    /// Which cell.
    pub gated: Gated,
    /// The median of the baseline's rounds, in the metric's base unit.
    pub baseline: Option<f64>,
    /// The median of the candidate's rounds.
    pub candidate: Option<f64>,
    /// Rounds that have both values.
    pub rounds: usize,
    /// Fresh rounds that have both values.
    pub fresh_rounds: usize,
    /// Estimate, interval and p at the last look.
    pub decision: Decision,
    /// What is said.
    pub verdict: Verdict,
    /// Why not more is said.
    pub reason: Option<Reason>,
    /// The smallest change that these rounds find with a chance of 90 %, as a positive difference.
    pub detectable: Option<Difference>,
    /// How much more or less the second slice of a pair has, whichever arm's it is (see [`order_effect`]).
    pub order_effect: Option<f64>,
}

/// Why a cell is not decided, or what is worth knowing of one that is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum Reason {
    /// Worse (or better) at first, but fresh rounds did not show it again.
    NotConfirmed,
    /// So few rounds decide nothing about so many cells, however large a change is.
    TooFewRounds {
        /// The fewest that can.
        rounds_needed: usize,
    },
    /// The rounds differ too much for their number.
    Unsteady {
        /// About how many rounds would settle it.
        rounds_needed: usize,
    },
    /// Too many rounds were disturbed from outside.
    Disturbed {
        /// Rounds that were discarded.
        discarded: usize,
    },
    /// Exchanges failed in the baseline only: what is left of it is not comparable.
    BaselineFails,
    /// Exchanges failed in the candidate only, which exceeds its limit.
    CandidateFails,
    /// Exchanges failed in both arms.
    BothFail,
    /// The load engine was the bottleneck.
    Saturated,
    /// The scenario could not be measured to its end.
    NotMeasured,
    /// No round has a value in both arms.
    NoValues,
    /// There is a change, surely, and it lies within the tolerance.
    WithinTolerance,
    /// Numbers only, of another machine or another build.
    NotComparable,
    /// Numbers only, of a scenario that sends something else now, or is loaded otherwise.
    ScenarioChanged,
    /// Numbers only, and the baseline was saved without measuring the reference server.
    NoReference,
    /// Numbers only, beside another version of the reference server.
    OtherReference,
    /// Numbers only, and exchanges with the reference server failed.
    ReferenceFails,
    /// Numbers only, and the reference server was not steady.
    ReferenceUnsteady,
}

/// Compares every gated cell of a package, on what was measured so far.
///
/// A `regressed` or `improved` of a scenario with fresh rounds has been confirmed by them; without any it still waits for that.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// In the order of the family.
    pub cells: Vec<CellReport>,
    /// The quantiles that would be cells with more exchanges in a round.
    pub not_gated: Vec<NotGated>,
    /// The look that this is.
    pub looks: Looks,
    /// What all looks together may spend: this package's part of α.
    pub alpha: f64,
}

impl Comparison {
    /// Looks at a family.
    #[must_use]
    pub fn look(package: &MeasuredPackage, family: &Family, looks: Looks) -> Self {
        let evidence: Vec<Evidence> = family
            .cells
            .iter()
            .map(|cell| Evidence {
                compared: cell.compared,
                tolerance: cell.tolerance,
                differences: differences(&package.scenarios[cell.scenario].rounds, cell.compared),
            })
            .collect();
        let decisions = decide(&evidence, family.alpha, looks);
        let alpha = looks.alpha(family.alpha);
        let demands = Demands {
            alpha,
            alpha_of_a_cell: alpha / family.cells.len().max(1) as f64,
            fewest_rounds: fewest_rounds(family.cells.len(), looks.planned(), family.alpha) as usize,
        };
        let cells = family
            .cells
            .iter()
            .zip(&evidence)
            .zip(decisions)
            .map(|((gated, evidence), decision)| cell_report(package, gated, evidence, decision, demands));
        Self { cells: cells.collect(), not_gated: family.not_gated.clone(), looks, alpha: family.alpha }
    }

    /// The probability with which a cell's interval holds the true change.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        1.0 - 2.0 * self.looks.alpha(self.alpha)
    }

    /// Whether more rounds could not change what is said, but for a confirmation.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.cells.iter().all(|cell| match cell.verdict {
            Verdict::Regressed | Verdict::Improved | Verdict::Unchanged | Verdict::Invalid => true,
            // More rounds make a disturbed one weigh less, too.
            Verdict::Inconclusive => !matches!(
                cell.reason,
                Some(Reason::TooFewRounds { .. } | Reason::Unsteady { .. } | Reason::Disturbed { .. })
            ),
        })
    }

    /// The scenarios with a `regressed` or an `improved`, each once: those whose fresh rounds decide.
    #[must_use]
    pub fn changed_scenarios(&self) -> Vec<usize> {
        let mut scenarios: Vec<usize> = self
            .cells
            .iter()
            .filter(|cell| matches!(cell.verdict, Verdict::Regressed | Verdict::Improved))
            .map(|cell| cell.gated.scenario)
            .collect();
        scenarios.dedup();
        scenarios
    }

    /// The cells of one scenario.
    pub fn of_scenario(&self, scenario: usize) -> impl Iterator<Item = &CellReport> {
        self.cells.iter().filter(move |cell| cell.gated.scenario == scenario)
    }
}

/// What a look demands of a cell before it says that something changed.
#[derive(Clone, Copy, Debug)]
struct Demands {
    /// Holm's adjusted p must lie below this.
    alpha: f64,
    /// What is left of it for the cell that is hardest to decide: with Holm's correction, one m-th.
    alpha_of_a_cell: f64,
    /// The fewest rounds that can meet it.
    fewest_rounds: usize,
}

/// One for each round that has both values, positive where the candidate is worse.
fn differences(rounds: &[MeasuredRound], compared: Compared) -> Vec<f64> {
    rounds
        .iter()
        .filter_map(|round| log_ratio(round, compared))
        .map(|log_ratio| Difference::from_log_ratio(compared, log_ratio).0)
        .collect()
}

fn cell_report(
    package: &MeasuredPackage,
    gated: &Gated,
    evidence: &Evidence,
    decision: Decision,
    demands: Demands,
) -> CellReport {
    let scenario = &package.scenarios[gated.scenario];
    let fresh = differences(&scenario.confirmation, gated.compared);
    let (verdict, reason) = match beyond_statistics(package, scenario, gated.compared, evidence) {
        Some(outside) => outside,
        None => conclude(evidence, &decision, (!scenario.confirmation.is_empty()).then_some(&fresh), demands),
    };
    let value = |arm| median(&values_of(arm, &scenario.rounds, gated.compared.metric()));
    let spread = standard_deviation(&evidence.differences);
    CellReport {
        gated: *gated,
        baseline: value(BASELINE),
        candidate: value(CANDIDATE),
        rounds: evidence.differences.len(),
        fresh_rounds: fresh.len(),
        decision,
        verdict,
        reason,
        detectable: spread
            .map(|spread| Difference(detectable_shift(spread, evidence.differences.len(), demands.alpha_of_a_cell))),
        // Arms that run one at a time have no pairs that follow each other.
        order_effect: matches!(package.arms_run, Arms::Together { .. })
            .then(|| order_effect(&scenario.rounds, gated.compared))
            .flatten(),
    }
}

/// What decides a cell before any statistics.
fn beyond_statistics(
    package: &MeasuredPackage,
    scenario: &MeasuredScenario,
    compared: Compared,
    evidence: &Evidence,
) -> Option<(Verdict, Option<Reason>)> {
    let invalid = |reason| Some((Verdict::Invalid, Some(reason)));
    let inconclusive = |reason| Some((Verdict::Inconclusive, Some(reason)));
    if scenario.failure.is_some() {
        return invalid(Reason::NotMeasured);
    }
    match (fails(scenario, BASELINE), fails(scenario, CANDIDATE)) {
        (true, true) => return invalid(Reason::BothFail),
        (true, false) => return inconclusive(Reason::BaselineFails),
        (false, true) => return inconclusive(Reason::CandidateFails),
        (false, false) => {}
    }
    if evidence.differences.is_empty() {
        return invalid(Reason::NoValues);
    }
    let cores = package.cores.are_apart().then_some(package.cores.server.len());
    if compared.metric() == Metric::Throughput && judge_saturation(&scenario.rounds, cores).is_some() {
        return invalid(Reason::Saturated);
    }
    disturbed(scenario).map(|reason| (Verdict::Inconclusive, Some(reason)))
}

/// Whether so many rounds were disturbed from outside that nothing is concluded.
pub(crate) fn disturbed(scenario: &MeasuredScenario) -> Option<Reason> {
    let discarded = scenario.discarded.len();
    let all = scenario.rounds.len() + scenario.confirmation.len() + discarded;
    (discarded as f64 > MOST_DISTURBED * all as f64).then_some(Reason::Disturbed { discarded })
}

/// Whether more of an arm's exchanges failed than the limit on errors accepts.
fn fails(scenario: &MeasuredScenario, arm: usize) -> bool {
    let counts = scenario.counts_of(arm);
    too_many_failed(counts.failed(), counts.started, errors_limit(scenario).bound)
}

/// What the statistics say. `fresh` are the differences of the fresh rounds, `None` while there were none; rounds that have no value
/// confirm nothing.
fn conclude(
    evidence: &Evidence,
    decision: &Decision,
    fresh: Option<&Vec<f64>>,
    demands: Demands,
) -> (Verdict, Option<Reason>) {
    match decision.verdict {
        Verdict::Regressed | Verdict::Improved if fresh.is_some_and(|fresh| !confirms(evidence, fresh)) => {
            (Verdict::Inconclusive, Some(Reason::NotConfirmed))
        }
        Verdict::Unchanged => {
            let surely = |p: Option<f64>| p.is_some_and(|p| p < demands.alpha);
            let changed = surely(decision.p_worse) || surely(decision.p_better);
            (Verdict::Unchanged, changed.then_some(Reason::WithinTolerance))
        }
        Verdict::Inconclusive => {
            let reason = if evidence.differences.len() < demands.fewest_rounds {
                Reason::TooFewRounds { rounds_needed: demands.fewest_rounds }
            } else {
                Reason::Unsteady { rounds_needed: rounds_needed(evidence, decision, demands.alpha_of_a_cell) }
            };
            (Verdict::Inconclusive, Some(reason))
        }
        verdict => (verdict, None),
    }
}

/// About how many rounds would settle a cell: as many as it takes to tell its estimate from the nearer bound of the tolerance.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of rounds, bounded")]
fn rounds_needed(evidence: &Evidence, decision: &Decision, alpha: f64) -> usize {
    const MOST: f64 = 9_999.0;
    let margin =
        decision.estimate.map_or(0.0, |estimate| (estimate.0.abs() - Difference::accepted(evidence.tolerance).0).abs());
    let spread = standard_deviation(&evidence.differences).unwrap_or(0.0);
    // What one round could show, shrunk to the margin by the square root of the rounds.
    let needed = (detectable_shift(spread, 1, alpha) / margin.max(1e-9)).powi(2).ceil();
    needed.clamp(evidence.differences.len() as f64 + 1.0, MOST) as usize
}

#[cfg(test)]
mod tests {
    use httpbench_core::model::Nanos;

    use super::*;
    use crate::error::Error;
    use crate::exit_code::ExitCode;
    use crate::measure::Disturbance;
    use crate::measure::sample::{beside, failing_round, open_round, package, round, scenario};

    const P99: Compared = Compared::Metric(Metric::P99);
    const THROUGHPUT: Compared = Compared::Metric(Metric::Throughput);

    /// Rounds in which the baseline completed about a thousand exchanges in 1 ms each, and the candidate so many per mille of
    /// that, each the longer.
    fn rounds(per_mille: u64, count: u64) -> Vec<MeasuredRound> {
        let arm = |good: u64| round(good, Nanos(1_000_000_000 / good));
        // No two rounds are quite alike.
        (0..count).map(|index| beside(arm(per_mille + index % 3), arm(1_000 + index % 2))).collect()
    }

    /// Rounds in which so many of each arm's exchanges failed.
    fn failing(candidate: u64, baseline: u64) -> Vec<MeasuredRound> {
        (0..8).map(|_| beside(failing_round(1_000, candidate), failing_round(1_000, baseline))).collect()
    }

    fn compared(scenario: MeasuredScenario) -> Comparison {
        compared_after(scenario, |_| ())
    }

    /// With something that happens once the family is fixed.
    fn compared_after(scenario: MeasuredScenario, then: impl FnOnce(&mut MeasuredScenario)) -> Comparison {
        let mut package = package(vec![scenario]);
        let family = Family::fix(&package, 1.0, &[]).expect("every quantile is supported");
        then(&mut package.scenarios[0]);
        Comparison::look(&package, &family, Looks::ONLY)
    }

    fn cell(comparison: &Comparison, compared: Compared) -> &CellReport {
        comparison.cells.iter().find(|cell| cell.gated.compared == compared).expect("it is gated")
    }

    fn said(comparison: &Comparison) -> Vec<(Verdict, Option<Reason>)> {
        comparison.cells.iter().map(|cell| (cell.verdict, cell.reason)).collect()
    }

    #[test]
    fn slower_candidate_is_regressed_in_what_became_slower_and_in_nothing_else() {
        let comparison = compared(scenario("list", &[], rounds(500, 8)));
        for compared in [THROUGHPUT, Compared::Stalls, P99] {
            assert_eq!(cell(&comparison, compared).verdict, Verdict::Regressed, "{compared}");
        }
        let throughput = cell(&comparison, THROUGHPUT);
        assert_eq!((throughput.baseline, throughput.candidate), (Some(1_000.5), Some(501.0)));
        assert_eq!((throughput.rounds, throughput.fresh_rounds), (8, 0));
        let change = throughput.decision.estimate.expect("eight rounds").change(THROUGHPUT);
        assert!((change - -0.5).abs() < 0.01, "{change}");
        assert_eq!(cell(&comparison, Compared::Metric(Metric::CpuPerRequest)).verdict, Verdict::Unchanged);
        assert_eq!(comparison.changed_scenarios(), [0], "each once");
        assert!(comparison.is_settled());
    }

    #[test]
    fn exchanged_arms_turn_regressed_into_improved() {
        let comparison = compared(scenario("list", &[], rounds(2_000, 8)));
        assert_eq!(cell(&comparison, THROUGHPUT).verdict, Verdict::Improved);
        assert_eq!(cell(&comparison, P99).verdict, Verdict::Improved);
        assert_eq!(comparison.changed_scenarios(), [0], "an improvement is confirmed as a regression is");
        let mut refuted = scenario("list", &[], rounds(2_000, 8));
        refuted.confirmation = rounds(1_000, 8);
        let cell = cell(&compared(refuted), THROUGHPUT).clone();
        assert_eq!((cell.verdict, cell.reason), (Verdict::Inconclusive, Some(Reason::NotConfirmed)));
    }

    #[test]
    fn interval_of_a_package_that_shares_alpha_is_as_wide_as_its_part_demands() {
        let mut scenario = scenario("list", &[], rounds(500, 8));
        scenario.confirmation = rounds(500, 8);
        let package = package(vec![scenario]);
        let half = Family::fix(&package, 0.5, &[]).expect("every quantile is supported");
        let confidence = |planned| Comparison::look(&package, &half, Looks::first_of(planned)).confidence();
        assert!((confidence(1) - 0.95).abs() < 1e-9 && (confidence(2) - 0.975).abs() < 1e-9);
    }

    #[test]
    fn fresh_rounds_confirm_a_regression_or_take_it_back() {
        let mut confirmed = scenario("list", &[], rounds(500, 8));
        confirmed.confirmation = rounds(500, 8);
        let confirmed = compared(confirmed);
        assert_eq!(cell(&confirmed, THROUGHPUT).verdict, Verdict::Regressed);
        assert_eq!(cell(&confirmed, THROUGHPUT).fresh_rounds, 8);

        let mut refuted = scenario("list", &[], rounds(500, 8));
        refuted.confirmation = rounds(1_000, 8);
        let refuted = compared(refuted);
        let cell = cell(&refuted, THROUGHPUT);
        assert_eq!((cell.verdict, cell.reason), (Verdict::Inconclusive, Some(Reason::NotConfirmed)));
        assert!(refuted.is_settled(), "more first rounds would not change it");
        assert!(refuted.changed_scenarios().is_empty());

        // Fresh rounds without any value show nothing.
        let mut silent = scenario("list", &[(Metric::Errors, 1.0)], rounds(500, 8));
        silent.confirmation = failing(1_000, 1_000);
        let silent = compared(silent);
        let cell = self::cell(&silent, THROUGHPUT);
        assert_eq!((cell.verdict, cell.reason), (Verdict::Inconclusive, Some(Reason::NotConfirmed)));
    }

    #[test]
    fn too_few_rounds_decide_nothing_and_say_how_many_would() {
        let comparison = compared(scenario("list", &[], rounds(500, 3)));
        let Some(Reason::TooFewRounds { rounds_needed }) = cell(&comparison, THROUGHPUT).reason else {
            panic!("{comparison:?}")
        };
        // Four cells need ⌈log2(4 / 0.05)⌉ rounds, however large the change.
        assert_eq!(rounds_needed, 7);
        assert!(!comparison.is_settled());
    }

    #[test]
    fn sure_change_within_the_tolerance_is_noted() {
        let comparison = compared(scenario("list", &[], rounds(985, 8)));
        let cell = cell(&comparison, THROUGHPUT);
        assert_eq!((cell.verdict, cell.reason), (Verdict::Unchanged, Some(Reason::WithinTolerance)));
    }

    #[test]
    fn failures_are_judged_by_the_arm_that_has_them() {
        for (candidate, baseline, verdict, reason) in [
            (0, 10, Verdict::Inconclusive, Reason::BaselineFails),
            (10, 0, Verdict::Inconclusive, Reason::CandidateFails),
            (10, 10, Verdict::Invalid, Reason::BothFail),
        ] {
            let comparison = compared(scenario("list", &[], failing(candidate, baseline)));
            assert_eq!(said(&comparison), [(verdict, Some(reason)); 4], "{candidate} and {baseline} failures");
            assert!(comparison.is_settled(), "more rounds do not mend a server");
        }
    }

    #[test]
    fn failures_within_their_limit_do_not_stand_in_the_way() {
        let comparison = compared(scenario("list", &[(Metric::Errors, 0.02)], failing(10, 10)));
        assert_eq!(cell(&comparison, THROUGHPUT).verdict, Verdict::Unchanged);
    }

    #[test]
    fn arms_without_any_good_exchange_have_no_values() {
        let comparison = compared(scenario("list", &[(Metric::Errors, 1.0)], failing(1_000, 1_000)));
        assert_eq!(said(&comparison), [(Verdict::Invalid, Some(Reason::NoValues)); 4]);
        assert_eq!(cell(&comparison, THROUGHPUT).decision.estimate, None);
    }

    #[test]
    fn busy_engine_makes_throughput_invalid_and_leaves_the_rest() {
        let mut rounds = rounds(500, 8);
        for round in &mut rounds {
            round.recording.engine.cpu = round.recording.engine.wall;
        }
        let comparison = compared(scenario("list", &[], rounds));
        for compared in [THROUGHPUT, Compared::Stalls] {
            let cell = cell(&comparison, compared);
            assert_eq!((cell.verdict, cell.reason), (Verdict::Invalid, Some(Reason::Saturated)), "{compared}");
        }
        assert_eq!(cell(&comparison, P99).verdict, Verdict::Regressed);
    }

    #[test]
    fn more_than_a_quarter_of_disturbed_rounds_conclude_nothing() {
        let disturbed = |discarded: usize| {
            let mut scenario = scenario("list", &[], rounds(500, 8));
            scenario.discarded = vec![Disturbance::Foreign(0.4); discarded];
            compared(scenario)
        };
        assert_eq!(cell(&disturbed(2), THROUGHPUT).verdict, Verdict::Regressed, "2 of 10");
        let discarded = Some(Reason::Disturbed { discarded: 3 });
        assert_eq!(said(&disturbed(3)), [(Verdict::Inconclusive, discarded); 4], "3 of 11");
        assert!(!disturbed(3).is_settled(), "among more rounds, three are less than a quarter");
    }

    #[test]
    fn throughput_that_drops_in_an_open_loop_is_regressed_beside_a_p50_that_does_not() {
        let wait = Nanos::from_micros(1);
        let arm = |good: u64| open_round(good, Nanos::from_millis(1), wait, good);
        let rounds = (0..8).map(|index| beside(arm(700 + index % 3), arm(1_000 + index % 2))).collect();
        let mut scenario = scenario("list", &[], rounds);
        scenario.load.arrival_rate = Some(1_000.0);
        scenario.load.tolerance_written.insert(Metric::Throughput);
        let comparison = compared(scenario);
        assert_eq!(cell(&comparison, THROUGHPUT).verdict, Verdict::Regressed);
        assert_eq!(cell(&comparison, Compared::Metric(Metric::P50)).verdict, Verdict::Unchanged);
        let policy = crate::cli::ComparisonOptions::default();
        let findings = crate::gate::of_comparison(&comparison, &crate::baseline_arm::OneSided::default(), &policy);
        assert_eq!(crate::gate::decide(&findings), ExitCode::Regression);
    }

    #[test]
    fn scenario_that_broke_off_is_invalid_whatever_its_rounds_say() {
        let comparison = compared_after(scenario("list", &[], rounds(500, 8)), |scenario| {
            scenario.failure = Some(Error::new(ExitCode::ServerFailed, "it died"));
        });
        assert_eq!(said(&comparison), [(Verdict::Invalid, Some(Reason::NotMeasured)); 4]);
    }
}
