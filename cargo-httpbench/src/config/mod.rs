//! From file, attribute, environment and flags to one resolved [`Settings`].
//!
//! A later layer wins: built-in < workspace < package < attribute < `HTTPBENCH_*` environment < command line. Each layer says
//! only what somebody wrote; [`Layers`] puts them together, once for a package and once more for each scenario.
//!
//! Everything that a file may say; the same tables may stand under `[package.metadata.httpbench]`:
//!
//! ```toml
//! [server]
//! bin = "my-server"              # looked up in the package, then in the workspace
//! args = ["--listen", "127.0.0.1:{port}"]
//! env = { RUST_LOG = "warn" }
//! show-env = ["RUST_LOG"]        # variables whose values baselines may hold; of others they hold a hash
//! copy = ["todo.db"]             # into `{dir}`, before every start
//! setup = ["sh", "seed.sh"]      # before every start
//! teardown = ["sh", "drop.sh"]   # after every stop
//! working-dir = "run"            # relative to the package
//! ready = { path = "/health", status = 200, timeout = "30s" }
//! stop-timeout = "5s"            # "0s" kills at once
//!
//! [defaults]
//! connections = 64
//! arrival-rate = 2000            # starts per second; left out: each connection sends after its answer
//! threads = 1
//! duration = "6s"
//! warm-up = "250ms"              # "0s" leaves it out
//! rounds = 5
//! slice = "50ms"
//! request-timeout = "10s"
//! connect-timeout = "3s"
//! baseline-dir = "baselines"     # relative to this file
//! allow-save-in-ci = true        # pull requests may replace a baseline
//!
//! [tolerance]                    # percentages
//! throughput = "3%"
//!
//! [limit]                        # bounds in the form of the metric
//! p99 = "20ms"
//! throughput = "1000/s"
//! errors = "0.1%"
//! peak-memory = "200MB"
//! ```
//!
//! Nothing here prints or builds. Unknown keys are [`Warning`](crate::warning::Warning)s, everything that cannot be understood
//! is an error with exit code 96 that names file, line and what is accepted.

mod document;
mod files;
mod layer;
mod settings;
mod value;
mod variables;

pub use files::{FileLayers, read_files};
pub use layer::{BaselineLayer, Layers, LoadLayer, Purpose, ReadyLayer, ServerLayer, SettingsLayer};
pub use settings::{BaselineSettings, LoadSettings, Ready, ServerSettings, Settings};
pub use value::{ValueError, arrival_rate, bound, duration, duration_or_zero, positive, slice};
pub use variables::{VARIABLES, baseline_dir_variable, is_ours, read_variables};
