//! From file, attribute, environment and flags to one resolved [`Settings`].
//!
//! A later layer wins: built-in < workspace < package < attribute < `HTTPBENCH_*` environment < command line. Each layer says
//! only what somebody wrote; [`Layers`] puts them together, once for a package and once more for each scenario.
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
pub use layer::{Layers, LoadLayer, ReadyLayer, ServerLayer, SettingsLayer};
pub use settings::{LoadSettings, Ready, ServerSettings, Settings};
pub use value::{ValueError, bound, duration, duration_or_zero, positive, slice};
pub use variables::{VARIABLES, is_ours, read_variables};
