//! What a run says while it goes on, and how long the rest will take.

use std::time::{Duration, Instant};

use httpbench_core::model::Nanos;

use crate::warning::Warning;

/// What a run says while it goes on. It says nothing while a slice is measured.
#[derive(Debug)]
pub enum Progress<'run> {
    /// A scenario's round begins.
    Step {
        /// The scenario.
        scenario: &'run str,
        /// Scenario-rounds that are over.
        done: u64,
        /// Scenario-rounds of the plan.
        total: u64,
        /// How long the rest will take.
        left: Duration,
    },
    /// A scenario has all its rounds.
    Measured {
        /// The scenario.
        scenario: &'run str,
        /// Scenarios that have all their rounds, this one included.
        done: usize,
        /// Scenarios of the run.
        total: usize,
    },
    /// Something is measured again, on fresh rounds: what, and why.
    Confirming(String),
    /// What a user should know, though nothing is odd about it.
    Note(String),
    /// What is worth knowing only with `-v`: plans and addresses.
    Detail(String),
    /// Something deserves a look, and travels in the report.
    Warning(Warning),
}

/// How much of the plan is over, and how fast it went.
#[derive(Debug, Default)]
pub struct Forecast {
    /// Of the first step.
    started: Option<Instant>,
    total_steps: u64,
    done_steps: u64,
    total: Nanos,
    done: Nanos,
}

impl Forecast {
    /// So many steps, loaded for so long together, come on top.
    pub fn extend(&mut self, steps: u64, time: Nanos) {
        self.started.get_or_insert_with(Instant::now);
        self.total_steps += steps;
        self.total += time;
    }

    /// A step is over, or will not be taken.
    pub fn advance(&mut self, loaded: Nanos) {
        self.done_steps = (self.done_steps + 1).min(self.total_steps);
        self.done = (self.done + loaded).min(self.total);
    }

    /// Steps that are over, and all.
    #[must_use]
    pub fn steps(&self) -> (u64, u64) {
        (self.done_steps, self.total_steps)
    }

    /// The loaded time that is left, stretched by what went on beside the load so far.
    #[must_use]
    pub fn left(&self) -> Duration {
        let left = (self.total - self.done).as_duration();
        match self.started {
            Some(started) if self.done > Nanos::ZERO => {
                left.mul_f64((started.elapsed().as_secs_f64() / self.done.as_secs_f64()).max(1.0))
            }
            _ => left,
        }
    }
}
