//! Loads and options for tests.

use httpbench_core::model::{ArmPlan, ArmRecording, EngineUsage, Load, Nanos, Protocol, Recording, SliceRecording};

use super::{Driven, LoadEnd, LoadMeasured, LoadOptions, Period, RequestOptions, Route, TlsOptions, Verification};

/// Options for one URL, all else by default.
pub(crate) fn options(url: &str) -> LoadOptions {
    LoadOptions {
        targets: vec![url.parse().expect("a URL")],
        request: RequestOptions::default(),
        route: Route::Named(Vec::new()),
        tls: TlsOptions { verification: Verification::System, identity: None },
        protocol: Protocol::Http11,
        load: Load { connections: 10, ..Load::default() },
        period: Period { requests: None, duration: Some(Nanos::from_secs(2)), warm_up: Nanos::ZERO },
    }
}

/// A load of 2 s on 10 connections with these numbers of good exchanges and check failures, 1 ms each.
pub(crate) fn measured(good: u64, failed: u64) -> LoadMeasured {
    let mut arm = ArmRecording { connections: 10, ..ArmRecording::default() };
    arm.counts.started = good + failed;
    arm.counts.good = good;
    arm.counts.check_failures = failed;
    arm.statuses.success = good;
    arm.statuses.server_error = failed;
    for _ in 0..good {
        arm.service.record(Nanos::from_millis(1));
        arm.first_byte.record(Nanos::from_millis(1));
    }
    if failed > 0 {
        arm.counts.check_example = Some("status 500".to_owned());
        arm.failed_statuses.insert(500, failed);
    }
    let wall = Nanos::from_secs(2);
    let slice = SliceRecording {
        arm: 0,
        good,
        span: wall,
        completed: good + failed,
        scheduled: 0,
        begun: 0,
        wall,
        cpu: Vec::new(),
        engine_cpu: Nanos::from_millis(500),
    };
    let address = ([127, 0, 0, 1], 8080).into();
    LoadMeasured {
        driven: Driven {
            url: "http://127.0.0.1:8080/".parse().expect("a URL"),
            arm: ArmPlan::plain(address),
            other_addresses: Vec::new(),
        },
        method: "GET".to_owned(),
        load: Load { connections: 10, ..Load::default() },
        recording: Recording {
            arms: vec![arm],
            slices: vec![slice],
            engine: EngineUsage { cpu: Nanos::from_millis(500), wall, threads: 1 },
        },
        end: LoadEnd::Complete,
        suspended: false,
    }
}
