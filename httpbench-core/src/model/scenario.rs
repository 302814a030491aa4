//! A scenario as the bench binary lists it: its name, its options, the request that it renders.

use serde::{Deserialize, Serialize};

use super::{Metric, Nanos, Ratio};

/// One scenario of a bench target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioListing {
    /// `module::function[arg]`, unique within the bench target.
    pub name: String,
    /// The doc comment of the function, trimmed; empty where there is none.
    pub doc: String,
    /// Where the function stands.
    pub location: Location,
    /// What the attribute says.
    pub options: Options,
    /// The request that one call of the function renders, or why the call failed (it panicked, the request is malformed).
    pub request: Result<RequestSummary, String>,
}

/// A place in the user's source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The file, as the compiler was told it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// What a report says of the request that a scenario sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSummary {
    /// `GET`, `POST` …
    pub method: String,
    /// Path and query, in origin form.
    pub target: String,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// A checksum over everything that would be sent and what must be answered: another one, and it is another request.
    #[serde(default)]
    pub checksum: u64,
}

impl RequestSummary {
    /// Whether the method may change what the server holds (RFC 9110, section 9.2.1: any method that is not safe).
    ///
    /// Such scenarios run last in a round, with a server of their own.
    #[must_use]
    pub fn writes(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE")
    }
}

/// What `#[http_bench(…)]` says of a scenario. What is not said is `None` or empty, and the configuration decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Connections that are open to an arm at once, at least 1.
    pub connections: Option<u32>,
    /// Starts per second over all connections, above 0: an open loop.
    #[serde(default)]
    pub arrival_rate: Option<f64>,
    /// Loaded time for an arm, over all rounds.
    #[serde(rename = "duration_ns")]
    pub duration: Option<Nanos>,
    /// Loaded time before an arm's first slice in each round, not recorded.
    #[serde(rename = "warm_up_ns")]
    pub warm_up: Option<Nanos>,
    /// Relative changes that are accepted.
    pub tolerance: Vec<Tolerance>,
    /// Absolute bounds.
    pub limit: Vec<Limit>,
    /// Left out unless `--ignored` asks for it.
    pub ignore: bool,
}

/// The relative change of a metric that is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// Of which metric.
    pub metric: Metric,
    /// How much worse it may get.
    pub ratio: Ratio,
}

/// An absolute bound on a metric, which needs no baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Of which metric.
    pub metric: Metric,
    /// In the metric's own [`Unit`](super::Unit): the least that is accepted where higher is better, else the most.
    pub bound: f64,
}
