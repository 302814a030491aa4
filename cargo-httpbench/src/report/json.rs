//! What the JSON lines of a run hold. [`crate::shell::Shell::object`] adds `reason` and `schema`.
//!
//! Every value is in the base unit that its metric's `unit` names; times elsewhere carry theirs in the key. A value that
//! was not seen is `null`.

use std::collections::BTreeMap;
use std::error::Error as _;

use httpbench_core::model::{
    ArmRecording, Counts, Direction, FirstAnswer, Histogram, Metric, Nanos, ScenarioListing, StatusClasses, Tolerance,
    Trace, Unit,
};
use serde::Serialize;

use super::{ComparedReport, PackageReport, Report};
use crate::baseline::Fingerprint;
use crate::baseline_arm::{Origin, Removed};
use crate::error::{Details, Error};
use crate::exit_code::ExitCode;
use crate::measure::{Arms, CANDIDATE, MeasuredPackage, MeasuredRound, values};
use crate::server::Server;
use crate::stats::spread;
use crate::verdict::{CellReport, Difference, Gated, Judged, LimitVerdict, Reason, Saturation, Verdict};
use crate::warning::Warning;

/// `reason: "scenario"`: all that was measured and judged of one scenario.
#[derive(Debug, Serialize)]
pub struct ScenarioObject<'run> {
    package: &'run str,
    server: &'run str,
    engine_cores: &'run [u32],
    server_cores: &'run [u32],
    scenario: &'run str,
    doc: &'run str,
    method: Option<&'run str>,
    target: Option<&'run str>,
    connections: u32,
    arrival_rate: Option<f64>,
    arrival_rate_reached: Option<f64>,
    duration_ns: Nanos,
    warm_up_ns: Nanos,
    slices: Option<SlicesObject>,
    rounds: usize,
    confirmation_rounds: usize,
    metrics: BTreeMap<Metric, MetricObject>,
    exchanges: Counts,
    warm_up_exchanges: Counts,
    statuses: StatusClasses,
    service: TimesObject,
    response: Option<TimesObject>,
    lateness: Option<TimesObject>,
    queued: Option<TimesObject>,
    first_byte: TimesObject,
    connect: TimesObject,
    connections_opened: u64,
    sent_bytes: u64,
    received_bytes: u64,
    body_bytes: u64,
    resident_bytes: Option<u64>,
    first_answer: Option<&'run FirstAnswer>,
    tolerance: Vec<Tolerance>,
    limits: &'run [LimitVerdict],
    saturation: Option<Saturation>,
    engine_busy: Vec<Option<f64>>,
    server_cores_busy: Vec<Option<f64>>,
    server_last_lines: &'run [String],
    error: Option<ErrorObject<'run>>,
}

/// How a round's loaded time was cut.
#[derive(Debug, Serialize)]
struct SlicesObject {
    per_round: u64,
    length_ns: Nanos,
    lead_in_ns: Nanos,
}

/// One metric over the rounds.
#[derive(Debug, Serialize)]
struct MetricObject {
    unit: Unit,
    direction: Direction,
    median: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    values: Vec<f64>,
}

/// Times of all rounds together.
#[derive(Debug, Serialize)]
pub(super) struct TimesObject {
    count: u64,
    min_ns: Option<Nanos>,
    mean_ns: Option<Nanos>,
    p50_ns: Option<Nanos>,
    p75_ns: Option<Nanos>,
    p90_ns: Option<Nanos>,
    p95_ns: Option<Nanos>,
    p99_ns: Option<Nanos>,
    p999_ns: Option<Nanos>,
    max_ns: Option<Nanos>,
}

/// `reason: "verdict"`: one cell of a comparison.
#[derive(Debug, Serialize)]
pub struct VerdictObject<'run> {
    package: &'run str,
    scenario: &'run str,
    #[serde(flatten)]
    gated: &'run Gated,
    direction: Direction,
    unit: Unit,
    with: &'run str,
    origin: &'run Origin,
    fingerprint: &'run Fingerprint,
    arms: &'run Arms,
    /// `re-measured`: the arms took turns. `numbers-only`: by ratios to the reference server, which is weaker.
    basis: &'static str,
    numbers_only_because: Option<&'run str>,
    verdict: Verdict,
    why: Option<Reason>,
    baseline: Option<f64>,
    candidate: Option<f64>,
    change: Option<f64>,
    change_low: Option<f64>,
    change_high: Option<f64>,
    confidence: f64,
    p_worse: Option<f64>,
    p_better: Option<f64>,
    rounds: usize,
    fresh_rounds: usize,
    discarded_rounds: usize,
    detectable_change: Option<f64>,
    order_effect: Option<f64>,
}

/// The objects of a package's comparison; none where there is one arm.
#[must_use]
pub fn verdict_objects<'run>(package: &'run PackageReport<'run>) -> Vec<VerdictObject<'run>> {
    let Some(compared) = &package.compared else { return Vec::new() };
    compared.comparison.cells.iter().map(|cell| verdict_object(package.measured, compared, cell)).collect()
}

fn verdict_object<'run>(
    package: &'run MeasuredPackage,
    compared: &'run ComparedReport<'run>,
    cell: &'run CellReport,
) -> VerdictObject<'run> {
    let scenario = &package.scenarios[cell.gated.scenario];
    let of = cell.gated.compared;
    let change = |difference: Difference| difference.change(of);
    let mut ends: Option<[f64; 2]> =
        cell.decision.interval.map(|interval| [interval.low, interval.high].map(|end| change(Difference(end))));
    if let Some(ends) = &mut ends {
        ends.sort_by(f64::total_cmp);
    }
    VerdictObject {
        package: &package.package,
        scenario: scenario.name(),
        gated: &cell.gated,
        direction: of.direction(),
        unit: of.metric().unit(),
        with: compared.with,
        origin: compared.origin,
        fingerprint: compared.fingerprint,
        arms: &package.arms_run,
        basis: if compared.numbers_only.is_some() { "numbers-only" } else { "re-measured" },
        numbers_only_because: compared.numbers_only.map(|because| because.why.as_str()),
        verdict: cell.verdict,
        why: cell.reason,
        baseline: cell.baseline,
        candidate: cell.candidate,
        change: cell.decision.estimate.map(change),
        change_low: ends.map(|ends| ends[0]),
        change_high: ends.map(|ends| ends[1]),
        confidence: compared.comparison.confidence(),
        p_worse: cell.decision.p_worse,
        p_better: cell.decision.p_better,
        rounds: cell.rounds,
        fresh_rounds: cell.fresh_rounds,
        discarded_rounds: scenario.discarded.len(),
        detectable_change: cell.detectable.map(|difference| difference.0.exp_m1()),
        order_effect: cell.order_effect,
    }
}

/// `reason: "error"`, and why a scenario could not be measured to its end.
#[derive(Debug, Serialize)]
pub struct ErrorObject<'run> {
    exit_code: u8,
    what: &'run str,
    causes: Vec<String>,
    details: &'run [Details],
    help: Option<&'run str>,
}

/// `reason: "run-finished"`: the last line.
#[derive(Debug, Serialize)]
pub struct FinishedObject<'run> {
    exit_code: u8,
    scenarios: usize,
    elapsed_ns: Nanos,
    profile: &'run str,
    /// How the arms of every package that was compared ran.
    arms: BTreeMap<&'run str, &'run Arms>,
    load_average_at_start: Option<f64>,
    load_average_at_end: Option<f64>,
}

/// The objects of all scenarios of a package.
#[must_use]
pub fn scenario_objects<'run>(package: &'run PackageReport<'run>) -> Vec<ScenarioObject<'run>> {
    package.scenarios.iter().map(|judged| scenario_object(package, judged)).collect()
}

fn scenario_object<'run>(package: &'run PackageReport<'run>, judged: &'run Judged<'run>) -> ScenarioObject<'run> {
    let scenario = judged.scenario;
    let request = scenario.listing.request.as_ref().ok();
    let sum = |of: fn(&MeasuredRound) -> u64| scenario.rounds.iter().map(of).sum();
    let open_loop_times =
        |of: fn(&ArmRecording) -> &Histogram| scenario.load.arrival_rate.map(|_| times(&scenario.merged(of)));
    let mut warm_up_exchanges = Counts::default();
    scenario.rounds.iter().for_each(|round| warm_up_exchanges.merge(&round.arm().warm_up));
    ScenarioObject {
        package: &package.measured.package,
        server: &package.measured.server,
        engine_cores: &package.measured.cores.engine,
        server_cores: &package.measured.cores.server,
        scenario: scenario.name(),
        doc: &scenario.listing.doc,
        method: request.map(|request| request.method.as_str()),
        target: request.map(|request| request.target.as_str()),
        connections: scenario.load.connections,
        arrival_rate: scenario.load.arrival_rate,
        arrival_rate_reached: scenario.arrival_rate_reached(CANDIDATE),
        duration_ns: scenario.load.duration,
        warm_up_ns: scenario.load.warm_up,
        slices: scenario.scheme().map(|scheme| SlicesObject {
            per_round: scheme.count,
            length_ns: scheme.length,
            lead_in_ns: scheme.lead_in,
        }),
        rounds: scenario.rounds.len(),
        confirmation_rounds: scenario.confirmation.len(),
        metrics: Metric::ALL.into_iter().map(|metric| (metric, metric_object(metric, &scenario.rounds))).collect(),
        exchanges: scenario.counts(),
        warm_up_exchanges,
        statuses: scenario.statuses(),
        service: times(&scenario.merged(|arm| &arm.service)),
        response: open_loop_times(|arm| &arm.response),
        lateness: open_loop_times(|arm| &arm.lateness),
        queued: open_loop_times(|arm| &arm.queued),
        first_byte: times(&scenario.merged(|arm| &arm.first_byte)),
        connect: times(&scenario.merged(|arm| &arm.connect)),
        connections_opened: sum(|round| round.arm().connections),
        sent_bytes: sum(|round| round.arm().sent_bytes),
        received_bytes: sum(|round| round.arm().received_bytes),
        body_bytes: sum(|round| round.arm().body_bytes),
        resident_bytes: scenario
            .rounds
            .iter()
            .filter_map(|round| round.memory.first().copied().flatten())
            .map(|memory| memory.resident_bytes)
            .max(),
        first_answer: scenario.rounds.iter().find_map(|round| round.arm().first_answer.as_ref()),
        tolerance: scenario.load.tolerance.iter().map(|(&metric, &ratio)| Tolerance { metric, ratio }).collect(),
        limits: &judged.limits,
        saturation: judged.saturation,
        engine_busy: scenario.rounds.iter().map(MeasuredRound::engine_busy).collect(),
        server_cores_busy: scenario.rounds.iter().map(MeasuredRound::server_cores_busy).collect(),
        server_last_lines: &scenario.last_lines,
        error: scenario.failure.as_ref().map(error_object),
    }
}

fn metric_object(metric: Metric, rounds: &[MeasuredRound]) -> MetricObject {
    let values = values(rounds, metric);
    let spread = spread(&values);
    MetricObject {
        unit: metric.unit(),
        direction: metric.direction(),
        median: spread.map(|spread| spread.median),
        low: spread.map(|spread| spread.low),
        high: spread.map(|spread| spread.high),
        values,
    }
}

pub(super) fn times(histogram: &Histogram) -> TimesObject {
    TimesObject {
        count: histogram.count(),
        min_ns: histogram.min(),
        mean_ns: histogram.mean(),
        p50_ns: histogram.quantile(0.50),
        p75_ns: histogram.quantile(0.75),
        p90_ns: histogram.quantile(0.90),
        p95_ns: histogram.quantile(0.95),
        p99_ns: histogram.quantile(0.99),
        p999_ns: histogram.quantile(0.999),
        max_ns: histogram.max(),
    }
}

/// The object of an error.
#[must_use]
pub fn error_object(error: &Error) -> ErrorObject<'_> {
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(reason) = cause {
        causes.push(reason.to_string());
        cause = reason.source();
    }
    ErrorObject {
        exit_code: error.exit.code(),
        what: &error.what,
        causes,
        details: &error.details,
        help: error.help.as_deref(),
    }
}

/// The object that closes a run.
#[must_use]
pub fn finished_object<'run>(report: &'run Report<'run>, exit: ExitCode) -> FinishedObject<'run> {
    let compared = report.packages.iter().filter(|package| package.compared.is_some());
    FinishedObject {
        exit_code: exit.code(),
        scenarios: report.packages.iter().map(|package| package.scenarios.len()).sum(),
        elapsed_ns: Nanos::from(report.elapsed),
        profile: report.profile,
        arms: compared.map(|package| (package.measured.package.as_str(), &package.measured.arms_run)).collect(),
        load_average_at_start: report.load_average.at_start,
        load_average_at_end: report.load_average.at_end,
    }
}

/// `reason: "listed"`: a scenario that was selected, without measuring it.
#[derive(Debug, Serialize)]
pub struct ListedObject<'run> {
    package: &'run str,
    #[serde(flatten)]
    listing: &'run ScenarioListing,
}

/// The object of a listed scenario.
#[must_use]
pub fn listed_object<'run>(package: &'run str, listing: &'run ScenarioListing) -> ListedObject<'run> {
    ListedObject { package, listing }
}

/// `reason: "trace"`: one exchange. Bytes that are no text are replaced by U+FFFD.
#[derive(Debug, Serialize)]
pub struct TraceObject<'run> {
    scenario: &'run str,
    sent: String,
    received: String,
    omitted_bytes: u64,
    status: Option<u16>,
    service_ns: Option<Nanos>,
    failure: Option<&'run str>,
}

/// The object of a traced exchange.
#[must_use]
pub fn trace_object<'run>(scenario: &'run str, trace: &'run Trace) -> TraceObject<'run> {
    let answer = trace.outcome.as_ref().ok();
    TraceObject {
        scenario,
        sent: String::from_utf8_lossy(&trace.sent).into_owned(),
        received: String::from_utf8_lossy(&trace.received).into_owned(),
        omitted_bytes: trace.omitted_bytes,
        status: answer.map(|answer| answer.status),
        service_ns: answer.map(|answer| answer.service),
        failure: trace.outcome.as_ref().err().map(String::as_str),
    }
}

/// `reason: "serving"`: a server that stays up.
#[derive(Debug, Serialize)]
pub struct ServingObject {
    url: String,
    pid: u32,
    dir: String,
}

/// The object of a server that stays up.
#[must_use]
pub fn serving_object(server: &Server) -> ServingObject {
    ServingObject {
        url: format!("http://{}/", server.host()),
        pid: server.pid(),
        dir: server.dir().display().to_string(),
    }
}

/// `reason: "warning"`.
#[derive(Debug, Serialize)]
pub struct WarningObject {
    code: &'static str,
    text: String,
}

/// The object of a warning.
#[must_use]
pub fn warning_object(warning: &Warning) -> WarningObject {
    WarningObject { code: warning.code(), text: warning.to_string() }
}

/// `reason: "one-sided"`: the scenarios that only one side of a comparison has, or that have changed, and what else differs.
#[derive(Debug, Serialize)]
pub struct OneSidedObject<'run> {
    package: &'run str,
    with: &'run str,
    only_in_candidate: &'run [String],
    only_in_baseline: &'run [Removed],
    redefined: &'run [String],
    differences: &'run [String],
}

/// The object of the scenarios that only one side has.
#[must_use]
pub fn one_sided_object<'run>(
    package: &'run PackageReport<'run>,
    compared: &'run ComparedReport<'run>,
) -> OneSidedObject<'run> {
    OneSidedObject {
        package: &package.measured.package,
        with: compared.with,
        only_in_candidate: &compared.one_sided.new,
        only_in_baseline: &compared.one_sided.removed,
        redefined: &compared.one_sided.redefined,
        differences: compared.differences,
    }
}

/// `reason: "identical"`: a package whose servers are the same, so that nothing was measured.
#[derive(Debug, Serialize)]
pub struct IdenticalObject<'run> {
    package: &'run str,
    with: &'run str,
    verdict: Verdict,
}

/// The object of a package that was not measured because its servers are the same.
#[must_use]
pub fn identical_object<'run>(package: &'run str, with: &'run str) -> IdenticalObject<'run> {
    IdenticalObject { package, with, verdict: Verdict::Unchanged }
}
