//! Latency histograms that travel: HdrHistogram with a fixed range, serialised as its non-empty buckets.

use hdrhistogram::Histogram as Hdr;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Nanos;

/// Significant decimal digits of every recorded time: a value is within 0.1 % of what was measured.
pub const HISTOGRAM_DIGITS: u8 = 3;

/// The longest time told apart, one hour. Longer ones are recorded as this.
pub const HISTOGRAM_HIGHEST: Nanos = Nanos::from_secs(3_600);

/// A histogram of times in nanoseconds.
///
/// A quantile `q` of `n` values is the value of rank `⌈q·n⌉`, at least 1 (HdrHistogram's definition), at its bucket's upper
/// edge. Every histogram has the same buckets, so adding histograms loses nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(Hdr<u64>);

impl Default for Histogram {
    fn default() -> Self {
        Self(
            Hdr::new_with_bounds(1, HISTOGRAM_HIGHEST.0, HISTOGRAM_DIGITS)
                .expect("the bounds are constants that HdrHistogram accepts"),
        )
    }
}

impl Histogram {
    /// Adds one time. Zero counts as 1 ns, more than an hour as an hour.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        self.0.saturating_record(time.0.clamp(1, HISTOGRAM_HIGHEST.0));
    }

    /// Adds every time of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all histograms share one range");
    }

    /// Adds one time so often.
    ///
    /// # Errors
    ///
    /// When the time is longer than can be told apart.
    pub fn record_many(&mut self, time: Nanos, count: u64) -> Result<(), hdrhistogram::RecordError> {
        self.0.record_n(time.0, count)
    }

    /// The non-empty buckets in ascending order, each by its upper edge, with its count.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.0.iter_recorded().map(|bucket| (Nanos(bucket.value_iterated_to()), bucket.count_at_value()))
    }

    /// How many times are recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value at quantile `q` (0 to 1), or `None` without values.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        (!self.0.is_empty()).then(|| Nanos(self.0.value_at_quantile(q).min(self.0.max())))
    }

    /// The largest value, or `None` without values.
    #[must_use]
    pub fn max(&self) -> Option<Nanos> {
        (!self.0.is_empty()).then(|| Nanos(self.0.max()))
    }

    /// The smallest value, or `None` without values.
    #[must_use]
    pub fn min(&self) -> Option<Nanos> {
        (!self.0.is_empty()).then(|| Nanos(self.0.min()))
    }

    /// The mean, within the buckets' 0.1 %, or `None` without values.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of values below 2^42 is one")]
    pub fn mean(&self) -> Option<Nanos> {
        (!self.0.is_empty()).then(|| Nanos(self.0.mean().round() as u64))
    }

    /// The standard deviation in nanoseconds, or `None` without values.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.stdev())
    }
}

impl Serialize for Histogram {
    /// As `[[value, count], …]`, the non-empty buckets in ascending order.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.buckets())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut histogram = Self::default();
        for (time, count) in Vec::<(Nanos, u64)>::deserialize(deserializer)? {
            histogram
                .record_many(time, count)
                .map_err(|error| D::Error::custom(format!("bucket {} of a histogram: {error}", time.0)))?;
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        values.into_iter().for_each(|value| histogram.record(Nanos(value)));
        histogram
    }

    #[test]
    fn empty_histogram_has_no_quantile_and_no_extremes() {
        let empty = Histogram::default();
        assert_eq!((empty.quantile(0.5), empty.max(), empty.min(), empty.mean()), (None, None, None, None));
    }

    #[test]
    fn one_and_two_values_have_the_quantiles_of_their_ranks() {
        assert_eq!(of([7]).quantile(0.99), Some(Nanos(7)));
        assert_eq!(of([7]).quantile(0.0), Some(Nanos(7)));
        assert_eq!(of([7, 9]).quantile(0.5), Some(Nanos(7)));
        assert_eq!(of([7, 9]).quantile(0.51), Some(Nanos(9)));
    }

    #[test]
    fn quantiles_of_1_to_100_microseconds_are_within_three_digits() {
        // LG-58
        let histogram = of((1..=100).map(|micros| micros * 1_000));
        for (q, micros) in [(0.5, 50), (0.9, 90), (0.99, 99), (1.0, 100)] {
            let value = histogram.quantile(q).expect("not empty").0;
            let exact = micros * 1_000;
            assert!(value.abs_diff(exact) * 1_000 <= exact, "p{q}: {value} is not {exact}");
        }
        let quantiles: Vec<_> = (0..=1_000).map(|permille| histogram.quantile(f64::from(permille) / 1_000.0)).collect();
        assert!(quantiles.is_sorted(), "{quantiles:?}");
        assert_eq!((quantiles[0], quantiles[1_000]), (histogram.min(), histogram.max()));
    }

    #[test]
    fn standard_deviation_is_weighted_by_counts() {
        // LG-58: three times 1 µs and once 5 µs have the variance (3 × 1 + 9) / 4 µs².
        let sd = of([1_000, 1_000, 1_000, 5_000]).standard_deviation().expect("not empty");
        assert!((sd - 3_f64.sqrt() * 1_000.0).abs() < 5.0, "{sd}");
        assert_eq!(of([7]).standard_deviation(), Some(0.0));
    }

    #[test]
    fn histogram_survives_the_channel_bucket_by_bucket() {
        let histogram = of([1, 2, 2, 1_000, 123_456, 9_999_999_999, u64::MAX]);
        let text = serde_json::to_string(&histogram).expect("serialises");
        let back: Histogram = serde_json::from_str(&text).expect("deserialises");
        assert_eq!(back.count(), 7);
        for q in [0.0, 0.1, 0.5, 0.7, 0.9, 1.0] {
            assert_eq!(back.quantile(q), histogram.quantile(q), "quantile {q}");
        }
        assert_eq!(serde_json::to_string(&back).expect("serialises"), text);
    }

    #[test]
    fn merged_histograms_hold_the_values_of_both() {
        let mut left = of([10, 20]);
        left.merge(&of([30]));
        assert_eq!((left.count(), left.min(), left.max()), (3, Some(Nanos(10)), Some(Nanos(30))));
    }

    #[test]
    fn mean_of_equal_values_is_that_value_within_the_resolution() {
        let histogram = of(std::iter::repeat_n(100_000, 10_000));
        let mean = histogram.mean().expect("not empty").0;
        assert!(mean.abs_diff(100_000) <= 100, "{mean}");
    }
}
