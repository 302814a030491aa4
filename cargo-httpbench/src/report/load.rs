//! The report of `load` for a person: what was driven, the story in one line, failures, times, traffic, and what it means.
//!
//! Failures come before anything that looks good, and nothing is a number that was not seen: `–` stands for no samples.

use std::fmt::Write;

use anstyle::Style;
use httpbench_core::model::{Histogram, Late, Nanos, Protocol, Reuse, Schedule, Trust};

use super::quantity;
use super::table::{Align, Cell, Column, Weight, render};
use crate::load::{Advice, LoadEnd, LoadMeasured, LoadOptions, engine_busy, throughput, together};
use crate::style::{self, paint};
use crate::warning::StartsPerSecond;

/// A quantile rests on enough exchanges from this many beyond it, as in a scenario.
const SUPPORT: f64 = 100.0;

/// How much is told of several URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A row for each, and what needs a look.
    WhatMatters,
    /// The whole report of each, too.
    Everything,
}

const TIMES: [Column; 9] = [
    Column { head: "", align: Align::Left, weight: Weight::Essential },
    Column { head: "mean", align: Align::Right, weight: Weight::Usual },
    Column { head: "p50", align: Align::Right, weight: Weight::Essential },
    Column { head: "p75", align: Align::Right, weight: Weight::Extra },
    Column { head: "p90", align: Align::Right, weight: Weight::Usual },
    Column { head: "p95", align: Align::Right, weight: Weight::Extra },
    Column { head: "p99", align: Align::Right, weight: Weight::Essential },
    Column { head: "p99.9", align: Align::Right, weight: Weight::Usual },
    Column { head: "max", align: Align::Right, weight: Weight::Essential },
];

const QUANTILES: [f64; 6] = [0.50, 0.75, 0.90, 0.95, 0.99, 0.999];

const URLS: [Column; 8] = [
    Column { head: "URL", align: Align::Left, weight: Weight::Essential },
    Column { head: "throughput", align: Align::Right, weight: Weight::Essential },
    Column { head: "p50", align: Align::Right, weight: Weight::Essential },
    Column { head: "p90", align: Align::Right, weight: Weight::Extra },
    Column { head: "p99", align: Align::Right, weight: Weight::Usual },
    Column { head: "status", align: Align::Right, weight: Weight::Usual },
    Column { head: "length", align: Align::Right, weight: Weight::Extra },
    Column { head: "failed", align: Align::Right, weight: Weight::Essential },
];

/// Lays the whole report out for `width` columns.
#[must_use]
pub fn render_load(all: &[LoadMeasured], options: &LoadOptions, detail: Detail, width: usize) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "\n{}", story(all));
    if let [one] = all {
        text.push_str(&section(one, options, width));
        return text;
    }
    let _ = writeln!(text, "{}\n", paint(style::QUIET, &set_up(options)));
    text.push_str(&render(&URLS, &all.iter().map(row).collect::<Vec<_>>(), width));
    let _ = writeln!(text, "\n  {}", paint(style::QUIET, &legend(all.iter())));
    for measured in all {
        if detail == Detail::Everything {
            let _ = writeln!(text, "\n{}", story(std::slice::from_ref(measured)));
            text.push_str(&section(measured, options, width));
            continue;
        }
        let notes = failures(measured) + &advice(measured);
        if !notes.is_empty() {
            let _ = write!(text, "\n{}\n{notes}", paint(style::HEADING, measured.driven.url.as_str()));
        }
    }
    text
}

/// What happened, in one line.
fn story(all: &[LoadMeasured]) -> String {
    let sum = together(all);
    let counts = &sum.arms[0].counts;
    let took = quantity::time(sum.engine.wall);
    let requests = match counts.started {
        1 => "1 request".to_owned(),
        started => format!("{} requests", quantity::count(started)),
    };
    let mut parts = Vec::new();
    if let Some(pace) = throughput(&sum) {
        parts.push(paint(style::HEADING, &quantity::per_second(pace)));
    }
    let failed = counts.failed();
    if failed > 0 {
        #[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
        let share = quantity::percent(failed as f64 / counts.started as f64);
        parts.push(paint(style::ERROR, &format!("{} failed ({share})", quantity::count(failed))));
    } else if counts.good > 0 {
        parts.push(paint(style::GOOD, "every answer was right"));
    } else {
        parts.push(paint(style::ERROR, "nothing came back"));
    }
    if counts.in_flight > 0 {
        parts.push(format!("{} without an end", quantity::count(counts.in_flight)));
    }
    let line = format!("{requests} in {took}: {}", parts.join(", "));
    match all.iter().map(|measured| measured.end).find(|end| *end != LoadEnd::Complete) {
        Some(LoadEnd::Interrupted(_)) => {
            format!("{}\n{line}", paint(style::WARNING, "interrupted: this is what there was until then"))
        }
        Some(LoadEnd::NobodyListens) => {
            format!("{}\n{line}", paint(style::ERROR, "nobody listens there: ended early"))
        }
        _ => line,
    }
}

fn section(measured: &LoadMeasured, options: &LoadOptions, width: usize) -> String {
    let mut text = String::new();
    let driven = &measured.driven;
    let _ = writeln!(
        text,
        "{} {}",
        paint(style::HEADING, driven.url.as_str()),
        paint(style::QUIET, &format!("{}, at {}, {}", measured.method, driven.address(), set_up(options)))
    );
    if let Some(tls) = &driven.arm.tls {
        let _ = match tls.trust {
            Trust::Anybody => writeln!(
                text,
                "{}",
                paint(
                    style::ERROR,
                    &format!("TLS to `{}` WITHOUT verifying its certificate (--insecure)", tls.server_name)
                )
            ),
            _ => writeln!(text, "{}", paint(style::QUIET, &format!("TLS to `{}`, verified", tls.server_name))),
        };
    }
    if let Some(answer) = &measured.arm().first_answer {
        let server = answer.server.as_ref().map(|server| format!(", server `{server}`")).unwrap_or_default();
        let says = format!("first answer: status {}, {}{server}", answer.status, quantity::bytes(answer.body_bytes));
        let _ = writeln!(text, "{}", paint(style::QUIET, &says));
    }
    let failures = failures(measured);
    if !failures.is_empty() {
        let _ = write!(text, "\n{failures}");
    }
    let _ = write!(text, "\n{}\n", render(&TIMES, &times(measured), width));
    let _ = writeln!(text, "  {}\n", paint(style::QUIET, &legend([measured].into_iter())));
    for (name, says) in facts(measured) {
        let _ = writeln!(text, "  {} {says}", paint(style::HEADING, &format!("{name:<11}")));
    }
    let advice = advice(measured);
    if !advice.is_empty() {
        let _ = write!(text, "\n{advice}");
    }
    text
}

/// How it was loaded.
fn set_up(options: &LoadOptions) -> String {
    let load = &options.load;
    let plural = |count: u64, one: &str| {
        if count == 1 { format!("1 {one}") } else { format!("{} {one}s", quantity::count(count)) }
    };
    let protocol = match options.protocol {
        Protocol::Http10 => "HTTP/1.0",
        Protocol::Http11 => "HTTP/1.1",
        Protocol::Http2 => "HTTP/2",
    };
    let mut parts =
        vec![protocol.to_owned(), plural(load.connections.into(), "connection"), plural(load.threads.into(), "thread")];
    if load.depth > 1 {
        let what = if options.protocol == Protocol::Http2 { "streams" } else { "pipelined requests" };
        parts.push(format!("{} {what} on each", load.depth));
    }
    let shown = |rate: f64| StartsPerSecond::from(rate).to_string();
    parts.push(match load.schedule {
        Schedule::Closed => "closed loop".to_owned(),
        Schedule::Constant { per_second } => format!("open loop, arrival rate {}/s", shown(per_second)),
        Schedule::Poisson { per_second, seed } => {
            format!("open loop, Poisson arrivals of {}/s on average (--seed {seed})", shown(per_second))
        }
        Schedule::Ramp { from, to, over } => {
            format!("open loop, ramp from {}/s to {}/s in {}", shown(from), shown(to), quantity::time(over))
        }
        Schedule::Sessions { per_second, calls } => {
            format!("{} connections/s with {} each", shown(per_second), plural(calls, "request"))
        }
    });
    if load.late == Late::Drop {
        parts.push("late starts dropped".to_owned());
    }
    parts.push(match load.reuse {
        Reuse::Close => "a new connection for each request".to_owned(),
        Reuse::Keep => "connections kept".to_owned(),
    });
    if options.period.warm_up > Nanos::ZERO {
        parts.push(format!("after a warm-up of {}", quantity::time(options.period.warm_up)));
    }
    parts.join(", ")
}

/// The failures by kind, each with its first example.
fn failures(measured: &LoadMeasured) -> String {
    let mut text = String::new();
    let counts = measured.counts();
    if counts.check_failures > 0 {
        let example = counts.check_example.as_deref().unwrap_or("no example was kept");
        let statuses = &measured.arm().failed_statuses;
        let by_status: Vec<String> =
            statuses.iter().map(|(status, count)| format!("{status}: {}", quantity::count(*count))).collect();
        let by_status = if statuses.len() > 1 { format!(" ({})", by_status.join(", ")) } else { String::new() };
        let says = format!("{} check failures{by_status}", quantity::count(counts.check_failures));
        let _ = writeln!(text, "  {}, the first: {example}", paint(style::ERROR, &says));
    }
    for (class, count) in &counts.errors.counts {
        let example = counts.errors.examples.get(class).map_or("no example was kept", String::as_str);
        let whose = if class.is_ours() { ", a limit of this machine" } else { "" };
        let says = format!("{} errors `{class}`", quantity::count(*count));
        let _ = writeln!(text, "  {}{whose}, the first: {example}", paint(style::ERROR, &says));
    }
    text
}

fn times(measured: &LoadMeasured) -> Vec<Vec<Cell>> {
    let arm = measured.arm();
    let is_open = measured.load.schedule.is_open();
    let mut rows = Vec::new();
    if is_open {
        rows.push(time_row("response", &arm.response));
    }
    rows.push(time_row("service", &arm.service));
    rows.push(time_row("first byte", &arm.first_byte));
    let seen =
        [("connect", &arm.connect), ("TLS", &arm.tls), ("wrong answers", &arm.check_failure), ("errors", &arm.error)];
    rows.extend(seen.iter().filter(|(_, times)| times.count() > 0).map(|(name, times)| time_row(name, times)));
    rows
}

fn time_row(name: &str, times: &Histogram) -> Vec<Cell> {
    let cell = |time: Option<Nanos>| time.map_or_else(|| "–".to_owned(), quantity::time);
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
    let quantile = |q: f64| {
        let mark = if times.count() > 0 && (times.count() as f64) * (1.0 - q) < SUPPORT { "~" } else { "" };
        Cell::plain(format!("{mark}{}", cell(times.quantile(q))))
    };
    let mut row = vec![Cell::styled(name, style::HEADING), Cell::plain(cell(times.mean()))];
    row.extend(QUANTILES.map(quantile));
    row.push(Cell::plain(cell(times.max())));
    row
}

/// What the signs in the tables mean, as far as they stand in them.
fn legend<'run>(all: impl Iterator<Item = &'run LoadMeasured> + Clone) -> String {
    let is_open = all.clone().any(|measured| measured.load.schedule.is_open());
    let mut says = if is_open {
        "response: intended start to last byte; service: send to last byte; of good answers".to_owned()
    } else {
        "service: send to last byte, of good answers".to_owned()
    };
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
    if all.clone().any(|measured| (1.0..SUPPORT * 1_000.0).contains(&(measured.main_times().count() as f64))) {
        says.push_str("; ~ fewer than 100 slower ones");
    }
    if all.clone().any(|measured| measured.main_times().count() == 0) {
        says.push_str("; – no samples: no answer was good");
    }
    says
}

/// Answers, traffic, connections, the load generator's own part: each with its name.
fn facts(measured: &LoadMeasured) -> Vec<(&'static str, String)> {
    let arm = measured.arm();
    let counts = measured.counts();
    let count = quantity::count;
    let statuses = &arm.statuses;
    let classes = [
        ("2xx", statuses.success),
        ("3xx", statuses.redirection),
        ("4xx", statuses.client_error),
        ("5xx", statuses.server_error),
        ("other", statuses.other),
    ];
    let answered: Vec<String> = classes
        .iter()
        .filter(|(_, number)| *number > 0)
        .map(|(class, number)| {
            let text = format!("{} {class}", count(*number));
            if matches!(*class, "4xx" | "5xx") { paint(style::ERROR, &text) } else { text }
        })
        .collect();
    let mut facts = vec![("answers", if answered.is_empty() { "none".to_owned() } else { answered.join(", ") })];
    let mut beside = Vec::new();
    if arm.redirected > 0 {
        beside.push(format!("{} redirects followed", count(arm.redirected)));
    }
    if counts.redone > 0 {
        beside.push(format!("{} sent once more, because the server had ended their connection", count(counts.redone)));
    }
    if arm.dropped > 0 {
        beside.push(format!("{} late starts dropped", count(arm.dropped)));
    }
    if arm.warm_up.started > 0 {
        beside.push(format!(
            "{} in the warm-up, {} of them failed",
            count(arm.warm_up.started),
            count(arm.warm_up.failed())
        ));
    }
    if !beside.is_empty() {
        facts.push(("beside them", beside.join(", ")));
    }
    facts.push(("traffic", traffic(measured)));
    facts.push(("connections", connections(measured)));
    facts.push(("generator", generator(measured)));
    facts
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "three digits are shown"
)]
fn traffic(measured: &LoadMeasured) -> String {
    let arm = measured.arm();
    let seconds = measured.elapsed().as_secs_f64();
    let pace = if seconds > 0.0 {
        format!(" ({}/s)", quantity::bytes((arm.received_bytes as f64 / seconds).round() as u64))
    } else {
        String::new()
    };
    format!(
        "{} sent, {} received{pace}, {} of them bodies",
        quantity::bytes(arm.sent_bytes),
        quantity::bytes(arm.received_bytes),
        quantity::bytes(arm.body_bytes)
    )
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
fn connections(measured: &LoadMeasured) -> String {
    let arm = measured.arm();
    let counts = &arm.counts;
    let answers = counts.good + counts.check_failures + arm.warm_up.good + arm.warm_up.check_failures;
    let opened = format!("{} opened", quantity::count(arm.connections));
    if arm.connections == 0 || answers == 0 {
        return opened;
    }
    let each = answers as f64 / arm.connections as f64;
    let each = if each >= 1_000.0 { quantity::count(each.round() as u64) } else { quantity::three_digits(each) };
    format!("{opened}, {each} answers on each")
}

fn generator(measured: &LoadMeasured) -> String {
    let threads = measured.recording.engine.threads;
    let whose =
        if threads == 1 { "its thread's time".to_owned() } else { format!("the time of its {threads} threads") };
    let mut text = match engine_busy(&measured.recording) {
        Some(busy) => format!("busy for {} of {whose}", quantity::percent(busy.min(1.0))),
        None => "no load".to_owned(),
    };
    let lateness = &measured.arm().lateness;
    if let (Some(p90), Some(max)) = (lateness.quantile(0.9), lateness.max()) {
        let _ = write!(text, ", starts late by {} (p90), {} at most", quantity::time(p90), quantity::time(max));
    }
    let queued = &measured.arm().queued;
    if let (count @ 1.., Some(p50)) = (queued.count(), queued.quantile(0.5)) {
        let _ = write!(
            text,
            "; {} starts waited for a free connection, {} (p50)",
            quantity::count(count),
            quantity::time(p50)
        );
    }
    text
}

/// What the numbers mean, the gravest first.
fn advice(measured: &LoadMeasured) -> String {
    let mut text = String::new();
    for advice in Advice::on(measured) {
        let (role, mark) = if advice.is_circumstance() { (style::QUIET, "note") } else { (style::WARNING, "warning") };
        let _ = writeln!(text, "  {}: {advice}", paint(role, mark));
    }
    text
}

fn row(measured: &LoadMeasured) -> Vec<Cell> {
    let times = measured.main_times();
    let time = |q: f64| times.quantile(q).map_or_else(|| "–".to_owned(), quantity::time);
    let failed = measured.counts().failed();
    let role = if failed > 0 { style::ERROR } else { Style::new() };
    let first = measured.arm().first_answer.as_ref();
    vec![
        Cell::styled(measured.driven.url.as_str(), style::HEADING),
        Cell::plain(measured.throughput().map_or_else(|| "–".to_owned(), quantity::per_second)),
        Cell::plain(time(0.5)),
        Cell::plain(time(0.9)),
        Cell::plain(time(0.99)),
        Cell::plain(first.map_or_else(|| "–".to_owned(), |answer| answer.status.to_string())),
        Cell::plain(first.map_or_else(|| "–".to_owned(), |answer| quantity::bytes(answer.body_bytes))),
        Cell::styled(quantity::count(failed), role),
    ]
}

#[cfg(test)]
mod tests {
    use httpbench_core::model::{ErrorClass, FirstAnswer, Tls};

    use super::*;
    use crate::load::sample::{measured, options};

    fn plain(all: &[LoadMeasured], width: usize) -> String {
        let options = options("http://127.0.0.1:8080/");
        let text = render_load(all, &options, Detail::WhatMatters, width);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn report_begins_with_the_story_and_what_was_driven() {
        let mut load = measured(400_000, 0);
        load.recording.arms[0].first_answer =
            Some(FirstAnswer { status: 200, body_bytes: 612, server: Some("nginx".to_owned()) });
        let text = plain(&[load], 100);
        assert!(text.starts_with("\n400,000 requests in 2.00 s: 200,000/s, every answer was right\n"), "{text}");
        assert!(text.contains("GET, at 127.0.0.1:8080, HTTP/1.1, 10 connections, 1 thread, closed loop"), "{text}");
        assert!(text.contains("first answer: status 200, 612 B, server `nginx`"), "{text}");
        let service = text.lines().find(|line| line.starts_with("  service ")).expect("a row");
        assert!(service.matches("1.00 ms").count() >= 4 && !service.contains('~'), "{service}");
        assert!(text.contains("400,000 2xx") && text.contains("10 opened, 40,000 answers on each"), "{text}");
        assert!(text.contains("busy for 25.0% of its thread's time"), "{text}");
    }

    #[test]
    fn failures_stand_above_the_times_with_an_example_each() {
        let mut load = measured(50, 50);
        load.recording.arms[0].counts.started += 2;
        load.recording.arms[0].counts.errors.add(ErrorClass::Reset, || "connection reset".to_owned());
        load.recording.arms[0].counts.errors.add(ErrorClass::NoLocalPort, || "no port".to_owned());
        let text = plain(&[load], 100);
        assert!(text.contains("102 requests in 2.00 s: 25.0/s, 52 failed (51.0%)"), "{text}");
        let places =
            ["50 check failures, the first: status 500", "1 errors `reset`, the first: connection reset", "service"]
                .map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}")));
        assert!(places.is_sorted(), "{text}");
        assert!(text.contains("`no-local-port`, a limit of this machine"), "{text}");
    }

    #[test]
    fn without_samples_there_are_words_and_no_numbers() {
        let text = plain(&[measured(0, 3)], 100);
        assert!(text.contains("no samples") && text.contains("3 failed (100%)"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("0.00/s") && !text.contains("inf"), "{text}");
        let nothing = plain(&[measured(0, 0)], 100);
        assert!(nothing.contains("0 requests in 2.00 s: nothing came back"), "{nothing}");
    }

    #[test]
    fn few_samples_mark_the_quantiles_that_they_do_not_carry() {
        let text = plain(&[measured(1_500, 0)], 120);
        let service = text.lines().find(|line| line.starts_with("  service ")).expect("a row");
        assert_eq!(service.matches('~').count(), 3, "{service}");
        assert!(text.contains("~ fewer than 100 slower ones"), "{text}");
    }

    #[test]
    fn every_width_is_laid_out() {
        for width in [0, 1, 20, 40, 80, 200] {
            let one = plain(&[measured(10, 1)], width);
            let two = plain(&[measured(10, 1), measured(0, 1)], width);
            assert!(one.contains("10") && two.contains("http://127.0.0.1:8080/"), "{width}");
        }
    }

    #[test]
    fn interrupted_load_says_so_first() {
        let mut load = measured(10, 0);
        load.end = LoadEnd::Interrupted(2);
        let text = plain(&[load], 100);
        assert!(text.starts_with("\ninterrupted: this is what there was until then\n10 requests"), "{text}");
    }

    #[test]
    fn several_urls_are_a_table_with_a_row_each_and_their_failures() {
        let text = plain(&[measured(10, 0), measured(0, 4)], 100);
        assert_eq!(text.lines().filter(|line| line.starts_with("  http://127.0.0.1:8080/")).count(), 2, "{text}");
        assert!(text.contains("4 check failures") && text.contains("– no samples"), "{text}");
    }

    #[test]
    fn unverified_certificate_is_said_loudly() {
        let mut load = measured(10, 0);
        let tls = Tls { server_name: "h".to_owned(), trust: Trust::Anybody, identity: None };
        load.driven.arm.tls = Some(tls);
        let text = plain(&[load], 100);
        assert!(text.contains("WITHOUT verifying") && text.contains("NOT verified"), "{text}");
    }

    #[test]
    fn each_kind_of_schedule_is_named() {
        let mut options = options("http://h/");
        for (schedule, said) in [
            (Schedule::Constant { per_second: 0.5 }, "open loop, arrival rate 0.5/s"),
            (Schedule::Poisson { per_second: 9.0, seed: 7 }, "Poisson arrivals of 9/s on average (--seed 7)"),
            (Schedule::Ramp { from: 1.0, to: 20.0, over: Nanos::from_secs(3) }, "ramp from 1/s to 20/s in 3.00 s"),
            (Schedule::Sessions { per_second: 4.0, calls: 1 }, "4 connections/s with 1 request each"),
        ] {
            options.load.schedule = schedule;
            assert!(set_up(&options).contains(said), "{}", set_up(&options));
        }
    }
}
