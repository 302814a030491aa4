//! `cargo httpbench selftest`: how small a change is found on this machine, how long that takes, and how often it is wrong.
//!
//! Servers that are equal, and servers of which one does a known amount of work more, are compared by the very code that compares a
//! user's servers: a [`Campaign`] of fresh processes, [`compare`] with its looks and its confirmation, the same report and the same JSON.
//! Only the servers are built in (see [`reference`](mod@reference)).
//!
//! | module | what it knows |
//! |---|---|
//! | `plan` | what is compared, in which order |
//! | `subject` | servers of a wanted speed, calibrated here |
//! | `record` | what is kept of a comparison: a line of JSON, enough to decide it again by other rules |
//! | `summary` | counts, bounds, plain words |

mod plan;
mod record;
mod subject;
mod summary;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::baseline::Fingerprint;
use crate::baseline_arm::{OneSided, Origin};
use crate::cli::Invocation;
use crate::compare::{Judge, compare, rounds_that_decide};
use crate::config::LoadLayer;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::measure::{Arms, Campaign, MeasuredPackage, Rounds, Subject, Turn};
use crate::prepare::Project;
use crate::reference::{self, launch_busy};
use crate::report::{ComparedReport, End, LoadAverage, PackageReport, Report, json, render_report};
use crate::shell::Shell;
use crate::verdict::{Comparison, Judged};
use crate::warning::Warning;

pub use plan::{Change, ParseError, Speed};
pub use record::{CellRecord, Kept, Record, RoundRecord, SliceRecord, read_records};
use subject::Calibration;
pub use summary::{Group, summarise};

/// How long the short form begins comparisons.
const SHORT: Duration = Duration::from_secs(180);

/// How often the long form makes each comparison if nobody says.
const LONG_COUNT: u32 = 20;

/// What a selftest was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SelftestOptions {
    /// How much of it.
    pub length: Length,
    /// The injected changes; empty: the usual ones.
    pub changes: Vec<Change>,
    /// The servers' speeds; empty: the usual ones.
    pub speeds: Vec<Speed>,
    /// Comparisons of each kind.
    pub count: Option<u32>,
    /// No comparison begins after this.
    pub time: Option<Duration>,
    /// Throughput's tolerance, where it is not the default.
    pub tolerance: Option<f64>,
    /// How the arms run.
    pub order: ArmOrder,
    /// What else runs.
    pub neighbour: Neighbour,
    /// Where the long form keeps its comparisons.
    pub file: Option<PathBuf>,
    /// Connections, rounds, slices and durations other than a default run's.
    pub load: LoadLayer,
}

/// How much of a selftest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Length {
    /// Three to four minutes; nothing is kept.
    #[default]
    Short,
    /// Every kind of comparison many times, all kept in a file.
    Long(Earlier),
}

/// What becomes of the comparisons that earlier calls kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// They are removed.
    Removed,
    /// They count.
    Counted,
}

/// How the arms of a comparison run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArmOrder {
    /// Slice by slice, as a user's comparison.
    #[default]
    Interleaved,
    /// In each round one after the other, as other tools do at best: for comparison.
    Sequential,
}

/// What else runs on the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbour {
    /// Nothing of ours.
    #[default]
    None,
    /// A process that competes for the cores a third of the time.
    Busy,
}

/// Runs a selftest. Works in any folder.
///
/// # Errors
///
/// When the built-in server cannot be started or the file of comparisons cannot be written (110). A signal ends it with its own code,
/// after what was done until then is told.
pub fn run(
    invocation: &Invocation,
    options: &SelftestOptions,
    shell: &mut Shell,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let mut kept = match options.length {
        Length::Short => Kept::nowhere(),
        Length::Long(earlier) => Kept::open(&file(invocation, options, interrupt)?, earlier)?,
    };
    if let Some(path) = kept.path() {
        shell.status("Keeping", &format!("comparisons in {}; {} are there", path.display(), kept.records().len()));
    }
    let seed = invocation.seed.unwrap_or_else(|| fastrand::u64(..));
    shell.verbose(&format!("orders follow --seed {seed}"));
    let mut random = fastrand::Rng::with_seed(seed);
    let turn = Turn::take(interrupt, |holder| {
        shell.status("Waiting", &format!("for {holder}, which is measuring"));
    })?;
    let started = Instant::now();
    let ended = soak(options, &mut kept, started, &mut random, shell, interrupt);
    drop(turn);
    shell.end_progress();
    let groups = summarise(kept.records());
    shell.answer(&summary::render(&groups, started.elapsed(), shell.width()))?;
    shell.object("selftest", &serde_json::json!({ "groups": groups, "file": kept.path() }))?;
    // Whatever ended it: what was done until then has been told.
    ended.map(|()| ExitCode::Success)
}

/// The comparisons, one after the other, each kept as soon as it is over.
fn soak(
    options: &SelftestOptions,
    kept: &mut Kept,
    started: Instant,
    random: &mut fastrand::Rng,
    shell: &mut Shell,
    interrupt: &Interrupt,
) -> Result<()> {
    let (count, time) = match options.length {
        Length::Short => (options.count.unwrap_or(1), options.time.or(options.count.is_none().then_some(SHORT))),
        Length::Long(_) => (options.count.unwrap_or(LONG_COUNT), options.time),
    };
    let done = |kind: &plan::Kind| kept.records().iter().filter(|record| record.is_of(kind, options)).count();
    let kinds = plan::kinds(options);
    let missing: Vec<(plan::Kind, u32)> = kinds
        .into_iter()
        .map(|kind| (kind, count.saturating_sub(u32::try_from(done(&kind)).unwrap_or(u32::MAX))))
        .collect();
    let order = plan::shuffled(&missing, random);
    if order.is_empty() {
        return Ok(());
    }
    let mut bench = reference::bench::bench(interrupt)?;
    if cfg!(debug_assertions) {
        shell.warning(&Warning::UnoptimisedBench { bench: "cargo-httpbench".to_owned() })?;
    }
    let calibration =
        Calibration::of_this_machine(&mut bench, interrupt, &mut |progress| crate::run::show(&progress, shell))?;
    shell.verbose(&calibration.to_string());
    let total = order.len();
    for (index, kind) in order.into_iter().enumerate() {
        if time.is_some_and(|time| started.elapsed() >= time) {
            shell.status("Note", &format!("{index} of {total} comparisons fitted into the time"));
            break;
        }
        shell.status("Comparing", &format!("{}/{total} {kind}", index + 1));
        let neighbour = match options.neighbour {
            Neighbour::None => None,
            Neighbour::Busy => Some(launch_busy(interrupt)?),
        };
        let record = one_comparison(options, &kind, &calibration, &mut bench, random.u64(..), shell, interrupt)?;
        drop(neighbour);
        shell.object("selftest-comparison", &record.without_rounds())?;
        kept.add(record)?;
    }
    Ok(())
}

/// One comparison, as a user would make it, told as a user would be told.
fn one_comparison(
    options: &SelftestOptions,
    kind: &plan::Kind,
    calibration: &Calibration,
    bench: &mut crate::bench::Bench,
    seed: u64,
    shell: &mut Shell,
    interrupt: &Interrupt,
) -> Result<Record> {
    let name = kind.to_string();
    let pair = calibration.pair(kind)?;
    let layers = subject::layers(options, kind.speed);
    let selected = calibration.scenario(&layers);
    let load = selected.load.clone();
    let subject = Subject {
        package: &name,
        arms: vec![&pair.candidate, &pair.baseline],
        reference: None,
        arms_run: match options.order {
            ArmOrder::Interleaved => Arms::default(),
            ArmOrder::Sequential => Arms::OneAtATime { why: "--sequential asks for it".to_owned() },
        },
        cores: &calibration.cores,
        benches: std::slice::from_mut(bench),
        scenarios: vec![selected],
    };
    let rounds = Rounds { count: rounds_that_decide(layers.settings().rounds, 1, 1.0), seed };
    let load_at_start = crate::run::load_average();
    let started = Instant::now();
    let mut watcher = |progress: crate::measure::Progress<'_>| crate::run::show(&progress, shell);
    let mut campaign = Campaign::new(subject, rounds, interrupt, &mut watcher);
    let outcome = compare(&mut campaign, rounds.count, 1.0, &[], Judge::Arms);
    let measured = campaign.finish();
    let comparison = outcome?;
    if let Some(failure) = measured.scenarios.iter().find_map(|scenario| scenario.failure.as_ref()) {
        return Err(Error::new(failure.exit, format!("{name}: {}", failure.what)));
    }
    let elapsed = started.elapsed();
    shell.end_progress();
    tell(&measured, &comparison, calibration, elapsed, load_at_start, shell)?;
    Ok(Record::of(kind, options, &load, &measured, &comparison, elapsed))
}

/// The report in full with `-v`, and the JSON lines of a comparison always.
fn tell(
    measured: &MeasuredPackage,
    comparison: &Comparison,
    calibration: &Calibration,
    elapsed: Duration,
    load_at_start: Option<f64>,
    shell: &mut Shell,
) -> Result<()> {
    let origin = Origin { commit: None, executable_sha256: Some(calibration.executable_sha256.clone()) };
    let one_sided = OneSided::default();
    let fingerprint: &Fingerprint = &calibration.fingerprint;
    let package = PackageReport {
        measured,
        scenarios: measured.scenarios.iter().map(|scenario| Judged::new(scenario, None)).collect(),
        compared: Some(ComparedReport {
            with: "the built-in server",
            origin: &origin,
            numbers_only: None,
            fingerprint,
            comparison,
            one_sided: &one_sided,
            differences: &[],
        }),
    };
    for object in json::verdict_objects(&package) {
        shell.object("verdict", &object)?;
    }
    let load_average = LoadAverage { at_start: load_at_start, at_end: crate::run::load_average() };
    let report =
        Report { packages: vec![package], profile: "built-in", elapsed, load_average, gaps: &[], end: End::Complete };
    shell.verbose(&render_report(&report, shell.width()));
    Ok(())
}

/// Where the long form keeps its comparisons: beside what runs of this project leave behind, or where there is no project, in the
/// user's state folder.
fn file(invocation: &Invocation, options: &SelftestOptions, interrupt: &Interrupt) -> Result<PathBuf> {
    const NAME: &str = "selftest.jsonl";
    if let Some(file) = &options.file {
        return Ok(file.clone());
    }
    let folder = match Project::open(invocation, interrupt) {
        Ok(project) => project.results(),
        Err(error) if matches!(error.exit, ExitCode::Signal(_)) => return Err(error),
        Err(_) => {
            let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
            // XDG Base Directory Specification: what should persist between restarts and is no configuration.
            let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
            state.unwrap_or_else(std::env::temp_dir).join("cargo-httpbench")
        }
    };
    Ok(folder.join(NAME))
}
