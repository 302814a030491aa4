//! What is kept of a comparison: one line of JSON, with the verdicts and with every slice, so that the decision can be made again by
//! other rules (`examples/replay.rs`).
//!
//! Invariant: a comparison is kept as soon as it is over, by one write at the file's end. What an interrupted call leaves is whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use httpbench_core::model::{Metric, Nanos};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::plan::{Change, Kind, Speed};
use super::{ArmOrder, Earlier, Neighbour, SelftestOptions};
use crate::baseline::{BuildFacts, Fingerprint};
use crate::config::LoadSettings;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::measure::{BASELINE, CANDIDATE, MeasuredPackage, MeasuredRound};
use crate::verdict::{CellReport, Comparison, Verdict};

/// The version of a line. Raised with every change that an older reader would misread.
const SCHEMA: u32 = 1;

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    schema: u32,
    #[serde(flatten)]
    record: Record,
}

/// A comparison that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When it was over.
    pub at: Timestamp,
    /// The machine: processor, cores, system, and the version of `cargo-httpbench`. Only comparisons of one machine are summed up.
    pub machine: String,
    /// The servers.
    pub speed: Speed,
    /// What the candidate did more.
    pub change: Change,
    /// How the arms ran.
    pub order: ArmOrder,
    /// What else ran.
    pub neighbour: Neighbour,
    /// Throughput's tolerance.
    pub throughput_tolerance: f64,
    /// Connections, loaded time and slices, in words: only comparisons of one plan are summed up.
    pub plan: String,
    /// From the first start to the last stop.
    pub seconds: f64,
    /// The look at which it ended, from 1.
    pub look: u32,
    /// Looks of the plan.
    pub looks: u32,
    /// Rounds that were discarded because something disturbed them.
    pub discarded: usize,
    /// Rounds that were measured, fresh ones included, discarded ones not.
    pub measured: usize,
    /// Every gated cell, throughput (in an open loop p50) first.
    pub cells: Vec<CellRecord>,
    /// The rounds of the looks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<RoundRecord>,
    /// The rounds of the confirmation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fresh: Vec<RoundRecord>,
}

/// What a cell came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    /// Its metric.
    pub metric: String,
    /// The verdict's word.
    pub verdict: String,
    /// The relative change that was estimated.
    pub change: Option<f64>,
    /// The accepted one.
    pub tolerance: f64,
    /// The smallest difference (a logarithm) that these rounds show with a chance of 90 %.
    pub detectable: Option<f64>,
    /// The level at which they had to show it.
    pub alpha: f64,
}

/// A round of two arms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// In the order of their execution.
    pub slices: Vec<SliceRecord>,
    /// The candidate's median, in nanoseconds.
    pub candidate_p50: Option<f64>,
    /// The baseline's.
    pub baseline_p50: Option<f64>,
    /// The candidate's 99th percentile, in nanoseconds.
    pub candidate_p99: Option<f64>,
    /// The baseline's.
    pub baseline_p99: Option<f64>,
}

/// A slice: good exchanges in a span, and completed ones in a CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceRecord {
    /// 0 is the candidate, 1 the baseline.
    pub arm: usize,
    /// Good exchanges.
    pub good: u64,
    /// In this time.
    pub span_ns: u64,
    /// Completed exchanges.
    pub completed: u64,
    /// For this CPU time of the server.
    pub cpu_ns: Option<u64>,
}

impl Record {
    pub(super) fn of(
        kind: &Kind,
        options: &SelftestOptions,
        load: &LoadSettings,
        measured: &MeasuredPackage,
        comparison: &Comparison,
        elapsed: Duration,
    ) -> Self {
        let scenarios = || measured.scenarios.iter();
        let rounds = || scenarios().flat_map(|scenario| scenario.rounds.iter());
        let fresh = || scenarios().flat_map(|scenario| scenario.confirmation.iter());
        let alpha = comparison.looks.alpha(comparison.alpha) / comparison.cells.len().max(1) as f64;
        Self {
            at: Timestamp::now(),
            machine: this_machine(),
            speed: kind.speed,
            change: kind.change,
            order: options.order,
            neighbour: options.neighbour,
            throughput_tolerance: load.tolerance.get(&Metric::Throughput).map_or(0.0, |ratio| ratio.0),
            plan: plan_of(load, options, measured.rounds),
            seconds: elapsed.as_secs_f64(),
            look: comparison.looks.this(),
            looks: comparison.looks.planned(),
            discarded: scenarios().map(|scenario| scenario.discarded.len()).sum(),
            measured: rounds().chain(fresh()).count(),
            cells: comparison.cells.iter().map(|cell| CellRecord::of(cell, alpha)).collect(),
            rounds: rounds().map(RoundRecord::of).collect(),
            fresh: fresh().map(RoundRecord::of).collect(),
        }
    }

    /// The same without its rounds: what is told while the selftest goes on.
    #[must_use]
    pub fn without_rounds(&self) -> Self {
        Self { rounds: Vec::new(), fresh: Vec::new(), ..self.clone() }
    }

    /// Whether any gated cell was `regressed`.
    #[must_use]
    pub fn is_regressed(&self) -> bool {
        self.cells.iter().any(|cell| cell.verdict == Verdict::Regressed.name())
    }

    /// The cell that the injected work shows in first: throughput, in an open loop p50.
    #[must_use]
    pub fn main_cell(&self) -> Option<&CellRecord> {
        self.cells.first()
    }

    /// Whether it is a comparison of this kind, made here in the way that these options say.
    pub(super) fn is_of(&self, kind: &Kind, options: &SelftestOptions) -> bool {
        let load = super::subject::layers(options, kind.speed);
        let rounds = crate::compare::rounds_that_decide(load.settings().rounds, 1, 1.0);
        let load = load.settings().load;
        self.machine == this_machine()
            && self.speed == kind.speed
            && self.change == kind.change
            && self.order == options.order
            && self.neighbour == options.neighbour
            && self.plan == plan_of(&load, options, rounds)
    }
}

impl CellRecord {
    fn of(cell: &CellReport, alpha: f64) -> Self {
        let compared = cell.gated.compared;
        Self {
            metric: compared.name().to_owned(),
            verdict: cell.verdict.name().to_owned(),
            change: cell.decision.estimate.map(|estimate| estimate.change(compared)),
            tolerance: cell.gated.tolerance.0,
            detectable: cell.detectable.map(|difference| difference.0),
            alpha,
        }
    }
}

impl RoundRecord {
    fn of(round: &MeasuredRound) -> Self {
        let slices = round.recording.slices.iter().map(|slice| SliceRecord {
            arm: slice.arm,
            good: slice.good,
            span_ns: slice.span.0,
            completed: slice.completed,
            cpu_ns: slice.cpu.get(slice.arm).copied().flatten().map(|Nanos(nanos)| nanos),
        });
        Self {
            slices: slices.collect(),
            candidate_p50: round.value_of(CANDIDATE, Metric::P50),
            baseline_p50: round.value_of(BASELINE, Metric::P50),
            candidate_p99: round.value_of(CANDIDATE, Metric::P99),
            baseline_p99: round.value_of(BASELINE, Metric::P99),
        }
    }
}

/// Everything of a plan that the speed does not say already.
fn plan_of(load: &LoadSettings, options: &SelftestOptions, rounds: u32) -> String {
    let slice =
        load.slice.map_or_else(|| "slices by the pilot".to_owned(), |slice| format!("slices of {} ns", slice.0));
    let tolerance = options.tolerance.map_or_else(String::new, |tolerance| format!(", throughput within {tolerance}"));
    format!(
        "{} connections, {} ns in {rounds} rounds, warm-up {} ns, {slice}{tolerance}",
        load.connections, load.duration.0, load.warm_up.0
    )
}

fn this_machine() -> String {
    let nothing = || "built-in".to_owned();
    let build = BuildFacts { target: nothing(), profile: nothing(), features: nothing(), toolchain: nothing() };
    let fingerprint = Fingerprint::of_this_machine(build);
    let cpu = fingerprint.cpu_model.unwrap_or_else(|| "unknown processor".to_owned());
    let optimised = if cfg!(debug_assertions) { ", unoptimised" } else { "" };
    format!(
        "{cpu}, {} cores, {}, cargo-httpbench {}{optimised}",
        fingerprint.cores, fingerprint.os, fingerprint.httpbench
    )
}

/// The comparisons of this machine, and the file that keeps them.
#[derive(Debug)]
pub struct Kept {
    records: Vec<Record>,
    file: Option<(PathBuf, File)>,
}

impl Kept {
    /// They are forgotten at the end.
    #[must_use]
    pub fn nowhere() -> Self {
        Self { records: Vec::new(), file: None }
    }

    /// They are kept in this file, beside what stands there already.
    ///
    /// # Errors
    ///
    /// When the file cannot be written (110), or holds what is no comparison (96).
    pub fn open(path: &Path, earlier: Earlier) -> Result<Self> {
        let failed = |cause: io::Error| {
            Error::new(ExitCode::OutputFailed, format!("`{}` cannot be written", path.display()))
                .caused_by(cause)
                .help("choose another file with `--file`")
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut options = File::options();
        options.create(true);
        let file = match earlier {
            Earlier::Removed => options.write(true).truncate(true).open(path),
            Earlier::Counted => options.append(true).open(path),
        };
        let file = file.map_err(failed)?;
        let mut records = match earlier {
            Earlier::Removed => Vec::new(),
            Earlier::Counted => read_records(path)?,
        };
        let here = this_machine();
        records.retain(|record| record.machine == here);
        Ok(Self { records: records.iter().map(Record::without_rounds).collect(), file: Some((path.to_owned(), file)) })
    }

    /// The file, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
    }

    /// Every comparison that was made on this machine, without its rounds.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Keeps one more.
    ///
    /// # Errors
    ///
    /// When it cannot be written (110).
    pub fn add(&mut self, record: Record) -> Result<()> {
        let told = record.without_rounds();
        if let Some((path, file)) = &mut self.file {
            let mut line = serde_json::to_vec(&Line { schema: SCHEMA, record })
                .map_err(|cause| Error::unexpected("a comparison cannot be written as JSON", cause))?;
            line.push(b'\n');
            file.write_all(&line).and_then(|()| file.sync_data()).map_err(|cause| {
                Error::new(ExitCode::OutputFailed, format!("`{}` cannot be written", path.display())).caused_by(cause)
            })?;
        }
        self.records.push(told);
        Ok(())
    }
}

/// Every comparison in a file, of whatever machine.
///
/// # Errors
///
/// When it cannot be read, or a line is no comparison of a version that is known (96).
pub fn read_records(path: &Path) -> Result<Vec<Record>> {
    let refused = |what: String| {
        Error::new(ExitCode::Configuration, format!("`{}` cannot be read: {what}", path.display()))
            .help("leave `--resume` out to begin anew, or choose another file with `--file`")
    };
    let text = fs::read_to_string(path).map_err(|cause| refused(cause.to_string()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            let line: Line =
                serde_json::from_str(line).map_err(|cause| refused(format!("line {}: {cause}", index + 1)))?;
            match line.schema {
                0..=SCHEMA => Ok(line.record),
                newer => {
                    Err(refused(format!("line {} has schema {newer}, and this version reads {SCHEMA}", index + 1)))
                }
            }
        })
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A comparison of this machine with a verdict on throughput and one on p99.
    pub(in crate::selftest) fn record(speed: &str, change: f64, throughput: Verdict, p99: Verdict) -> Record {
        let kind = Kind { speed: speed.parse().expect("a speed"), change: Change(change) };
        let options = SelftestOptions::default();
        let layers = super::super::subject::layers(&options, kind.speed);
        let cell = |metric: &str, verdict: Verdict, tolerance: f64| CellRecord {
            metric: metric.to_owned(),
            verdict: verdict.name().to_owned(),
            change: Some(-change),
            tolerance,
            detectable: Some(0.02),
            alpha: 0.05 / 4.0,
        };
        Record {
            at: "2026-03-04T05:06:07Z".parse().expect("a time"),
            machine: this_machine(),
            speed: kind.speed,
            change: kind.change,
            order: ArmOrder::Interleaved,
            neighbour: Neighbour::None,
            throughput_tolerance: 0.03,
            plan: plan_of(&layers.settings().load, &options, 16),
            seconds: 20.0,
            look: 1,
            looks: 2,
            discarded: 0,
            measured: 8,
            cells: vec![cell("throughput", throughput, 0.03), cell("p99", p99, 0.10)],
            rounds: vec![RoundRecord {
                slices: vec![SliceRecord { arm: 0, good: 5, span_ns: 7, completed: 6, cpu_ns: None }],
                ..RoundRecord::default()
            }],
            fresh: Vec::new(),
        }
    }

    #[test]
    fn comparisons_come_back_from_the_file_and_more_are_added_by_a_later_call() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/selftest.jsonl");
        let first = record("3000", 0.0, Verdict::Unchanged, Verdict::Unchanged);
        Kept::open(&path, Earlier::Counted).expect("made").add(first.clone()).expect("written");
        let mut kept = Kept::open(&path, Earlier::Counted).expect("read");
        assert_eq!(kept.records(), [first.without_rounds()]);
        kept.add(record("300", 0.05, Verdict::Regressed, Verdict::Unchanged)).expect("written");
        assert_eq!(read_records(&path).expect("read")[0], first, "rounds are in the file");
        assert_eq!(Kept::open(&path, Earlier::Counted).expect("read").records().len(), 2);
        assert_eq!(Kept::open(&path, Earlier::Removed).expect("read").records().len(), 0);
        assert_eq!(read_records(&path).expect("read"), []);
    }

    #[test]
    fn comparisons_of_another_machine_stay_in_the_file_and_do_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("selftest.jsonl");
        let elsewhere =
            Record { machine: "other".to_owned(), ..record("3000", 0.0, Verdict::Unchanged, Verdict::Unchanged) };
        Kept::open(&path, Earlier::Counted).expect("made").add(elsewhere).expect("written");
        assert_eq!(Kept::open(&path, Earlier::Counted).expect("read").records(), []);
        assert_eq!(read_records(&path).expect("read").len(), 1);
    }

    #[test]
    fn foreign_and_newer_lines_are_refused_by_their_number() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("selftest.jsonl");
        fs::write(&path, "\nhello\n").expect("written");
        let error = Kept::open(&path, Earlier::Counted).expect_err("no comparison");
        assert_eq!(error.exit, ExitCode::Configuration);
        assert!(error.what.contains("line 2"), "{}", error.what);
        let newer = Line { schema: 9, record: record("3000", 0.0, Verdict::Unchanged, Verdict::Unchanged) };
        fs::write(&path, serde_json::to_string(&newer).expect("JSON")).expect("written");
        assert!(read_records(&path).expect_err("newer").what.contains("schema 9"));
    }

    #[test]
    fn comparison_counts_for_its_own_kind_and_plan_alone() {
        let options = SelftestOptions::default();
        let record = record("3000", 0.05, Verdict::Regressed, Verdict::Unchanged);
        let kind = |speed: &str, change: f64| Kind { speed: speed.parse().expect("a speed"), change: Change(change) };
        assert!(record.is_of(&kind("3000", 0.05), &options));
        assert!(!record.is_of(&kind("300", 0.05), &options));
        assert!(!record.is_of(&kind("3000", 0.0), &options));
        for other in [
            SelftestOptions { order: ArmOrder::Sequential, ..SelftestOptions::default() },
            SelftestOptions { neighbour: Neighbour::Busy, ..SelftestOptions::default() },
            SelftestOptions { tolerance: Some(0.01), ..SelftestOptions::default() },
        ] {
            assert!(!record.is_of(&kind("3000", 0.05), &other), "{other:?}");
        }
    }
}
