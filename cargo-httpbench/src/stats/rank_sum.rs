//! The Wilcoxon rank-sum test of two independent samples, exactly, with its estimate and its interval.
//!
//! F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945), 80–83; H. B. Mann and D. R. Whitney,
//! "On a test of whether one of two random variables is stochastically larger than the other", Annals of Mathematical Statistics 18
//! (1947), 50–60. The null distribution is counted, not approximated: if both samples come from one distribution, every choice of
//! the first sample's ranks is equally likely. Tied values share the mean of their ranks, and the count is over the ranks that are
//! really there, which keeps the test exact (M. Hollander, D. A. Wolfe, E. Chicken, "Nonparametric Statistical Methods", 3rd
//! edition, section 4.1). The estimate is the median of all differences between the samples (Hodges and Lehmann, 1963; section
//! 4.2 there), the interval what the test does not reject (section 4.3 there).

use super::{Interval, median};

/// The exact null distribution of twice the rank sum of the first sample, for given doubled ranks of both together.
///
/// Twice, because ranks that are shared by two values end in one half.
struct RankSums {
    /// `counts[s]`: the number of choices whose doubled sum is `s`.
    counts: Vec<f64>,
    /// Of all choices.
    all: f64,
}

impl RankSums {
    /// Of `size` values among those that have these ranks.
    fn of(doubled_ranks: &[usize], size: usize) -> Self {
        let total: usize = doubled_ranks.iter().sum();
        // ways[k][s]: choices of k of the ranks seen so far whose sum is s. Counts stay exact in an f64 up to 2^53.
        let mut ways = vec![vec![0.0_f64; total + 1]; size + 1];
        ways[0][0] = 1.0;
        for &rank in doubled_ranks {
            for chosen in (1..=size).rev() {
                for sum in rank..=total {
                    ways[chosen][sum] += ways[chosen - 1][sum - rank];
                }
                // Each rank may be chosen once: from the most chosen down, so that `chosen - 1` is still without it.
            }
        }
        let counts = ways.swap_remove(size);
        Self { all: counts.iter().sum(), counts }
    }

    fn at_least(&self, sum: usize) -> f64 {
        self.counts.iter().skip(sum).sum::<f64>() / self.all
    }

    fn at_most(&self, sum: usize) -> f64 {
        self.counts.iter().take(sum + 1).sum::<f64>() / self.all
    }
}

/// One-sided p of the hypothesis that `first` lies higher than `second` by more than `shift`: small when it does.
///
/// `None` where a sample is empty.
#[must_use]
pub fn rank_sum_p_greater(first: &[f64], second: &[f64], shift: f64) -> Option<f64> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let mut values: Vec<(f64, bool)> = first.iter().map(|value| (value - shift, true)).collect();
    values.extend(second.iter().map(|&value| (value, false)));
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = Vec::with_capacity(values.len());
    for tied in values.chunk_by(|a, b| a.0 == b.0) {
        // The ranks first..=last share their mean, (first + last) / 2.
        let (lowest, highest) = (ranks.len() + 1, ranks.len() + tied.len());
        ranks.extend(std::iter::repeat_n(lowest + highest, tied.len()));
    }
    let sum = ranks.iter().zip(&values).filter(|(_, (_, of_first))| *of_first).map(|(rank, _)| rank).sum();
    Some(RankSums::of(&ranks, first.len()).at_least(sum))
}

/// One-sided p of the hypothesis that `first` lies lower than `second`, shifted by `shift`.
#[must_use]
pub fn rank_sum_p_less(first: &[f64], second: &[f64], shift: f64) -> Option<f64> {
    rank_sum_p_greater(second, first, -shift)
}

/// How far `first` lies above `second`: the median of all differences. `None` where a sample is empty.
#[must_use]
pub fn hodges_lehmann_shift(first: &[f64], second: &[f64]) -> Option<f64> {
    median(&differences(first, second))
}

/// The exact interval for that shift, whose two ends are each missed with a probability of at most `alpha` (0 to 1/2).
///
/// `None` where the values are too few for any bound: `alpha` must be at least one in all choices of the first sample.
#[must_use]
pub fn rank_sum_interval(first: &[f64], second: &[f64], alpha: f64) -> Option<Interval> {
    let mut differences = differences(first, second);
    differences.sort_by(f64::total_cmp);
    let all: Vec<usize> = (1..=first.len() + second.len()).map(|rank| 2 * rank).collect();
    let null = RankSums::of(&all, first.len());
    // The number of pairs in which the first sample is higher is its rank sum less the least one that there is.
    let least = first.len() * (first.len() + 1);
    let at_most = |pairs: usize| null.at_most(least + 2 * pairs);
    // The most differences that may be cut off at each end: the largest k with P(U <= k - 1) <= alpha.
    let cut = (0..differences.len()).take_while(|&pairs| at_most(pairs) <= alpha).count();
    if cut == 0 {
        return None;
    }
    Some(Interval { low: differences[cut - 1], high: differences[differences.len() - cut] })
}

fn differences(first: &[f64], second: &[f64]) -> Vec<f64> {
    first.iter().flat_map(|a| second.iter().map(move |b| a - b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chance of at most `pairs` pairs in which a value of the first sample is higher, without ties.
    fn at_most(first: usize, second: usize, pairs: usize) -> f64 {
        let all: Vec<usize> = (1..=first + second).map(|rank| 2 * rank).collect();
        RankSums::of(&all, first).at_most(first * (first + 1) + 2 * pairs)
    }

    #[test]
    fn distribution_of_three_and_three_is_that_of_mann_and_whitney() {
        let ways: Vec<f64> = (0..=9).map(|pairs| (at_most(3, 3, pairs) * 20.0).round()).collect();
        assert_eq!(ways, [1.0, 2.0, 4.0, 7.0, 10.0, 13.0, 16.0, 18.0, 19.0, 20.0]);
        assert!((at_most(5, 5, 4) - 12.0 / 252.0).abs() < 1e-12);
        assert!((at_most(4, 5, 2) - 4.0 / 126.0).abs() < 1e-12);
    }

    #[test]
    fn critical_values_are_those_of_the_tables() {
        // The largest U that is significant at 5 % and at 2.5 %, one-sided.
        for (first, second, five, two_and_a_half) in
            [(5, 5, 4, 2), (5, 10, 11, 8), (8, 8, 15, 13), (10, 10, 27, 23), (5, 16, 19, 15), (20, 20, 138, 127)]
        {
            for (alpha, critical) in [(0.05, five), (0.025, two_and_a_half)] {
                let (there, beyond) = (at_most(first, second, critical), at_most(first, second, critical + 1));
                assert!(there <= alpha && beyond > alpha, "{first} and {second}, {critical}: {there} {beyond}");
            }
        }
    }

    #[test]
    fn permeability_of_membranes_is_the_textbooks() {
        // Hollander, Wolfe and Chicken, table 4.1: at term, and after 12 to 26 weeks; p = 0.127, estimate 0.305.
        let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let early = [1.15, 0.88, 0.90, 0.74, 1.21];
        let p = rank_sum_p_greater(&term, &early, 0.0).expect("values");
        assert!((p - 0.1272).abs() < 5e-5, "{p}");
        let shift = hodges_lehmann_shift(&term, &early).expect("values");
        assert!((shift - 0.305).abs() < 1e-9, "{shift}");
        let interval = rank_sum_interval(&term, &early, 0.025).expect("enough values");
        assert!((interval.low + 0.15).abs() < 1e-9 && (interval.high - 0.76).abs() < 1e-9, "{interval:?}");
    }

    #[test]
    fn ties_are_counted_over_the_ranks_that_they_share() {
        // 1, 2 | 1, 2: doubled ranks 3, 3, 7, 7; the first sample's sum is 10. Of 6 choices, 1 has 6, 4 have 10, 1 has 14.
        assert_eq!(rank_sum_p_greater(&[1.0, 2.0], &[1.0, 2.0], 0.0), Some(5.0 / 6.0));
    }

    #[test]
    fn interval_and_test_agree_at_its_ends() {
        let (first, second) = ([0.11, 0.02, 0.07, 0.13, 0.05, 0.095], [0.01, 0.04, 0.08, -0.03, 0.033]);
        let interval = rank_sum_interval(&first, &second, 0.05).expect("enough values");
        let p = |shift| rank_sum_p_greater(&first, &second, shift).expect("values");
        assert!(p(interval.low - 1e-9) <= 0.05 && p(interval.low + 1e-9) > 0.05, "{interval:?}");
    }

    #[test]
    fn exchanged_samples_are_mirrored() {
        let (first, second) = ([0.3, -0.1, 0.25, 0.4], [-0.05, 0.11, 0.01]);
        assert_eq!(rank_sum_p_greater(&first, &second, 0.1), rank_sum_p_less(&second, &first, -0.1));
        let there = rank_sum_interval(&first, &second, 0.2).expect("enough values");
        let back = rank_sum_interval(&second, &first, 0.2).expect("enough values");
        assert_eq!((there.low, there.high), (-back.high, -back.low));
    }

    #[test]
    fn too_few_values_decide_nothing() {
        assert_eq!(rank_sum_p_greater(&[], &[1.0], 0.0), None);
        assert_eq!(hodges_lehmann_shift(&[1.0], &[]), None);
        assert_eq!(rank_sum_interval(&[1.0, 2.0], &[3.0, 4.0], 0.05), None, "one of six choices is the least");
        assert_eq!(rank_sum_interval(&[], &[], 0.05), None);
    }
}
