//! From what was measured to what is said of it. Pure: nothing here measures, prints or exits.
//!
//! Section 7 of the design, in its own order:
//!
//! | what it says | where |
//! |---|---|
//! | a round's log-ratio of the arms, positive where the candidate is worse | `cell`, `pairs` |
//! | what is gated by default; quantiles without support, stand-ins, refused tolerances; the family of m cells | `family` |
//! | estimate, exact interval, Holm over the family, α/K for each look, the fewest rounds that decide | `decide` |
//! | `regressed` and `improved` only if fresh rounds confirm them; `unchanged`; `inconclusive` with its reason; `invalid` | `decide`, `comparison` |
//! | errors and check failures by counts, before any statistics; too many disturbed rounds; what could have been detected | `comparison` |
//! | limits, on the median and again on fresh rounds; no samples fail | `limits` |
//! | servers that were never measured together: ratios to the reference server, and what they say of each other | `against_reference`, `numbers` |
//! | throughput that was the engine's and not the server's | `saturation` |
//!
//! Identical executables are found before anything is measured ([`crate::baseline_arm`]); what fails the run is the policy's
//! affair ([`crate::gate`]); how many looks there are, and when, is the plan's ([`crate::compare`]).

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
#[cfg(test)]
mod symmetry_tests;

pub use against_reference::{AgainstReference, ReferenceState};
pub use cell::{Compared, Difference};
pub(crate) use comparison::disturbed;
pub use comparison::{CellReport, Comparison, Reason};
pub use decide::{
    ALPHA, Decision, Evidence, Looks, TwoSamples, Verdict, confirms, confirms_two_samples, decide, decide_two_samples,
    fewest_rounds,
};
pub use family::{Family, Gated, NotGated, SUPPORT, Unsupported};
pub use judged::Judged;
pub use limits::{LimitState, LimitVerdict, first_exceeded, judge_limits};
pub(crate) use limits::{errors_limit, too_many_failed};
pub use numbers::{LEAST_TOLERANCE, Numbers, Side};
pub use pairs::{log_ratio, order_effect};
pub use saturation::{Saturation, judge_saturation};
