//! The load engine: executes one round of one scenario and answers what it saw.

use crate::model::{Recording, RoundPlan, Trace, TracePlan};
use crate::scenario::WireRequest;

/// Why a plan could not be executed. What the server does wrong is never one: that is counted in the recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The plan contradicts itself.
    #[error("the plan is not executable: {0}")]
    Plan(String),
    /// The operating system refused what the engine needs before the first exchange.
    #[error("the load engine could not be set up")]
    Setup(#[from] std::io::Error),
}

/// Executes one round: every arm warmed up, then the slices in their order.
///
/// `requests` holds one request for each arm of the plan. Blocks until the last slice has drained.
///
/// # Errors
///
/// When the plan contradicts itself, or the operating system refuses threads, descriptors or core bindings.
pub fn run_round(plan: &RoundPlan, requests: Vec<WireRequest>) -> Result<Recording, EngineError> {
    Err(EngineError::Plan(format!("{} requests for {}", requests.len(), plan.scenario)))
}

/// Performs one exchange and keeps every byte of it.
///
/// # Errors
///
/// When the operating system refuses what the engine needs. A broken exchange is told in [`Trace::outcome`].
pub fn trace(plan: &TracePlan, request: &WireRequest) -> Result<Trace, EngineError> {
    Err(EngineError::Plan(format!("{} bytes for {}", request.bytes.len(), plan.scenario)))
}
