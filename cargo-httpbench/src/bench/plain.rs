//! Starts a bench binary as an ordinary child, without supervision.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use super::{BenchLaunch, BenchProcess, SpawnBench};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

const TAIL_LINES: usize = 20;
const LINE_BYTES: u64 = 2_000;

/// Starts bench binaries by [`std::process::Command`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlainSpawner;

impl SpawnBench for PlainSpawner {
    fn spawn(&mut self, launch: BenchLaunch) -> Result<Box<dyn BenchProcess>> {
        let failed = |error: io::Error| {
            Error::new(
                ExitCode::ListingFailed,
                format!("cannot start {} (`{}`)", launch.name, launch.program.display()),
            )
            .caused_by(error)
        };
        // The descriptor is inherited under its own number. It closes on this side when `launch` is dropped.
        fcntl(&launch.control, FcntlArg::F_SETFD(FdFlag::empty())).map_err(|error| failed(error.into()))?;
        let mut child = Command::new(&launch.program)
            .args(&launch.args)
            .current_dir(&launch.current_dir)
            .env_clear()
            .envs(launch.environment.iter())
            .env(launch.control_variable, launch.control.as_raw_fd().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(stdout) = child.stdout.take() {
            keep(stdout, Arc::clone(&tail));
        }
        if let Some(stderr) = child.stderr.take() {
            keep(stderr, Arc::clone(&tail));
        }
        Ok(Box::new(PlainBench { child, tail }))
    }
}

struct PlainBench {
    child: Child,
    tail: Arc<Mutex<VecDeque<String>>>,
}

impl BenchProcess for PlainBench {
    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    fn tail(&self) -> Vec<String> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Drop for PlainBench {
    fn drop(&mut self) {
        // It has nothing to tidy up: the server is not its child.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a stream to its end on a thread of its own, and keeps its last lines. A longer line is kept in pieces.
fn keep(stream: impl Read + Send + 'static, tail: Arc<Mutex<VecDeque<String>>>) {
    thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            if tail.len() == TAIL_LINES {
                tail.pop_front();
            }
            tail.push_back(text);
        }
    });
}
