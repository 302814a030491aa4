//! Histograms in a stored file: HdrHistogram's own V2 format, compressed, as base64 text that other tools can read.
//!
//! Nothing is lost: both sides have the same buckets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer as HdrReader, Serializer as _, V2DeflateSerializer};
use httpbench_core::model::{HISTOGRAM_DIGITS, HISTOGRAM_HIGHEST, Histogram, Nanos};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes a histogram as text.
pub(super) fn serialize<S: Serializer>(histogram: &Histogram, serializer: S) -> Result<S::Ok, S::Error> {
    let mut buckets =
        Hdr::<u64>::new_with_bounds(1, HISTOGRAM_HIGHEST.0, HISTOGRAM_DIGITS).map_err(S::Error::custom)?;
    for (time, count) in histogram.buckets() {
        buckets.record_n(time.0, count).map_err(S::Error::custom)?;
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&buckets, &mut bytes).map_err(S::Error::custom)?;
    STANDARD.encode(bytes).serialize(serializer)
}

/// Reads what [`serialize`] wrote.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
    let wrong = |error: &dyn std::fmt::Display| D::Error::custom(format!("a histogram is not readable: {error}"));
    let text = String::deserialize(deserializer)?;
    let bytes = STANDARD.decode(text).map_err(|error| wrong(&error))?;
    let buckets: Hdr<u64> = HdrReader::new().deserialize(&mut &bytes[..]).map_err(|error| wrong(&error))?;
    let mut histogram = Histogram::default();
    for bucket in buckets.iter_recorded() {
        histogram
            .record_many(Nanos(bucket.value_iterated_to()), bucket.count_at_value())
            .map_err(|error| wrong(&error))?;
    }
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Holder(#[serde(with = "super")] Histogram);

    fn there_and_back(histogram: &Histogram) -> Histogram {
        let text = serde_json::to_string(&Holder(histogram.clone())).expect("serialises");
        serde_json::from_str::<Holder>(&text).expect("deserialises").0
    }

    #[test]
    fn every_bucket_comes_back() {
        let mut histogram = Histogram::default();
        let mut value = 1;
        for index in 1..2_000_u64 {
            (0..index % 7 + 1).for_each(|_| histogram.record(Nanos(value)));
            value = (value * 7 + index) % 5_000_000_000 + 1;
        }
        histogram.record(Nanos(u64::MAX));
        let back = there_and_back(&histogram);
        assert_eq!(back.buckets().collect::<Vec<_>>(), histogram.buckets().collect::<Vec<_>>());
        assert_eq!(back.count(), histogram.count());
        for q in [0.0, 0.5, 0.99, 1.0] {
            assert_eq!(back.quantile(q), histogram.quantile(q));
        }
    }

    #[test]
    fn empty_histogram_comes_back_empty() {
        assert_eq!(there_and_back(&Histogram::default()).count(), 0);
    }

    #[test]
    fn spoilt_text_is_an_error_and_no_panic() {
        for text in ["\"\"", "\"!\"", "\"AAAA\"", "\"HISTFAAAAAB4nA==\"", "3"] {
            assert!(serde_json::from_str::<Holder>(text).is_err(), "{text}");
        }
    }
}
