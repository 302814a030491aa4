//! Holm's correction for several tests at once.
//!
//! S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979), 65–70. It
//! bounds the probability of any false rejection in the family by α, whatever the tests' dependence, and rejects at least as
//! much as Bonferroni's.

/// The adjusted p of every test of a family, in the order given: rejecting those below α keeps the family at α.
///
/// The k-th smallest of m is multiplied by m − k + 1, and none is less than one before it: a test is only reached when all with a
/// smaller p were rejected. With p = 0.005, 0.01, 0.03 and 0.04 the factors are 4, 3, 2 and 1, and the last becomes 0.06, as the one
/// before it.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "families are small")]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut highest: f64 = 0.0;
    for (step, &index) in order.iter().enumerate() {
        highest = highest.max(p[index] * (p.len() - step) as f64).min(1.0);
        adjusted[index] = highest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusted_values_follow_the_steps_and_never_fall() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (value, wanted) in adjusted.iter().zip(expected) {
            assert!((value - wanted).abs() < 1e-12, "{adjusted:?}");
        }
    }

    #[test]
    fn single_test_is_not_adjusted_and_an_empty_family_is_empty() {
        assert_eq!(holm(&[0.04]), [0.04]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn adjusted_p_is_at_most_one() {
        assert_eq!(holm(&[0.9, 0.8, 0.7]), [1.0, 1.0, 1.0]);
    }
}
