//! What is measured of a scenario, by the names that the configuration, the attribute and the report share.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One measured quantity of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Metric {
    /// Completed good exchanges per second.
    Throughput,
    /// CPU time of the server's whole process tree per exchange.
    CpuPerRequest,
    /// Median service time of good exchanges.
    P50,
    /// 90 % of good exchanges took at most this long.
    P90,
    /// 95 % of good exchanges took at most this long.
    P95,
    /// 99 % of good exchanges took at most this long.
    P99,
    /// Share of started exchanges that broke or were answered wrongly.
    Errors,
    /// Peak resident memory of the server's whole process tree.
    PeakMemory,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Like throughput.
    HigherIsBetter,
    /// Like latency.
    LowerIsBetter,
}

/// The base unit that values of a metric are stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Exchanges per second.
    PerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// A fraction of 1.
    Fraction,
    /// Bytes.
    Bytes,
}

impl Metric {
    /// Every metric, in the order in which reports show them.
    pub const ALL: [Self; 8] = [
        Self::Throughput,
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::CpuPerRequest,
        Self::PeakMemory,
        Self::Errors,
    ];

    /// The name in TOML, on the command line and in JSON: words joined by hyphens.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::CpuPerRequest => "cpu-per-request",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Errors => "errors",
            Self::PeakMemory => "peak-memory",
        }
    }

    /// The quantile that this metric is, as a fraction: 0.99 for [`Metric::P99`].
    #[must_use]
    pub const fn quantile(self) -> Option<f64> {
        match self {
            Self::P50 => Some(0.50),
            Self::P90 => Some(0.90),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            _ => None,
        }
    }

    /// Which way is better.
    #[must_use]
    pub const fn direction(self) -> Direction {
        match self {
            Self::Throughput => Direction::HigherIsBetter,
            _ => Direction::LowerIsBetter,
        }
    }

    /// The unit that its values are in.
    #[must_use]
    pub const fn unit(self) -> Unit {
        match self {
            Self::Throughput => Unit::PerSecond,
            Self::CpuPerRequest | Self::P50 | Self::P90 | Self::P95 | Self::P99 => Unit::Nanoseconds,
            Self::Errors => Unit::Fraction,
            Self::PeakMemory => Unit::Bytes,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// A text that names no metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a metric")]
pub struct MetricError(String);

impl FromStr for Metric {
    type Err = MetricError;

    /// Reads the name with hyphens (TOML) or underscores (attribute).
    fn from_str(text: &str) -> Result<Self, MetricError> {
        let name = text.replace('_', "-");
        Self::ALL.into_iter().find(|metric| metric.name() == name).ok_or_else(|| MetricError(text.to_owned()))
    }
}
