//! Numbers as a person reads them: three significant digits, a unit that fits, thousands apart.

use httpbench_core::model::{Metric, Nanos, Unit};

/// A count with its thousands apart: `12,345`.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Exchanges per second: `41,233/s`, `87.3/s`, `0.42/s`.
#[must_use]
pub fn per_second(value: f64) -> String {
    format!("{}/s", number(value))
}

/// A time: `812 ns`, `1.53 ms`, `12.0 s`.
#[must_use]
pub fn time(value: Nanos) -> String {
    let (scaled, unit) = scale(value.as_secs_f64() * 1e9, &["ns", "µs", "ms", "s"]);
    if unit == "ns" { format!("{} ns", value.0) } else { format!("{} {unit}", three_digits(scaled)) }
}

/// An amount of memory or traffic, in powers of 1,000: `14.2 MB`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn bytes(value: u64) -> String {
    let (scaled, unit) = scale(value as f64, &["B", "kB", "MB", "GB", "TB"]);
    if unit == "B" { format!("{value} B") } else { format!("{} {unit}", three_digits(scaled)) }
}

/// A share or a relative spread: `1.2%`, `0.04%`, `100%`.
#[must_use]
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent == 0.0 {
        "0%".to_owned()
    } else if percent.abs() >= 99.95 {
        format!("{percent:.0}%")
    } else if percent.abs() >= 0.1 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.2}%")
    }
}

/// A value of a metric, in the metric's base unit, as a person reads it.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "measured values are positive and far below 2^63"
)]
pub fn of_metric(metric: Metric, value: f64) -> String {
    match metric.unit() {
        Unit::PerSecond => per_second(value),
        Unit::Nanoseconds => time(Nanos(value.round() as u64)),
        Unit::Fraction => percent(value),
        Unit::Bytes => bytes(value.round() as u64),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and rounded")]
fn number(value: f64) -> String {
    if value >= 999.5 { count(value.round() as u64) } else { three_digits(value) }
}

/// Three significant digits, or all before the point: `1234`, `12.3`, `0.12`.
#[must_use]
pub fn three_digits(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Divides by 1,000 until three digits before the point suffice, or the units end.
fn scale<'unit>(mut value: f64, units: &[&'unit str]) -> (f64, &'unit str) {
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for &next in units {
        if value < 999.5 {
            break;
        }
        value /= 1_000.0;
        unit = next;
    }
    (value, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_thousands_apart() {
        assert_eq!([0, 999, 1_000, 41_233, 1_234_567].map(count), ["0", "999", "1,000", "41,233", "1,234,567"]);
    }

    #[test]
    fn throughput_has_three_digits_or_all_before_the_point() {
        let texts = [0.416, 8.0, 87.34, 999.6, 41_233.4].map(per_second);
        assert_eq!(texts, ["0.42/s", "8.00/s", "87.3/s", "1,000/s", "41,233/s"]);
    }

    #[test]
    fn times_take_the_unit_that_fits() {
        let texts =
            [0, 812, 1_530, 999_499, 999_600, 1_530_000, 12_000_000_000, 5_000_000_000_000].map(|ns| time(Nanos(ns)));
        assert_eq!(texts, ["0 ns", "812 ns", "1.53 µs", "999 µs", "1.00 ms", "1.53 ms", "12.0 s", "5000 s"]);
    }

    #[test]
    fn bytes_count_in_thousands() {
        assert_eq!([0, 999, 14_200_000].map(bytes), ["0 B", "999 B", "14.2 MB"]);
    }

    #[test]
    fn small_shares_keep_a_digit() {
        assert_eq!([0.0, 0.0004, 0.012, 0.9996, 1.0].map(percent), ["0%", "0.04%", "1.2%", "100%", "100%"]);
    }
}
