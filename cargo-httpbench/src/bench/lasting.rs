//! A bench binary that outlasts its processes: one that died, or was left alone with a plan, is replaced by a fresh one.
//!
//! So a scenario that brings its bench binary down does not take the scenarios after it along.

use std::path::PathBuf;

use httpbench_core::model::{Recording, RoundPlan, ScenarioListing, Trace, TracePlan};

use super::{BenchBinary, SpawnBench};
use crate::build::BenchExecutable;
use crate::environment::Environment;
use crate::error::Result;
use crate::warning::Warning;

/// A bench binary and how it is started.
pub struct Bench {
    spawner: Box<dyn SpawnBench>,
    executable: BenchExecutable,
    package_root: PathBuf,
    environment: Environment,
    /// `None` before the first question, and after one that got no answer.
    binary: Option<BenchBinary>,
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Bench").field("executable", &self.executable).finish_non_exhaustive()
    }
}

impl Bench {
    /// For an executable that runs in the package's folder. It is started by the first question.
    #[must_use]
    pub fn new(
        spawner: Box<dyn SpawnBench>,
        executable: BenchExecutable,
        package_root: PathBuf,
        environment: Environment,
    ) -> Self {
        Self { spawner, executable, package_root, environment, binary: None }
    }

    /// Its process, if one runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.binary.as_ref().map(BenchBinary::pid)
    }

    /// Every scenario, and what is odd about the bench binary.
    ///
    /// # Errors
    ///
    /// See [`BenchBinary::start`] and [`BenchBinary::list`].
    pub fn list(&mut self, waiting: &mut dyn FnMut() -> Result<()>) -> Result<(Vec<ScenarioListing>, Option<Warning>)> {
        self.ask(waiting, |binary, waiting| Ok((binary.list(waiting)?, binary.warning())))
    }

    /// Runs one round of one scenario.
    ///
    /// # Errors
    ///
    /// See [`BenchBinary::start`] and [`BenchBinary::run`].
    pub fn run(&mut self, plan: &RoundPlan, waiting: &mut dyn FnMut() -> Result<()>) -> Result<Recording> {
        self.ask(waiting, |binary, waiting| binary.run(plan, waiting))
    }

    /// Performs one exchange and shows it.
    ///
    /// # Errors
    ///
    /// See [`BenchBinary::start`] and [`BenchBinary::trace`].
    pub fn trace(&mut self, plan: &TracePlan, waiting: &mut dyn FnMut() -> Result<()>) -> Result<Trace> {
        self.ask(waiting, |binary, waiting| binary.trace(plan, waiting))
    }

    fn ask<T>(
        &mut self,
        waiting: &mut dyn FnMut() -> Result<()>,
        question: impl FnOnce(&mut BenchBinary, &mut dyn FnMut() -> Result<()>) -> Result<T>,
    ) -> Result<T> {
        let mut binary = match self.binary.take() {
            Some(binary) => binary,
            None => BenchBinary::start(
                &mut *self.spawner,
                &self.executable,
                self.package_root.clone(),
                self.environment.clone(),
                waiting,
            )?,
        };
        let answer = question(&mut binary, waiting);
        self.binary = Some(binary).filter(BenchBinary::is_usable);
        answer
    }
}
