//! The Wilcoxon signed-rank test, exactly.
//!
//! F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945), 80–83. The null distribution is
//! counted, not approximated: under the hypothesis that the values are symmetric around zero, each of the 2^n ways to sign
//! their ranks is equally likely. Tied magnitudes share the mean of their ranks, and zeros are left out; the count is then
//! over the signs of the ranks that are really there, which keeps the test exact in both cases (M. Hollander, D. A. Wolfe,
//! E. Chicken, "Nonparametric Statistical Methods", 3rd edition, section 3.1).
//!
//! Symmetry is all that is assumed. Log-ratios of two arms whose labels mean nothing are symmetric by construction, because
//! exchanging the labels changes their signs; that is why a verdict may rest on this test whatever the tails of a round's noise.

/// The exact null distribution of twice the signed-rank sum, for given ranks.
///
/// Twice, because ranks that are shared by two values end in one half.
#[derive(Clone, Debug, PartialEq)]
pub struct NullDistribution {
    /// `at_most[s]`: the probability of a sum of at most `s`.
    at_most: Vec<f64>,
}

impl NullDistribution {
    /// For `n` values without ties. Every probability is a multiple of 2^-n, which a double holds exactly up to n = 52.
    #[must_use]
    pub fn without_ties(n: usize) -> Self {
        Self::of(&(1..=n).map(|rank| 2 * rank).collect::<Vec<_>>())
    }

    /// For these doubled ranks.
    fn of(doubled_ranks: &[usize]) -> Self {
        // Each rank is positive or not with probability 1/2: a product of n two-point distributions. From the highest sum down,
        // so that no sum is halved after it was added to.
        let mut probability = vec![0.0; doubled_ranks.iter().sum::<usize>() + 1];
        probability[0] = 1.0;
        let mut highest = 0;
        for rank in doubled_ranks {
            for sum in (0..=highest).rev() {
                let half = probability[sum] / 2.0;
                probability[sum] = half;
                probability[sum + rank] += half;
            }
            highest += rank;
        }
        let at_most = probability
            .iter()
            .scan(0.0, |total, chance| {
                *total += chance;
                Some(*total)
            })
            .collect();
        Self { at_most }
    }

    /// The probability of a doubled sum of at most `sum`.
    #[must_use]
    pub fn at_most(&self, sum: usize) -> f64 {
        self.at_most.get(sum).copied().unwrap_or(1.0).min(1.0)
    }

    /// The probability of a doubled sum of at least `sum`. The distribution is symmetric, so no difference from 1 is taken.
    #[must_use]
    pub fn at_least(&self, sum: usize) -> f64 {
        let highest = self.at_most.len() - 1;
        if sum > highest { 0.0 } else { self.at_most(highest - sum) }
    }
}

/// One-sided p of the hypothesis that the values lie symmetrically around `centre`, against the one that they lie above it: the
/// chance of a signed-rank sum at least as large as theirs.
///
/// `None` without values. 1 when all equal the centre.
#[must_use]
pub fn p_greater(values: &[f64], centre: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mut differences: Vec<f64> =
        values.iter().map(|value| value - centre).filter(|difference| *difference != 0.0).collect();
    differences.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&differences);
    let positive =
        ranks.iter().zip(&differences).filter(|(_, difference)| **difference > 0.0).map(|(rank, _)| rank).sum();
    Some(NullDistribution::of(&ranks).at_least(positive))
}

/// The same against the one that they lie below it.
#[must_use]
pub fn p_less(values: &[f64], centre: f64) -> Option<f64> {
    let mirrored: Vec<f64> = values.iter().map(|value| -value).collect();
    p_greater(&mirrored, -centre)
}

/// Twice the mid-ranks of values that are sorted by magnitude.
fn doubled_ranks(sorted: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for tied in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        // The ranks first..=last share their mean, (first + last) / 2.
        let first = ranks.len() + 1;
        let last = ranks.len() + tied.len();
        ranks.extend(std::iter::repeat_n(first + last, tied.len()));
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of ways to reach each sum with n ranks, from the table in Hollander, Wolfe and Chicken for small n.
    #[test]
    fn distribution_of_few_values_is_that_of_the_tables() {
        let four = NullDistribution::without_ties(4);
        let ways: Vec<f64> = (0..=10).map(|sum| four.at_most(2 * sum) * 16.0).collect();
        assert_eq!(ways, [1.0, 2.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 14.0, 15.0, 16.0]);
    }

    #[test]
    fn upper_tails_are_those_of_the_tables() {
        // P(W >= x) for n = 5, 10, 12: standard table values.
        for (n, x, tail) in
            [(5, 15, 0.03125), (5, 14, 0.0625), (10, 45, 0.042), (10, 50, 0.010), (12, 61, 0.046), (12, 68, 0.010)]
        {
            let p = NullDistribution::without_ties(n).at_least(2 * x);
            assert!((p - tail).abs() < 0.0006, "n = {n}, x = {x}: {p}");
        }
    }

    #[test]
    fn both_tails_together_cover_everything_once() {
        let twelve = NullDistribution::without_ties(12);
        for sum in 0..=77 {
            let both = twelve.at_most(2 * sum) + twelve.at_least(2 * sum + 1);
            assert!((both - 1.0).abs() < 1e-12, "{sum}: {both}");
        }
    }

    #[test]
    fn three_values_cannot_be_significant_and_five_can() {
        assert_eq!(p_greater(&[0.5, 0.6, 0.7], 0.0), Some(0.125));
        assert_eq!(p_greater(&[0.5, 0.6, 0.7, 0.8, 0.9], 0.0), Some(0.03125));
    }

    #[test]
    fn ties_are_tested_exactly_over_the_signs_of_their_shared_ranks() {
        // Magnitudes 1, 1, 2: doubled ranks 3, 3, 6. Sum of the positive ones: 9. At least 9 has 3 of 8 ways.
        assert_eq!(p_greater(&[1.0, -1.0, 2.0], 0.0), Some(3.0 / 8.0));
    }

    #[test]
    fn nothing_and_only_zeros_decide_nothing() {
        assert_eq!(p_greater(&[], 0.0), None);
        assert_eq!(p_greater(&[0.0, 0.0], 0.0), Some(1.0));
    }

    #[test]
    fn mirrored_values_have_the_mirrored_p() {
        let values = [0.3, -0.1, 0.25, 0.4, -0.05, 0.11];
        let mirrored = values.map(|value| -value);
        assert_eq!(p_greater(&values, 0.1), p_less(&mirrored, -0.1));
    }
}
