//! The command line: clap's types, and what they mean.
//!
//! [`parse`] turns arguments into an [`Invocation`]. No other module reads flags; they take the options that stand in here, each
//! in the type of the module that acts on it.

mod flags;
mod meaning;

use std::ffi::OsString;

use clap::Parser;

use crate::bench::Selection;
use crate::cargo::{CargoOptions, Color, Verbosity};
use crate::config::LoadLayer;
use crate::revision::Against;

/// What the user asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// What to do.
    pub task: Task,
    /// What is passed through to cargo.
    pub cargo: CargoOptions,
    /// Which scenarios.
    pub selection: Selection,
    /// The configuration's last layer.
    pub load: LoadLayer,
    /// The git revision to compare with.
    pub against: Option<Against>,
    /// Decides the order of scenarios and everything else that is drawn at random.
    pub seed: Option<u64>,
    /// How it is told.
    pub output: OutputOptions,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Build, start, measure, report.
    Run,
    /// Build and stop.
    BuildOnly,
    /// Print the names of the selected scenarios.
    List,
    /// Print one exchange of this scenario as it went over the wire.
    TraceOne(String),
    /// Start the server as a run would, and keep it up.
    Serve,
}

/// How results and progress are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputOptions {
    /// The form of standard output.
    pub format: MessageFormat,
    /// Colours of both streams.
    pub color: Color,
    /// How much stands on standard error.
    pub verbosity: Verbosity,
}

/// The form of standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line, each with `reason` and `schema`.
    Json,
}

/// Reads the arguments of this process, the program's name first.
///
/// Cargo starts its subcommand `httpbench` as `cargo-httpbench httpbench …`; both forms mean the same.
///
/// # Errors
///
/// When they are wrong (exit code 2), or ask for help or the version (exit code 0). The error prints itself.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Invocation, clap::Error> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    if args.get(1).is_some_and(|first| first == "httpbench") {
        args.remove(1);
    }
    meaning::of(flags::Flags::try_parse_from(args)?)
}

/// The command line as clap knows it, for completions and manual pages.
#[must_use]
pub fn command() -> clap::Command {
    <flags::Flags as clap::CommandFactory>::command()
}

#[cfg(test)]
mod tests;
