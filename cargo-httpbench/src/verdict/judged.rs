//! A scenario with everything that is said of it.

use super::{LimitVerdict, Saturation, judge_limits, judge_saturation};
use crate::exit_code::ExitCode;
use crate::measure::MeasuredScenario;

/// A measured scenario and its verdicts.
#[derive(Debug)]
pub struct Judged<'run> {
    /// What was measured.
    pub scenario: &'run MeasuredScenario,
    /// Its limits, the one on errors always among them. Empty if nothing was measured.
    pub limits: Vec<LimitVerdict>,
    /// Set where throughput was the engine's and not the server's.
    pub saturation: Option<Saturation>,
}

impl<'run> Judged<'run> {
    /// Judges one scenario; `server_cores` as in [`judge_saturation`].
    #[must_use]
    pub fn new(scenario: &'run MeasuredScenario, server_cores: Option<usize>) -> Self {
        let limits = if scenario.rounds.is_empty() { Vec::new() } else { judge_limits(scenario) };
        Self { scenario, limits, saturation: judge_saturation(&scenario.rounds, server_cores) }
    }

    /// The limits that fail the build.
    pub fn failing_limits(&self) -> impl Iterator<Item = &LimitVerdict> {
        self.limits.iter().filter(|limit| limit.state.fails())
    }

    /// The codes that this scenario alone would end the run with.
    #[must_use]
    pub fn findings(&self) -> Vec<ExitCode> {
        let failure = self.scenario.failure.as_ref().map(|failure| failure.exit);
        let limit = self.failing_limits().next().map(|_| ExitCode::Regression);
        let invalid = self.saturation.map(|_| ExitCode::InvalidMeasurement);
        [failure, limit, invalid].into_iter().flatten().collect()
    }
}
