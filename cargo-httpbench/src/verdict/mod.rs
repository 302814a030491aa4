//! From what was measured to what is said of it. Pure: nothing here measures, prints or exits.
//!
//! With one arm: `limits` and `saturation`. With two: `family` fixes which `cell`s are gated, `pairs` turns a round into a
//! difference, `decide` turns the differences into verdicts, `comparison` puts them together for a package.

mod cell;
mod comparison;
mod decide;
mod family;
mod judged;
mod limits;
mod pairs;
mod saturation;
#[cfg(test)]
mod symmetry_tests;

pub use cell::{Compared, Difference};
pub use comparison::{CellReport, Comparison, Reason};
pub use decide::{ALPHA, Decision, Evidence, Looks, Verdict, confirms, decide, fewest_rounds};
pub use family::{Family, Gated, NotGated, SUPPORT, Unsupported};
pub use judged::Judged;
pub use limits::{LimitState, LimitVerdict, first_exceeded, judge_limits};
pub use pairs::{log_ratio, order_effect};
pub use saturation::{Saturation, judge_saturation};
