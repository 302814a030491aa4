//! What is measured: the arms, the bench binaries that drive them, the scenarios.

use httpbench_core::model::{Nanos, ScenarioListing};
use serde::Serialize;

use super::Cores;
use crate::bench::Bench;
use crate::config::LoadSettings;
use crate::server::{PortPolicy, ServerSpec};

/// The arm that a run is about.
pub const CANDIDATE: usize = 0;

/// The arm that it is compared with, where there is one.
pub const BASELINE: usize = 1;

/// One package's servers, and what drives them.
#[derive(Debug)]
pub struct Subject<'run> {
    /// The package's name.
    pub package: &'run str,
    /// The candidate, and the baseline if there is one, at [`CANDIDATE`] and [`BASELINE`].
    pub arms: Vec<&'run ServerSpec>,
    /// The reference server, where every round is to be measured beside it as well. It is none of the arms, and left out where those
    /// run one at a time.
    pub reference: Option<&'run ServerSpec>,
    /// How they run.
    pub arms_run: Arms,
    /// Who runs where.
    pub cores: &'run Cores,
    /// Its bench targets; [`Selected::bench`] points here.
    pub benches: &'run mut [Bench],
    /// What to run, by name.
    pub scenarios: Vec<Selected>,
}

/// How the arms of a comparison run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "run")]
pub enum Arms {
    /// At once, so that their slices follow each other closely.
    Together {
        /// How each comes to a port of its own.
        ports: PortPolicy,
    },
    /// Each alone, with all slices of a scenario's round, because both insist on the same port.
    OneAtATime {
        /// Why that port could not be redirected.
        why: String,
    },
}

impl Default for Arms {
    fn default() -> Self {
        Self::Together { ports: PortPolicy::default() }
    }
}

/// A scenario that was selected, with its settings.
#[derive(Clone, Debug)]
pub struct Selected {
    /// Index into [`Subject::benches`].
    pub bench: usize,
    /// As the bench binary lists it.
    pub listing: ScenarioListing,
    /// How it is loaded and judged.
    pub load: LoadSettings,
}

/// How often, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Rounds that a scenario's duration is spread over, at least 1.
    pub count: u32,
    /// Orders and jitters follow it.
    pub seed: u64,
}

impl Rounds {
    /// Loaded time of a scenario in one round, over `arms` arms.
    pub(super) fn step_time(self, load: &LoadSettings, arms: usize) -> Nanos {
        (load.warm_up + load.duration / u64::from(self.count.max(1))) * arms as u64
    }
}
