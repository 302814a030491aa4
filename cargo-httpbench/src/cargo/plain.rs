//! Runs cargo as an ordinary child, without supervision.

use std::process::{Command, Stdio};

use super::{CargoCall, CargoOutput, RunCargo, StandardError};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

/// Runs cargo by [`std::process::Command`].
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainCargo;

impl RunCargo for PlainCargo {
    fn run(&mut self, call: &CargoCall) -> Result<CargoOutput> {
        let stderr = match call.stderr {
            StandardError::Inherit => Stdio::inherit(),
            StandardError::Capture => Stdio::piped(),
        };
        let output = Command::new(&call.program)
            .args(&call.args)
            .current_dir(&call.current_dir)
            .env_clear()
            .envs(call.environment.iter())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .output()
            .map_err(|error| {
                Error::new(ExitCode::BuildFailed, format!("cannot start `{}`", call.program.display()))
                    .caused_by(error)
                    .help("set `CARGO` to cargo's path, or put cargo on the `PATH`")
            })?;
        Ok(CargoOutput { status: output.status, stdout: output.stdout, stderr: output.stderr })
    }
}
