//! From what was measured to what is said of it. Pure: nothing here measures, prints or exits.
//!
//! With one arm: `limits` and `saturation`. With two: `family` fixes which `cell`s are gated, `pairs` turns a round into a
//! difference, `decide` turns the differences into verdicts, `comparison` puts them together for a package. Where the two were never
//! measured together, `against_reference` turns a round into ratios, and `numbers` compares those.

mod against_reference;
mod cell;
mod comparison;
mod decide;
mod family;
mod judged;
mod limits;
mod numbers;
mod pairs;
mod saturation;

pub use against_reference::{AgainstReference, ReferenceState};
pub use cell::{Compared, Difference};
pub use comparison::{CellReport, Comparison, Reason};
pub use decide::{
    ALPHA, Decision, Evidence, Looks, TwoSamples, Verdict, confirms, confirms_two_samples, decide, decide_two_samples,
    fewest_rounds,
};
pub use family::{Family, Gated, SUPPORT, Unsupported};
pub use judged::Judged;
pub(crate) use limits::errors_limit;
pub use limits::{LimitState, LimitVerdict, first_exceeded, judge_limits};
pub use numbers::{LEAST_TOLERANCE, Numbers, Side};
pub use pairs::log_ratio;
pub use saturation::{Saturation, judge_saturation};
