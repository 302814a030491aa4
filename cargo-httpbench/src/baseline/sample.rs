//! Made-up baselines for tests, here and wherever baselines are compared.

use std::collections::BTreeMap;
use std::path::Path;

use httpbench_core::model::{Histogram, Metric, Nanos, RequestSummary};

use super::{
    Baseline, BaselineCounts, BaselineName, BaselineScenario, BuildFacts, Commit, Fingerprint, RoundValues, SCHEMA,
    SetUp, WorkingTree, definition,
};
use crate::config::Layers;
use crate::server::ServerSpec;

/// A baseline of package `shop` with scenarios `index` and `search` and two rounds each, without an executable.
pub(crate) fn sample_baseline() -> Baseline {
    Baseline {
        schema: SCHEMA,
        name: BaselineName::default(),
        saved_at: "2026-03-04T05:06:07Z".parse().expect("a time"),
        package: "shop".to_owned(),
        server: "shop".to_owned(),
        fingerprint: fingerprint(),
        commit: Some(Commit { sha: "0123456789abcdef0123456789abcdef01234567".to_owned(), tree: WorkingTree::Clean }),
        set_up: SetUp { args: vec!["--port={port}".to_owned()], ..SetUp::default() },
        scenarios: vec![scenario("http::index", "/"), scenario("http::search", "/search?q=rust")],
        executable: None,
    }
}

/// A scenario with two rounds of 1,000 exchanges.
pub(crate) fn scenario(name: &str, target: &str) -> BaselineScenario {
    let request = RequestSummary { method: "GET".to_owned(), target: target.to_owned(), body_bytes: 0, checksum: 7 };
    let mut service = Histogram::default();
    (1..=2_000).for_each(|micros| service.record(Nanos::from_micros(micros)));
    let round = |throughput: f64, p99: f64| {
        RoundValues(BTreeMap::from([(Metric::Throughput, throughput), (Metric::P99, p99), (Metric::Errors, 0.0)]))
    };
    BaselineScenario {
        name: name.to_owned(),
        definition: definition(Some(&request), &Layers::default().settings().load),
        request: Some(request),
        rounds: vec![round(41_000.0, 1_980_000.0), round(40_500.5, 1_990_000.25)],
        service,
        counts: BaselineCounts { started: 2_000, good: 2_000, ..BaselineCounts::default() },
        arrival_rate: None,
        against_reference: Vec::new(),
    }
}

pub(crate) fn fingerprint() -> Fingerprint {
    Fingerprint {
        cpu_model: Some("AMD EPYC 7763 64-Core Processor".to_owned()),
        cores: 2,
        quota_millicores: None,
        os: "linux ubuntu 24.04".to_owned(),
        kernel: Some("6.18.0".to_owned()),
        build: build_facts(),
        httpbench: "0.1.0".to_owned(),
    }
}

pub(crate) fn build_facts() -> BuildFacts {
    BuildFacts {
        target: "x86_64-unknown-linux-gnu".to_owned(),
        profile: "release".to_owned(),
        features: "default".to_owned(),
        toolchain: "rustc 1.95.0".to_owned(),
    }
}

/// A server that is never started.
pub(crate) fn server_spec(package_root: &Path) -> ServerSpec {
    ServerSpec {
        name: "shop".to_owned(),
        executable: "/nowhere/shop".into(),
        settings: Layers::default().settings().server,
        package_root: package_root.to_owned(),
        base_env: BTreeMap::from([("HOME".into(), "/home/u".into())]),
        cores: Vec::new(),
        ports: crate::server::PortPolicy::Ask,
    }
}

/// Runs an executable that was just written.
///
/// Another test may be between fork and exec at this very moment and hold it open for writing, for which the kernel refuses to run
/// it (`ETXTBSY`): that passes.
pub(crate) fn run(path: &Path) -> std::process::ExitStatus {
    for _ in 0..200 {
        match std::process::Command::new(path).status() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            status => return status.expect("it starts"),
        }
    }
    panic!("`{}` stays busy", path.display());
}
