//! From what was measured to what is said of it. Pure: nothing here measures, prints or exits.

mod judged;
mod limits;
mod saturation;

pub use judged::Judged;
pub use limits::{LimitState, LimitVerdict, first_exceeded, judge_limits};
pub use saturation::{Saturation, judge_saturation};
