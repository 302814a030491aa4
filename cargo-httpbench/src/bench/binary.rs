//! One running bench binary and the questions that it is asked.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use httpbench_core::model::{Recording, RoundPlan, ScenarioListing, Trace, TracePlan};
use httpbench_core::protocol::{Answer, Ask, CONTROL_VARIABLE, Channel, ChannelError, Hello, Mismatch, RunFailure};
use serde::de::DeserializeOwned;

use super::{BenchLaunch, BenchProcess, SpawnBench};
use crate::build::BenchExecutable;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::warning::Warning;

/// How long a bench binary may take to greet. It does nothing before that but start.
const HELLO_DEADLINE: Duration = Duration::from_secs(10);

/// How long it may take to list its scenarios: their arguments are evaluated and each is rendered once, by user code.
const LIST_DEADLINE: Duration = Duration::from_secs(60);

/// How often a wait looks up.
const TICK: Duration = Duration::from_millis(50);

/// How long a bench binary that has closed the channel may take to end, so that its status can be told.
const LAST_BREATH: Duration = Duration::from_secs(2);

/// A running bench binary. Dropping it ends it.
pub struct BenchBinary {
    name: String,
    program: PathBuf,
    channel: Channel,
    process: Box<dyn BenchProcess>,
    hello: Hello,
}

/// Why no answer came.
enum NoAnswer {
    /// The other side closed the channel, or broke it.
    Gone,
    /// The deadline passed.
    Late,
    /// What came is no answer.
    Malformed(ChannelError),
    /// The caller ended the wait.
    Ended(Error),
}

impl BenchBinary {
    /// Starts a bench binary in the package's folder and greets it.
    ///
    /// # Errors
    ///
    /// When it cannot be started, dies, stays silent for 10 s or speaks another version of the protocol: exit code 104.
    pub fn start(
        spawner: &mut dyn SpawnBench,
        executable: &BenchExecutable,
        package_root: PathBuf,
        environment: Environment,
        waiting: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        let name = format!("bench target `{}`", executable.name);
        let channel = |error: io::Error| Error::unexpected("the control channel could not be made", error);
        let (near, far) = UnixStream::pair().map_err(channel)?;
        let process = spawner.spawn(BenchLaunch {
            name: name.clone(),
            program: executable.path.clone(),
            args: Vec::new(),
            current_dir: package_root,
            environment,
            control: far.into(),
            control_variable: CONTROL_VARIABLE,
        })?;
        let ours = Hello::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        let near = Channel::new(near);
        near.set_timeout(Some(TICK)).map_err(channel)?;
        let mut binary = Self { name, program: executable.path.clone(), channel: near, process, hello: ours.clone() };
        let greeted = match binary.channel.send(&ours) {
            Ok(()) => binary.receive::<Hello>(Some(HELLO_DEADLINE), waiting),
            Err(_) => Err(NoAnswer::Gone),
        };
        let theirs = greeted.map_err(|reason| binary.failure(reason, ExitCode::ListingFailed, "before it greeted"))?;
        ours.meet(&theirs).map_err(|mismatch| versions_differ(&binary.name, mismatch))?;
        binary.hello = theirs;
        Ok(binary)
    }

    /// What it said of itself.
    #[must_use]
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// What is odd about it.
    #[must_use]
    pub fn warning(&self) -> Option<Warning> {
        let bench = self.name.trim_start_matches("bench target `").trim_end_matches('`').to_owned();
        self.hello.debug_build.then_some(Warning::UnoptimisedBench { bench })
    }

    /// The process that makes the load.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Every scenario, ignored ones too.
    ///
    /// # Errors
    ///
    /// When the scenarios cannot be told apart, or the bench binary dies: exit code 104.
    pub fn list(&mut self, waiting: &mut dyn FnMut() -> Result<()>) -> Result<Vec<ScenarioListing>> {
        match self.ask(
            &Ask::List,
            Some(LIST_DEADLINE),
            ExitCode::ListingFailed,
            "while it listed its scenarios",
            waiting,
        )? {
            Answer::Scenarios(scenarios) => Ok(scenarios),
            Answer::ListingFailed(reason) => {
                Err(Error::new(ExitCode::ListingFailed, format!("{} cannot list its scenarios: {reason}", self.name)))
            }
            _ => Err(self.confused()),
        }
    }

    /// Runs one round of one scenario. `waiting` is called about every 50 ms; its error ends the wait and the bench binary.
    ///
    /// # Errors
    ///
    /// What `waiting` returns; 107 when the scenario panics, its request cannot be sent, or the bench binary dies.
    pub fn run(&mut self, plan: &RoundPlan, waiting: &mut dyn FnMut() -> Result<()>) -> Result<Recording> {
        let doing = format!("while it ran `{}`", plan.scenario);
        match self.ask(&Ask::Run(plan.clone()), None, ExitCode::InvalidMeasurement, &doing, waiting)? {
            Answer::Recording(recording) => Ok(*recording),
            Answer::Failed(failure) => Err(self.failed(&plan.scenario, &failure)),
            _ => Err(self.confused()),
        }
    }

    /// Performs one exchange and shows it. `waiting` is called about every 50 ms; its error ends the wait and the bench binary.
    ///
    /// # Errors
    ///
    /// As [`BenchBinary::run`].
    pub fn trace(&mut self, plan: &TracePlan, waiting: &mut dyn FnMut() -> Result<()>) -> Result<Trace> {
        let doing = format!("while it traced `{}`", plan.scenario);
        match self.ask(&Ask::Trace(plan.clone()), None, ExitCode::InvalidMeasurement, &doing, waiting)? {
            Answer::Trace(trace) => Ok(*trace),
            Answer::Failed(failure) => Err(self.failed(&plan.scenario, &failure)),
            _ => Err(self.confused()),
        }
    }

    fn ask(
        &mut self,
        ask: &Ask,
        deadline: Option<Duration>,
        exit: ExitCode,
        doing: &str,
        waiting: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Answer> {
        let answer = match self.channel.send(ask) {
            Ok(()) => self.receive(deadline, waiting),
            Err(_) => Err(NoAnswer::Gone),
        };
        answer.map_err(|reason| self.failure(reason, exit, doing))
    }

    fn receive<M: DeserializeOwned>(
        &mut self,
        deadline: Option<Duration>,
        waiting: &mut dyn FnMut() -> Result<()>,
    ) -> Result<M, NoAnswer> {
        let start = Instant::now();
        loop {
            match self.channel.receive() {
                Ok(Some(message)) => return Ok(message),
                Ok(None) => return Err(NoAnswer::Gone),
                Err(ChannelError::Io(error))
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                    ) => {}
                Err(ChannelError::Io(_)) => return Err(NoAnswer::Gone),
                // A process that dies within a line leaves half a message; its death is what must be told.
                Err(malformed) => {
                    return Err(if self.has_ended() { NoAnswer::Gone } else { NoAnswer::Malformed(malformed) });
                }
            }
            waiting().map_err(NoAnswer::Ended)?;
            // A descendant may hold the channel open after the bench binary itself is gone.
            if self.has_ended() && !self.is_readable() {
                return Err(NoAnswer::Gone);
            }
            if deadline.is_some_and(|deadline| start.elapsed() >= deadline) {
                return Err(NoAnswer::Late);
            }
        }
    }

    fn has_ended(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(Some(_)) | Err(_))
    }

    fn is_readable(&self) -> bool {
        use std::os::fd::AsFd;

        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

        let mut socket = [PollFd::new(self.channel.socket().as_fd(), PollFlags::POLLIN)];
        poll(&mut socket, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    fn failure(&mut self, reason: NoAnswer, exit: ExitCode, doing: &str) -> Error {
        let error = match reason {
            NoAnswer::Ended(error) => return error,
            NoAnswer::Late => Error::new(exit, format!("{} did not answer in time {doing}", self.name))
                .help("a scenario function or an expression in `args` may be waiting for something: they run without any server"),
            NoAnswer::Malformed(source) => Error::new(exit, format!("{} answered what is not understood", self.name))
                .caused_by(source)
                .help(FIX_VERSIONS),
            NoAnswer::Gone => {
                let status = self.last_status();
                let error = Error::new(exit, format!("{} ended {doing} ({status})", self.name));
                error.help("see its last lines; run the bench target alone with `cargo test --benches` to look closer")
            }
        };
        let tail = self.process.tail();
        let error = error.details("the command", [self.program.display().to_string()]);
        if tail.is_empty() {
            error.details(format!("{} printed nothing", self.name), [])
        } else {
            error.details(format!("last {} lines of {}", tail.len(), self.name), tail)
        }
    }

    fn last_status(&mut self) -> String {
        let start = Instant::now();
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => {
                    // The threads that read its last words may be a moment behind.
                    thread::sleep(TICK);
                    return status.to_string();
                }
                Err(error) => return format!("its status is not known: {error}"),
                Ok(None) if start.elapsed() >= LAST_BREATH => {
                    return "it closed the control channel and still runs".to_owned();
                }
                Ok(None) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn failed(&self, scenario: &str, failure: &RunFailure) -> Error {
        let error = Error::new(ExitCode::InvalidMeasurement, format!("scenario `{scenario}`: {failure}"));
        match failure {
            RunFailure::Panicked(_) => error.details(format!("last lines of {}", self.name), self.process.tail()),
            _ => error,
        }
    }

    fn confused(&self) -> Error {
        Error::new(ExitCode::ListingFailed, format!("{} answered another question than it was asked", self.name))
            .help(FIX_VERSIONS)
    }
}

const FIX_VERSIONS: &str =
    "bring both ends to the same version: `cargo update -p httpbench-core`, and `cargo install cargo-httpbench`";

fn versions_differ(name: &str, mismatch: Mismatch) -> Error {
    let help = if mismatch.theirs.protocol > mismatch.ours.protocol {
        "update this command: `cargo install cargo-httpbench`"
    } else {
        "update what the bench target links: `cargo update -p httpbench-core`"
    };
    Error::new(ExitCode::ListingFailed, format!("{name} does not fit this command: {mismatch}")).help(help)
}

#[cfg(test)]
#[path = "binary_tests.rs"]
mod tests;
