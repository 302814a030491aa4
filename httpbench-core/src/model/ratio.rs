//! A relative amount: a tolerance, a share of failures.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A relative amount, stored as a fraction: 3 % is `0.03`.
///
/// ```
/// use httpbench_core::model::Ratio;
///
/// let tolerance: Ratio = "3%".parse()?;
/// assert_eq!(tolerance, Ratio(0.03));
/// assert_eq!(tolerance.to_string(), "3%");
/// # Ok::<(), httpbench_core::model::RatioError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ratio(pub f64);

/// A text that is not a percentage between 0 % and 1000 %.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a percentage: write a number from 0 to 1000 and a percent sign, such as `3%` or `0.5%`")]
pub struct RatioError(String);

impl FromStr for Ratio {
    type Err = RatioError;

    fn from_str(text: &str) -> Result<Self, RatioError> {
        text.trim()
            .strip_suffix('%')
            .and_then(|number| number.trim_end().parse::<f64>().ok())
            .filter(|percent| (0.0..=1000.0).contains(percent))
            .map(|percent| Self(percent / 100.0))
            .ok_or_else(|| RatioError(text.to_owned()))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Six digits hide the binary rounding of `0.07 * 100`.
        let percent = (self.0 * 100.0 * 1e6).round() / 1e6;
        write!(out, "{percent}%")
    }
}
