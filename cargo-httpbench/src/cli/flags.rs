//! The flags as they are typed. Only [`super::meaning`] reads them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};

use super::baseline_flags::{BaselineFlags, CompareFlags};
use super::load_flags::{self, LoadUrlFlags};
use super::selftest_flags::SelftestFlags;
use crate::baseline::BaselineName;
use crate::config;

const AFTER_HELP: &str = "Use `--help` for examples and exit codes.";

const AFTER_LONG_HELP: &str = "\
Examples:
  cargo httpbench                              Measure every scenario of the package
  cargo httpbench search                       Only scenarios whose name contains `search`
  cargo httpbench --quick -p shop              A first impression of package `shop`
  cargo httpbench --connections 256 --duration 20s
  cargo httpbench --against origin/main        Compare with where this branch left `main`
  cargo httpbench --against HEAD               Compare uncommitted changes with the last commit
  cargo httpbench list                         Print the scenarios; start no server
  cargo httpbench run list                     Scenarios whose name contains `list`
  cargo httpbench --trace-one http::index      Print one exchange as it goes over the wire
  cargo httpbench --save-baseline main         Keep the numbers and the server as baseline `main`
  cargo httpbench --baseline main              Measure against it; exit 100 on a regression
  cargo httpbench baseline list                Print the baselines that are kept
  cargo httpbench selftest                     What can be found on this machine, in three to four minutes
  cargo httpbench serve --bin shop             Start the server as a run would, and keep it up
  cargo httpbench load http://localhost:8080/  Load whatever listens there, without a project

Configuration: `httpbench.toml` beside `Cargo.toml`, or `[package.metadata.httpbench]` in it; those of the workspace's root are \
the defaults. A later layer wins: built-in, workspace, package, attribute of the scenario, `HTTPBENCH_*` environment, command line. \
Variables: HTTPBENCH_CONNECTIONS, HTTPBENCH_THREADS, HTTPBENCH_DURATION, HTTPBENCH_WARM_UP, HTTPBENCH_ROUNDS, HTTPBENCH_SLICE, \
HTTPBENCH_REQUEST_TIMEOUT, HTTPBENCH_CONNECT_TIMEOUT, HTTPBENCH_BASELINE_DIR.

Exit codes:
    0  done: nothing regressed, and no limit is exceeded
    1  something that should not happen did: please report it
    2  the command line is wrong
    4  no scenario is selected
   96  the configuration is wrong, or a baseline cannot be read
  100  something regressed, or a limit is exceeded
  101  cargo could not build the server or the bench target
  102  `cargo metadata` failed
  104  the scenarios could not be listed
  105  the server did not get ready, or died
  107  the measurement is invalid
  108  inconclusive or nothing to compare with, where the policy says that this fails
  110  output could not be written
  130  ended by Ctrl-C (143 by SIGTERM), with everything cleaned up";

/// Measures an HTTP server: builds it, starts it, drives it through its scenarios, and reports.
///
/// Without a subcommand, `cargo httpbench` runs the scenarios.
#[derive(Debug, Parser)]
#[command(
    name = "cargo-httpbench",
    bin_name = "cargo httpbench",
    version,
    args_conflicts_with_subcommands = true,
    args_override_self = true,
    override_usage = "cargo httpbench [OPTIONS] [FILTER]...\n       cargo httpbench <COMMAND> [OPTIONS]",
    after_help = AFTER_HELP,
    after_long_help = AFTER_LONG_HELP,
    max_term_width = 100
)]
pub(super) struct Flags {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) run: RunFlags,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the scenarios (the default); needed to use a subcommand's name as a filter: `run list`
    #[command(after_long_help = AFTER_LONG_HELP)]
    Run(Box<RunFlags>),
    /// Print one line `name: benchmark` for each selected scenario; builds the bench target, starts no server
    List(Box<ListFlags>),
    /// Start the server as a run would, say where it listens, and keep it up until Ctrl-C
    Serve(Box<ServeFlags>),
    /// List, show, remove, export or import the baselines that `--save-baseline` keeps
    Baseline(Box<BaselineFlags>),
    /// Compare two stored baselines by their numbers, and run nothing
    Compare(Box<CompareFlags>),
    /// Compare built-in servers on this machine: how small a change is found, in what time, how often in error
    Selftest(Box<SelftestFlags>),
    /// Load any URL, without a project: as fast as it goes, or on a schedule; and report what came back
    #[command(after_long_help = load_flags::AFTER_LONG_HELP, after_help = AFTER_HELP)]
    Load(Box<LoadUrlFlags>),
}

impl Command {
    /// The names that are subcommands where they come first.
    pub(super) const NAMES: [&str; 8] = ["run", "list", "serve", "baseline", "compare", "selftest", "load", "help"];
}

#[derive(Debug, Args)]
pub(super) struct RunFlags {
    #[command(flatten)]
    pub(super) selection: SelectionFlags,

    /// Print the selected scenarios as `name: benchmark` and start no server, like `list`
    #[arg(long, help_heading = "Selection", conflicts_with_all = ["no_run", "trace_one"])]
    pub(super) list: bool,

    /// Form of `--list`; both print the same lines, `terse` is what test runners ask for [default: pretty]
    #[arg(long, value_name = "FORMAT", help_heading = "Selection", requires = "list", hide_possible_values = true)]
    pub(super) format: Option<ListFormat>,

    #[command(flatten)]
    pub(super) load: LoadFlags,

    #[command(flatten)]
    pub(super) comparison: ComparisonFlags,

    /// Show one exchange of this scenario (its name, or a part that no other has), byte by byte as it goes over the wire, and measure nothing
    #[arg(
        long,
        value_name = "SCENARIO",
        help_heading = "Looking closer",
        conflicts_with_all = ["no_run", "filters", "exact", "skip", "ignored", "include_ignored"]
    )]
    pub(super) trace_one: Option<String>,

    #[command(flatten)]
    pub(super) packages: PackageFlags,

    /// Bench target that holds the scenarios, may be repeated [default: every bench target that uses httpbench]
    #[arg(long = "bench", value_name = "NAME", help_heading = "Packages and targets", action = ArgAction::Append)]
    pub(super) benches: Vec<String>,

    #[command(flatten)]
    pub(super) compilation: CompilationFlags,

    /// Build the server and the bench targets, and stop there
    #[arg(long, help_heading = "Compilation")]
    pub(super) no_run: bool,

    #[command(flatten)]
    pub(super) output: OutputFlags,
}

#[derive(Debug, Args)]
pub(super) struct ListFlags {
    #[command(flatten)]
    pub(super) selection: SelectionFlags,

    /// Form of the list; both print the same lines, `terse` is what test runners ask for [default: pretty]
    #[arg(long, value_name = "FORMAT", help_heading = "Selection", hide_possible_values = true)]
    pub(super) format: Option<ListFormat>,

    #[command(flatten)]
    pub(super) packages: PackageFlags,

    /// Bench target that holds the scenarios, may be repeated [default: every bench target that uses httpbench]
    #[arg(long = "bench", value_name = "NAME", help_heading = "Packages and targets", action = ArgAction::Append)]
    pub(super) benches: Vec<String>,

    #[command(flatten)]
    pub(super) compilation: CompilationFlags,

    #[command(flatten)]
    pub(super) output: OutputFlags,
}

#[derive(Debug, Args)]
pub(super) struct ServeFlags {
    #[command(flatten)]
    pub(super) packages: PackageFlags,

    #[command(flatten)]
    pub(super) compilation: CompilationFlags,

    #[command(flatten)]
    pub(super) output: OutputFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
pub(super) struct SelectionFlags {
    /// Take scenarios whose name contains this text; several take those that contain any [default: all]
    #[arg(value_name = "FILTER", help_heading = None)]
    pub(super) filters: Vec<String>,

    /// Filters and `--skip` must equal the whole name, `module::function[arg]`, not a part of it
    #[arg(long)]
    pub(super) exact: bool,

    /// Leave out scenarios whose name contains this text; may be repeated
    #[arg(long, value_name = "FILTER", action = ArgAction::Append)]
    pub(super) skip: Vec<String>,

    /// Take only the scenarios that are marked `ignore`
    #[arg(long, conflicts_with = "include_ignored")]
    pub(super) ignored: bool,

    /// Take the scenarios that are marked `ignore` too
    #[arg(long)]
    pub(super) include_ignored: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(super) struct LoadFlags {
    /// Connections that are open at once [default: 64]
    #[arg(short = 'c', long, value_name = "N", value_parser = config::positive)]
    pub(super) connections: Option<u32>,

    /// Requests to start per second over all connections, whatever the server does, such as `2000` or `0.5`; times then count
    /// from when each should have started [default: none; each connection sends its next request after the last answer]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = config::arrival_rate)]
    pub(super) arrival_rate: Option<f64>,

    /// Threads of the load engine [default: one for each of its cores]
    #[arg(long, value_name = "N", value_parser = config::positive)]
    pub(super) threads: Option<u32>,

    /// Loaded time for each scenario, over all rounds, such as `20s` or `1m 30s` [default: 6s]
    #[arg(short = 'd', long, value_name = "TIME", value_parser = config::duration)]
    pub(super) duration: Option<Duration>,

    /// Loaded time before a round is measured; `0s` leaves it out [default: 250ms]
    #[arg(long, value_name = "TIME", value_parser = config::duration_or_zero)]
    pub(super) warm_up: Option<Duration>,

    /// Time to wait for an answer, from the send to its last byte [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    pub(super) request_timeout: Option<Duration>,

    /// Time to wait for a connection [default: 3s]
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    pub(super) connect_timeout: Option<Duration>,

    /// Rounds, each with a freshly started server [default: 5]
    #[arg(long, value_name = "N", help_heading = "Measurement", value_parser = config::positive)]
    pub(super) rounds: Option<u32>,

    /// Length of one slice of load, at least `10ms` [default: 50ms or 4 times the median, whichever is longer]
    #[arg(long, value_name = "TIME", help_heading = "Measurement", value_parser = config::slice)]
    pub(super) slice: Option<Duration>,

    /// A first impression: 3 rounds, 1500ms of load, 150ms of warm-up; `--rounds`, `--duration` and `--warm-up` win over it
    #[arg(long, help_heading = "Measurement")]
    pub(super) quick: bool,

    /// Seed of everything that is drawn at random, such as the order of scenarios [default: a new one each time]
    #[arg(long, value_name = "N", help_heading = "Measurement")]
    pub(super) seed: Option<u64>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Comparison")]
pub(super) struct ComparisonFlags {
    /// Compare with a git revision: the merge base of REV and HEAD, built beside the working tree and measured in turn with it
    #[arg(long, value_name = "REV", group = "compared", conflicts_with_all = ["list", "trace_one", "no_run", "baseline"])]
    pub(super) against: Option<String>,

    /// Compare with REV itself, not with the merge base
    #[arg(long, requires = "against")]
    pub(super) exact_rev: bool,

    /// Keep the numbers and the server's executable under this name, for later runs [default name: main]
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        default_missing_value = BaselineName::DEFAULT,
        conflicts_with_all = ["list", "no_run", "trace_one"]
    )]
    pub(super) save_baseline: Option<BaselineName>,

    /// Measure against the server that is kept under this name, side by side [default name: main]
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        default_missing_value = BaselineName::DEFAULT,
        group = "compared",
        conflicts_with_all = ["list", "no_run", "trace_one"]
    )]
    pub(super) baseline: Option<BaselineName>,

    /// Measure even if both servers are the same, byte by byte, to see how much two equal servers differ
    #[arg(long, requires = "compared")]
    pub(super) force_aa: bool,

    /// When the baseline or one of its scenarios is missing: `fail` with 108, `warn`, or `ignore` [default: warn; with --ci: fail]
    #[arg(long, value_name = "WHAT", requires = "compared", hide_possible_values = true)]
    pub(super) on_missing: Option<OnMissingFlag>,

    /// When a comparison is inconclusive: `fail` with 108, or `warn` [default: warn]
    #[arg(long, value_name = "WHAT", requires = "compared", hide_possible_values = true)]
    pub(super) on_inconclusive: Option<OnInconclusiveFlag>,

    /// Tell regressions, and exit with 0 all the same
    #[arg(long)]
    pub(super) no_fail_on_regression: bool,

    /// A run of continuous integration: what is missing fails, and pull requests replace no baseline [default: if CI=true]
    #[arg(long)]
    pub(super) ci: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnMissingFlag {
    Fail,
    Warn,
    Ignore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnInconclusiveFlag {
    Fail,
    Warn,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Packages and targets")]
pub(super) struct PackageFlags {
    /// Package to measure, by name, `name@version`, wildcard or id; may be repeated [default: that of the current directory]
    #[arg(short, long = "package", value_name = "SPEC", action = ArgAction::Append, conflicts_with = "workspace")]
    pub(super) packages: Vec<String>,

    /// Every package of the workspace that has scenarios
    #[arg(long, visible_alias = "all")]
    pub(super) workspace: bool,

    /// Leave out a package of the workspace; may be repeated
    #[arg(long, value_name = "SPEC", action = ArgAction::Append, requires = "workspace")]
    pub(super) exclude: Vec<String>,

    /// Binary target that is the server [default: `bin` in `httpbench.toml`, else the package's only one or its `default-run`]
    #[arg(long, value_name = "NAME")]
    pub(super) bin: Option<String>,

    /// Path to `Cargo.toml` [default: the nearest one above the current directory]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(super) manifest_path: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Compilation")]
pub(super) struct CompilationFlags {
    /// Features to enable, separated by commas or spaces; may be repeated [default: the default features]
    #[arg(short = 'F', long, value_name = "FEATURES", action = ArgAction::Append)]
    pub(super) features: Vec<String>,

    /// Enable every feature
    #[arg(long)]
    pub(super) all_features: bool,

    /// Do not enable the `default` feature
    #[arg(long)]
    pub(super) no_default_features: bool,

    /// Profile to build with [default: release]
    #[arg(long, value_name = "PROFILE")]
    pub(super) profile: Option<String>,

    /// Platform to build for; it must run on this machine [default: this machine's]
    #[arg(long, value_name = "TRIPLE")]
    pub(super) target: Option<String>,

    /// Folder for everything that is built or recorded [default: cargo's target directory]
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    pub(super) target_dir: Option<PathBuf>,

    /// Fail if `Cargo.lock` would change
    #[arg(long)]
    pub(super) locked: bool,

    /// Build without the network
    #[arg(long)]
    pub(super) offline: bool,

    /// Both `--locked` and `--offline`
    #[arg(long)]
    pub(super) frozen: bool,

    /// Jobs that cargo runs in parallel [default: one for each CPU]
    #[arg(short, long, value_name = "N", allow_hyphen_values = true)]
    pub(super) jobs: Option<String>,

    /// Cargo configuration `KEY=VALUE`, or a file of it; may be repeated
    #[arg(long, value_name = "KEY=VALUE|PATH", action = ArgAction::Append)]
    pub(super) config: Vec<String>,

    /// Unstable flag of cargo's, only on nightly; may be repeated
    #[arg(short = 'Z', value_name = "FLAG", action = ArgAction::Append)]
    pub(super) unstable: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputFlags {
    /// Form of standard output: a report for people, or one JSON object a line (then all human text goes to standard error)
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(super) message_format: FormatFlag,

    /// When to use colours; `auto` uses them on a terminal unless `NO_COLOR` is set
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(super) color: ColorFlag,

    /// Say nothing on standard error but warnings and errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub(super) quiet: bool,

    /// Also say what is planned and why
    #[arg(short, long)]
    pub(super) verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ListFormat {
    Pretty,
    Terse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatFlag {
    Human,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorFlag {
    Auto,
    Always,
    Never,
}
