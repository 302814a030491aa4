//! What the JSON lines of `load` hold: one `load` for each URL, and `load-finished` as the last line, which holds the same
//! numbers of all URLs together.
//!
//! Times carry their unit in the key. The times at the top are those that the load is judged by: response times in an open
//! loop, service times in a closed one. What was not seen is `null`.

use std::collections::BTreeMap;

use httpbench_core::model::{
    Counts, ErrorClass, FirstAnswer, Late, Nanos, Protocol, Recording, Reuse, Schedule, StatusClasses, Trust,
};
use serde::Serialize;

use super::json::{TimesObject, times};
use crate::exit_code::ExitCode;
use crate::load::{Advice, LoadEnd, LoadMeasured, LoadOptions, engine_busy, throughput, together};

/// `reason: "load"`: one URL.
#[derive(Debug, Serialize)]
pub struct LoadObject<'run> {
    url: &'run str,
    method: &'run str,
    target: String,
    host: &'run str,
    address: String,
    other_addresses: Vec<String>,
    tls: Option<TlsObject<'run>>,
    first_answer: Option<&'run FirstAnswer>,
    advice: Vec<AdviceObject>,
    #[serde(flatten)]
    numbers: Numbers,
}

/// `reason: "load-finished"`: all URLs together, and the exit code.
#[derive(Debug, Serialize)]
pub struct LoadFinishedObject<'run> {
    exit_code: u8,
    urls: Vec<&'run str>,
    #[serde(flatten)]
    numbers: Numbers,
}

#[derive(Debug, Serialize)]
struct TlsObject<'run> {
    server_name: &'run str,
    verified: bool,
    trust: &'static str,
    client_certificate: bool,
}

#[derive(Debug, Serialize)]
struct AdviceObject {
    code: &'static str,
    text: String,
}

/// What was asked for and what came of it.
#[derive(Debug, Serialize)]
struct Numbers {
    end: &'static str,
    signal: Option<u8>,
    protocol: Protocol,
    connections: u32,
    threads: u32,
    schedule: Schedule,
    late: Late,
    reuse: Reuse,
    depth: u32,
    max_redirects: u32,
    requests: Option<u64>,
    duration_ns: Option<Nanos>,
    warm_up_ns: Nanos,
    #[serde(flatten)]
    exchanges: Exchanges,
    warm_up: Exchanges,
    statuses: StatusClasses,
    failed_statuses: BTreeMap<u16, u64>,
    dropped: u64,
    redirected: u64,
    connections_opened: u64,
    elapsed_ns: Nanos,
    throughput: Option<f64>,
    schedule_reached: Option<f64>,
    sent_bytes: u64,
    received_bytes: u64,
    body_bytes: u64,
    received_bytes_per_second: Option<f64>,
    #[serde(flatten)]
    main_times: TimesObject,
    service: TimesObject,
    response: Option<TimesObject>,
    lateness: Option<TimesObject>,
    queued: Option<TimesObject>,
    first_byte: TimesObject,
    connect: TimesObject,
    tls_handshake: TimesObject,
    check_failure_times: TimesObject,
    error_times: TimesObject,
    engine_cpu_ns: Nanos,
    engine_wall_ns: Nanos,
    engine_threads: u32,
    engine_busy: Option<f64>,
}

/// How exchanges ended: `started` is the sum of `good`, `check_failures`, all `errors` and `in_flight`.
#[derive(Debug, Serialize)]
struct Exchanges {
    started: u64,
    good: u64,
    check_failures: u64,
    check_example: Option<String>,
    errors: BTreeMap<ErrorClass, u64>,
    error_examples: BTreeMap<ErrorClass, String>,
    in_flight: u64,
    redone: u64,
}

/// The object of one URL.
#[must_use]
pub fn load_object<'run>(measured: &'run LoadMeasured, options: &'run LoadOptions) -> LoadObject<'run> {
    let driven = &measured.driven;
    let advice = Advice::on(measured);
    LoadObject {
        url: driven.url.as_str(),
        method: &measured.method,
        target: driven.url.request_target(),
        host: &driven.arm.host,
        address: driven.address(),
        other_addresses: driven.other_addresses.iter().map(ToString::to_string).collect(),
        tls: driven.arm.tls.as_ref().map(|tls| TlsObject {
            server_name: &tls.server_name,
            verified: tls.trust != Trust::Anybody,
            trust: match tls.trust {
                Trust::System => "system",
                Trust::Roots { .. } => "roots",
                Trust::Anybody => "anybody",
            },
            client_certificate: tls.identity.is_some(),
        }),
        first_answer: measured.arm().first_answer.as_ref(),
        advice: advice.iter().map(|advice| AdviceObject { code: advice.code(), text: advice.to_string() }).collect(),
        numbers: numbers(&measured.recording, measured.end, options),
    }
}

/// The object that closes a load.
#[must_use]
pub fn finished_object<'run>(
    all: &'run [LoadMeasured],
    options: &'run LoadOptions,
    exit: ExitCode,
) -> LoadFinishedObject<'run> {
    let ends = || all.iter().map(|measured| measured.end);
    let end = ends().find(|end| *end != LoadEnd::Complete).unwrap_or(LoadEnd::Complete);
    LoadFinishedObject {
        exit_code: exit.code(),
        urls: all.iter().map(|measured| measured.driven.url.as_str()).collect(),
        numbers: numbers(&together(all), end, options),
    }
}

fn numbers(recording: &Recording, end: LoadEnd, options: &LoadOptions) -> Numbers {
    let arm = recording.arms.first().cloned().unwrap_or_default();
    let load = &options.load;
    let is_open = load.schedule.is_open();
    let open_loop = |histogram| is_open.then(|| times(histogram));
    let engine = &recording.engine;
    #[expect(clippy::cast_precision_loss, reason = "an amount of bytes below 2^52")]
    let received_bytes_per_second =
        (engine.wall > Nanos::ZERO).then(|| arm.received_bytes as f64 / engine.wall.as_secs_f64());
    Numbers {
        end: match end {
            LoadEnd::Complete => "complete",
            LoadEnd::Interrupted(_) => "interrupted",
            LoadEnd::NobodyListens => "nobody-listens",
        },
        signal: match end {
            LoadEnd::Interrupted(signal) => Some(signal),
            LoadEnd::Complete | LoadEnd::NobodyListens => None,
        },
        protocol: options.protocol,
        connections: load.connections,
        threads: load.threads,
        schedule: load.schedule,
        late: load.late,
        reuse: load.reuse,
        depth: load.depth,
        max_redirects: load.redirects,
        requests: options.period.requests,
        duration_ns: options.period.duration,
        warm_up_ns: options.period.warm_up,
        warm_up: exchanges(&arm.warm_up),
        exchanges: exchanges(&arm.counts),
        statuses: arm.statuses,
        dropped: arm.dropped,
        redirected: arm.redirected,
        connections_opened: arm.connections,
        elapsed_ns: engine.wall,
        throughput: throughput(recording),
        schedule_reached: recording.arrivals(0).and_then(httpbench_core::model::Arrivals::reached),
        sent_bytes: arm.sent_bytes,
        received_bytes: arm.received_bytes,
        body_bytes: arm.body_bytes,
        received_bytes_per_second,
        main_times: times(if is_open { &arm.response } else { &arm.service }),
        service: times(&arm.service),
        response: open_loop(&arm.response),
        lateness: open_loop(&arm.lateness),
        queued: open_loop(&arm.queued),
        first_byte: times(&arm.first_byte),
        connect: times(&arm.connect),
        tls_handshake: times(&arm.tls),
        check_failure_times: times(&arm.check_failure),
        error_times: times(&arm.error),
        engine_cpu_ns: engine.cpu,
        engine_wall_ns: engine.wall,
        engine_threads: engine.threads,
        engine_busy: engine_busy(recording),
        failed_statuses: arm.failed_statuses,
    }
}

fn exchanges(counts: &Counts) -> Exchanges {
    Exchanges {
        started: counts.started,
        good: counts.good,
        check_failures: counts.check_failures,
        check_example: counts.check_example.clone(),
        errors: counts.errors.counts.clone(),
        error_examples: counts.errors.examples.clone(),
        in_flight: counts.in_flight,
        redone: counts.redone,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::load::sample::{measured, options};

    fn finished(all: &[LoadMeasured]) -> Value {
        let options = options("http://127.0.0.1:8080/");
        serde_json::to_value(finished_object(all, &options, ExitCode::Success)).expect("serialises")
    }

    #[test]
    fn last_object_holds_the_identity_and_the_times() {
        let value = finished(&[measured(90, 10)]);
        for (key, number) in [("started", 100), ("good", 90), ("check_failures", 10), ("in_flight", 0)] {
            assert_eq!(value[key], number, "{key}");
        }
        assert_eq!((&value["errors"], &value["statuses"]["2xx"]), (&Value::Object(Default::default()), &90.into()));
        assert_eq!(value["p50_ns"], value["service"]["p50_ns"]);
        assert_eq!((&value["throughput"], &value["response"]), (&45.0.into(), &Value::Null));
        assert_eq!(value["failed_statuses"]["500"], 10);
    }

    #[test]
    fn no_samples_are_null() {
        let value = finished(&[measured(0, 3)]);
        for key in ["throughput", "p50_ns", "p99_ns", "mean_ns", "max_ns"] {
            assert_eq!(value[key], Value::Null, "{key}");
        }
        assert_eq!(value["service"]["p999_ns"], Value::Null);
    }

    #[test]
    fn several_urls_are_added_in_the_last_object() {
        let value = finished(&[measured(10, 0), measured(20, 0)]);
        assert_eq!((&value["good"], value["urls"].as_array().map(Vec::len)), (&30.into(), Some(2)));
    }
}
