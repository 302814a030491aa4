//! The flags of the commands over stored baselines, `baseline` and `compare`, as they are typed. Only [`super::meaning`] reads them.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueHint};

use super::flags::{OnInconclusiveFlag, OnMissingFlag, OutputFlags};
use crate::baseline::BaselineName;

#[derive(Debug, Args)]
pub(super) struct BaselineFlags {
    #[command(subcommand)]
    pub(super) command: BaselineFlagsCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum BaselineFlagsCommand {
    /// Print one line for each baseline of each package
    List(StoreFlags),
    /// Print what a baseline holds: build, machine, set-up, the medians of each scenario
    Show {
        /// The baseline
        name: BaselineName,
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Remove baselines, with their executables, of every package
    Rm {
        /// The baselines
        #[arg(required = true, value_name = "NAME")]
        names: Vec<BaselineName>,
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Write a baseline with its executables to one file, for another machine or a cache
    Export {
        /// The baseline
        name: BaselineName,
        /// The file [default: the baseline's name with `.tar`, here]
        #[arg(value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
        /// Replace the file if it is there
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        store: StoreFlags,
    },
    /// Take a baseline in that `export` wrote, and print where its executable comes from
    Import {
        /// The file
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Replace a baseline of the same name
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        store: StoreFlags,
    },
}

/// Where the baselines are looked for: packages may keep theirs in folders of their own.
#[derive(Debug, Args)]
#[command(next_help_heading = "Packages")]
pub(super) struct StoreFlags {
    /// Package whose `baseline-dir` is meant, where packages have different ones [default: that of the current directory]
    #[arg(short, long = "package", value_name = "SPEC", action = ArgAction::Append)]
    pub(super) packages: Vec<String>,

    /// Path to `Cargo.toml` [default: the nearest one above the current directory]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(super) manifest_path: Option<PathBuf>,

    /// Folder for everything that is built or recorded [default: cargo's target directory]
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub(super) target_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(super) output: OutputFlags,
}

/// By each one's ratios to the built-in reference server, which is measured beside whatever is saved. Weaker than `--baseline`, which
/// measures both servers: no change below 10% is decided.
#[derive(Debug, Args)]
pub(super) struct CompareFlags {
    /// The baseline that is compared with
    #[arg(value_name = "A")]
    pub(super) baseline: BaselineName,

    /// The baseline that is judged: changes are those from A to B
    #[arg(value_name = "B")]
    pub(super) candidate: BaselineName,

    /// When a package or a scenario is in A only: `fail` with 108, `warn`, or `ignore` [default: warn; with --ci: fail]
    #[arg(long, value_name = "WHAT", hide_possible_values = true)]
    pub(super) on_missing: Option<OnMissingFlag>,

    /// When a comparison is inconclusive: `fail` with 108, or `warn` [default: warn]
    #[arg(long, value_name = "WHAT", hide_possible_values = true)]
    pub(super) on_inconclusive: Option<OnInconclusiveFlag>,

    /// Tell regressions, and exit with 0 all the same
    #[arg(long)]
    pub(super) no_fail_on_regression: bool,

    /// A run of continuous integration: what is missing fails [default: if CI=true]
    #[arg(long)]
    pub(super) ci: bool,

    #[command(flatten)]
    pub(super) store: StoreFlags,
}
