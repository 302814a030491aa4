//! Made-up measurements for the tests of verdicts and reports.

use std::collections::BTreeMap;

use httpbench_core::model::{
    ArmRecording, EngineUsage, Limit, Location, Metric, Nanos, Options, Recording, RequestSummary, ScenarioListing,
    SliceRecording,
};

use super::{MeasuredRound, MeasuredScenario, SliceScheme};
use crate::config::LoadSettings;

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
        peak_memory: Some(14_200_000),
        resident_memory: Some(12_000_000),
    }
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

/// A scenario with these limits and rounds.
pub(crate) fn scenario(name: &str, limits: &[(Metric, f64)], rounds: Vec<MeasuredRound>) -> MeasuredScenario {
    let load = LoadSettings {
        connections: 64,
        threads: None,
        duration: Nanos::from_secs(6),
        warm_up: Nanos::from_millis(250),
        slice: None,
        request_timeout: Nanos::from_secs(10),
        connect_timeout: Nanos::from_secs(3),
        tolerance: BTreeMap::new(),
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
        scheme: Some(SliceScheme::new(&load, 5, None)),
        load,
        rounds,
        confirmation: Vec::new(),
        failure: None,
    }
}
