//! All cells of a package, compared: what is said, what it rests on, and why not more.

use httpbench_core::model::Metric;
use serde::Serialize;

use super::cell::{Compared, Difference};
use super::decide::{Decision, Evidence, Looks, Verdict, confirms, decide};
use super::family::{Family, Gated};
use super::limits::errors_limit;
use super::pairs::log_ratio;
use super::saturation::judge_saturation;
use crate::measure::{BASELINE, CANDIDATE, MeasuredPackage, MeasuredRound, MeasuredScenario, values_of};
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
}

/// Why a cell is not decided, or what is worth knowing of one that is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum Reason {
    /// Worse at first, but fresh rounds did not show it again.
    NotConfirmed,
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
}

/// Compares every gated cell of a package, on what was measured so far.
///
/// A `regressed` of a scenario with fresh rounds has been confirmed by them; without any it still waits for that.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// In the order of the family.
    pub cells: Vec<CellReport>,
    /// The look that this is.
    pub looks: Looks,
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
        let alpha = looks.alpha(family.alpha) / family.cells.len().max(1) as f64;
        let cells = family
            .cells
            .iter()
            .zip(&evidence)
            .zip(decisions)
            .map(|((gated, evidence), decision)| cell_report(package, gated, evidence, decision, alpha));
        Self { cells: cells.collect(), looks }
    }

    /// Whether more rounds could not change what is said, but for a confirmation.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.cells.iter().all(|cell| match cell.verdict {
            Verdict::Regressed | Verdict::Improved | Verdict::Unchanged | Verdict::Invalid => true,
            Verdict::Inconclusive => !matches!(cell.reason, Some(Reason::Unsteady { .. })),
        })
    }

    /// The scenarios with a `regressed`, each once.
    #[must_use]
    pub fn regressed_scenarios(&self) -> Vec<usize> {
        let mut scenarios: Vec<usize> = self
            .cells
            .iter()
            .filter(|cell| cell.verdict == Verdict::Regressed)
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
    alpha: f64,
) -> CellReport {
    let scenario = &package.scenarios[gated.scenario];
    let fresh = differences(&scenario.confirmation, gated.compared);
    let (verdict, reason) = match beyond_statistics(package, scenario, gated.compared, evidence) {
        Some(outside) => outside,
        None => conclude(evidence, &decision, &fresh, alpha),
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
        detectable: spread.map(|spread| Difference(detectable_shift(spread, evidence.differences.len(), alpha))),
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
    let discarded = scenario.discarded.len();
    let all = scenario.rounds.len() + scenario.confirmation.len() + discarded;
    if discarded as f64 > MOST_DISTURBED * all as f64 {
        return inconclusive(Reason::Disturbed { discarded });
    }
    None
}

/// Whether more of an arm's exchanges failed than the limit on errors accepts.
fn fails(scenario: &MeasuredScenario, arm: usize) -> bool {
    let counts = scenario.counts_of(arm);
    counts.started > 0 && counts.failed() as f64 / counts.started as f64 > errors_limit(scenario).bound
}

fn conclude(evidence: &Evidence, decision: &Decision, fresh: &[f64], alpha: f64) -> (Verdict, Option<Reason>) {
    match decision.verdict {
        Verdict::Regressed if !fresh.is_empty() && !confirms(evidence, fresh) => {
            (Verdict::Inconclusive, Some(Reason::NotConfirmed))
        }
        Verdict::Unchanged => {
            let surely = |p: Option<f64>| p.is_some_and(|p| p < super::ALPHA);
            let changed = surely(decision.p_worse) || surely(decision.p_better);
            (Verdict::Unchanged, changed.then_some(Reason::WithinTolerance))
        }
        Verdict::Inconclusive => {
            (Verdict::Inconclusive, Some(Reason::Unsteady { rounds_needed: rounds_needed(evidence, decision, alpha) }))
        }
        verdict => (verdict, None),
    }
}

/// About how many rounds would settle a cell: as many as it takes to tell its estimate from the nearer bound of the tolerance.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of rounds, bounded")]
fn rounds_needed(evidence: &Evidence, decision: &Decision, alpha: f64) -> usize {
    const MOST: f64 = 9_999.0;
    let fewest = (1.0 / alpha).log2().ceil();
    let margin =
        decision.estimate.map_or(0.0, |estimate| (estimate.0.abs() - Difference::accepted(evidence.tolerance).0).abs());
    let spread = standard_deviation(&evidence.differences).unwrap_or(0.0);
    // What one round could show, shrunk to the margin by the square root of the rounds.
    let needed = (detectable_shift(spread, 1, alpha) / margin.max(1e-9)).powi(2).ceil();
    needed.clamp(fewest.max(evidence.differences.len() as f64 + 1.0), MOST) as usize
}
