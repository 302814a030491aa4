//! A package's rounds: who runs when, on which servers, and what becomes of a scenario that fails.
//!
//! The story decides how many rounds there are and what for; a campaign runs them.

use std::collections::BTreeSet;
use std::time::Duration;

use httpbench_core::model::{ArmPlan, Asked, Load, Nanos, Recording, RoundPlan, Schedule, SlicePlan};

use super::disturbance::{Disturbance, Witness};
use super::one_at_a_time::{merge, slices_of};
use super::reference::{split, with_reference};
use super::servers::{Servers, StartOrder};
use super::subject::{Arms, CANDIDATE, Rounds, Selected, Subject};
use super::{Forecast, MeasuredPackage, MeasuredRound, MeasuredScenario, Pilot, Progress, SliceScheme};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::server::ServerSpec;
use crate::warning::Warning;

/// Loaded time of each arm in the pilot, which finds out how long an exchange takes.
const PILOT: Nanos = Nanos::from_millis(150);

/// Of a scenario's rounds, one in so many may be measured again because it was disturbed, and one more: then more than a quarter
/// of what was measured is discarded, which the verdict says, and repeating on would only take time.
const REPEATED: usize = 3;

/// Fresh server processes, round after round.
pub struct Campaign<'run> {
    subject: Subject<'run>,
    rounds: Rounds,
    interrupt: &'run Interrupt,
    watcher: &'run mut dyn FnMut(Progress<'_>) -> Result<()>,
    random: fastrand::Rng,
    /// How often all scenarios had their turn: what the order of the arms' starts alternates by.
    turns: u64,
    /// Arms whose notes have been told.
    noted: BTreeSet<usize>,
    forecast: Forecast,
    measured: MeasuredPackage,
}

/// What rounds are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// To find something out.
    First,
    /// To confirm it, on fresh data.
    Fresh,
}

/// What a scenario's round runs on.
#[derive(Clone, Copy)]
enum Ground<'servers> {
    /// All arms, which run already.
    Running(&'servers Servers),
    /// Every arm is started for it and stopped after it, one at a time.
    OneAtATime,
}

/// What came of a plan.
struct Loaded {
    round: MeasuredRound,
    disturbance: Option<Disturbance>,
}

/// What an error ends.
enum Failed {
    /// This scenario's measurement.
    Scenario(Error),
    /// The run: that is no scenario's fault.
    Run(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        match error.exit {
            ExitCode::Signal(_) => Self::Run(error),
            _ => Self::Scenario(error),
        }
    }
}

impl<'run> Campaign<'run> {
    /// Nothing is started yet. A scenario whose function failed when it was listed has failed already.
    #[must_use]
    pub fn new(
        mut subject: Subject<'run>,
        rounds: Rounds,
        interrupt: &'run Interrupt,
        watcher: &'run mut dyn FnMut(Progress<'_>) -> Result<()>,
    ) -> Self {
        let scenarios = subject.scenarios.iter_mut().map(|selected| start_of(selected)).collect();
        let measured = MeasuredPackage {
            package: subject.package.to_owned(),
            server: subject.arms.first().map(|arm| arm.name.clone()).unwrap_or_default(),
            cores: subject.cores.clone(),
            arms_run: subject.arms_run.clone(),
            rounds: rounds.count,
            scenarios,
            startups: Vec::new(),
        };
        let random = fastrand::Rng::with_seed(rounds.seed);
        let (noted, forecast) = (BTreeSet::new(), Forecast::default());
        Self { subject, rounds, interrupt, watcher, random, turns: 0, noted, forecast, measured }
    }

    /// What was measured so far.
    #[must_use]
    pub fn measured(&self) -> &MeasuredPackage {
        &self.measured
    }

    /// Ends the campaign.
    #[must_use]
    pub fn finish(self) -> MeasuredPackage {
        self.measured
    }

    /// Finds out of every scenario how long an exchange takes, and cuts its time accordingly.
    ///
    /// A scenario that cannot be measured keeps its reason in [`MeasuredScenario::failure`], and the others go on.
    ///
    /// # Errors
    ///
    /// When a signal came, or a server did not get ready: that is no scenario's fault.
    pub fn pilot(&mut self) -> Result<()> {
        if let Arms::OneAtATime { why } = &self.subject.arms_run {
            let warning = Warning::ArmsOneAtATime { package: self.measured.package.clone(), why: why.clone() };
            (self.watcher)(Progress::Warning(warning))?;
        }
        let all: Vec<usize> = (0..self.measured.scenarios.len()).collect();
        self.each(&all, |campaign, index, ground| campaign.pilot_one(index, ground))
    }

    /// Runs rounds of some scenarios, by their index in [`MeasuredPackage::scenarios`].
    ///
    /// # Errors
    ///
    /// As [`Campaign::pilot`].
    pub fn run(&mut self, rounds: u32, stage: Stage, scenarios: &[usize]) -> Result<()> {
        let arms = self.subject.arms.len();
        let time: Nanos =
            scenarios.iter().map(|&index| self.rounds.step_time(&self.measured.scenarios[index].load, arms)).sum();
        self.forecast.extend(u64::from(rounds) * scenarios.len() as u64, time * u64::from(rounds));
        if stage == Stage::Fresh && !scenarios.is_empty() {
            let names: Vec<&str> = scenarios.iter().map(|&index| self.measured.scenarios[index].name()).collect();
            let text =
                format!("`{}` in {rounds} fresh rounds, to confirm what the first ones found", names.join("`, `"));
            (self.watcher)(Progress::Confirming(text))?;
        }
        for _ in 0..rounds {
            self.each(scenarios, |campaign, index, ground| {
                let round = campaign.undisturbed_round(index, ground)?;
                let scenario = &mut campaign.measured.scenarios[index];
                match stage {
                    Stage::First => scenario.rounds.push(round),
                    Stage::Fresh => scenario.confirmation.push(round),
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Says that a scenario has all its rounds.
    ///
    /// # Errors
    ///
    /// When it cannot be said.
    pub fn tell_measured(&mut self) -> Result<()> {
        let total = self.measured.scenarios.len();
        for (index, scenario) in self.measured.scenarios.iter().enumerate() {
            if let Some(warning) = scenario.unreached_arrival_rate() {
                (self.watcher)(Progress::Warning(warning))?;
            }
            if scenario.failure.is_none() {
                (self.watcher)(Progress::Measured { scenario: scenario.name(), done: index + 1, total })?;
            }
        }
        Ok(())
    }

    /// Every named scenario that has not failed, once: those that only read on one set of servers, each that writes on its own.
    /// Arms that run one at a time are started anew for each.
    fn each(
        &mut self,
        scenarios: &[usize],
        mut turn: impl FnMut(&mut Self, usize, Ground<'_>) -> Result<(), Failed>,
    ) -> Result<()> {
        self.turns += 1;
        let (writing, reading): (Vec<usize>, Vec<usize>) =
            scenarios.iter().copied().filter(|&index| self.measured.scenarios[index].failure.is_none()).partition(
                |&index| self.measured.scenarios[index].listing.request.as_ref().is_ok_and(|it| it.writes()),
            );
        if matches!(self.subject.arms_run, Arms::OneAtATime { .. }) {
            for scenarios in [reading, writing] {
                for index in self.shuffled(scenarios) {
                    let outcome = self.step(index, Ground::OneAtATime, &mut turn)?;
                    self.settle(index, outcome)?;
                }
            }
            return Ok(());
        }
        // The reference server counts as the arm after the last one.
        let all: Vec<usize> = (0..self.subject.arms.len() + usize::from(self.subject.reference.is_some())).collect();
        let mut shared: Option<Servers> = None;
        for index in self.shuffled(reading) {
            let servers = match shared.take() {
                Some(servers) => servers,
                None => self.start_servers(&all)?,
            };
            shared = self.turn(index, servers, &mut turn)?;
        }
        if let Some(servers) = shared {
            self.stop(servers)?;
        }
        for index in self.shuffled(writing) {
            let servers = self.start_servers(&all)?;
            if let Some(servers) = self.turn(index, servers, &mut turn)? {
                self.stop(servers)?;
            }
        }
        Ok(())
    }

    fn shuffled(&mut self, mut order: Vec<usize>) -> Vec<usize> {
        self.random.shuffle(&mut order);
        order
    }

    /// One scenario's turn on servers that run. Gives them back if they can serve the next scenario.
    fn turn(
        &mut self,
        index: usize,
        servers: Servers,
        turn: &mut impl FnMut(&mut Self, usize, Ground<'_>) -> Result<(), Failed>,
    ) -> Result<Option<Servers>> {
        let outcome = self.step(index, Ground::Running(&servers), turn)?;
        // A server that died while the last answers were on their way has spoilt the round all the same.
        let died = servers.died();
        let alive = died.is_none();
        let outcome = outcome.and_then(|()| died.map_or(Ok(()), |error| Err(error.into())));
        if let Err(error) = self.settle(index, outcome) {
            // What ended the run counts, whatever the servers' end brings.
            let _ = self.stop(servers);
            return Err(error);
        }
        if alive {
            return Ok(Some(servers));
        }
        self.stop(servers)?;
        Ok(None)
    }

    /// Says that a scenario's turn begins, takes it, and advances the forecast.
    fn step(
        &mut self,
        index: usize,
        ground: Ground<'_>,
        turn: &mut impl FnMut(&mut Self, usize, Ground<'_>) -> Result<(), Failed>,
    ) -> Result<Result<(), Failed>> {
        let (done, total) = self.forecast.steps();
        let left = self.forecast.left();
        (self.watcher)(Progress::Step { scenario: self.measured.scenarios[index].name(), done, total, left })?;
        let outcome = turn(self, index, ground);
        self.forecast.advance(self.rounds.step_time(&self.measured.scenarios[index].load, self.subject.arms.len()));
        Ok(outcome)
    }

    /// Keeps why a scenario failed with it, and gives back what ends the run.
    fn settle(&mut self, index: usize, outcome: Result<(), Failed>) -> Result<()> {
        match outcome {
            Ok(()) => {}
            Err(Failed::Scenario(error)) => self.measured.scenarios[index].failure = Some(error),
            Err(Failed::Run(error)) => return Err(error),
        }
        Ok(())
    }

    /// Repeats a round that was disturbed from outside, as long as the scenario may repeat rounds; then it stands as it is.
    fn undisturbed_round(&mut self, index: usize, ground: Ground<'_>) -> Result<MeasuredRound, Failed> {
        loop {
            let Loaded { round, disturbance } = self.scenario_round(index, ground)?;
            let Some(disturbance) = disturbance else { return Ok(round) };
            let scenario = &mut self.measured.scenarios[index];
            if scenario.discarded.len() > self.rounds.count as usize / REPEATED {
                return Ok(round);
            }
            scenario.discarded.push(disturbance);
            let name = scenario.name();
            (self.watcher)(Progress::Detail(format!("a round of `{name}` is measured again: {disturbance}")))?;
        }
    }

    fn witness(&self, index: usize, servers: &Servers) -> Witness {
        let bench = self.subject.benches[self.subject.scenarios[index].bench].pid();
        let ours = servers.processes().into_iter().chain(bench).chain([std::process::id()]);
        Witness::now(self.interrupt.suspensions(), &self.measured.cores, ours)
    }

    fn scenario_round(&mut self, index: usize, ground: Ground<'_>) -> Result<Loaded, Failed> {
        let scenario = &self.measured.scenarios[index];
        let warm_up = scenario.load.warm_up;
        let scheme = scenario
            .scheme()
            .ok_or_else(|| Error::new(ExitCode::Unexpected, format!("`{}` had no pilot", scenario.name())))?;
        let arms = self.subject.arms.len();
        let mut slices = scheme.slices(arms, &mut self.random);
        if self.subject.reference.is_some() && matches!(ground, Ground::Running(_)) {
            slices = with_reference(slices, arms, arms);
        }
        self.execute(index, ground, warm_up, slices)
    }

    /// Takes every arm through its warm-up and its slices.
    fn execute(
        &mut self,
        index: usize,
        ground: Ground<'_>,
        warm_up: Nanos,
        slices: Vec<SlicePlan>,
    ) -> Result<Loaded, Failed> {
        let servers = match ground {
            Ground::Running(servers) => servers,
            Ground::OneAtATime => return self.execute_one_at_a_time(index, warm_up, &slices),
        };
        Ok(self.load(index, servers, warm_up, slices)?)
    }

    /// Arm after arm, in an order that is drawn anew. What disturbs one of them disturbs the round, whichever it is.
    fn execute_one_at_a_time(&mut self, index: usize, warm_up: Nanos, slices: &[SlicePlan]) -> Result<Loaded, Failed> {
        let order = self.shuffled((0..self.subject.arms.len()).collect());
        let mut alone = Vec::new();
        let mut disturbance = None;
        for arm in order {
            let loaded = self.load_alone(index, arm, warm_up, slices_of(arm, slices))?;
            disturbance = disturbance.or(loaded.disturbance);
            alone.push((arm, loaded.round));
        }
        alone.sort_by_key(|&(arm, _)| arm);
        let round = merge(slices, alone.into_iter().map(|(_, round)| round).collect());
        let round =
            round.ok_or_else(|| Error::new(ExitCode::Unexpected, "the arms' recordings are not of the same plan"))?;
        Ok(Loaded { round, disturbance })
    }

    /// One arm, on a server and a state folder of its own.
    fn load_alone(
        &mut self,
        index: usize,
        arm: usize,
        warm_up: Nanos,
        slices: Vec<SlicePlan>,
    ) -> Result<Loaded, Failed> {
        let servers = self.start_servers(&[arm]).map_err(Failed::Run)?;
        let outcome = self.load(index, &servers, warm_up, slices);
        // A server that died while the last answers were on their way has spoilt the round all the same.
        let outcome = outcome.and_then(|loaded| servers.died().map_or(Ok(loaded), Err)).map_err(Failed::from);
        match (outcome, self.stop(servers)) {
            // What ended the run counts, whatever the server's end brings.
            (Err(Failed::Run(error)), _) | (_, Err(error)) => Err(Failed::Run(error)),
            (outcome, Ok(())) => outcome,
        }
    }

    /// Takes servers that run through their warm-up and their slices, and looks at the machine before and after.
    fn load(&mut self, index: usize, servers: &Servers, warm_up: Nanos, slices: Vec<SlicePlan>) -> Result<Loaded> {
        let before = self.witness(index, servers);
        servers.reset_peak_memory();
        let recording = self.run_engine(index, servers, warm_up, slices)?;
        let last_lines = &mut self.measured.scenarios[index].last_lines;
        if last_lines.is_empty() {
            *last_lines = servers.last_lines_after_failures(&recording);
        }
        let mut memory = servers.memory();
        let (recording, reference) = match self.subject.arms.len() {
            // One arm alone, of several that run one at a time.
            _ if servers.iter().count() == 1 => (recording, None),
            arms => {
                memory.truncate(arms);
                split(recording, arms)
            }
        };
        let round = MeasuredRound { recording, memory, reference };
        let after = self.witness(index, servers);
        Ok(Loaded { round, disturbance: before.disturbance(&after) })
    }

    fn pilot_one(&mut self, index: usize, ground: Ground<'_>) -> Result<(), Failed> {
        let load = self.measured.scenarios[index].load.clone();
        let arms = self.subject.arms.len();
        let slices =
            (0..arms).map(|arm| SlicePlan { arm, length: PILOT, lead_in: Nanos::ZERO, requests: None }).collect();
        let recording = self.execute(index, ground, load.warm_up, slices)?.round.recording;
        let p50 = recording.arms.iter().filter_map(|arm| arm.service.quantile(0.5)).max();
        let scheme = SliceScheme::new(&load, self.rounds.count, p50);
        let slowest = recording.slices.iter().map(|slice| slice.good).min().unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "a count of a short slice")]
        let exchanges_a_round = slowest as f64 / PILOT.as_secs_f64() * scheme.loaded().as_secs_f64();
        let name = self.measured.scenarios[index].name().to_owned();
        (self.watcher)(Progress::Detail(describe(&name, &scheme, self.rounds, p50)))?;
        if scheme.stretched {
            let loaded = (scheme.loaded() * u64::from(self.rounds.count)).as_duration();
            (self.watcher)(Progress::Warning(Warning::Stretched { scenario: name, loaded }))?;
        }
        self.measured.scenarios[index].pilot = Some(Pilot { scheme, exchanges_a_round });
        Ok(())
    }

    fn run_engine(
        &mut self,
        index: usize,
        servers: &Servers,
        warm_up: Nanos,
        slices: Vec<SlicePlan>,
    ) -> Result<Recording> {
        let scenario = &self.measured.scenarios[index];
        let cores = &self.measured.cores.engine;
        let threads = scenario.load.threads.unwrap_or_else(|| u32::try_from(cores.len()).unwrap_or(1).max(1));
        let plan = RoundPlan {
            scenario: scenario.name().to_owned(),
            arms: self.plans(servers),
            load: Load {
                connections: scenario.load.connections,
                threads: threads.min(scenario.load.connections),
                schedule: match scenario.load.arrival_rate {
                    Some(per_second) => Schedule::Constant { per_second },
                    None => Schedule::Closed,
                },
                cores: cores.clone(),
                request_timeout: scenario.load.request_timeout,
                connect_timeout: scenario.load.connect_timeout,
                ..Load::default()
            },
            warm_up,
            slices,
        };
        let interrupt = self.interrupt;
        let bench = self.subject.scenarios[index].bench;
        let recording = self.subject.benches[bench].run(&plan, &mut || {
            interrupt.check()?;
            servers.died().map_or(Ok(()), Err)
        })?;
        accept(&plan, recording)
    }

    /// What the engine is told of the servers: whatever runs beside the arms is the reference server.
    fn plans(&self, servers: &Servers) -> Vec<ArmPlan> {
        let mut plans = servers.plans();
        for reference in plans.iter_mut().skip(self.subject.arms.len()) {
            reference.asked = Asked::Reference;
        }
        plans
    }

    /// Starts these arms; the one after the last is the reference server.
    fn start_servers(&mut self, arms: &[usize]) -> Result<Servers> {
        // By rounds, not by starts: there are as many starts in each round, so a scenario's own would always be in one order.
        let order = if self.turns.is_multiple_of(2) { StartOrder::Forward } else { StartOrder::Backward };
        let spec_of = |&arm: &usize| self.subject.arms.get(arm).copied().or(self.subject.reference);
        let specs: Vec<&ServerSpec> = arms.iter().filter_map(spec_of).collect();
        let servers = Servers::start(&specs, order, self.interrupt)?;
        for (&arm, server) in arms.iter().zip(servers.iter()) {
            if self.noted.insert(arm) {
                for note in server.notes() {
                    (self.watcher)(Progress::Note(format!("`{}` {note}", server.name())))?;
                }
            }
            (self.watcher)(Progress::Detail(format!(
                "`{}` listens on {} and was ready after {} ms",
                server.name(),
                server.address(),
                server.startup().as_millis()
            )))?;
            if arm == CANDIDATE {
                self.measured.startups.push(server.startup());
            }
        }
        Ok(servers)
    }

    fn stop(&mut self, servers: Servers) -> Result<()> {
        servers.stop()?.into_iter().try_for_each(|warning| (self.watcher)(Progress::Warning(warning)))
    }
}

/// A recording of the plan that was given, in which no exchange is lost.
fn accept(plan: &RoundPlan, recording: Recording) -> Result<Recording> {
    if recording.arms.len() != plan.arms.len() || recording.slices.len() != plan.slices.len() {
        return Err(Error::new(ExitCode::Unexpected, "the load engine answered another plan than it was given"));
    }
    if let Some(arm) = recording.arms.iter().find(|arm| !arm.counts.balances() || !arm.warm_up.balances()) {
        return Err(Error::new(
            ExitCode::Unexpected,
            format!("the load engine lost exchanges: {:?}, warm-up {:?}", arm.counts, arm.warm_up),
        ));
    }
    Ok(recording)
}

fn start_of(selected: &Selected) -> MeasuredScenario {
    let listing = selected.listing.clone();
    let failure = listing.request.as_ref().err().map(|reason| {
        Error::new(ExitCode::InvalidMeasurement, format!("scenario `{}` renders no request: {reason}", listing.name))
            .help(format!("see {}:{}", listing.location.file, listing.location.line))
    });
    MeasuredScenario {
        listing,
        load: selected.load.clone(),
        pilot: None,
        rounds: Vec::new(),
        confirmation: Vec::new(),
        discarded: Vec::new(),
        last_lines: Vec::new(),
        failure,
    }
}

fn describe(name: &str, scheme: &SliceScheme, rounds: Rounds, p50: Option<Nanos>) -> String {
    let millis = |time: Nanos| Duration::from(time).as_secs_f64() * 1e3;
    let pilot =
        p50.map_or_else(|| "saw no good exchange".to_owned(), |p50| format!("saw a median of {:.2} ms", millis(p50)));
    format!(
        "`{name}`: the pilot {pilot}; {} rounds of {} slices of {:.0} ms for each arm, the first {:.0} ms of each left out",
        rounds.count,
        scheme.count,
        millis(scheme.length),
        millis(scheme.lead_in)
    )
}
