//! From the differences of all rounds to the verdicts of a family of cells.
//!
//! The rule, cell by cell: `regressed` if Holm's adjusted one-sided p lies below the look's α, the Hodges–Lehmann estimate reaches
//! the tolerance, and fresh rounds confirm both; `improved` if the same holds with the arms exchanged; `unchanged` if the exact
//! interval lies inside the tolerance, which shows that nothing more than that has changed; else `inconclusive`.
//!
//! The family is fixed before the first round: every gated cell of the run. At each look, Holm's correction is taken over the
//! whole family, at α/K for K looks (Bonferroni over looks; P. Armitage, C. K. McPherson and B. C. Rowe, "Repeated significance
//! tests on accumulating data", Journal of the Royal Statistical Society A 132 (1969), show what happens without). The only
//! input is one difference per round: there is no way to hand in exchanges, which are not independent of each other.

use httpbench_core::model::Ratio;
use serde::Serialize;

use super::cell::{Compared, Difference};
use crate::stats::{
    Interval, hodges_lehmann, hodges_lehmann_shift, holm, p_greater, p_less, rank_sum_interval, rank_sum_p_greater,
    rank_sum_p_less, signed_rank_interval,
};

/// The chance, over all cells and looks of a run, of a `regressed` before confirmation where nothing changed.
pub const ALPHA: f64 = 0.05;

/// What is known of one cell at a look.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// What it compares.
    pub compared: Compared,
    /// The relative change that is accepted.
    pub tolerance: Ratio,
    /// One for each round that has both values.
    pub differences: Vec<f64>,
}

/// How sure a look must be: which of how many planned ones it is.
///
/// A plan can only be gone through, from its first look to its last. Looking after every round as if that were the only look finds
/// a change in anything, sooner or later (Armitage, McPherson and Rowe 1969, "Repeated significance tests on accumulating data").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looks {
    planned: u32,
    this: u32,
}

impl Looks {
    /// The only look of its plan.
    pub const ONLY: Self = Self { planned: 1, this: 1 };

    /// The first look of a plan with so many; none counts as one.
    #[must_use]
    pub const fn first_of(planned: u32) -> Self {
        Self { planned: if planned == 0 { 1 } else { planned }, this: 1 }
    }

    /// The one after this; `None` after the last.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        if self.this < self.planned { Some(Self { planned: self.planned, this: self.this + 1 }) } else { None }
    }

    /// Looks that the plan holds, at least 1.
    #[must_use]
    pub const fn planned(self) -> u32 {
        self.planned
    }

    /// This one, from 1.
    #[must_use]
    pub const fn this(self) -> u32 {
        self.this
    }

    /// What each look may spend of α.
    #[must_use]
    pub fn alpha(self, alpha: f64) -> f64 {
        alpha / f64::from(self.planned)
    }
}

/// The fewest rounds at which a look can decide anything: ⌈log2(m·K/α)⌉, because the smallest p of n rounds is 2^-n and must lie below
/// α/(m·K). Where that is a power of two itself, one more.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a small number"
)]
pub fn fewest_rounds(cells: usize, looks: u32, alpha: f64) -> u32 {
    (cells.max(1) as f64 * f64::from(looks.max(1)) / alpha).log2().floor() as u32 + 1
}

/// What is said of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Worse by at least the tolerance, and not by chance.
    Regressed,
    /// Better by at least the tolerance, and not by chance.
    Improved,
    /// Equivalence shown: the interval lies within the tolerance.
    Unchanged,
    /// None of these could be shown.
    Inconclusive,
    /// Nothing may be said: a dead server, too few exchanges, a load engine that was the bottleneck.
    Invalid,
}

impl Verdict {
    /// The word in reports and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Regressed => "regressed",
            Self::Improved => "improved",
            Self::Unchanged => "unchanged",
            Self::Inconclusive => "inconclusive",
            Self::Invalid => "invalid",
        }
    }
}

/// A cell's verdict at a look, and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// What is said.
    pub verdict: Verdict,
    /// The Hodges–Lehmann estimate of the difference.
    pub estimate: Option<Difference>,
    /// The exact interval around it, at the look's level on either side.
    pub interval: Option<Interval>,
    /// The adjusted one-sided p that the candidate is worse.
    pub p_worse: Option<f64>,
    /// The adjusted one-sided p that the candidate is better.
    pub p_better: Option<f64>,
}

/// Judges a whole family at one look. A `regressed`, or its mirror image, still waits for its confirmation.
#[must_use]
pub fn decide(family: &[Evidence], alpha: f64, looks: Looks) -> Vec<Decision> {
    // A cell without rounds stays in the family: dropping it after the fact would make the others' p smaller.
    let adjusted = |p: fn(&[f64], f64) -> Option<f64>| {
        holm(&family.iter().map(|cell| p(&cell.differences, 0.0).unwrap_or(1.0)).collect::<Vec<_>>())
    };
    let (worse, better) = (adjusted(p_greater), adjusted(p_less));
    family
        .iter()
        .zip(worse.into_iter().zip(better))
        .map(|(cell, (p_worse, p_better))| {
            let interval = signed_rank_interval(&cell.differences, looks.alpha(alpha));
            let estimate = hodges_lehmann(&cell.differences);
            decide_cell(cell.tolerance, estimate, interval, looks.alpha(alpha), p_worse, p_better)
        })
        .collect()
}

/// What is known of one cell of two servers that were never measured together: a value for each round of either, oriented so that
/// higher is worse.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoSamples {
    /// The relative change that is accepted.
    pub tolerance: Ratio,
    /// The candidate's rounds.
    pub candidate: Vec<f64>,
    /// The baseline's.
    pub baseline: Vec<f64>,
}

/// Judges a whole family by two independent samples a cell: as [`decide`], by the rank-sum test.
#[must_use]
pub fn decide_two_samples(family: &[TwoSamples], alpha: f64, looks: Looks) -> Vec<Decision> {
    let adjusted = |p: fn(&[f64], &[f64], f64) -> Option<f64>| {
        let of = |cell: &TwoSamples| p(&cell.candidate, &cell.baseline, 0.0).unwrap_or(1.0);
        holm(&family.iter().map(of).collect::<Vec<_>>())
    };
    let (worse, better) = (adjusted(rank_sum_p_greater), adjusted(rank_sum_p_less));
    family
        .iter()
        .zip(worse.into_iter().zip(better))
        .map(|(cell, (p_worse, p_better))| {
            let interval = rank_sum_interval(&cell.candidate, &cell.baseline, looks.alpha(alpha));
            let estimate = hodges_lehmann_shift(&cell.candidate, &cell.baseline);
            decide_cell(cell.tolerance, estimate, interval, looks.alpha(alpha), p_worse, p_better)
        })
        .collect()
}

/// As [`confirms`], for two samples: in the direction of the first ones, the fresh rounds alone show it against the baseline's, and
/// with the first ones they reach the tolerance.
#[must_use]
pub fn confirms_two_samples(first: &TwoSamples, fresh: &[f64]) -> bool {
    let direction = hodges_lehmann_shift(&first.candidate, &first.baseline).map_or(1.0, f64::signum);
    let turned = |values: &[f64]| values.iter().map(|value| value * direction).collect::<Vec<_>>();
    let (baseline, fresh) = (turned(&first.baseline), turned(fresh));
    let together = [&turned(&first.candidate)[..], &fresh[..]].concat();
    let bound = Difference::accepted(first.tolerance).0;
    hodges_lehmann_shift(&together, &baseline).is_some_and(|estimate| estimate >= bound)
        && rank_sum_p_greater(&fresh, &baseline, 0.0).is_some_and(|p| p < ALPHA)
}

fn decide_cell(
    tolerance: Ratio,
    estimate: Option<f64>,
    interval: Option<Interval>,
    alpha: f64,
    p_worse: f64,
    p_better: f64,
) -> Decision {
    let bound = Difference::accepted(tolerance).0;
    let verdict = match (estimate, interval) {
        (Some(estimate), _) if p_worse < alpha && estimate >= bound => Verdict::Regressed,
        (Some(estimate), _) if p_better < alpha && estimate <= -bound => Verdict::Improved,
        (_, Some(interval)) if interval.low > -bound && interval.high < bound => Verdict::Unchanged,
        _ => Verdict::Inconclusive,
    };
    let p = |p| estimate.map(|_| p);
    Decision { verdict, estimate: estimate.map(Difference), interval, p_worse: p(p_worse), p_better: p(p_better) }
}

/// Whether fresh rounds confirm the change that the first ones showed, in its own direction: they alone show it at α, and both
/// stages together reach the tolerance.
#[must_use]
pub fn confirms(first: &Evidence, fresh: &[f64]) -> bool {
    let direction = hodges_lehmann(&first.differences).map_or(1.0, f64::signum);
    let turned = |differences: &[f64]| differences.iter().map(|difference| difference * direction).collect::<Vec<_>>();
    let (first_turned, fresh) = (turned(&first.differences), turned(fresh));
    let together = [&first_turned[..], &fresh[..]].concat();
    let reaches = hodges_lehmann(&together).is_some_and(|estimate| estimate >= Difference::accepted(first.tolerance).0);
    reaches && p_greater(&fresh, 0.0).is_some_and(|p| p < ALPHA)
}

#[cfg(test)]
mod tests {
    use httpbench_core::model::Metric;

    use super::*;

    fn evidence(compared: Compared, tolerance: f64, differences: &[f64]) -> Evidence {
        Evidence { compared, tolerance: Ratio(tolerance), differences: differences.to_vec() }
    }

    fn around(centre: f64, spread: f64, rounds: usize) -> Vec<f64> {
        // Evenly spaced, symmetric, without ties.
        (0..rounds).map(|round| centre + spread * (2.0 * (round as f64 + 0.5) / rounds as f64 - 1.0)).collect()
    }

    fn verdict_of(differences: &[f64], tolerance: f64) -> Decision {
        decide(&[evidence(Compared::Metric(Metric::P99), tolerance, differences)], ALPHA, Looks::ONLY)[0]
    }

    #[test]
    fn clear_slowdown_is_regressed_and_its_mirror_image_improved() {
        for compared in [Compared::Metric(Metric::P99), Compared::Metric(Metric::Throughput)] {
            let worse = decide(&[evidence(compared, 0.05, &around(0.10, 0.01, 12))], ALPHA, Looks::ONLY)[0];
            assert_eq!(worse.verdict, Verdict::Regressed);
            let interval = worse.interval.expect("twelve rounds");
            assert!(0.08 < interval.low && interval.high < 0.12, "{interval:?}");
            let better = decide(&[evidence(compared, 0.05, &around(-0.10, 0.01, 12))], ALPHA, Looks::ONLY)[0];
            assert_eq!(better.verdict, Verdict::Improved);
        }
    }

    #[test]
    fn no_change_is_unchanged_where_the_rounds_agree_and_inconclusive_where_they_do_not() {
        assert_eq!(verdict_of(&around(0.0, 0.02, 12), 0.05).verdict, Verdict::Unchanged);
        assert_eq!(verdict_of(&around(0.0, 0.5, 12), 0.05).verdict, Verdict::Inconclusive);
    }

    #[test]
    fn sure_change_within_the_tolerance_is_unchanged_and_beyond_it_regressed() {
        let within = verdict_of(&around(0.02, 0.002, 12), 0.05);
        assert_eq!(within.verdict, Verdict::Unchanged);
        assert!(within.p_worse.expect("rounds") < ALPHA, "it is sure all the same");
        assert_eq!(verdict_of(&around(0.07, 0.005, 12), 0.05).verdict, Verdict::Regressed);
    }

    #[test]
    fn three_rounds_decide_nothing_however_large_the_change() {
        let decision = verdict_of(&[0.5, 0.51, 0.52], 0.05);
        assert_eq!((decision.verdict, decision.p_worse), (Verdict::Inconclusive, Some(0.125)));
        assert_eq!([(1, 1), (12, 1), (10, 1), (10, 2)].map(|(m, k)| fewest_rounds(m, k, ALPHA)), [5, 8, 8, 9]);
        assert_eq!(fewest_rounds(16, 1, 0.031_25), 10, "16 · 2^-9 is α and not below it");
    }

    #[test]
    fn cell_without_rounds_is_inconclusive_and_keeps_its_place_in_the_family() {
        let compared = Compared::Metric(Metric::P99);
        let alone = decide(&[evidence(compared, 0.05, &around(0.1, 0.01, 5))], ALPHA, Looks::ONLY);
        let beside = decide(
            &[evidence(compared, 0.05, &around(0.1, 0.01, 5)), evidence(compared, 0.05, &[])],
            ALPHA,
            Looks::ONLY,
        );
        assert_eq!((alone[0].verdict, beside[0].verdict), (Verdict::Regressed, Verdict::Inconclusive));
        assert_eq!((beside[1].verdict, beside[1].estimate), (Verdict::Inconclusive, None));
    }

    #[test]
    fn exchanged_arms_flip_every_sign_and_nothing_else() {
        let compared = Compared::Metric(Metric::CpuPerRequest);
        let differences = [0.031, 0.052, 0.047, 0.029, 0.061, 0.038, 0.044, 0.055, 0.027, 0.049];
        let there = decide(&[evidence(compared, 0.03, &differences)], ALPHA, Looks::ONLY)[0];
        let back =
            decide(&[evidence(compared, 0.03, &differences.map(|difference| -difference))], ALPHA, Looks::ONLY)[0];
        assert_eq!((there.verdict, back.verdict), (Verdict::Regressed, Verdict::Improved));
        assert_eq!((there.p_worse, there.p_better), (back.p_better, back.p_worse));
        let (there_interval, back_interval) = (there.interval.expect("ten"), back.interval.expect("ten"));
        assert_eq!((there_interval.low, there_interval.high), (-back_interval.high, -back_interval.low));
        assert_eq!(there.estimate.expect("ten").0, -back.estimate.expect("ten").0);
    }

    #[test]
    fn confirmation_needs_fresh_data_of_its_own_and_the_tolerance_over_both_stages() {
        let first = evidence(Compared::Metric(Metric::P99), 0.05, &around(0.06, 0.02, 12));
        assert!(confirms(&first, &around(0.06, 0.02, 8)));
        assert!(!confirms(&first, &around(-0.06, 0.02, 8)), "the fresh rounds show the opposite");
        let better = Evidence { differences: around(-0.06, 0.02, 12), ..first.clone() };
        assert!(confirms(&better, &around(-0.06, 0.02, 8)), "an improvement is confirmed alike");
        assert!(!confirms(&better, &around(0.06, 0.02, 8)));
        assert!(!confirms(&first, &around(0.0, 0.02, 8)), "the fresh rounds show nothing");
        assert!(!confirms(&first, &around(0.02, 0.005, 8)), "together they do not reach the tolerance");
        assert!(!confirms(&first, &[0.07, 0.06, 0.08]), "three rounds show nothing");
    }
}
