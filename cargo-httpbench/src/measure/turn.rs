//! One measurement at a time on a machine: two at once would measure each other.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::error::Result;
use crate::interrupt::Interrupt;

/// How often the holder is asked again.
const PATIENCE: Duration = Duration::from_millis(100);

/// The right to measure, until it is dropped. The operating system takes it back from a process that dies.
#[derive(Debug)]
pub struct Turn(#[expect(dead_code, reason = "held for its lock")] Option<Flock<File>>);

impl Turn {
    /// Waits until no other `cargo httpbench` of this machine measures; `waiting` is called once, with who holds the turn.
    ///
    /// Where the file cannot be opened (another user owns it and left no right to write), nobody is waited for: a lock that
    /// cannot be had must not stop a measurement.
    ///
    /// # Errors
    ///
    /// When a signal comes while waiting.
    pub fn take(interrupt: &Interrupt, mut waiting: impl FnMut(&str)) -> Result<Self> {
        let Ok(mut file) =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o666).open(path())
        else {
            return Ok(Self(None));
        };
        let mut told = false;
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(mut lock) => {
                    let _ = sign(&mut lock);
                    return Ok(Self(Some(lock)));
                }
                Err((back, Errno::EWOULDBLOCK)) => file = back,
                Err(_) => return Ok(Self(None)),
            }
            if !told {
                told = true;
                waiting(&holder(&mut file));
            }
            interrupt.sleep(PATIENCE)?;
        }
    }
}

fn path() -> PathBuf {
    std::env::temp_dir().join("cargo-httpbench.turn")
}

/// Writes who holds the turn, for those who wait.
fn sign(file: &mut File) -> std::io::Result<()> {
    let here = std::env::current_dir().unwrap_or_default();
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    write!(file, "process {} in {}", std::process::id(), here.display())
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
    match read {
        Ok(_) if !text.is_empty() => text,
        _ => "another process".to_owned(),
    }
}
