//! The estimate and the interval that belong to the signed-rank test.
//!
//! J. L. Hodges and E. L. Lehmann, "Estimates of location based on rank tests", Annals of Mathematical Statistics 34 (1963),
//! 598–611. The estimate is the median of the Walsh averages, the means of all pairs of values and of each value with itself.
//! The interval holds every centre that the exact test does not reject, and its ends are Walsh averages (J. W. Tukey, "The simplest
//! signed-rank tests", Memorandum Report 17, Statistical Research Group, Princeton, 1949): the signed-rank sum of the values minus a
//! centre is the number of Walsh averages above that centre, so the k-th smallest average is where the k-th sum is reached.
//!
//! The counting holds for values without ties, as measured ones practically are. Where rounding makes some equal, the ends are
//! Walsh averages all the same, at the level of values without ties.

use super::NullDistribution;
use super::median;

/// The Hodges–Lehmann estimate of the centre. `None` without values.
#[must_use]
pub fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    median(&walsh_averages(values))
}

/// An interval for the centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The exact interval whose two ends are each missed with a probability of at most `alpha` (0 to 1/2): `alpha` 0.05 gives
/// the 90 % interval.
///
/// `None` where the values are too few for any bound: with n values, `alpha` must be at least 2^-n.
#[must_use]
pub fn signed_rank_interval(values: &[f64], alpha: f64) -> Option<Interval> {
    let null = NullDistribution::without_ties(values.len());
    let averages = {
        let mut averages = walsh_averages(values);
        averages.sort_by(f64::total_cmp);
        averages
    };
    // The most averages that may be cut off at each end: the largest k with P(W <= k - 1) <= alpha.
    let cut = (0..averages.len()).take_while(|&sum| null.at_most(2 * sum) <= alpha).count();
    if cut == 0 || values.is_empty() {
        return None;
    }
    Some(Interval { low: averages[cut - 1], high: averages[averages.len() - cut] })
}

fn walsh_averages(values: &[f64]) -> Vec<f64> {
    values
        .iter()
        .enumerate()
        .flat_map(|(index, a)| values[index..].iter().map(move |b| f64::midpoint(*a, *b)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_is_the_median_of_the_walsh_averages() {
        // Averages of 1, 2, 6: 1, 1.5, 3.5, 2, 4, 6. Their median: (2 + 3.5) / 2.
        assert_eq!(hodges_lehmann(&[1.0, 2.0, 6.0]), Some(2.75));
        assert_eq!(hodges_lehmann(&[]), None);
    }

    #[test]
    #[expect(clippy::approx_constant, reason = "a patient's score is 3.14")]
    fn interval_of_depression_scores_is_the_textbooks() {
        // Hollander, Wolfe and Chicken, table 3.1: nine patients; estimate -0.46, 96 % interval (-0.786, -0.010).
        let x = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let y = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let differences: Vec<f64> = y.iter().zip(x).map(|(y, x)| y - x).collect();
        let estimate = hodges_lehmann(&differences).expect("nine values");
        assert!((estimate - -0.46).abs() < 1e-9, "{estimate}");
        let interval = signed_rank_interval(&differences, 0.0196).expect("enough values");
        assert!((interval.low - -0.786).abs() < 1e-9 && (interval.high - -0.010).abs() < 1e-9, "{interval:?}");
    }

    #[test]
    fn too_few_values_have_no_interval() {
        assert_eq!(signed_rank_interval(&[1.0, 2.0, 3.0, 4.0], 0.05), None);
        assert_eq!(signed_rank_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.05), Some(Interval { low: 1.0, high: 5.0 }));
        assert_eq!(signed_rank_interval(&[], 0.05), None);
    }

    #[test]
    fn interval_and_test_agree_at_its_ends() {
        let values = [0.11, 0.02, 0.07, -0.03, 0.05, 0.09, 0.13, 0.01, 0.04, 0.08];
        let interval = signed_rank_interval(&values, 0.05).expect("ten values");
        let p = |centre| crate::stats::p_greater(&values, centre).expect("ten values");
        assert!(p(interval.low - 1e-9) <= 0.05, "just below the interval the test rejects");
        assert!(p(interval.low + 1e-9) > 0.05, "just inside it does not");
    }

    #[test]
    fn mirrored_values_have_the_mirrored_interval() {
        let values = [0.3, -0.1, 0.25, 0.4, -0.05, 0.11];
        let mirrored = values.map(|value| -value);
        let (there, back) = (signed_rank_interval(&values, 0.05), signed_rank_interval(&mirrored, 0.05));
        let (there, back) = (there.expect("six values"), back.expect("six values"));
        assert_eq!((there.low, there.high), (-back.high, -back.low));
    }
}
