//! Starts bench binaries under a supervisor, like every other child.

use std::io;
use std::process::ExitStatus;

use super::{BenchLaunch, BenchProcess, SpawnBench};
use crate::error::Result;
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::process::{Child, InheritedDescriptor, Launch};

/// Lines of a dead bench binary that are shown.
const TAIL: usize = 20;

/// Starts bench binaries by [`Child`].
#[derive(Clone, Debug)]
pub struct SupervisedBenches {
    interrupt: Interrupt,
}

impl SupervisedBenches {
    /// Starts end early, with an error, once `interrupt` is set.
    #[must_use]
    pub const fn new(interrupt: Interrupt) -> Self {
        Self { interrupt }
    }
}

impl SpawnBench for SupervisedBenches {
    fn spawn(&mut self, launch: BenchLaunch) -> Result<Box<dyn BenchProcess>> {
        let mut program = Launch::new(launch.name, launch.program, launch.current_dir);
        program.args = launch.args;
        program.env = launch.environment.into();
        program.inherit =
            Some(InheritedDescriptor { descriptor: launch.control, variable: launch.control_variable.into() });
        program.exit = ExitCode::ListingFailed;
        Ok(Box::new(Child::spawn(program, &self.interrupt)?))
    }
}

impl BenchProcess for Child {
    fn pid(&self) -> u32 {
        Child::pid(self)
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        Child::try_wait(self).map(|ended| ended.map(ExitStatus::from)).map_err(|error| io::Error::other(error.what))
    }

    fn tail(&self) -> Vec<String> {
        self.log().settle();
        self.log().last(TAIL)
    }
}
