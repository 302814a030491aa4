//! The command line: clap's types, and what they mean.
//!
//! [`parse`] turns arguments into an [`Invocation`]. No other module reads flags; they take the options that stand in here, each
//! in the type of the module that acts on it.

mod baseline_flags;
mod flags;
mod load_flags;
mod load_meaning;
mod meaning;
mod selftest_flags;

use std::ffi::OsString;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};

use crate::baseline::{BaselineCommand, BaselineName, Ci};
use crate::bench::Selection;
use crate::cargo::{CargoOptions, Color, Verbosity};
use crate::config::LoadLayer;
use crate::environment::Environment;
use crate::load::LoadOptions;
use crate::nearest::nearest;
use crate::revision::Against;
use crate::selftest::SelftestOptions;

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
    /// What the measurement is compared with, and kept as.
    pub comparison: ComparisonOptions,
    /// Decides the order of scenarios and everything else that is drawn at random.
    pub seed: Option<u64>,
    /// How it is told.
    pub output: OutputOptions,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
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
    /// List, show, remove, export or import baselines.
    Baseline(BaselineCommand),
    /// Compare two stored baselines by their numbers.
    Compare {
        /// The one that is compared with.
        baseline: BaselineName,
        /// The one that is judged.
        candidate: BaselineName,
    },
    /// Compare built-in servers, to tell what can be found here.
    Selftest(Box<SelftestOptions>),
    /// Load URLs, without a project.
    Load(Box<LoadOptions>),
}

/// What a measurement is compared with and kept as, and what decides whether that passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComparisonOptions {
    /// Keep it under this name.
    pub save: Option<BaselineName>,
    /// Compare it with the baseline of this name.
    pub baseline: Option<BaselineName>,
    /// Compare it with this git revision. Never together with `baseline`.
    pub against: Option<Against>,
    /// What is done about servers that are the same.
    pub identical: IdenticalServers,
    /// What a comparison that has nothing to compare with means.
    pub on_missing: OnMissing,
    /// What `inconclusive` means.
    pub on_inconclusive: OnInconclusive,
    /// What a regression means.
    pub on_regression: OnRegression,
    /// Whether this is a run of continuous integration.
    pub ci: Ci,
}

impl ComparisonOptions {
    /// Whether there is anything to compare with.
    #[must_use]
    pub const fn compares(&self) -> bool {
        self.baseline.is_some() || self.against.is_some()
    }
}

/// What is done about a candidate that is the baseline, byte by byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdenticalServers {
    /// They are `unchanged`, and nothing is measured.
    #[default]
    Trusted,
    /// They are measured all the same: `--force-aa`.
    Measured,
}

/// What a missing baseline, a removed scenario or nothing to compare means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissing {
    /// The run fails (108). The default in continuous integration.
    Fail,
    /// It is a warning. The default elsewhere.
    #[default]
    Warn,
    /// It is told in the report alone.
    Ignore,
}

/// What an `inconclusive` cell means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInconclusive {
    /// The run fails (108).
    Fail,
    /// It is told, and the run passes.
    #[default]
    Warn,
}

/// What a `regressed` cell means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRegression {
    /// The run fails (100).
    #[default]
    Fail,
    /// It is told, and the run passes.
    Tell,
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
    parse_in(args, Ci::of(&Environment::inherited()))
}

/// As [`parse`], where the environment says that this is, or is not, continuous integration.
fn parse_in(args: impl IntoIterator<Item = OsString>, ci: Ci) -> Result<Invocation, clap::Error> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    if args.get(1).is_some_and(|first| first == "httpbench") {
        args.remove(1);
    }
    let flags = flags::Flags::try_parse_from(args).map_err(with_near_suggestions)?;
    meaning::of(flags, ci)
}

/// Takes away what clap suggests beyond a slip of the fingers: `--rounds` is not what `--bogus` meant.
fn with_near_suggestions(mut error: clap::Error) -> clap::Error {
    for (typed, suggested) in [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ] {
        let Some(ContextValue::String(word)) = error.get(typed) else { continue };
        let near =
            |candidate: &str| nearest(word.trim_start_matches('-'), [candidate.trim_start_matches('-')]).is_some();
        let far = match error.get(suggested) {
            Some(ContextValue::String(one)) => !near(one),
            Some(ContextValue::Strings(several)) => !several.iter().any(|one| near(one)),
            _ => false,
        };
        if far {
            _ = error.remove(suggested);
        }
    }
    error
}

/// The command line as clap knows it, for completions and manual pages.
#[must_use]
pub fn command() -> clap::Command {
    <flags::Flags as clap::CommandFactory>::command()
}

#[cfg(test)]
mod tests;
