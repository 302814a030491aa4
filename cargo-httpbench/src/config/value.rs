//! The texts that stand for a quantity: durations, counts and bounds, the same in files, environment and flags.
//!
//! Pure. Errors say what is accepted; where the text stood is added by the caller.

use std::time::Duration;

use httpbench_core::model::{Metric, Nanos, Ratio, Unit};

/// What is wrong with a text, and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(pub String);

/// The shortest slice. The first 5 ms of a slice are left out of its throughput, so a shorter one measures nothing.
const SHORTEST_SLICE: Duration = Duration::from_millis(10);

/// Reads a duration above zero, such as `1500ms`, `6s` or `1m 30s`.
///
/// # Errors
///
/// When the text is no duration with its unit, or is zero.
pub fn duration(text: &str) -> Result<Duration, ValueError> {
    let duration = duration_or_zero(text)?;
    if duration.is_zero() {
        return Err(ValueError(
            "zero is too short: write a duration above zero, such as `500ms`, `6s` or `1m 30s`".to_owned(),
        ));
    }
    Ok(duration)
}

/// Reads a duration, zero included.
///
/// # Errors
///
/// When the text is no duration with its unit.
pub fn duration_or_zero(text: &str) -> Result<Duration, ValueError> {
    humantime::parse_duration(text.trim()).map_err(|_| {
        ValueError(format!(
            "`{text}` is not a duration: write a number and its unit, such as `500ms`, `6s` or `1m 30s`"
        ))
    })
}

/// Reads the length of a slice: a duration of at least 10 ms.
///
/// # Errors
///
/// When the text is no duration, or a shorter one.
pub fn slice(text: &str) -> Result<Duration, ValueError> {
    let duration = duration(text)?;
    if duration < SHORTEST_SLICE {
        return Err(ValueError(format!(
            "`{text}` is too short for a slice, whose first 5 ms are left out: write at least `10ms`"
        )));
    }
    Ok(duration)
}

/// Reads a whole number of at least 1.
///
/// # Errors
///
/// When the text is none.
pub fn positive(text: &str) -> Result<u32, ValueError> {
    text.trim()
        .parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| ValueError(format!("`{text}` is not a whole number from 1 to {}", u32::MAX)))
}

/// The highest arrival rate: beyond any load engine.
const MOST_ARRIVALS: f64 = 1e7;

/// Reads an arrival rate in starts per second, such as `2000` or `0.5`.
///
/// # Errors
///
/// When the text is no plain number above 0 and up to 10 million.
pub fn arrival_rate(text: &str) -> Result<f64, ValueError> {
    decimal(text.trim()).filter(|per_second| *per_second > 0.0 && *per_second <= MOST_ARRIVALS).ok_or_else(|| {
        ValueError(format!(
            "`{text}` is not an arrival rate: write starts per second above 0 and up to {MOST_ARRIVALS}, such as `2000` or \
             `0.5`"
        ))
    })
}

/// Reads an absolute bound in the form that its metric's unit has, into that base unit.
///
/// Throughput is written `1000/s`, times as durations, shares as percentages up to `100%`, memory as `200MB` (or `MiB`).
///
/// # Errors
///
/// When the text has another form.
pub fn bound(metric: Metric, text: &str) -> Result<f64, ValueError> {
    let wrong = |accepted: &str| ValueError(format!("`{text}` is not a bound for `{metric}`: write {accepted}"));
    match metric.unit() {
        Unit::PerSecond => text
            .trim()
            .strip_suffix("/s")
            .and_then(|number| decimal(number.trim_end()))
            .filter(|number| *number > 0.0)
            .ok_or_else(|| wrong("exchanges per second, such as `1000/s`")),
        Unit::Nanoseconds =>
        {
            #[expect(clippy::cast_precision_loss, reason = "52 bits of nanoseconds are 52 days")]
            duration(text)
                .map(|duration| Nanos::from(duration).0 as f64)
                .map_err(|_| wrong("a duration above zero, such as `20ms` or `1s`"))
        }
        Unit::Fraction => text
            .parse::<Ratio>()
            .ok()
            .filter(|ratio| ratio.0 <= 1.0)
            .map(|ratio| ratio.0)
            .ok_or_else(|| wrong("a percentage from `0%` to `100%`, such as `0.1%`")),
        Unit::Bytes => bytes(text)
            .filter(|bytes| *bytes > 0.0)
            .ok_or_else(|| wrong("an amount of memory, such as `200MB` or `64MiB`")),
    }
}

/// A plain decimal number, with `_` between digits as in Rust. Neither `inf`, `NaN` nor exponents.
fn decimal(text: &str) -> Option<f64> {
    let digits: String = text.chars().filter(|letter| *letter != '_').collect();
    let plain = digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    plain.then(|| digits.parse().ok()).flatten()
}

fn bytes(text: &str) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|letter: char| letter.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        _ => return None,
    };
    decimal(number.trim_end()).map(|number| number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_unitless_durations_are_refused_with_what_is_accepted() {
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1500)));
        for text in ["0s", "0ms", "5", "", "-1s", "soon"] {
            let error = duration(text).expect_err(text);
            assert!(error.to_string().contains("`6s`"), "{error}");
        }
        assert_eq!(duration_or_zero("0s"), Ok(Duration::ZERO));
    }

    #[test]
    fn slice_below_ten_milliseconds_is_refused() {
        assert!(slice("9ms").is_err());
        assert_eq!(slice("10ms"), Ok(Duration::from_millis(10)));
    }

    #[test]
    fn counts_are_whole_and_at_least_one() {
        assert_eq!(positive("64"), Ok(64));
        for text in ["0", "-1", "1.5", "", "many", "4294967296"] {
            assert!(positive(text).is_err(), "{text}");
        }
    }

    #[test]
    fn arrival_rates_are_plain_numbers_above_zero() {
        assert_eq!(arrival_rate("2_000"), Ok(2_000.0));
        assert_eq!(arrival_rate("0.5"), Ok(0.5));
        for text in ["0", "0.0", "-1", "NaN", "inf", "1e3", "", "100/s", "10000001"] {
            let error = arrival_rate(text).expect_err(text).to_string();
            assert!(error.contains("above 0 and up to 10000000, such as `2000`"), "{error}");
        }
    }

    #[test]
    fn bound_is_read_in_the_form_of_its_metric() {
        assert_eq!(bound(Metric::Throughput, "1_000/s"), Ok(1000.0));
        assert_eq!(bound(Metric::P99, "20ms"), Ok(2e7));
        assert_eq!(bound(Metric::CpuPerRequest, "40us"), Ok(4e4));
        assert_eq!(bound(Metric::Errors, "0.1%"), Ok(0.001));
        assert_eq!(bound(Metric::Errors, "0%"), Ok(0.0));
        assert_eq!(bound(Metric::PeakMemory, "200MB"), Ok(2e8));
        assert_eq!(bound(Metric::PeakMemory, "1.5 GiB"), Ok(1_610_612_736.0));
    }

    #[test]
    fn bound_in_another_form_is_refused_with_an_example() {
        for (metric, text, example) in [
            (Metric::Throughput, "1000", "`1000/s`"),
            (Metric::Throughput, "inf/s", "`1000/s`"),
            (Metric::P50, "20", "`20ms`"),
            (Metric::P50, "0ms", "`20ms`"),
            (Metric::Errors, "101%", "`0.1%`"),
            (Metric::PeakMemory, "200", "`200MB`"),
            (Metric::PeakMemory, "200Mb", "`200MB`"),
        ] {
            let error = bound(metric, text).expect_err(text).to_string();
            assert!(error.contains(example), "{error}");
        }
    }
}
