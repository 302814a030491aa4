//! What expansions of `#[http_bench]` name. Not for users: it changes without notice.

pub use inventory::submit;

pub use crate::model::Metric;
pub use crate::scenario::Request;
pub use crate::scenario::registry::{Bound, Calls, Entry, StaticOptions, bind};
