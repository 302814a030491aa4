//! What the engine is told to do: one round of one scenario.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::Nanos;

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

/// One server under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmPlan {
    /// Where it listens.
    pub address: SocketAddr,
    /// The `Host` header that requests to it carry.
    pub host: String,
    /// The process whose descendants are the server: its supervisor. `None`: nothing is sampled.
    pub root_pid: Option<u32>,
}

/// How an arm is loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Connections to each arm, shared exactly among the threads. At least 1.
    pub connections: u32,
    /// Engine threads, at least 1; never more than connections.
    pub threads: u32,
    /// Starts per second on the engine's schedule, over all connections and threads together; `None` is a closed loop, in
    /// which each connection sends after its answer. Above 0, at most 10 million.
    ///
    /// Start `k` is due at `k / arrival_rate` of the arm's loaded time (the warm-up's apart), whatever the server does. When
    /// no connection is free, its intended start stands, and it is sent as soon as one is.
    #[serde(default)]
    pub arrival_rate: Option<f64>,
    /// The cores that engine threads are bound to, one after the other; empty leaves them unbound.
    pub cores: Vec<u32>,
    /// From the send of a request to the last byte of its answer. In an open loop also the most that a slice's end is
    /// overrun by: what has not been answered, or not even been sent, by then is an error at that time.
    #[serde(rename = "request_timeout_ns")]
    pub request_timeout: Nanos,
    /// For a connection to be established.
    #[serde(rename = "connect_timeout_ns")]
    pub connect_timeout: Nanos,
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
