//! Runs take turns: one at a time on this machine, whatever the number of test threads and test processes.

use std::fs::{self, File};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::workspace;

/// The right to run. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _file: File, // Unlocked when closed.
    _here: MutexGuard<'static, ()>,
}

/// Waits for the right to run.
pub(crate) fn take() -> Turn {
    // The lock of a file belongs to the open file, so threads need a lock of their own only to spare open files.
    static HERE: Mutex<()> = Mutex::new(());
    let here = HERE.lock().unwrap_or_else(PoisonError::into_inner); // A failed test broke nothing here.
    let folder = workspace::fixtures_target();
    fs::create_dir_all(folder).expect("the fixtures' target directory can be created");
    let file = File::create(folder.join("turn.lock")).expect("the lock file can be created");
    file.lock().expect("files can be locked");
    Turn { _file: file, _here: here }
}
