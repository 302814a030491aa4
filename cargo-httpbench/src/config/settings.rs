//! What is resolved: every value is there, whoever said it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use httpbench_core::model::{Limit, Metric, Nanos, Ratio};

/// Everything that a package's run needs to know, but for what its scenarios' attributes say.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How the server is started and stopped.
    pub server: ServerSettings,
    /// How a scenario is loaded. Resolved once more for each scenario, with its attribute between file and environment.
    pub load: LoadSettings,
    /// Rounds of a run, at least 1.
    pub rounds: u32,
}

/// How a server is started, recognised as ready, and stopped. Texts may hold `{port}`, `{host}` and `{dir}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// The binary target, where the configuration names one.
    pub bin: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables beside the user's own.
    pub env: BTreeMap<String, String>,
    /// Files and folders, relative to the package, that are copied into `{dir}` before every start.
    pub copy: Vec<PathBuf>,
    /// Runs before every start: program and arguments.
    pub setup: Option<Vec<String>>,
    /// Runs after every stop: program and arguments.
    pub teardown: Option<Vec<String>>,
    /// Relative to the package; the package's own folder by default.
    pub working_dir: Option<PathBuf>,
    /// When the server counts as ready.
    pub ready: Ready,
    /// How long a stopped server may take before it is killed.
    pub stop_timeout: Duration,
}

/// When a server counts as ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Path and query that is asked for.
    pub path: String,
    /// The status that it must answer. `None`: any HTTP answer will do.
    pub status: Option<u16>,
    /// From the start of the process.
    pub timeout: Duration,
}

/// How a scenario is loaded and judged.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSettings {
    /// Connections to an arm.
    pub connections: u32,
    /// Starts per second over all connections, in an open loop; `None`: a closed loop.
    pub arrival_rate: Option<f64>,
    /// Engine threads; `None`: one for each engine core.
    pub threads: Option<u32>,
    /// Loaded time for an arm, over all rounds.
    pub duration: Nanos,
    /// Loaded time before the first slice of a round.
    pub warm_up: Nanos,
    /// Length of a slice; `None`: the pilot decides.
    pub slice: Option<Nanos>,
    /// From send to last byte.
    pub request_timeout: Nanos,
    /// For a connection to be established.
    pub connect_timeout: Nanos,
    /// Accepted relative changes.
    pub tolerance: BTreeMap<Metric, Ratio>,
    /// The metrics among them whose tolerance somebody wrote.
    pub tolerance_written: BTreeSet<Metric>,
    /// Absolute bounds; at most one for each metric.
    pub limits: Vec<Limit>,
}
