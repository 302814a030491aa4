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
    fn half_range_of_a_zero_median_is_unknown() {
        assert_eq!(spread(&[0.0, 0.0, 1.0]).and_then(|spread| spread.half_range()), None);
    }
}
