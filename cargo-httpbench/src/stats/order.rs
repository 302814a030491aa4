//! Order statistics of few values.

/// The median: the middle value, or the mean of the two middle ones. `None` without values.
///
/// ```
/// use cargo_httpbench::stats::median;
///
/// assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
/// assert_eq!(median(&[4.0, 1.0]), Some(2.5));
/// assert_eq!(median(&[]), None);
/// ```
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Lowest, middle and highest of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The lowest.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The highest.
    pub high: f64,
}

impl Spread {
    /// Half the distance from lowest to highest, relative to the median: what a report prints behind `±`.
    ///
    /// `None` where the median is zero.
    #[must_use]
    pub fn half_range(&self) -> Option<f64> {
        (self.median != 0.0).then(|| (self.high - self.low) / 2.0 / self.median.abs())
    }
}

/// Lowest, middle and highest. `None` without values.
#[must_use]
pub fn spread(values: &[f64]) -> Option<Spread> {
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    Some(Spread { low, median: median(values)?, high })
}

/// The mean of the middle half of the values, by rank: a quarter at each end, rounded down, is left out. `None` without values.
///
/// J. W. Tukey calls it the midmean ("Exploratory Data Analysis", 1977). It follows the values more smoothly than the median and
/// stays put while fewer than a quarter of them are wild on either side.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a count of values")]
pub fn interquartile_mean(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 4;
    let middle = &sorted[cut..sorted.len() - cut];
    // Added up in pairs from both ends, so that negative values have exactly the negative mean.
    let doubled: f64 = middle.iter().zip(middle.iter().rev()).map(|(low, high)| low + high).sum();
    (!middle.is_empty()).then(|| doubled / (2 * middle.len()) as f64)
}

/// The standard deviation of a sample, with n − 1. `None` for fewer than two values.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a count of values")]
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_nothing_is_nothing() {
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn half_range_is_relative_to_the_median() {
        let spread = spread(&[90.0, 100.0, 120.0]).expect("three values");
        assert_eq!(spread, Spread { low: 90.0, median: 100.0, high: 120.0 });
        assert_eq!(spread.half_range(), Some(0.15));
    }

    #[test]
    fn interquartile_mean_ignores_a_wild_quarter_at_each_end() {
        assert_eq!(interquartile_mean(&[1e9, 1.0, 3.0, -1e9]), Some(2.0));
        assert_eq!(interquartile_mean(&[1.0, 2.0, 6.0]), Some(3.0), "three values have no quarter to leave out");
        assert_eq!(interquartile_mean(&[]), None);
    }

    #[test]
    fn standard_deviation_is_that_of_a_sample() {
        assert_eq!(standard_deviation(&[2.0, 4.0, 6.0]), Some(2.0));
        assert_eq!(standard_deviation(&[2.0]), None);
    }

    #[test]
    fn half_range_of_a_zero_median_is_unknown() {
        assert_eq!(spread(&[0.0, 0.0, 1.0]).and_then(|spread| spread.half_range()), None);
    }
}
