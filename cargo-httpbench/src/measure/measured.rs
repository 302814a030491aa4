//! What a run saw, by package and scenario, and the values that a round has for each metric.

use std::time::Duration;

use httpbench_core::model::{
    ArmRecording, Arrivals, Counts, EngineUsage, Histogram, Metric, Nanos, Recording, ScenarioListing, StatusClasses,
};

use super::Cores;
use super::disturbance::Disturbance;
use super::plan::SliceScheme;
use super::subject::{Arms, BASELINE, CANDIDATE};
use crate::config::LoadSettings;
use crate::error::Error;
use crate::server::Memory;
use crate::warning::Warning;

/// An arrival rate counts as reached from this share of what was asked for: a start or two at a slice's edge may be late.
const ARRIVALS_REACHED: f64 = 0.99;

/// Everything measured of one package.
#[derive(Debug)]
pub struct MeasuredPackage {
    /// The package.
    pub package: String,
    /// The server's binary target.
    pub server: String,
    /// Who ran where.
    pub cores: Cores,
    /// How its arms ran.
    pub arms_run: Arms,
    /// Rounds of the plan.
    pub rounds: u32,
    /// In the order of their names.
    pub scenarios: Vec<MeasuredScenario>,
    /// From the start of the process to its first answer, of every candidate that was started.
    pub startups: Vec<Duration>,
}

/// Everything measured of one scenario.
#[derive(Debug)]
pub struct MeasuredScenario {
    /// As the bench binary lists it.
    pub listing: ScenarioListing,
    /// How it was loaded and is judged.
    pub load: LoadSettings,
    /// What the pilot found out; `None` if it failed.
    pub pilot: Option<Pilot>,
    /// The rounds of the plan.
    pub rounds: Vec<MeasuredRound>,
    /// Fresh rounds, for what the first ones found.
    pub confirmation: Vec<MeasuredRound>,
    /// Why rounds were discarded, and measured again.
    pub discarded: Vec<Disturbance>,
    /// The last lines that a server had written when exchanges with it failed for the first time.
    pub last_lines: Vec<String>,
    /// Why there are no more rounds.
    pub failure: Option<Error>,
}

/// What a short run before the first round found out.
#[derive(Clone, Debug, PartialEq)]
pub struct Pilot {
    /// How the time of a round is cut.
    pub scheme: SliceScheme,
    /// Good exchanges that an arm is expected to complete in a round: of the slowest arm.
    pub exchanges_a_round: f64,
}

/// One round of one scenario.
#[derive(Clone, Debug)]
pub struct MeasuredRound {
    /// What the engine saw.
    pub recording: Recording,
    /// Memory of every arm's process tree at the end of the round, with the peak since its beginning.
    pub memory: Vec<Option<Memory>>,
    /// What the engine saw of the reference server, as an arm of its own, between the slices of the others.
    pub reference: Option<Recording>,
}

impl MeasuredPackage {
    /// Whether there is anything to report: a round, or a scenario that failed by itself.
    #[must_use]
    pub fn has_results(&self) -> bool {
        self.scenarios.iter().any(|scenario| !scenario.rounds.is_empty() || scenario.failure.is_some())
    }
}

impl MeasuredScenario {
    /// The scenario's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.listing.name
    }

    /// The candidate's exchanges of all rounds, confirmation included.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts_of(CANDIDATE)
    }

    /// An arm's exchanges of all rounds, confirmation included.
    #[must_use]
    pub fn counts_of(&self, arm: usize) -> Counts {
        let mut counts = Counts::default();
        self.all_rounds().filter_map(|round| round.recording.arms.get(arm)).for_each(|arm| counts.merge(&arm.counts));
        counts
    }

    /// The statuses of all rounds.
    #[must_use]
    pub fn statuses(&self) -> StatusClasses {
        let mut statuses = StatusClasses::default();
        self.all_rounds().for_each(|round| statuses += round.arm().statuses);
        statuses
    }

    /// One histogram of all rounds.
    #[must_use]
    pub fn merged(&self, of: impl Fn(&ArmRecording) -> &Histogram) -> Histogram {
        let mut merged = Histogram::default();
        self.rounds.iter().for_each(|round| merged.merge(of(round.arm())));
        merged
    }

    /// How the time of a round is cut, once the pilot has run.
    #[must_use]
    pub fn scheme(&self) -> Option<SliceScheme> {
        self.pilot.as_ref().map(|pilot| pilot.scheme)
    }

    /// The arrival rate that an arm of an open loop was really given, in starts per second over the loaded time.
    #[must_use]
    pub fn arrival_rate_reached(&self, arm: usize) -> Option<f64> {
        let mut arrivals = Arrivals::default();
        self.rounds.iter().filter_map(|round| round.recording.arrivals(arm)).for_each(|round| arrivals += round);
        Some(self.load.arrival_rate? * arrivals.reached()?)
    }

    /// The warning if that is less than was asked for, of whichever arm is farther from it.
    #[must_use]
    pub fn unreached_arrival_rate(&self) -> Option<Warning> {
        let asked = self.load.arrival_rate?;
        let reached = [CANDIDATE, BASELINE].into_iter().filter_map(|arm| self.arrival_rate_reached(arm));
        let reached = reached.min_by(f64::total_cmp)?;
        let scenario = self.name().to_owned();
        (reached < asked * ARRIVALS_REACHED).then(|| Warning::ArrivalRateNotReached {
            scenario,
            asked: asked.into(),
            reached: reached.into(),
        })
    }

    fn all_rounds(&self) -> impl Iterator<Item = &MeasuredRound> {
        self.rounds.iter().chain(&self.confirmation)
    }
}

/// The candidate's values of a metric in some rounds; rounds without one are left out.
#[must_use]
pub fn values(rounds: &[MeasuredRound], metric: Metric) -> Vec<f64> {
    values_of(CANDIDATE, rounds, metric)
}

/// An arm's values of a metric in some rounds; rounds without one are left out.
#[must_use]
pub fn values_of(arm: usize, rounds: &[MeasuredRound], metric: Metric) -> Vec<f64> {
    rounds.iter().filter_map(|round| round.value_of(arm, metric)).collect()
}

impl MeasuredRound {
    /// What the engine saw of the candidate.
    ///
    /// # Panics
    ///
    /// When the recording has no arm, which [`crate::measure`] does not accept from the engine.
    #[must_use]
    pub fn arm(&self) -> &ArmRecording {
        &self.recording.arms[CANDIDATE]
    }

    /// The candidate's value of a metric.
    #[must_use]
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.value_of(CANDIDATE, metric)
    }

    /// The candidate's starts of an open loop; `None` in a closed one.
    #[must_use]
    pub fn arrivals(&self) -> Option<Arrivals> {
        self.recording.arrivals(CANDIDATE)
    }

    /// The times that an arm's quantiles are of: response times in an open loop, service times in a closed one.
    fn times_of(&self, arm: usize) -> Option<&Histogram> {
        let recorded = self.recording.arms.get(arm)?;
        Some(if self.recording.arrivals(arm).is_some() { &recorded.response } else { &recorded.service })
    }

    /// An arm's value of a metric in its base unit; `None` where nothing was seen.
    ///
    /// Quantiles are those of the response time in an open loop, and of the service time in a closed one.
    /// Throughput is the sum of the slices' completions over the sum of their spans, so that a stall in one slice counts in
    /// full. CPU time is divided by all exchanges that completed in the same time, lead-in and drain included.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts and times below 2^52")]
    pub fn value_of(&self, arm: usize, metric: Metric) -> Option<f64> {
        let slices = || self.recording.slices.iter().filter(move |slice| slice.arm == arm);
        let recorded = self.recording.arms.get(arm)?;
        match metric {
            Metric::Throughput => {
                let span: Nanos = slices().map(|slice| slice.span).sum();
                let good: u64 = slices().map(|slice| slice.good).sum();
                (good > 0 && span > Nanos::ZERO).then(|| good as f64 / span.as_secs_f64())
            }
            Metric::CpuPerRequest => {
                let cpu = slices().map(|slice| slice.cpu.get(arm).copied().flatten()).sum::<Option<Nanos>>()?;
                let completed: u64 = slices().map(|slice| slice.completed).sum();
                (completed > 0).then(|| cpu.0 as f64 / completed as f64)
            }
            Metric::PeakMemory => self.memory.get(arm)?.map(|memory| memory.peak_bytes as f64),
            Metric::Errors => {
                let counts = &recorded.counts;
                (counts.started > 0).then(|| counts.failed() as f64 / counts.started as f64)
            }
            quantile => self.times_of(arm)?.quantile(quantile.quantile()?).map(|time| time.0 as f64),
        }
    }

    /// How many good exchanges took longer than a quantile: what the quantile rests on.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a count")]
    pub fn exchanges_beyond(&self, quantile: f64) -> u64 {
        (self.arm().service.count() as f64 * (1.0 - quantile)).floor() as u64
    }

    /// The share of one core that each engine thread used in the slices, from 0 to 1.
    #[must_use]
    pub fn engine_busy(&self) -> Option<f64> {
        let EngineUsage { cpu, wall, threads } = self.recording.engine;
        let available = wall.as_secs_f64() * f64::from(threads);
        (available > 0.0).then(|| cpu.as_secs_f64() / available)
    }

    /// The cores that the loaded arm's process tree kept busy in the slices: 1.0 is one whole core.
    #[must_use]
    pub fn server_cores_busy(&self) -> Option<f64> {
        let slices = &self.recording.slices;
        let cpu = slices.iter().map(|slice| slice.cpu.get(slice.arm).copied().flatten()).sum::<Option<Nanos>>()?;
        let wall: Nanos = slices.iter().map(|slice| slice.wall).sum();
        (wall > Nanos::ZERO).then(|| cpu.as_secs_f64() / wall.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::sample::{open_round, round, scenario};

    #[test]
    fn quantiles_are_response_times_in_an_open_loop_only() {
        let (service, wait) = (Nanos::from_millis(1), Nanos::from_millis(9));
        let near = |value: Option<f64>, millis: f64| value.is_some_and(|value| (value / 1e6 - millis).abs() < 0.02);
        assert!(near(round(100, service).value(Metric::P50), 1.0));
        assert!(near(open_round(100, service, wait, 100).value(Metric::P50), 10.0));
        assert!(near(open_round(100, service, wait, 100).value(Metric::P99), 10.0));
    }

    #[test]
    fn arrival_rate_below_99_percent_of_the_asked_one_is_warned_of() {
        let of = |begun: [u64; 2]| {
            let rounds = begun.map(|begun| open_round(100, Nanos::from_millis(1), Nanos(1), begun)).to_vec();
            let mut scenario = scenario("list", &[], rounds);
            scenario.load.arrival_rate = Some(200.0);
            scenario
        };
        assert_eq!(of([100, 98]).unreached_arrival_rate(), None);
        let short = of([20, 30]);
        assert_eq!(short.arrival_rate_reached(CANDIDATE), Some(50.0));
        let warning = short.unreached_arrival_rate().expect("a quarter is not all");
        assert_eq!(
            warning,
            Warning::ArrivalRateNotReached { scenario: "list".to_owned(), asked: 200.0.into(), reached: 50.0.into() }
        );
        assert_eq!(scenario("list", &[], vec![round(9, Nanos(5))]).arrival_rate_reached(CANDIDATE), None);
    }
}
