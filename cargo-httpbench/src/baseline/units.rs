//! Units of stored values. A file says the unit of each metric, and whatever it says is read into the metric's base unit.
//!
//! So a version that stored milliseconds and one that stores nanoseconds understand each other, and nobody compares numbers of
//! different units.

use std::collections::BTreeMap;

use httpbench_core::model::{Metric, Unit};
use serde::{Deserialize, Serialize};

/// What a value must be multiplied by to be in the metric's base unit; `None` for a unit that does not fit the metric.
fn factor(unit: &str, base: Unit) -> Option<f64> {
    let factor = match (base, unit) {
        (Unit::PerSecond, "per-second") | (Unit::Fraction, "fraction") => 1.0,
        (Unit::Nanoseconds, "nanoseconds") | (Unit::Bytes, "bytes") => 1.0,
        (Unit::Nanoseconds, "microseconds") => 1e3,
        (Unit::Nanoseconds, "milliseconds") => 1e6,
        (Unit::Nanoseconds, "seconds") => 1e9,
        (Unit::PerSecond, "per-minute") => 1.0 / 60.0,
        (Unit::Fraction, "percent") => 0.01,
        (Unit::Bytes, "kibibytes") => 1_024.0,
        (Unit::Bytes, "kilobytes") => 1e3,
        (Unit::Bytes, "mebibytes") => 1_048_576.0,
        (Unit::Bytes, "megabytes") => 1e6,
        _ => return None,
    };
    Some(factor)
}

/// The units of a file, by metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Units(BTreeMap<String, String>);

impl Units {
    /// What this version writes.
    pub(super) fn base() -> Self {
        let name = |unit| match unit {
            Unit::PerSecond => "per-second",
            Unit::Nanoseconds => "nanoseconds",
            Unit::Fraction => "fraction",
            Unit::Bytes => "bytes",
        };
        Self(Metric::ALL.map(|metric| (metric.name().to_owned(), name(metric.unit()).to_owned())).into())
    }

    /// Reads a round's values into base units. A metric of a later version, which this one does not know, is left out.
    ///
    /// # Errors
    ///
    /// When a metric is in a unit that is not known.
    pub(super) fn to_base(&self, values: BTreeMap<String, f64>) -> Result<BTreeMap<Metric, f64>, String> {
        let mut read = BTreeMap::new();
        for (name, value) in values {
            let Ok(metric) = name.parse::<Metric>() else { continue };
            let unit = self.0.get(&name).ok_or_else(|| format!("the unit of `{name}` is missing"))?;
            let factor =
                factor(unit, metric.unit()).ok_or_else(|| format!("`{unit}`, the unit of `{name}`, is not known"))?;
            read.insert(metric, value * factor);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(units: &[(&str, &str)], values: &[(&str, f64)]) -> Result<BTreeMap<Metric, f64>, String> {
        let units = Units(units.iter().map(|&(metric, unit)| (metric.to_owned(), unit.to_owned())).collect());
        units.to_base(values.iter().map(|&(metric, value)| (metric.to_owned(), value)).collect())
    }

    #[test]
    fn milliseconds_and_microseconds_are_equal_after_reading() {
        let old = read(&[("p99", "milliseconds")], &[("p99", 1.5)]).expect("known");
        let new = read(&[("p99", "microseconds")], &[("p99", 1_500.0)]).expect("known");
        assert_eq!(old, new);
        assert_eq!(old[&Metric::P99], 1_500_000.0);
    }

    #[test]
    fn what_this_version_writes_needs_no_conversion() {
        let values: BTreeMap<String, f64> = Metric::ALL.map(|metric| (metric.name().to_owned(), 1.25)).into();
        let read = Units::base().to_base(values).expect("known");
        assert_eq!(read, Metric::ALL.map(|metric| (metric, 1.25)).into());
    }

    #[test]
    fn unit_that_does_not_fit_is_refused_and_never_guessed() {
        assert!(read(&[("p99", "fortnights")], &[("p99", 1.0)]).is_err());
        assert!(read(&[("p99", "bytes")], &[("p99", 1.0)]).is_err());
        assert!(read(&[], &[("p99", 1.0)]).is_err());
    }

    #[test]
    fn metric_of_a_later_version_is_left_out() {
        assert_eq!(read(&[], &[("p9999", 1.0)]), Ok(BTreeMap::new()));
    }
}
