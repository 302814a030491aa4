//! Built-in servers of a wanted speed, calibrated on this machine.

use std::fmt;
use std::time::Duration;

use httpbench_core::model::{Metric, Options, Ratio, ScenarioListing};

use super::SelftestOptions;
use super::plan::{Kind, Speed};
use crate::baseline::{BuildFacts, Fingerprint, Sha256Hex};
use crate::bench::Bench;
use crate::config::{Layers, LoadLayer, Purpose, SettingsLayer};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::measure::{Arms, Campaign, Cores, Progress, Rounds, Selected, Stage, Subject, values};
use crate::reference::{Work, server_spec, steps_per_second};
use crate::server::ServerSpec;
use crate::stats::median;

/// Below this capacity 64 connections would only queue: a slice must hold four median answers, and would last for seconds.
const SLOW: f64 = 1_000.0;

/// Connections to a slow server.
const FEW_CONNECTIONS: u32 = 8;

/// What is known of this machine before the first comparison.
pub(super) struct Calibration {
    pub(super) cores: Cores,
    pub(super) fingerprint: Fingerprint,
    pub(super) executable_sha256: Sha256Hex,
    listing: ScenarioListing,
    steps_per_second: f64,
    /// CPU time of a request without any work, in seconds.
    bare: f64,
}

/// The two servers of a comparison.
pub(super) struct Pair {
    pub(super) candidate: ServerSpec,
    pub(super) baseline: ServerSpec,
}

impl Calibration {
    /// Measures how long a step of work takes, and what a request costs without any.
    pub(super) fn of_this_machine(
        bench: &mut Bench,
        interrupt: &Interrupt,
        watcher: &mut dyn FnMut(Progress<'_>) -> Result<()>,
    ) -> Result<Self> {
        let cores = Cores::of_this_machine(None);
        let (listings, _) = bench.list(&mut || interrupt.check())?;
        let listing = listings
            .into_iter()
            .find(|listing| listing.name.ends_with("reference"))
            .ok_or_else(|| Error::new(ExitCode::Unexpected, "the built-in scenario is not there"))?;
        let steps_per_second = steps_per_second();
        let bare = server_spec("reference", Work(0), &cores.server)?;
        let executable_sha256 = Sha256Hex::of_file(&bare.executable)
            .map_err(|cause| Error::unexpected("our own executable cannot be read", cause))?;
        let layers = Layers {
            command_line: LoadLayer {
                rounds: Some(1),
                duration: Some(Duration::from_millis(600)),
                ..LoadLayer::default()
            },
            ..Layers::default()
        };
        let subject = Subject {
            package: "calibration",
            arms: vec![&bare],
            reference: None,
            arms_run: Arms::default(),
            cores: &cores,
            benches: std::slice::from_mut(bench),
            scenarios: vec![select(&listing, &layers)],
        };
        let mut campaign = Campaign::new(subject, Rounds { count: 1, seed: 0 }, interrupt, watcher);
        campaign.pilot()?;
        campaign.run(1, Stage::First, &[0])?;
        let mut measured = campaign.finish();
        let scenario = measured.scenarios.remove(0);
        if let Some(failure) = scenario.failure {
            return Err(failure);
        }
        let cpu = median(&values(&scenario.rounds, Metric::CpuPerRequest)).map(|nanos| nanos / 1e9);
        // Where CPU time is not told, a server that has a core of its own is busy all the time.
        let from_throughput =
            || median(&values(&scenario.rounds, Metric::Throughput)).map(|throughput| 1.0 / throughput);
        let bare = cpu.or_else(from_throughput).ok_or_else(|| {
            Error::new(ExitCode::InvalidMeasurement, "the built-in server answered nothing while it was calibrated")
        })?;
        let build = BuildFacts {
            target: std::env::consts::ARCH.to_owned(),
            profile: if cfg!(debug_assertions) { "unoptimised" } else { "release" }.to_owned(),
            features: "built-in".to_owned(),
            toolchain: "built-in".to_owned(),
        };
        let fingerprint = Fingerprint::of_this_machine(build);
        Ok(Self { cores, fingerprint, executable_sha256, listing, steps_per_second, bare })
    }

    /// Two servers of this kind; the candidate does the injected work.
    pub(super) fn pair(&self, kind: &Kind) -> Result<Pair> {
        let (baseline, candidate) = self.work(kind);
        Ok(Pair {
            candidate: server_spec("candidate", candidate, &self.cores.server)?,
            baseline: server_spec("baseline0", baseline, &self.cores.server)?,
        })
    }

    /// What the baseline and the candidate do for each request, beside what it costs anyway.
    fn work(&self, kind: &Kind) -> (Work, Work) {
        let whole = (1.0 / kind.speed.capacity).max(self.bare);
        let lasting = |seconds| Work::lasting(seconds, self.steps_per_second);
        let usual = whole - self.bare;
        (lasting(usual), lasting(usual + whole * kind.change.0))
    }

    /// The built-in scenario under the load that these layers say.
    pub(super) fn scenario(&self, layers: &Layers) -> Selected {
        select(&self.listing, layers)
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "calibration: {:.0} million steps of work per second; a request without work costs the built-in server {:.1} µs",
            self.steps_per_second / 1e6,
            self.bare * 1e6
        )
    }
}

fn select(listing: &ScenarioListing, layers: &Layers) -> Selected {
    Selected { bench: 0, listing: listing.clone(), load: layers.for_scenario(&Options::default()) }
}

/// A default comparison's settings, with what the options say over them.
pub(super) fn layers(options: &SelftestOptions, speed: Speed) -> Layers {
    let usual = LoadLayer {
        connections: (speed.capacity < SLOW).then_some(FEW_CONNECTIONS),
        arrival_rate: speed.arrival_rate,
        ..LoadLayer::default()
    };
    let mut package = SettingsLayer::default();
    if let Some(tolerance) = options.tolerance {
        package.tolerance.insert(Metric::Throughput, Ratio(tolerance));
    }
    Layers { purpose: Purpose::Comparison, package, command_line: options.load.over(usual), ..Layers::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::sample::fingerprint;
    use crate::selftest::{ArmOrder, Change};
    use httpbench_core::model::Location;

    fn calibration() -> Calibration {
        Calibration {
            cores: Cores::default(),
            fingerprint: fingerprint(),
            executable_sha256: Sha256Hex::of_bytes(b""),
            listing: ScenarioListing {
                name: "reference".to_owned(),
                doc: String::new(),
                location: Location { file: String::new(), line: 0 },
                options: Options::default(),
                request: Err(String::new()),
            },
            steps_per_second: 1e9,
            bare: 8e-6,
        }
    }

    fn work(speed: &str, change: f64) -> (Work, Work) {
        calibration().work(&Kind { speed: speed.parse().expect("a speed"), change: Change(change) })
    }

    #[test]
    fn injected_work_is_a_share_of_what_the_whole_request_costs() {
        assert_eq!(work("100000", 0.05), (Work(2_000), Work(2_500)));
        assert_eq!(work("100", 0.30), (Work(9_992_000), Work(12_992_000)));
        assert_eq!(work("3000@1000", 0.0).0, work("3000", 0.0).1, "equal servers are equal");
    }

    #[test]
    fn server_that_cannot_be_as_fast_as_wanted_is_slowed_down_by_its_own_cost() {
        assert_eq!(work("1000000", 0.5), (Work(0), Work(4_000)));
    }

    #[test]
    fn load_is_that_of_a_default_comparison_with_few_connections_to_slow_servers() {
        let of = |speed: &str| layers(&SelftestOptions::default(), speed.parse().expect("a speed")).settings();
        let usual = Layers { purpose: Purpose::Comparison, ..Layers::default() }.settings();
        assert_eq!(of("3000"), usual);
        assert_eq!(of("300").load.connections, FEW_CONNECTIONS);
        assert_eq!(of("3000@1000").load.arrival_rate, Some(1_000.0));
        let options = SelftestOptions { tolerance: Some(0.01), order: ArmOrder::Sequential, ..Default::default() };
        let tight = layers(&options, "3000".parse().expect("a speed")).settings().load;
        assert_eq!(tight.tolerance[&Metric::Throughput], Ratio(0.01));
    }
}
