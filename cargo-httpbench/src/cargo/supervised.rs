//! Runs cargo under a supervisor: a signal ends the build with all its compilers, and so does the death of this command.

use std::time::Duration;

use super::{CargoCall, CargoOutput, RunCargo, StandardError};
use crate::error::Result;
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::process::{Input, Launch, Output, run_to_end};

/// How long cargo and its compilers may take to end after a signal, before they are killed.
const GRACE: Duration = Duration::from_secs(2);

/// Runs cargo by [`run_to_end`].
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
        let captured = run_to_end(launch, GRACE, self.interrupt).map_err(|error| match error.exit {
            ExitCode::BuildFailed => error.help("set `CARGO` to cargo's path, or put cargo on the `PATH`"),
            _ => error,
        })?;
        Ok(CargoOutput { status: captured.ended.into(), stdout: captured.stdout, stderr: captured.stderr })
    }
}
