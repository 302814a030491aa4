//! Runs cargo under a supervisor: a signal ends the build with all its compilers, and so does the death of this command.

use std::io::{self, PipeReader, Read};
use std::thread;
use std::time::Duration;

use super::{CargoCall, CargoOutput, RunCargo, StandardError};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::process::{Child, Input, Launch, Output};

/// How long cargo and its compilers may take to end after a signal, before they are killed.
const GRACE: Duration = Duration::from_secs(2);

/// Runs cargo by [`Child`].
#[derive(Clone, Copy, Debug)]
pub struct SupervisedCargo<'run> {
    interrupt: &'run Interrupt,
}

impl<'run> SupervisedCargo<'run> {
    /// Calls end early, with an error, once `interrupt` is set.
    #[must_use]
    pub const fn new(interrupt: &'run Interrupt) -> Self {
        Self { interrupt }
    }
}

impl RunCargo for SupervisedCargo<'_> {
    fn run(&mut self, call: &CargoCall) -> Result<CargoOutput> {
        let mut launch = Launch::new("cargo", &call.program, &call.current_dir);
        launch.args.clone_from(&call.args);
        launch.env = call.environment.clone().into();
        launch.stdin = Input::Null;
        launch.stdout = Output::Piped;
        launch.stderr = match call.stderr {
            StandardError::Inherit => Output::Inherit,
            StandardError::Capture => Output::Piped,
        };
        launch.exit = ExitCode::BuildFailed;
        let mut child = Child::spawn(launch, self.interrupt).map_err(|error| match error.exit {
            ExitCode::BuildFailed => error.help("set `CARGO` to cargo's path, or put cargo on the `PATH`"),
            _ => error,
        })?;
        let stdout = drain(child.take_stdout());
        let stderr = drain(child.take_stderr());
        let ended = child.wait(self.interrupt);
        // Compilers that outlived cargo, or all of them after a signal: their ends of the pipes must close.
        child.stop(GRACE)?;
        Ok(CargoOutput { status: ended?.into(), stdout: collect(stdout)?, stderr: collect(stderr)? })
    }
}

type Drain = Option<thread::JoinHandle<io::Result<Vec<u8>>>>;

/// Reads a pipe on a thread of its own, so that neither stream can block the other.
fn drain(pipe: Option<PipeReader>) -> Drain {
    pipe.map(|mut pipe| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes)?;
            Ok(bytes)
        })
    })
}

fn collect(drain: Drain) -> Result<Vec<u8>> {
    let Some(thread) = drain else { return Ok(Vec::new()) };
    let read =
        thread.join().map_err(|_| Error::new(ExitCode::Unexpected, "the thread that read cargo's output panicked"))?;
    read.map_err(|cause| Error::unexpected("cargo's output could not be read", cause))
}
