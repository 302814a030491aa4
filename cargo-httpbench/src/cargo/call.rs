//! One call of cargo as data, and the trait of whoever runs it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;

use crate::environment::Environment;
use crate::error::Result;

/// One call of cargo. Standard input is empty, standard output is read to its end.
#[derive(Clone, Debug)]
pub struct CargoCall {
    /// Cargo.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it runs.
    pub current_dir: PathBuf,
    /// Its whole environment.
    pub environment: Environment,
    /// Where its standard error goes.
    pub stderr: StandardError,
}

/// Where a call's standard error goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardError {
    /// To ours: status lines and diagnostics, with cargo's own colours.
    Inherit,
    /// Into [`CargoOutput::stderr`].
    Capture,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub struct CargoOutput {
    /// Its status.
    pub status: ExitStatus,
    /// All of its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error, where it was captured.
    pub stderr: Vec<u8>,
}

/// Runs cargo. Implemented by closures too.
pub trait RunCargo {
    /// Runs one call to its end. A call that fails is an output with its status.
    ///
    /// # Errors
    ///
    /// When cargo cannot be started or watched, or the run is interrupted.
    fn run(&mut self, call: &CargoCall) -> Result<CargoOutput>;
}

impl<F: FnMut(&CargoCall) -> Result<CargoOutput>> RunCargo for F {
    fn run(&mut self, call: &CargoCall) -> Result<CargoOutput> {
        self(call)
    }
}

impl CargoCall {
    /// The command line as a user would type it.
    #[must_use]
    pub fn command_line(&self) -> String {
        std::iter::once(self.program.as_os_str())
            .chain(self.args.iter().map(OsString::as_os_str))
            .map(|word| {
                let word = word.to_string_lossy();
                let plain = !word.is_empty()
                    && !word.contains(|letter: char| letter.is_whitespace() || "'\"\\$`*?[]()&;<>|#".contains(letter));
                if plain { word.into_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
            })
            .collect::<Vec<_>>()
            .join(" ")
    }
}
