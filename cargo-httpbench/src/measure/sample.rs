//! Made-up measurements for the tests of verdicts and reports.

use std::collections::BTreeSet;

use httpbench_core::model::{
    ArmRecording, EngineUsage, Limit, Location, Metric, Nanos, Options, Ratio, Recording, RequestSummary,
    ScenarioListing, SliceRecording,
};

use super::{Arms, BASELINE, CANDIDATE, Cores, MeasuredPackage, MeasuredRound, MeasuredScenario, Pilot, SliceScheme};
use crate::config::LoadSettings;
use crate::server::Memory;

/// A round in which `good` exchanges of one service time ended in one second, and cost the server 10 µs each.
pub(crate) fn round(good: u64, service: Nanos) -> MeasuredRound {
    let mut arm = ArmRecording::default();
    arm.counts.started = good;
    arm.counts.good = good;
    (0..good).for_each(|_| arm.service.record(service));
    let wall = Nanos::from_secs(1);
    let slice = SliceRecording {
        arm: 0,
        good,
        span: wall,
        completed: good,
        scheduled: 0,
        begun: 0,
        wall,
        cpu: vec![Some(Nanos::from_micros(10) * good)],
        engine_cpu: Nanos::from_millis(500),
    };
    MeasuredRound {
        recording: Recording {
            arms: vec![arm],
            slices: vec![slice],
            engine: EngineUsage { cpu: Nanos::from_millis(500), wall, threads: 1 },
        },
        memory: vec![Some(Memory { resident_bytes: 12_000_000, peak_bytes: 14_200_000, shared_bytes: 0 })],
        reference: None,
    }
}

/// A round of an open loop, in which every good exchange was answered `wait` after it should have been sent, on top of its
/// service time, and `begun` of them began in time.
pub(crate) fn open_round(good: u64, service: Nanos, wait: Nanos, begun: u64) -> MeasuredRound {
    let mut round = round(good, service);
    let arm = &mut round.recording.arms[0];
    (0..good).for_each(|_| arm.response.record(service + wait));
    (0..good).for_each(|_| arm.queued.record(wait));
    (round.recording.slices[0].scheduled, round.recording.slices[0].begun) = (good, begun);
    round
}

/// A round in which `failed` of `started` exchanges were answered with status 404.
pub(crate) fn failing_round(started: u64, failed: u64) -> MeasuredRound {
    let mut round = round(started - failed, Nanos::from_millis(1));
    let counts = &mut round.recording.arms[0].counts;
    counts.started = started;
    counts.check_failures = failed;
    counts.check_example = Some("status 404".to_owned());
    round
}

/// A round of two arms, each of which did what it did in a round of its own.
pub(crate) fn beside(candidate: MeasuredRound, mut baseline: MeasuredRound) -> MeasuredRound {
    let mut round = candidate;
    for slice in &mut round.recording.slices {
        slice.cpu.push(Some(Nanos::ZERO));
    }
    for slice in &mut baseline.recording.slices {
        slice.arm = BASELINE;
        slice.cpu.insert(CANDIDATE, Some(Nanos::ZERO));
    }
    round.recording.arms.append(&mut baseline.recording.arms);
    round.recording.slices.append(&mut baseline.recording.slices);
    round.recording.engine.cpu += baseline.recording.engine.cpu;
    round.recording.engine.wall += baseline.recording.engine.wall;
    round.memory.append(&mut baseline.memory);
    round
}

/// A scenario with these limits and rounds.
pub(crate) fn scenario(name: &str, limits: &[(Metric, f64)], rounds: Vec<MeasuredRound>) -> MeasuredScenario {
    let load = LoadSettings {
        connections: 64,
        arrival_rate: None,
        threads: None,
        duration: Nanos::from_secs(6),
        warm_up: Nanos::from_millis(250),
        slice: None,
        request_timeout: Nanos::from_secs(10),
        connect_timeout: Nanos::from_secs(3),
        tolerance: [
            (Metric::Throughput, 0.03),
            (Metric::CpuPerRequest, 0.03),
            (Metric::P50, 0.03),
            (Metric::P99, 0.10),
        ]
        .into_iter()
        .map(|(metric, ratio)| (metric, Ratio(ratio)))
        .collect(),
        tolerance_written: BTreeSet::new(),
        limits: limits.iter().map(|&(metric, bound)| Limit { metric, bound }).collect(),
    };
    MeasuredScenario {
        listing: ScenarioListing {
            name: name.to_owned(),
            doc: String::new(),
            location: Location { file: "benches/http.rs".to_owned(), line: 1 },
            options: Options::default(),
            request: Ok(RequestSummary {
                method: "GET".to_owned(),
                target: "/".to_owned(),
                body_bytes: 0,
                checksum: 0,
            }),
        },
        pilot: Some(Pilot { scheme: SliceScheme::new(&load, 5, None), exchanges_a_round: 10_000.0 }),
        load,
        rounds,
        confirmation: Vec::new(),
        discarded: Vec::new(),
        last_lines: Vec::new(),
        failure: None,
    }
}

/// A package with these scenarios, engine and server on a core each.
pub(crate) fn package(scenarios: Vec<MeasuredScenario>) -> MeasuredPackage {
    MeasuredPackage {
        package: "todo".to_owned(),
        server: "todo-server".to_owned(),
        cores: Cores { engine: vec![0], server: vec![1] },
        arms_run: Arms::default(),
        rounds: 5,
        scenarios,
        startups: Vec::new(),
    }
}
