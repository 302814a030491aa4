//! One writer at a time in a store.
//!
//! Readers take no lock: what they read is replaced by a rename, so that a store that can only be read serves them as well. The
//! operating system takes the lock back from a process that dies, however it dies.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

const FILE: &str = ".lock";

/// A save takes as long as copying an executable; longer means that somebody is stopped.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the holder is asked again.
const GLANCE: Duration = Duration::from_millis(20);

/// The right to change a store, until it is dropped.
#[derive(Debug)]
pub(super) struct StoreLock(#[expect(dead_code, reason = "held for its lock")] File);

impl StoreLock {
    /// Waits for a bounded time until nobody else changes the store. The store's folder must be there.
    ///
    /// # Errors
    ///
    /// When the lock file cannot be written, or somebody holds it for longer: exit code 110, with who and since when.
    pub(super) fn take(store: &Path) -> Result<Self> {
        Self::take_within(store, PATIENCE)
    }

    fn take_within(store: &Path, patience: Duration) -> Result<Self> {
        let path = store.join(FILE);
        let failed = |error: io::Error| {
            Error::new(ExitCode::OutputFailed, format!("cannot lock the baselines in `{}`", store.display()))
                .caused_by(error)
                .help("make the folder writable, or choose another one with `baseline-dir` or HTTPBENCH_BASELINE_DIR")
        };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => thread::sleep(GLANCE),
                Err(TryLockError::WouldBlock) => {
                    let holder = holder(&mut file);
                    return Err(Error::new(
                        ExitCode::OutputFailed,
                        format!("the baselines in `{}` are locked by {holder}", store.display()),
                    )
                    .help("wait until that process has finished, or end it; the lock ends with it"));
                }
                // A file system without locks is no reason to fail: the rename keeps a baseline whole all the same.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => break,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        // Only for those who wait, so it may fail.
        let _ = sign(&mut file);
        Ok(Self(file))
    }
}

/// Removes what savers, importers and removers left behind when they were killed. To be called with the lock held.
pub(super) fn clear(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            let path = entry.path();
            // What cannot be removed is no harm: no reader looks at it.
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

/// How the names of unfinished things begin. No baseline's folder begins with a dot.
const TEMPORARY: &str = ".new-";

/// A name for something unfinished.
pub(super) fn temporary_name() -> String {
    format!("{TEMPORARY}{:016x}", fastrand::u64(..))
}

fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    write!(file, "process {} since {:.0}", std::process::id(), Timestamp::now())
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(200).read_to_string(&mut text));
    match read {
        Ok(_) if !text.is_empty() => text,
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_writer_is_told_who_holds_the_lock_and_since_when() {
        let store = tempfile::tempdir().expect("a folder");
        let first = StoreLock::take(store.path()).expect("nobody holds it");
        let error = StoreLock::take_within(store.path(), Duration::from_millis(50)).expect_err("somebody holds it");
        assert_eq!(error.exit, ExitCode::OutputFailed);
        let holder = format!("locked by process {} since 20", std::process::id());
        assert!(error.what.contains(&holder) && error.help.is_some(), "{error}");
        drop(first);
        StoreLock::take(store.path()).expect("it was given back");
    }

    #[test]
    fn second_writer_waits_for_the_first() {
        let store = tempfile::tempdir().expect("a folder");
        let first = StoreLock::take(store.path()).expect("nobody holds it");
        let path = store.path().to_owned();
        let second = thread::spawn(move || StoreLock::take(&path).map(drop));
        thread::sleep(Duration::from_millis(60));
        assert!(!second.is_finished());
        drop(first);
        second.join().expect("no panic").expect("it waited");
    }

    #[test]
    fn leftovers_are_cleared_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join(temporary_name())).expect("a folder");
        fs::write(folder.path().join(temporary_name()), "half").expect("written");
        fs::write(folder.path().join("baseline.json"), "whole").expect("written");
        clear(folder.path());
        let left: Vec<_> =
            fs::read_dir(folder.path()).expect("readable").map(|entry| entry.expect("an entry").file_name()).collect();
        assert_eq!(left, ["baseline.json"]);
    }
}
