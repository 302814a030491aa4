//! What the engine is told to do: one round of one scenario.

use serde::{Deserialize, Serialize};

use super::{ArmPlan, Load, Nanos};

/// One round of one scenario: every arm warmed up, then the slices in their order.
///
/// The engine executes it alone and answers with one [`Recording`](super::Recording) after the last slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundPlan {
    /// The scenario's name.
    pub scenario: String,
    /// The servers, by index: [`SlicePlan::arm`] points here. At least one.
    pub arms: Vec<ArmPlan>,
    /// How much load, and by what.
    pub load: Load,
    /// Loaded time for each arm before the first slice. Counted apart.
    #[serde(rename = "warm_up_ns")]
    pub warm_up: Nanos,
    /// The slices in the order of their execution.
    pub slices: Vec<SlicePlan>,
}

/// One slice: a short window in which one arm is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicePlan {
    /// Index into [`RoundPlan::arms`].
    pub arm: usize,
    /// From the first send to the last moment at which a new exchange may start.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// The first part of the slice, left out of its throughput: connections fall into step in it.
    #[serde(rename = "lead_in_ns")]
    pub lead_in: Nanos,
    /// The slice ends after exactly so many starts, at least 1, if its length does not end it before. They are shared
    /// exactly among the threads, which differ by one at most; no more connections are opened than there are starts.
    #[serde(default)]
    pub requests: Option<u64>,
}

/// One exchange to be shown as it goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracePlan {
    /// The scenario's name.
    pub scenario: String,
    /// The server.
    pub arm: ArmPlan,
    /// For the connection and for the exchange.
    #[serde(rename = "timeout_ns")]
    pub timeout: Nanos,
}
