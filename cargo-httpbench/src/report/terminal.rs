//! The report for a person: the story in one line, the table, then what needs a look and what to do.

use std::fmt::Write;

use anstyle::Style;
use httpbench_core::model::{Metric, Nanos};

use super::quantity;
use super::table::{Align, Cell, Column, Weight, render};
use super::{End, PackageReport, Report, comparison};
use crate::config::LoadSettings;
use crate::measure::values;
use crate::stats::spread;
use crate::style::{self, paint};
use crate::verdict::{Judged, LimitState, LimitVerdict, SUPPORT, Saturation};
use crate::warning::StartsPerSecond;

const COLUMNS: [Column; 9] = [
    Column { head: "scenario", align: Align::Left, weight: Weight::Essential },
    Column { head: "throughput", align: Align::Right, weight: Weight::Essential },
    Column { head: "±", align: Align::Right, weight: Weight::Usual },
    Column { head: "p50", align: Align::Right, weight: Weight::Essential },
    Column { head: "p90", align: Align::Right, weight: Weight::Extra },
    Column { head: "p99", align: Align::Right, weight: Weight::Essential },
    Column { head: "CPU/request", align: Align::Right, weight: Weight::Usual },
    Column { head: "peak memory", align: Align::Right, weight: Weight::Extra },
    Column { head: "failed", align: Align::Right, weight: Weight::Essential },
];

/// Lays the whole report out for `width` columns.
#[must_use]
pub fn render_report(report: &Report<'_>, width: usize) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "\n{}", story(report));
    for gap in report.gaps {
        let _ = writeln!(text, "{}: {gap}", paint(style::WARNING, "not judged as asked"));
    }
    for package in &report.packages {
        text.push('\n');
        text.push_str(&package_section(package, report, width));
    }
    text
}

/// What happened, in one line.
fn story(report: &Report<'_>) -> String {
    let judged = || report.packages.iter().flat_map(|package| &package.scenarios);
    let total = judged().count();
    let failed = judged().filter(|scenario| scenario.scenario.failure.is_some()).count();
    let exceeded = judged().filter(|scenario| scenario.failing_limits().next().is_some()).count();
    let compared = |package: &PackageReport<'_>| package.compared.is_some();
    let alone = report.packages.iter().filter(|package| !compared(package)).flat_map(|package| &package.scenarios);
    let invalid = alone.filter(|scenario| scenario.saturation.is_some()).count();
    let mut parts = Vec::new();
    if report.end == End::Interrupted {
        parts.push(paint(style::WARNING, "interrupted, nothing is decided: these are the rounds until then"));
    }
    let cells =
        report.packages.iter().filter_map(|package| package.compared.as_ref()).flat_map(|it| &it.comparison.cells);
    if report.packages.iter().any(|package| package.compared.is_some()) {
        parts.push(comparison::tally(cells));
    }
    if failed > 0 {
        parts.push(paint(style::ERROR, &format!("{failed} could not be measured")));
    }
    if exceeded > 0 {
        parts.push(paint(style::ERROR, &format!("{exceeded} exceeded a limit")));
    }
    if invalid > 0 {
        parts.push(paint(style::WARNING, &format!("{invalid} with an invalid throughput")));
    }
    let scenarios = if total == 1 { "1 scenario".to_owned() } else { format!("{total} scenarios") };
    let took = quantity::time(Nanos::from(report.elapsed));
    if parts.is_empty() {
        paint(style::GOOD, &format!("{scenarios} measured in {took}, every answer was right"))
    } else {
        format!("{scenarios} in {took}: {}", parts.join(", "))
    }
}

fn package_section(package: &PackageReport<'_>, report: &Report<'_>, width: usize) -> String {
    let mut text = String::new();
    let measured = package.measured;
    let _ = writeln!(
        text,
        "{} {}",
        paint(style::HEADING, &measured.package),
        paint(style::QUIET, &set_up(package, report.profile))
    );
    if let Some(compared) = &package.compared {
        let _ = writeln!(text, "compared with {}", compared.with);
        for difference in compared.differences {
            let _ = writeln!(text, "  {}", paint(style::WARNING, difference));
        }
    }
    text.push('\n');
    match &package.compared {
        Some(compared) => text.push_str(&comparison::render_comparison(measured, compared, width)),
        None => text.push_str(&table_of_values(package, width)),
    }
    let most = most_rounds(package);
    for judged in &package.scenarios {
        if let Some(stopped) = stopped_early(judged, most) {
            let _ = writeln!(text, "\n{}: {stopped}", paint(style::ERROR, judged.scenario.name()));
        }
        text.push_str(&explanation(judged));
        // Beside a comparison, its cells say it.
        if let (Some(saturation), None) = (judged.saturation, &package.compared) {
            let _ = writeln!(text, "\n{}: {}", paint(style::WARNING, judged.scenario.name()), saturated(saturation));
        }
    }
    text
}

/// What a scenario that failed rests on, where the others have `most` rounds.
fn stopped_early(judged: &Judged<'_>, most: usize) -> Option<String> {
    let failure = judged.scenario.failure.as_ref()?;
    let rests = match judged.scenario.rounds.len() {
        0 => "it has no round".to_owned(),
        rounds if rounds < most => format!("its numbers are those of {rounds} of {most} rounds"),
        _ => "its last round is missing".to_owned(),
    };
    Some(format!("could not be measured to its end: {}; {rests}; mend that, and run again", failure.what))
}

/// What a single arm says, scenario by scenario.
fn table_of_values(package: &PackageReport<'_>, width: usize) -> String {
    let rows: Vec<Vec<Cell>> = package.scenarios.iter().map(row).collect();
    let mut text = render(&COLUMNS, &rows, width);
    text.push('\n');
    for line in legend(package) {
        let _ = writeln!(text, "  {}", paint(style::QUIET, &line));
    }
    text
}

/// How it was measured: profile, rounds, load, cores. Loads that differ stand in lines of their own.
fn set_up(package: &PackageReport<'_>, profile: &str) -> String {
    let measured = package.measured;
    if !measured.has_results() {
        return format!("{profile} profile, two stored baselines, nothing measured now");
    }
    let cores = if measured.cores.are_apart() {
        format!("engine on core {}, server on core {}", list(&measured.cores.engine), list(&measured.cores.server))
    } else {
        "engine and server share the cores".to_owned()
    };
    let rounds = rounds(package);
    match &loads(package)[..] {
        [(load, _)] => format!("{profile} profile, {rounds}, {load}, {cores}"),
        loads => {
            let mut text = format!("{profile} profile, {rounds}, {cores}");
            for (load, scenarios) in loads {
                let _ = write!(text, "\n  {load}: {}", scenarios.join(", "));
            }
            text
        }
    }
}

/// The rounds that there were: fewer than planned where they settled everything or a signal came. A scenario that broke off earlier
/// than the others is told beside its name.
fn rounds(package: &PackageReport<'_>) -> String {
    let planned = package.measured.rounds as usize;
    let most = most_rounds(package);
    let count = |rounds: usize| if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") };
    if most == planned { count(most) } else { format!("{most} of {}", count(planned)) }
}

fn most_rounds(package: &PackageReport<'_>) -> usize {
    package.scenarios.iter().map(|judged| judged.scenario.rounds.len()).max().unwrap_or(0)
}

/// Every load, with the scenarios that were driven by it.
fn loads<'run>(package: &PackageReport<'run>) -> Vec<(String, Vec<&'run str>)> {
    let mut loads: Vec<(String, Vec<&str>)> = Vec::new();
    for judged in &package.scenarios {
        let load = load_of(&judged.scenario.load);
        match loads.iter_mut().find(|(known, _)| *known == load) {
            Some((_, scenarios)) => scenarios.push(judged.scenario.name()),
            None => loads.push((load, vec![judged.scenario.name()])),
        }
    }
    loads
}

fn load_of(load: &LoadSettings) -> String {
    let connections =
        if load.connections == 1 { "1 connection".to_owned() } else { format!("{} connections", load.connections) };
    let arrivals =
        load.arrival_rate.map(|per_second| format!(", arrival rate {}/s", StartsPerSecond::from(per_second)));
    connections + &arrivals.unwrap_or_default()
}

fn list(cores: &[u32]) -> String {
    cores.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

fn row(judged: &Judged<'_>) -> Vec<Cell> {
    let scenario = judged.scenario;
    let value = |metric: Metric| {
        let text = spread(&values(&scenario.rounds, metric))
            .map_or_else(|| "–".to_owned(), |spread| quantity::of_metric(metric, spread.median));
        let role = match judged.limits.iter().find(|limit| limit.metric == metric) {
            Some(limit) if limit.state.fails() => style::ERROR,
            _ => Style::new(),
        };
        if metric.quantile().is_some_and(|quantile| !is_supported(judged, quantile)) {
            Cell::styled(format!("~{text}"), role)
        } else {
            Cell::styled(text, role)
        }
    };
    let throughput = match judged.saturation {
        Some(_) => Cell::styled("invalid", style::WARNING),
        None => value(Metric::Throughput),
    };
    let half_range = spread(&values(&scenario.rounds, Metric::Throughput))
        .filter(|_| judged.saturation.is_none() && scenario.rounds.len() > 1)
        .and_then(|spread| spread.half_range())
        .map_or_else(String::new, quantity::percent);
    let failed = match (scenario.counts().failed(), &scenario.failure) {
        (_, Some(_)) if scenario.rounds.is_empty() => Cell::styled("not measured", style::ERROR),
        (0, None) => Cell::styled("0", style::QUIET),
        (failed, None) => Cell::styled(quantity::count(failed), failed_role(judged)),
        (failed, Some(_)) => Cell::styled(format!("{} (stopped)", quantity::count(failed)), style::ERROR),
    };
    vec![
        Cell::plain(scenario.name()),
        throughput,
        Cell::styled(half_range, style::QUIET),
        value(Metric::P50),
        value(Metric::P90),
        value(Metric::P99),
        value(Metric::CpuPerRequest),
        value(Metric::PeakMemory),
        failed,
    ]
}

fn failed_role(judged: &Judged<'_>) -> Style {
    let exceeded = judged.limits.iter().any(|limit| limit.metric == Metric::Errors && limit.state.fails());
    if exceeded { style::ERROR } else { style::WARNING }
}

/// Whether every round has enough exchanges beyond the quantile; a scenario without values marks nothing.
fn is_supported(judged: &Judged<'_>, quantile: f64) -> bool {
    judged.scenario.rounds.iter().all(|round| {
        let count = round.arm().service.count();
        count == 0 || round.exchanges_beyond(quantile) as f64 >= SUPPORT
    })
}

/// Which times the quantiles are of: that depends on each scenario's load.
fn times(package: &PackageReport<'_>) -> String {
    const SERVICE: &str = "service times (send to last byte) in a closed loop";
    const RESPONSE: &str = "response times (intended start to last byte) in an open loop";
    let scenarios = || package.scenarios.iter().map(|judged| judged.scenario);
    let open = || scenarios().filter(|scenario| scenario.load.arrival_rate.is_some()).map(|scenario| scenario.name());
    match open().count() {
        0 => SERVICE.to_owned(),
        all if all == scenarios().count() => RESPONSE.to_owned(),
        _ => format!("{SERVICE}, and for {} {RESPONSE}", open().collect::<Vec<_>>().join(", ")),
    }
}

/// What the signs in the table mean, as far as they stand in it.
fn legend(package: &PackageReport<'_>) -> Vec<String> {
    let values = match most_rounds(package) {
        1 => "values of one round",
        _ => "median of the rounds, ± half the distance from the lowest to the highest",
    };
    let mut lines = vec![format!("{values}; times are {}", times(package))];
    let unsupported = package.scenarios.iter().any(|judged| !is_supported(judged, 0.5) || !is_supported(judged, 0.9))
        || package.scenarios.iter().any(|judged| !is_supported(judged, 0.99));
    if unsupported {
        lines.push(format!(
            "~ rests on fewer than {SUPPORT} slower exchanges in a round: a longer --duration makes it firm"
        ));
    }
    let silent = |judged: &&Judged<'_>| {
        let rounds = &judged.scenario.rounds;
        !rounds.is_empty() && rounds.iter().all(|round| round.arm().service.count() == 0)
    };
    if package.scenarios.iter().any(|judged| silent(&judged)) {
        lines.push("– no samples: no exchange was good".to_owned());
    }
    if !package.measured.cores.are_apart() {
        lines.push(
            "on shared cores the engine takes time from the server: throughput is lower than on a machine of its own"
                .into(),
        );
    }
    let startups: Vec<f64> = package.measured.startups.iter().map(std::time::Duration::as_secs_f64).collect();
    if let Some(startups) = spread(&startups) {
        let time = |seconds: f64| quantity::time(Nanos::from(std::time::Duration::from_secs_f64(seconds)));
        lines.push(format!(
            "the server `{}` was ready {} after its start",
            package.measured.server,
            time(startups.median)
        ));
    }
    lines
}

/// Why a scenario needs a look, and what to do.
fn explanation(judged: &Judged<'_>) -> String {
    let mut text = String::new();
    let name = judged.scenario.name();
    for limit in judged.limits.iter().filter(|limit| limit.state != LimitState::Held) {
        let (role, says) = limit_sentence(limit, judged.scenario.confirmation.len());
        let _ = writeln!(text, "\n{}: {says}", paint(role, name));
        if limit.metric == Metric::Errors {
            text.push_str(&failures(judged));
            let _ = writeln!(
                text,
                "  see one exchange: {}",
                paint(style::HELP, &format!("cargo httpbench --trace-one '{name}'"))
            );
        }
    }
    text
}

/// Why throughput is not the server's, and what to do.
pub(super) fn saturated(saturation: Saturation) -> String {
    format!(
        "the load engine was busy for {} of its time and the server for {} of its own, so the throughput is the engine's and not the \
         server's; give the engine more cores with --threads",
        quantity::percent(saturation.engine_busy),
        quantity::percent(saturation.server_busy),
    )
}

fn limit_sentence(limit: &LimitVerdict, fresh: usize) -> (Style, String) {
    let bound = quantity::of_metric(limit.metric, limit.bound);
    let value = limit.value.map_or_else(String::new, |value| quantity::of_metric(limit.metric, value));
    let metric = limit.metric;
    match limit.state {
        LimitState::Held => (style::GOOD, format!("{metric} {value} holds its limit {bound}")),
        LimitState::NotConfirmed => (
            style::WARNING,
            format!("{metric} exceeded its limit {bound} at first, and held it with {value} on fresh rounds"),
        ),
        LimitState::Exceeded if metric != Metric::Errors && fresh > 0 => {
            (style::ERROR, format!("{metric} {value} exceeds its limit {bound}, on {fresh} fresh rounds too"))
        }
        LimitState::Exceeded => (style::ERROR, format!("{metric} {value} exceeds its limit {bound}")),
        LimitState::NoSamples => (
            style::ERROR,
            format!(
                "{metric} has a limit of {bound}, and no sample to hold against it, which counts as exceeded; mend what keeps \
                 exchanges from being good, or take the limit away"
            ),
        ),
    }
}

/// The failures by kind, each with its first example.
fn failures(judged: &Judged<'_>) -> String {
    let mut text = String::new();
    let counts = judged.scenario.counts();
    if counts.check_failures > 0 {
        let example = counts.check_example.as_deref().unwrap_or("no example was kept");
        let _ = writeln!(text, "  {} check failures, the first: {example}", quantity::count(counts.check_failures));
    }
    for (class, count) in &counts.errors.counts {
        let example = counts.errors.examples.get(class).map_or("no example was kept", String::as_str);
        let whose = if class.is_ours() { ", a limit of this machine" } else { "" };
        let _ = writeln!(text, "  {} errors `{class}`{whose}, the first: {example}", quantity::count(*count));
    }
    if !judged.scenario.last_lines.is_empty() {
        text.push_str("  the server's last lines by then:\n");
        judged.scenario.last_lines.iter().for_each(|line| {
            let _ = writeln!(text, "    {line}");
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::LoadAverage;
    use super::*;
    use crate::measure::sample::{failing_round, open_round, round, scenario};
    use crate::measure::{Arms, Cores, MeasuredPackage, MeasuredScenario};

    fn plain(scenarios: Vec<MeasuredScenario>, width: usize) -> String {
        let measured = MeasuredPackage {
            package: "todo".to_owned(),
            server: "todo-server".to_owned(),
            cores: Cores { engine: vec![0], server: vec![1] },
            arms_run: Arms::default(),
            rounds: 2,
            scenarios,
            startups: vec![Duration::from_millis(12)],
        };
        let report = Report {
            packages: vec![PackageReport {
                measured: &measured,
                scenarios: measured.scenarios.iter().map(|scenario| Judged::new(scenario, Some(1))).collect(),
                compared: None,
            }],
            profile: "release",
            elapsed: Duration::from_secs(12),
            load_average: LoadAverage::default(),
            end: End::Complete,
            gaps: &[],
        };
        anstream::adapter::strip_str(&render_report(&report, width)).to_string()
    }

    #[test]
    fn good_run_tells_its_story_and_one_table() {
        let rounds = || vec![round(20_000, Nanos::from_micros(400)), round(24_000, Nanos::from_micros(440))];
        let text = plain(vec![scenario("list", &[], rounds()), scenario("search[10]", &[], rounds())], 100);
        assert_eq!(
            text,
            "
2 scenarios measured in 12.0 s, every answer was right

todo release profile, 2 rounds, 64 connections, engine on core 0, server on core 1

  scenario    throughput     ±     p50     p90     p99  CPU/request  peak memory  failed
  list          22,000/s  9.1%  420 µs  420 µs  420 µs      10.0 µs      14.2 MB       0
  search[10]    22,000/s  9.1%  420 µs  420 µs  420 µs      10.0 µs      14.2 MB       0

  median of the rounds, ± half the distance from the lowest to the highest; times are service times (send to last byte) in a closed loop
  the server `todo-server` was ready 12.0 ms after its start
"
        );
    }

    #[test]
    fn open_loop_says_that_its_times_are_response_times() {
        let (service, wait) = (Nanos::from_micros(400), Nanos::from_millis(2));
        let mut open = scenario("search", &[], vec![open_round(20_000, service, wait, 20_000)]);
        open.load.arrival_rate = Some(2_500.5);
        let closed = || scenario("list", &[], vec![round(20_000, service)]);
        let text = plain(vec![closed(), open], 100);
        let loads = "engine on core 0, server on core 1\n  64 connections: list\n  64 connections, arrival rate 2500.5/s: search\n";
        assert!(text.contains(loads), "{text}");
        let says = "times are service times (send to last byte) in a closed loop, and for search response times (intended \
                    start to last byte) in an open loop";
        assert!(text.contains(says), "{text}");
        let row = text.lines().find(|line| line.starts_with("  search")).expect("its row");
        assert!(row.contains("2.40 ms") && !row.contains("400 µs"), "{row}");
        let mut open = scenario("search", &[], vec![open_round(20_000, service, wait, 20_000)]);
        open.load.arrival_rate = Some(9.0);
        let text = plain(vec![open], 100);
        assert!(text.contains("; times are response times (intended start to last byte) in an open loop\n"), "{text}");
    }

    #[test]
    fn failures_are_told_with_an_example_and_a_command() {
        let text = plain(vec![scenario("missing", &[], vec![failing_round(12_345, 12_345)])], 100);
        assert!(text.contains("1 scenario in 12.0 s: 1 exceeded a limit"), "{text}");
        assert!(text.contains("missing: errors 100% exceeds its limit 0%"), "{text}");
        assert!(text.contains("12,345 check failures, the first: status 404"), "{text}");
        assert!(text.contains("cargo httpbench --trace-one 'missing'"), "{text}");
    }

    #[test]
    fn what_the_server_wrote_by_the_first_failures_is_told_with_them() {
        let mut panicking = scenario("list", &[], vec![failing_round(100, 3)]);
        panicking.last_lines = vec!["thread 'main' panicked at src/main.rs:7:9:".to_owned(), "no milk".to_owned()];
        let text = plain(vec![panicking], 100);
        let told = "  the server's last lines by then:\n    thread 'main' panicked at src/main.rs:7:9:\n    no milk\n";
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn quantile_that_rests_on_few_exchanges_is_marked_and_explained() {
        let text = plain(vec![scenario("list", &[], vec![round(500, Nanos::from_micros(400))])], 100);
        assert!(text.contains("~400 µs"), "{text}");
        assert!(text.contains("~ rests on fewer than 100 slower exchanges in a round"), "{text}");
    }

    #[test]
    fn terminal_of_twenty_columns_gets_a_list() {
        let text = plain(vec![scenario("list", &[], vec![round(20_000, Nanos::from_micros(400))])], 20);
        assert!(text.contains("\nlist\n  throughput 20,000/s\n  p50 400 µs\n"), "{text}");
    }
}
