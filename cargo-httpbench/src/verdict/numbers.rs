//! Numbers only: two servers that were never measured together, compared by their ratios to the reference server.
//!
//! Weaker than arms that take turns, and labelled so: nothing pairs the two samples, so they are compared by the rank-sum test, and
//! less than [`LEAST_TOLERANCE`] is never called a change. Family, looks, Holm's correction and confirmation are those of
//! [`decide`](super::decide). What cannot be compared is `inconclusive` with its reason, never `regressed`.

use std::collections::BTreeMap;

use httpbench_core::model::{Metric, Ratio};

use super::against_reference::AgainstReference;
use super::cell::{Compared, Difference};
use super::comparison::{CellReport, Comparison, Reason};
use super::decide::{ALPHA, Decision, Looks, TwoSamples, Verdict, confirms_two_samples, decide_two_samples};
use super::family::{Family, Gated};
use super::saturation::Saturation;
use crate::reference;
use crate::stats::{detectable_shift, standard_deviation};

/// No smaller change is decided by numbers alone: where it was recorded, the ratio to another server had a standard deviation of 4.4 %
/// over the rounds, beside 3.2 % for two arms that take turns, and days between two runs add what no round shows.
pub const LEAST_TOLERANCE: Ratio = Ratio(0.10);

/// A reference server whose throughput's logarithm has a larger standard deviation over the rounds of a run tells nothing. Where
/// undisturbed rounds were recorded on a shared machine it was 0.15 to 0.18, which its ratios take out.
const MOST_UNSTEADY: f64 = 0.30;

/// One scenario, of which both sides were measured beside the reference server.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// What the baseline was.
    pub baseline: Side,
    /// What the candidate is.
    pub candidate: Side,
    /// The candidate's fresh rounds.
    pub fresh: Vec<AgainstReference>,
    /// Why nothing can be said of this scenario, where something outside of the numbers forbids it.
    pub obstacle: Option<(Verdict, Reason)>,
    /// Set where the candidate's throughput was the engine's.
    pub saturation: Option<Saturation>,
}

/// One side of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Its rounds; those without the reference server are left out.
    pub rounds: Vec<AgainstReference>,
    /// The medians of its rounds' own values, which are shown and not compared.
    pub medians: BTreeMap<Metric, f64>,
}

impl Side {
    fn differences(rounds: &[AgainstReference], compared: Compared) -> Vec<f64> {
        let of = |round: &AgainstReference| round.log_ratios.get(&compared).copied();
        rounds.iter().filter_map(of).map(|log_ratio| Difference::from_log_ratio(compared, log_ratio).0).collect()
    }
}

impl Family {
    /// The same cells, under the tolerances that numbers alone allow.
    #[must_use]
    pub fn for_numbers(mut self) -> Self {
        for cell in &mut self.cells {
            cell.tolerance = Ratio(cell.tolerance.0.max(LEAST_TOLERANCE.0));
        }
        self
    }
}

impl Comparison {
    /// Looks at a family by numbers alone; `numbers` has every scenario of the package, by its index.
    #[must_use]
    pub fn look_at_numbers(numbers: &[Numbers], family: &Family, looks: Looks) -> Self {
        let samples: Vec<TwoSamples> = family
            .cells
            .iter()
            .map(|cell| {
                let scenario = &numbers[cell.scenario];
                TwoSamples {
                    tolerance: cell.tolerance,
                    candidate: Side::differences(&scenario.candidate.rounds, cell.compared),
                    baseline: Side::differences(&scenario.baseline.rounds, cell.compared),
                }
            })
            .collect();
        let decisions = decide_two_samples(&samples, family.alpha, looks);
        let alpha = looks.alpha(family.alpha) / family.cells.len().max(1) as f64;
        let cells = family.cells.iter().zip(&samples).zip(decisions);
        let report = |((gated, samples), decision): ((&Gated, &TwoSamples), Decision)| {
            cell_report(&numbers[gated.scenario], *gated, samples, decision, alpha)
        };
        let not_gated = family.not_gated.clone();
        Self { cells: cells.map(report).collect(), not_gated, looks, alpha: family.alpha }
    }
}

fn cell_report(numbers: &Numbers, gated: Gated, samples: &TwoSamples, decision: Decision, alpha: f64) -> CellReport {
    let fresh = Side::differences(&numbers.fresh, gated.compared);
    let is_throughput = gated.compared.metric() == Metric::Throughput;
    let saturated = numbers.saturation.filter(|_| is_throughput).map(|_| (Verdict::Invalid, Reason::Saturated));
    let obstacle = numbers.obstacle.or(saturated).or_else(|| reference_obstacle(numbers, samples));
    let (verdict, reason) = match obstacle {
        Some((verdict, reason)) => (verdict, Some(reason)),
        None => conclude(samples, &decision, (!numbers.fresh.is_empty()).then_some(&fresh[..]), alpha),
    };
    let metric = gated.compared.metric();
    CellReport {
        gated,
        baseline: numbers.baseline.medians.get(&metric).copied(),
        candidate: numbers.candidate.medians.get(&metric).copied(),
        rounds: samples.candidate.len(),
        fresh_rounds: fresh.len(),
        decision,
        verdict,
        reason,
        detectable: detectable(samples, alpha).map(Difference),
        // The two sides were never a pair.
        order_effect: None,
    }
}

/// What forbids to conclude anything from these numbers.
fn reference_obstacle(numbers: &Numbers, samples: &TwoSamples) -> Option<(Verdict, Reason)> {
    let inconclusive = |reason| Some((Verdict::Inconclusive, reason));
    if numbers.baseline.rounds.is_empty() {
        return inconclusive(Reason::NoReference);
    }
    let all = || numbers.baseline.rounds.iter().chain(&numbers.candidate.rounds).chain(&numbers.fresh);
    if all().any(|round| round.reference.version != reference::VERSION) {
        return inconclusive(Reason::OtherReference);
    }
    if all().any(|round| round.reference.failed > 0) {
        return inconclusive(Reason::ReferenceFails);
    }
    for side in [&numbers.baseline.rounds, &numbers.candidate.rounds] {
        let throughputs: Vec<f64> = side.iter().map(|round| round.reference.throughput.ln()).collect();
        if standard_deviation(&throughputs).is_some_and(|spread| spread > MOST_UNSTEADY) {
            return inconclusive(Reason::ReferenceUnsteady);
        }
    }
    if samples.candidate.is_empty() || samples.baseline.is_empty() {
        return Some((Verdict::Invalid, Reason::NoValues));
    }
    None
}

fn conclude(samples: &TwoSamples, decision: &Decision, fresh: Option<&[f64]>, alpha: f64) -> (Verdict, Option<Reason>) {
    match decision.verdict {
        Verdict::Regressed | Verdict::Improved if fresh.is_some_and(|fresh| !confirms_two_samples(samples, fresh)) => {
            (Verdict::Inconclusive, Some(Reason::NotConfirmed))
        }
        Verdict::Unchanged => {
            let surely = |p: Option<f64>| p.is_some_and(|p| p < ALPHA);
            let changed = surely(decision.p_worse) || surely(decision.p_better);
            (Verdict::Unchanged, changed.then_some(Reason::WithinTolerance))
        }
        Verdict::Inconclusive => {
            let rounds_needed = rounds_needed(samples, decision, alpha);
            (Verdict::Inconclusive, Some(Reason::Unsteady { rounds_needed }))
        }
        verdict => (verdict, None),
    }
}

/// The smallest shift that these samples find with a chance of 90 %: as of one sample whose error is that of the difference.
fn detectable(samples: &TwoSamples, alpha: f64) -> Option<f64> {
    let (candidate, baseline) = (&samples.candidate, &samples.baseline);
    let of_one = |values: &[f64]| Some(detectable_shift(standard_deviation(values)?, values.len(), alpha));
    Some(of_one(candidate)?.hypot(of_one(baseline)?))
}

/// About how many rounds of either side would settle a cell.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of rounds, bounded")]
fn rounds_needed(samples: &TwoSamples, decision: &Decision, alpha: f64) -> usize {
    const MOST: f64 = 9_999.0;
    let bound = Difference::accepted(samples.tolerance).0;
    let margin = decision.estimate.map_or(0.0, |estimate| (estimate.0.abs() - bound).abs());
    let of_one = |values: &[f64]| standard_deviation(values).unwrap_or(0.0);
    let spread = of_one(&samples.candidate).hypot(of_one(&samples.baseline));
    let needed = (detectable_shift(spread, 1, alpha) / margin.max(1e-9)).powi(2).ceil();
    needed.clamp(samples.candidate.len() as f64 + 1.0, MOST) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::ReferenceState;

    const P99: Compared = Compared::Metric(Metric::P99);
    /// Rounds around a log-ratio, 1 % apart at most, beside a reference server of so many answers per second.
    fn rounds(centre: f64, count: u32, throughput: f64) -> Vec<AgainstReference> {
        let round = |index: u32| AgainstReference {
            log_ratios: BTreeMap::from([(P99, centre + 0.01 * (f64::from(index) / f64::from(count) - 0.5))]),
            reference: ReferenceState { version: reference::VERSION, throughput, failed: 0 },
        };
        (0..count).map(round).collect()
    }

    fn numbers(baseline: Vec<AgainstReference>, candidate: Vec<AgainstReference>) -> Numbers {
        let side = |rounds| Side { rounds, medians: BTreeMap::from([(Metric::P99, 5.0)]) };
        Numbers { baseline: side(baseline), candidate: side(candidate), ..Numbers::default() }
    }

    fn look(numbers: Numbers) -> CellReport {
        let gated = Gated { scenario: 0, compared: P99, tolerance: Ratio(0.03), stands_for: None };
        let family = Family { cells: vec![gated], not_gated: Vec::new(), alpha: ALPHA }.for_numbers();
        Comparison::look_at_numbers(&[numbers], &family, Looks::ONLY).cells.remove(0)
    }

    fn said(numbers: Numbers) -> (Verdict, Option<Reason>) {
        let cell = look(numbers);
        (cell.verdict, cell.reason)
    }

    #[test]
    fn change_of_the_ratio_is_found_from_ten_percent_on() {
        let of = |change: f64| look(numbers(rounds(1.0, 5, 9e4), rounds(1.0 + change.ln_1p(), 8, 9e4)));
        let regressed = of(0.2);
        assert_eq!((regressed.verdict, regressed.reason), (Verdict::Regressed, None));
        assert!((regressed.decision.estimate.expect("values").change(P99) - 0.2).abs() < 0.01);
        assert_eq!((regressed.rounds, regressed.baseline), (8, Some(5.0)));
        assert_eq!(regressed.gated.tolerance, LEAST_TOLERANCE);
        assert_eq!(of(-0.3).verdict, Verdict::Improved);
        let within = of(0.06);
        assert_eq!((within.verdict, within.reason), (Verdict::Unchanged, Some(Reason::WithinTolerance)));
        assert_eq!(of(0.0).reason, None);
    }

    #[test]
    fn machine_that_is_15_percent_slower_today_changes_nothing() {
        assert_eq!(said(numbers(rounds(1.0, 5, 9e4), rounds(1.0, 8, 7.65e4))), (Verdict::Unchanged, None));
    }

    #[test]
    fn reference_server_that_fails_or_is_unsteady_concludes_nothing() {
        let slower = || rounds(2.0, 8, 9e4);
        let mut fails = slower();
        fails[3].reference.failed = 1;
        let failing = (Verdict::Inconclusive, Some(Reason::ReferenceFails));
        assert_eq!(said(numbers(rounds(1.0, 5, 9e4), fails.clone())), failing);
        assert_eq!(said(numbers(fails, slower())), failing, "on either side");
        let mut unsteady = slower();
        for round in unsteady.iter_mut().step_by(2) {
            round.reference.throughput = 3e4;
        }
        assert_eq!(
            said(numbers(rounds(1.0, 5, 9e4), unsteady)),
            (Verdict::Inconclusive, Some(Reason::ReferenceUnsteady))
        );
    }

    #[test]
    fn baseline_without_ratios_or_with_those_of_another_reference_concludes_nothing() {
        assert_eq!(said(numbers(Vec::new(), rounds(2.0, 8, 9e4))).1, Some(Reason::NoReference));
        let mut other = rounds(1.0, 5, 9e4);
        other[0].reference.version = reference::VERSION + 1;
        assert_eq!(said(numbers(other, rounds(2.0, 8, 9e4))).1, Some(Reason::OtherReference));
    }

    #[test]
    fn obstacle_outweighs_whatever_the_numbers_say() {
        let mut numbers = numbers(rounds(1.0, 5, 9e4), rounds(2.0, 8, 9e4));
        numbers.obstacle = Some((Verdict::Inconclusive, Reason::NotComparable));
        assert_eq!(said(numbers), (Verdict::Inconclusive, Some(Reason::NotComparable)));
    }

    #[test]
    fn fresh_rounds_confirm_or_take_back() {
        let with_fresh = |centre: f64| {
            let mut numbers = numbers(rounds(1.0, 5, 9e4), rounds(1.2, 8, 9e4));
            numbers.fresh = rounds(centre, 8, 9e4);
            said(numbers)
        };
        assert_eq!(with_fresh(1.2), (Verdict::Regressed, None));
        assert_eq!(with_fresh(1.0), (Verdict::Inconclusive, Some(Reason::NotConfirmed)));
    }

    #[test]
    fn too_few_rounds_are_unsteady() {
        let (verdict, reason) = said(numbers(rounds(1.0, 2, 9e4), rounds(1.2, 2, 9e4)));
        assert!(matches!((verdict, reason), (Verdict::Inconclusive, Some(Reason::Unsteady { .. }))), "{reason:?}");
    }
}
