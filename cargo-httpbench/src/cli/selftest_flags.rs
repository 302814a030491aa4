//! The flags of `cargo httpbench selftest`, as they are typed. Only [`super::meaning`] reads them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueHint};
use httpbench_core::model::Ratio;

use super::flags::OutputFlags;
use crate::config;
use crate::selftest::{Change, Speed};

/// Needs no project. Without `--long` it takes three to four minutes and keeps nothing.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selftest")]
pub(super) struct SelftestFlags {
    /// Every kind of comparison many times, each kept in a file with all its slices
    #[arg(long)]
    pub(super) long: bool,

    /// Go on where an earlier `--long` ended: what it kept counts
    #[arg(long, requires = "long")]
    pub(super) resume: bool,

    /// File of the comparisons [default: `selftest.jsonl` among the project's results, or in the user's state folder]
    #[arg(long, value_name = "PATH", requires = "long", value_hint = ValueHint::FilePath)]
    pub(super) file: Option<PathBuf>,

    /// Only these: `aa` for equal servers, or more work for each request, such as `+5%` [default: aa,+5%; with --long: aa,+2%,+5%,+30%]
    #[arg(long, value_name = "CHANGE", value_delimiter = ',', action = ArgAction::Append)]
    pub(super) only: Vec<Change>,

    /// Servers of these speeds: answers per second, or `3000@1000` with arrivals per second of an open loop [default: 100000,3000,300,3000@1000]
    #[arg(long, value_name = "SPEED", value_delimiter = ',', action = ArgAction::Append)]
    pub(super) speed: Vec<Speed>,

    /// Comparisons of each kind [default: 1; with --long: 20]
    #[arg(long, value_name = "N", value_parser = config::positive)]
    pub(super) count: Option<u32>,

    /// Begin no comparison after this time, such as `30m` [default: 3m unless --count is given; with --long: none]
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    pub(super) time: Option<Duration>,

    /// Tolerance of throughput, such as `1%` [default: 3%]
    #[arg(long, value_name = "CHANGE")]
    pub(super) tolerance: Option<Ratio>,

    /// Load the arms one after the other in each round, not slice by slice: what that costs
    #[arg(long)]
    pub(super) sequential: bool,

    /// Let a second program compete for the cores a third of the time
    #[arg(long)]
    pub(super) beside_load: bool,

    /// Connections [default: 64; to servers below 1,000/s: 8]
    #[arg(short = 'c', long, value_name = "N", help_heading = "Load", value_parser = config::positive)]
    pub(super) connections: Option<u32>,

    /// Loaded time of a comparison for each arm [default: 12s]
    #[arg(short = 'd', long, value_name = "TIME", help_heading = "Load", value_parser = config::duration)]
    pub(super) duration: Option<Duration>,

    /// Loaded time before a round is measured [default: 150ms]
    #[arg(long, value_name = "TIME", help_heading = "Load", value_parser = config::duration_or_zero)]
    pub(super) warm_up: Option<Duration>,

    /// Rounds of a comparison [default: 16]
    #[arg(long, value_name = "N", help_heading = "Measurement", value_parser = config::positive)]
    pub(super) rounds: Option<u32>,

    /// Length of one slice of load, at least `10ms` [default: 50ms or 4 times the median, whichever is longer]
    #[arg(long, value_name = "TIME", help_heading = "Measurement", value_parser = config::slice)]
    pub(super) slice: Option<Duration>,

    /// Seed of everything that is drawn at random [default: a new one each time]
    #[arg(long, value_name = "N", help_heading = "Measurement")]
    pub(super) seed: Option<u64>,

    #[command(flatten)]
    pub(super) output: OutputFlags,
}
