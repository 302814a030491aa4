//! The histogram that exchanges are recorded in: the same buckets as [`Histogram`], found in a dozen instructions.
//!
//! HdrHistogram's own way of recording takes about eighty, because its range is not a constant. Counts only; for anything else it is
//! turned into a [`Histogram`]. Invariant: that holds then, count by count, what recording into it would have given.

use crate::model::{HISTOGRAM_DIGITS, HISTOGRAM_HIGHEST, Histogram, Nanos};

/// Within a power of two there are so many buckets (its binary logarithm): the fewest whose width is below 0.1 % of their
/// times.
const HALF: u32 = 10;
const _: () = assert!(HISTOGRAM_DIGITS == 3, "2^10 buckets tell three digits apart, no more and no less");

/// How many buckets there are up to the longest time.
const BUCKETS: usize = bucket(HISTOGRAM_HIGHEST) + 1;

/// See the [module](self). Its memory is zeroed pages, of which only those are ever touched whose times occur.
#[derive(Clone, Debug)]
pub(super) struct Times(Box<[u64]>);

impl Default for Times {
    fn default() -> Self {
        Self(vec![0; BUCKETS].into_boxed_slice())
    }
}

impl Times {
    /// Adds one time, as [`Histogram::record`] does.
    #[inline]
    pub(super) fn record(&mut self, time: Nanos) {
        self.record_many(time, 1);
    }

    /// Adds one time so often.
    #[inline]
    pub(super) fn record_many(&mut self, time: Nanos, often: u64) {
        let time = Nanos(time.0.clamp(1, HISTOGRAM_HIGHEST.0));
        if let Some(count) = self.0.get_mut(bucket(time)) {
            *count += often;
        }
    }

    /// Adds all times to a histogram.
    pub(super) fn add_to(&self, histogram: &mut Histogram) {
        for (bucket, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.record_many(lowest(bucket), *count).expect("no time is longer than the longest");
        }
    }
}

/// In which bucket a time is: below 2^11 ns each has its own, after that each power of two has 2^10 of them.
#[inline]
const fn bucket(time: Nanos) -> usize {
    let width = (u64::BITS - 1 - HALF) - (time.0 | ((2 << HALF) - 1)).leading_zeros();
    ((width as usize) << HALF) + (time.0 >> width) as usize
}

/// The lowest time of a bucket.
const fn lowest(bucket: usize) -> Nanos {
    let width = (bucket >> HALF).saturating_sub(1);
    Nanos(((bucket - (width << HALF)) as u64) << width)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn both(values: impl Iterator<Item = u64>) -> (Histogram, Histogram) {
        let (mut times, mut direct) = (Times::default(), Histogram::default());
        for value in values {
            times.record(Nanos(value));
            direct.record(Nanos(value));
        }
        let mut histogram = Histogram::default();
        times.add_to(&mut histogram);
        (histogram, direct)
    }

    fn assert_same(values: impl Iterator<Item = u64>) {
        let (ours, direct) = both(values);
        assert_eq!(ours.buckets().collect::<Vec<_>>(), direct.buckets().collect::<Vec<_>>());
        assert_eq!((ours.count(), ours.min(), ours.max()), (direct.count(), direct.min(), direct.max()));
        assert_eq!((ours.mean(), ours.standard_deviation()), (direct.mean(), direct.standard_deviation()));
    }

    #[test]
    fn edges_of_all_buckets_fall_where_hdrhistogram_puts_them() {
        let edges = (0..BUCKETS).flat_map(|bucket| {
            let lowest = lowest(bucket).0;
            [lowest.saturating_sub(1), lowest, lowest + 1]
        });
        assert_same(edges.chain([HISTOGRAM_HIGHEST.0 - 1, HISTOGRAM_HIGHEST.0, HISTOGRAM_HIGHEST.0 + 1, u64::MAX]));
        assert_same(std::iter::empty());
    }

    #[test]
    fn each_bucket_begins_after_the_one_before() {
        assert!((0..BUCKETS).all(|number| bucket(lowest(number)) == number));
    }

    proptest! {
        #[test]
        fn any_times_give_the_histogram_that_recording_them_directly_gives(
            values in prop::collection::vec((0_u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift), 0..200),
        ) {
            assert_same(values.into_iter());
        }
    }
}
