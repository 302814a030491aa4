//! The rounds of one package: who runs when, on which server, and what becomes of a scenario that fails.

use std::time::Duration;

use httpbench_core::model::{ArmPlan, Load, Metric, Nanos, Recording, RoundPlan, ScenarioListing, SlicePlan};

use super::{Cores, MeasuredPackage, MeasuredRound, MeasuredScenario, Progress, Schedule, SliceScheme};
use crate::bench::Bench;
use crate::config::LoadSettings;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::server::{Server, ServerSpec};
use crate::verdict::first_exceeded;
use crate::warning::Warning;

/// The only arm of a run without a comparison.
const ARM: usize = 0;

/// Loaded time of the pilot, which finds out how long an exchange takes.
const PILOT: Nanos = Nanos::from_millis(150);

/// A round that was disturbed from outside is repeated this often at most.
const MOST_REPEATS: u32 = 3;

/// What is measured: one package's server, and the bench binary that drives it.
#[derive(Debug)]
pub struct Subject<'run> {
    /// The package's name.
    pub package: &'run str,
    /// How its server is started.
    pub server: &'run ServerSpec,
    /// Who runs where.
    pub cores: &'run Cores,
    /// Its bench targets; [`Selected::bench`] points here.
    pub benches: &'run mut [Bench],
    /// What to run, by name.
    pub scenarios: Vec<Selected>,
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
    /// At least 1.
    pub count: u32,
    /// Orders and jitters follow it.
    pub seed: u64,
}

/// Measures every scenario of a package.
///
/// A scenario that cannot be measured keeps its reason in [`MeasuredScenario::failure`], and the others go on.
///
/// # Errors
///
/// When a signal came, or a server did not get ready: that is no scenario's fault.
pub fn measure(
    subject: Subject<'_>,
    rounds: Rounds,
    interrupt: &Interrupt,
    watcher: &mut dyn FnMut(Progress<'_>) -> Result<()>,
) -> Result<MeasuredPackage> {
    let steps = subject.scenarios.len() as u64 * u64::from(rounds.count);
    let total =
        subject.scenarios.iter().map(|scenario| step_time(&scenario.load, rounds) * u64::from(rounds.count)).sum();
    let bench_of = subject.scenarios.iter().map(|scenario| scenario.bench).collect();
    let scenarios = subject.scenarios.into_iter().map(start_of).collect();
    let mut run = Run {
        server_spec: subject.server,
        benches: subject.benches,
        bench_of,
        cores: subject.cores,
        interrupt,
        watcher,
        random: fastrand::Rng::with_seed(rounds.seed),
        rounds,
        schedule: Schedule::new(steps, total),
        measured: MeasuredPackage {
            package: subject.package.to_owned(),
            server: subject.server.name.clone(),
            cores: subject.cores.clone(),
            rounds: rounds.count,
            scenarios,
            startups: Vec::new(),
        },
    };
    for round in 0..rounds.count {
        run.round(Part::Plan { last: round + 1 == rounds.count })?;
    }
    run.confirm()?;
    Ok(run.measured)
}

/// Loaded time of a scenario in one round.
fn step_time(load: &LoadSettings, rounds: Rounds) -> Nanos {
    load.warm_up + load.duration / u64::from(rounds.count.max(1))
}

/// A scenario before its first round; one whose function failed when it was listed has failed already.
fn start_of(selected: Selected) -> MeasuredScenario {
    let Selected { listing, load, .. } = selected;
    let failure = listing.request.as_ref().err().map(|reason| {
        Error::new(ExitCode::InvalidMeasurement, format!("scenario `{}` renders no request: {reason}", listing.name))
            .help(format!("see {}:{}", listing.location.file, listing.location.line))
    });
    MeasuredScenario { listing, load, scheme: None, rounds: Vec::new(), confirmation: Vec::new(), failure }
}

/// Which part of a run a round belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The rounds of the plan.
    Plan {
        /// Whether no other follows.
        last: bool,
    },
    /// Fresh rounds for the scenarios whose limits were exceeded.
    Confirmation,
}

struct Run<'run> {
    server_spec: &'run ServerSpec,
    benches: &'run mut [Bench],
    bench_of: Vec<usize>,
    cores: &'run Cores,
    interrupt: &'run Interrupt,
    watcher: &'run mut dyn FnMut(Progress<'_>) -> Result<()>,
    random: fastrand::Rng,
    rounds: Rounds,
    schedule: Schedule,
    measured: MeasuredPackage,
}

impl Run<'_> {
    /// Every scenario that has not failed, once: those that only read on one server, each that writes on its own.
    fn round(&mut self, part: Part) -> Result<()> {
        let (writing, reading): (Vec<usize>, Vec<usize>) = self
            .taking_part(part)
            .into_iter()
            .partition(|&index| self.measured.scenarios[index].listing.request.as_ref().is_ok_and(|it| it.writes()));
        let mut shared: Option<Server> = None;
        for index in self.shuffled(reading) {
            let server = match shared.take() {
                Some(server) => server,
                None => self.start_server()?,
            };
            shared = self.step(index, server, part)?;
        }
        if let Some(server) = shared {
            self.stop(server)?;
        }
        for index in self.shuffled(writing) {
            let server = self.start_server()?;
            if let Some(server) = self.step(index, server, part)? {
                self.stop(server)?;
            }
        }
        Ok(())
    }

    fn taking_part(&self, part: Part) -> Vec<usize> {
        let scenarios = self.measured.scenarios.iter().enumerate();
        scenarios
            .filter(|(_, scenario)| scenario.failure.is_none())
            .filter(|(_, scenario)| part != Part::Confirmation || !first_exceeded(scenario).is_empty())
            .map(|(index, _)| index)
            .collect()
    }

    fn shuffled(&mut self, mut order: Vec<usize>) -> Vec<usize> {
        self.random.shuffle(&mut order);
        order
    }

    /// One scenario's round. Gives the server back if it can serve the next scenario.
    fn step(&mut self, index: usize, mut server: Server, part: Part) -> Result<Option<Server>> {
        let (done, total) = self.schedule.steps();
        let step =
            Progress::Step { scenario: self.measured.scenarios[index].name(), done, total, left: self.schedule.left() };
        (self.watcher)(step)?;
        let outcome = self.undisturbed_round(index, &mut server);
        let time = step_time(&self.measured.scenarios[index].load, self.rounds);
        if part != Part::Confirmation {
            self.schedule.advance(time);
        }
        // A server that died while the last answers were on their way has spoilt the round all the same.
        let died = server.died();
        let alive = died.is_none();
        let outcome = outcome.and_then(|round| died.map_or(Ok(round), Err));
        let scenario = &mut self.measured.scenarios[index];
        match outcome {
            Ok(round) if part == Part::Confirmation => scenario.confirmation.push(round),
            Ok(round) => scenario.rounds.push(round),
            Err(error) if matches!(error.exit, ExitCode::Signal(_)) => return Err(error),
            Err(error) => scenario.failure = Some(error),
        }
        if part == (Part::Plan { last: true }) {
            self.tell_measured(index)?;
        }
        Ok(alive.then_some(server))
    }

    fn tell_measured(&mut self, index: usize) -> Result<()> {
        if let Some(warning) = self.measured.scenarios[index].unreached_arrival_rate() {
            (self.watcher)(Progress::Warning(warning))?;
        }
        let scenarios = &self.measured.scenarios;
        let total = scenarios.len();
        let done = scenarios
            .iter()
            .filter(|scenario| scenario.failure.is_some() || scenario.rounds.len() == self.rounds.count as usize)
            .count();
        (self.watcher)(Progress::Measured { scenario: scenarios[index].name(), done, total })
    }

    /// Repeats a round that was suspended in between: its slices waited for nobody, but the user's machine slept.
    fn undisturbed_round(&mut self, index: usize, server: &mut Server) -> Result<MeasuredRound> {
        for _ in 0..MOST_REPEATS {
            let before = self.interrupt.suspensions();
            let round = self.scenario_round(index, server)?;
            if self.interrupt.suspensions() == before {
                return Ok(round);
            }
            let scenario = self.measured.scenarios[index].name().to_owned();
            (self.watcher)(Progress::Warning(Warning::Repeated { scenario }))?;
        }
        Err(Error::new(
            ExitCode::InvalidMeasurement,
            format!(
                "scenario `{}` was suspended in {MOST_REPEATS} rounds in a row",
                self.measured.scenarios[index].name()
            ),
        )
        .help("let the command run in the foreground without stopping it"))
    }

    fn scenario_round(&mut self, index: usize, server: &mut Server) -> Result<MeasuredRound> {
        let scheme = match self.measured.scenarios[index].scheme {
            Some(scheme) => scheme,
            None => self.pilot(index, server)?,
        };
        let slices = scheme.slices(ARM, &mut self.random);
        let warm_up = self.measured.scenarios[index].load.warm_up;
        server.reset_peak_memory();
        let recording = self.run_engine(index, server, warm_up, slices)?;
        let memory = server.memory();
        Ok(MeasuredRound {
            recording,
            peak_memory: memory.map(|memory| memory.peak_bytes),
            resident_memory: memory.map(|memory| memory.resident_bytes),
        })
    }

    /// A short run that finds out how long an exchange takes, and so how to cut the time into slices.
    fn pilot(&mut self, index: usize, server: &mut Server) -> Result<SliceScheme> {
        let load = self.measured.scenarios[index].load.clone();
        let slice = SlicePlan { arm: ARM, length: PILOT, lead_in: Nanos::ZERO };
        let recording = self.run_engine(index, server, load.warm_up, vec![slice])?;
        let p50 = recording.arms[ARM].service.quantile(0.5);
        let scheme = SliceScheme::new(&load, self.rounds.count, p50);
        let name = self.measured.scenarios[index].name().to_owned();
        (self.watcher)(Progress::Detail(describe(&name, &scheme, self.rounds, p50)))?;
        if scheme.stretched {
            let loaded = (scheme.loaded() * u64::from(self.rounds.count)).as_duration();
            (self.watcher)(Progress::Warning(Warning::Stretched { scenario: name, loaded }))?;
        }
        self.measured.scenarios[index].scheme = Some(scheme);
        Ok(scheme)
    }

    fn run_engine(
        &mut self,
        index: usize,
        server: &mut Server,
        warm_up: Nanos,
        slices: Vec<SlicePlan>,
    ) -> Result<Recording> {
        let scenario = &self.measured.scenarios[index];
        let threads = scenario.load.threads.unwrap_or(u32::try_from(self.cores.engine.len()).unwrap_or(1).max(1));
        let plan = RoundPlan {
            scenario: scenario.name().to_owned(),
            arms: vec![ArmPlan { address: server.address(), host: server.host(), root_pid: Some(server.root_pid()) }],
            load: Load {
                connections: scenario.load.connections,
                threads: threads.min(scenario.load.connections),
                arrival_rate: scenario.load.arrival_rate,
                cores: self.cores.engine.clone(),
                request_timeout: scenario.load.request_timeout,
                connect_timeout: scenario.load.connect_timeout,
            },
            warm_up,
            slices,
        };
        let interrupt = self.interrupt;
        let recording = self.benches[self.bench_of[index]].run(&plan, &mut || {
            interrupt.check()?;
            server.died().map_or(Ok(()), Err)
        })?;
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

    fn start_server(&mut self) -> Result<Server> {
        let server = Server::start(self.server_spec, self.interrupt)?;
        if self.measured.startups.is_empty() {
            for note in server.notes() {
                (self.watcher)(Progress::Note(format!("`{}` {note}", self.server_spec.name)))?;
            }
        }
        self.measured.startups.push(server.startup());
        (self.watcher)(Progress::Detail(format!(
            "`{}` listens on {} and was ready after {} ms",
            self.server_spec.name,
            server.address(),
            server.startup().as_millis()
        )))?;
        Ok(server)
    }

    fn stop(&mut self, server: Server) -> Result<()> {
        server.stop()?.into_iter().try_for_each(|warning| (self.watcher)(Progress::Warning(warning)))
    }

    /// Measures the scenarios again whose limits the first rounds exceeded.
    fn confirm(&mut self) -> Result<()> {
        let concerned: Vec<(String, Vec<Metric>)> = self
            .taking_part(Part::Confirmation)
            .into_iter()
            .map(|index| &self.measured.scenarios[index])
            .map(|scenario| (scenario.name().to_owned(), first_exceeded(scenario)))
            .collect();
        if concerned.is_empty() {
            return Ok(());
        }
        for (scenario, metrics) in concerned {
            let metrics = metrics.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            (self.watcher)(Progress::Detail(format!("`{scenario}` exceeded its limit on {metrics}: measured again")))?;
        }
        // The first round settles who takes part: the verdict on the first rounds does not change by fresh ones.
        for _ in 0..self.rounds.count {
            self.round(Part::Confirmation)?;
        }
        Ok(())
    }
}

fn describe(name: &str, scheme: &SliceScheme, rounds: Rounds, p50: Option<Nanos>) -> String {
    let millis = |time: Nanos| Duration::from(time).as_secs_f64() * 1e3;
    let pilot =
        p50.map_or_else(|| "saw no good exchange".to_owned(), |p50| format!("saw a median of {:.2} ms", millis(p50)));
    format!(
        "`{name}`: the pilot {pilot}; {} rounds of {} slices of {:.0} ms, the first {:.0} ms of each left out",
        rounds.count,
        scheme.count,
        millis(scheme.length),
        millis(scheme.lead_in)
    )
}
