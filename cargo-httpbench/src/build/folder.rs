//! Where a run keeps the executables that it starts: one folder per process of ours, removed when it ends.
//!
//! A run holds the lock of its folder as long as it lives, however it ends, so folders of dead runs are told from those of living
//! ones without trusting process ids, which are reused and differ between containers that share a disk. All paths have the same
//! length from run to run: the length of an executable's path shifts its stack, and with it its speed.

use std::cell::Cell;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

const LOCK: &str = "lock";

/// A folder without a lock that is younger than this may be about to get one.
const SETTLED: Duration = Duration::from_secs(60);

/// The folder of this run. Dropping it removes it with everything in it.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    places: Cell<u32>,
    /// Locked until the drop.
    _lock: File,
}

impl RunFolder {
    /// Makes a new folder below `<results>/run`, and removes those of runs that have died.
    ///
    /// # Errors
    ///
    /// When the folder cannot be made: exit code 110.
    pub fn create(results: &Path) -> Result<Self> {
        let parent = results.join("run");
        let failed = |error: io::Error| {
            Error::new(ExitCode::OutputFailed, format!("cannot make a folder in `{}`", parent.display()))
                .caused_by(error)
                .help("make the target directory writable, or choose another one with `--target-dir`")
        };
        fs::create_dir_all(&parent).map_err(failed)?;
        prune(&parent);
        for _ in 0..16 {
            let path = parent.join(format!("{:016x}", fastrand::u64(..)));
            match fs::create_dir(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(failed(error)),
            }
            let lock = File::create(path.join(LOCK)).map_err(failed)?;
            // Another run that prunes at this very moment may hold the lock for an instant, and then removes the folder.
            // A file system without locks is no reason to fail: there, nobody's folders are removed.
            if !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) && path.join(LOCK).exists() {
                crate::interrupt::also_remove(&path);
                return Ok(Self { path, places: Cell::new(0), _lock: lock });
            }
        }
        Err(failed(io::Error::other("every name is taken")))
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path for a new file called `name`, in a folder of its own.
    ///
    /// # Errors
    ///
    /// When that folder cannot be made: exit code 110.
    pub fn place(&self, name: &str) -> Result<PathBuf> {
        let number = self.places.get();
        self.places.set(number + 1);
        let folder = self.path.join(format!("{number:04}"));
        fs::create_dir(&folder).map_err(|error| {
            Error::new(ExitCode::OutputFailed, format!("cannot make the folder `{}`", folder.display()))
                .caused_by(error)
        })?;
        Ok(folder.join(name))
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of runs that have died. What cannot be removed is left to a later run.
fn prune(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let dead = match File::open(path.join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(_) => entry
                .metadata()
                .and_then(|metadata| metadata.modified())
                .is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > SETTLED)),
        };
        if dead {
            let _ = fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_lives_as_long_as_its_owner() {
        let results = tempfile::tempdir().expect("a folder");
        let one = RunFolder::create(results.path()).expect("a folder");
        let two = RunFolder::create(results.path()).expect("another");
        assert!(one.path().is_dir() && two.path().is_dir());
        assert_eq!(one.path().as_os_str().len(), two.path().as_os_str().len());
        let gone = one.path().to_owned();
        drop(one);
        assert!(!gone.exists());
        assert!(two.path().is_dir());
    }

    #[test]
    fn folders_of_dead_runs_are_removed_and_fresh_ones_without_a_lock_are_not() {
        let results = tempfile::tempdir().expect("a folder");
        let dead = results.path().join("run/0000000000000001");
        fs::create_dir_all(dead.join("0000")).expect("a folder");
        File::create(dead.join(LOCK)).expect("a lock that nobody holds");
        let fresh = results.path().join("run/0000000000000002");
        fs::create_dir_all(&fresh).expect("a folder");
        let _run = RunFolder::create(results.path()).expect("a folder");
        assert!(!dead.exists());
        assert!(fresh.exists());
    }

    #[test]
    fn every_place_has_a_folder_of_its_own() {
        let results = tempfile::tempdir().expect("a folder");
        let run = RunFolder::create(results.path()).expect("a folder");
        let (one, two) = (run.place("shop").expect("a place"), run.place("shop").expect("a place"));
        assert_ne!(one, two);
        assert_eq!(one.file_name(), two.file_name());
    }
}
