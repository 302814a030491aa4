//! A span of time in whole nanoseconds.

use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A span of time in whole nanoseconds, up to 584 years.
///
/// Arithmetic saturates: a measured span is never negative and never wraps.
///
/// ```
/// use httpbench_core::model::Nanos;
///
/// assert_eq!(Nanos::from_millis(2), Nanos(2_000_000));
/// assert_eq!(Nanos(5) - Nanos(7), Nanos::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// So many whole microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// So many whole milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// So many whole seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// The span in seconds, for arithmetic on throughput.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "52 bits of nanoseconds are 52 days, exact enough for a ratio")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The same span for std's interfaces.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        nanos.as_duration()
    }
}

impl Add for Nanos {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;

    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Nanos {
    type Output = Self;

    /// # Panics
    ///
    /// When the divisor is zero, like integer division.
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl std::iter::Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}
