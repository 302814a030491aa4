//! Plain data that both ends of the control channel share: what a scenario asks for, what the engine is told to do,
//! what it answers.
//!
//! Nothing in here acts. Every duration carries its unit in its serialised key (`…_ns`), readers ignore fields that
//! they do not know, and no module of this folder uses anything of ours outside it.

mod arm;
mod histogram;
mod load;
mod metric;
mod nanos;
mod outcome;
mod plan;
mod ratio;
mod recording;
mod scenario;

pub use arm::{ArmPlan, Asked, Endpoint, Identity, Protocol, Tls, Trust};
pub use histogram::{HISTOGRAM_DIGITS, HISTOGRAM_HIGHEST, Histogram};
pub use load::{Late, Load, Reuse, Schedule};
pub use metric::{Direction, Metric, MetricError, Unit};
pub use nanos::Nanos;
pub use outcome::{Counts, ErrorClass, Errors, StatusClasses};
pub use plan::{RoundPlan, SlicePlan, TracePlan};
pub use ratio::{Ratio, RatioError};
pub use recording::{ArmRecording, Arrivals, EngineUsage, FirstAnswer, Recording, SliceRecording, Trace, TracedAnswer};
pub use scenario::{Limit, Location, Options, RequestSummary, ScenarioListing, Tolerance};
