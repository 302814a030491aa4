//! How a bench binary becomes a process: data for whoever owns this process's children, and what it must be able to do with one.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitStatus;

use crate::environment::Environment;
use crate::error::Result;

/// A bench binary to be started. Standard input is empty; both outputs are kept in one bounded tail.
#[derive(Debug)]
pub struct BenchLaunch {
    /// For people: ``bench target `http` ``.
    pub name: String,
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it runs: the package's folder, as under `cargo bench`.
    pub current_dir: PathBuf,
    /// Its environment, but for the variable that names the control channel.
    pub environment: Environment,
    /// The child's end of the control channel. The child must inherit it, and nobody else.
    pub control: OwnedFd,
    /// The variable that must hold the child's descriptor of `control`.
    pub control_variable: &'static str,
}

/// A running bench binary. Dropping it ends it.
pub trait BenchProcess {
    /// Its process id.
    fn pid(&self) -> u32;

    /// Its status, if it has ended.
    ///
    /// # Errors
    ///
    /// When it cannot be asked for.
    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>>;

    /// The last lines that it printed, 20 at most.
    fn tail(&self) -> Vec<String>;
}

/// Starts bench binaries.
pub trait SpawnBench {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    fn spawn(&mut self, launch: BenchLaunch) -> Result<Box<dyn BenchProcess>>;
}

impl<F: FnMut(BenchLaunch) -> Result<Box<dyn BenchProcess>>> SpawnBench for F {
    fn spawn(&mut self, launch: BenchLaunch) -> Result<Box<dyn BenchProcess>> {
        self(launch)
    }
}
