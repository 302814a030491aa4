//! A program that is run to its end for what it writes.

use std::io::{self, PipeReader, Read};
use std::thread;
use std::time::Duration;

use super::{Child, Ended, Launch};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;

/// How a program ended, and what it wrote to the streams that were [`Output::Piped`](super::Output::Piped).
#[derive(Clone, Debug)]
pub struct Captured {
    /// How it ended.
    pub ended: Ended,
    /// All of its standard output.
    pub stdout: Vec<u8>,
    /// All of its standard error.
    pub stderr: Vec<u8>,
}

/// Runs a program to its end and reads its piped streams. What it leaves running is ended with it, after at most `grace`.
///
/// # Errors
///
/// When the program cannot be started, or a signal came.
pub fn run_to_end(launch: Launch, grace: Duration, interrupt: &Interrupt) -> Result<Captured> {
    let mut child = Child::spawn(launch, interrupt)?;
    let stdout = drain(child.take_stdout());
    let stderr = drain(child.take_stderr());
    let ended = child.wait(interrupt);
    // What outlived the program, or all of it after a signal: their ends of the pipes must close.
    child.stop(grace)?;
    Ok(Captured { ended: ended?, stdout: collect(stdout, child.name())?, stderr: collect(stderr, child.name())? })
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

fn collect(drain: Drain, name: &str) -> Result<Vec<u8>> {
    let Some(thread) = drain else { return Ok(Vec::new()) };
    let read = thread.join().map_err(|_| {
        Error::new(ExitCode::Unexpected, format!("the thread that read the output of `{name}` panicked"))
    })?;
    read.map_err(|cause| Error::unexpected(format!("the output of `{name}` could not be read"), cause))
}
