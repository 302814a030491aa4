//! Where a revision is checked out and built: numbered folders below `<results>/revisions`, each for one run at a time.
//!
//! The number is the lowest that is free, so the next run has the same paths and finds what cargo has built. A run holds the lock
//! of its slot as long as it lives, however it ends; what stands in a slot whose lock is free belongs to a dead run.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

const LOCK: &str = "lock";

/// More runs at once than anybody wants on one workspace.
const SLOTS: u64 = 16;

/// One run's place. Dropping it removes the worktree.
#[derive(Debug)]
pub(super) struct Slot {
    path: PathBuf,
    /// The folder that git keeps for all worktrees of the repository.
    common: PathBuf,
    keep: Keep,
    _lock: File,
}

/// What stays when a slot is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    /// The target directory, for the next run.
    Target,
    /// Nothing: the file system has no locks, so no other run may come here.
    Nothing,
}

impl Slot {
    /// Takes a free slot, and removes what dead runs have left in any. `common` is the repository's own folder.
    pub(super) fn take(revisions: &Path, common: &Path) -> Result<Self> {
        let failed = |error: io::Error| {
            Error::new(ExitCode::OutputFailed, format!("cannot make a folder in `{}`", revisions.display()))
                .caused_by(error)
                .help("make the target directory writable, or choose another one with `--target-dir`")
        };
        fs::create_dir_all(revisions).map_err(failed)?;
        // Git names worktrees by their real paths.
        let revisions = revisions.canonicalize().map_err(failed)?;
        let mut taken = None;
        for number in 0..SLOTS {
            let path = revisions.join(name(number));
            if taken.is_some() && !path.exists() {
                continue;
            }
            let lock = lock_in(&path).map_err(failed)?;
            match lock.try_lock() {
                Ok(()) => {
                    remove_worktree(&tree_in(&path), common).map_err(failed)?;
                    taken = taken.or(Some(Self { path, common: common.to_owned(), keep: Keep::Target, _lock: lock }));
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(_)) => {
                    // Of 48 bits that no other run has drawn.
                    let path = revisions.join(name(SLOTS + (fastrand::u64(..) >> 16)));
                    let lock = lock_in(&path).map_err(failed)?;
                    taken = Some(Self { path, common: common.to_owned(), keep: Keep::Nothing, _lock: lock });
                    break;
                }
            }
        }
        let slot = taken.ok_or_else(|| {
            failed(io::Error::other(format!("{SLOTS} other runs compare with a revision at this moment")))
        })?;
        fs::create_dir_all(slot.tree().parent().unwrap_or(&slot.path)).map_err(failed)?;
        Ok(slot)
    }

    /// Where the worktree is.
    pub(super) fn tree(&self) -> PathBuf {
        tree_in(&self.path)
    }

    /// The revision's own target directory.
    pub(super) fn target(&self) -> PathBuf {
        self.path.join("target")
    }

    /// The slot itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next run.
        let _ = remove_worktree(&self.tree(), &self.common);
        if self.keep == Keep::Nothing {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Equally long, whatever the number.
fn name(number: u64) -> String {
    format!("{number:016x}")
}

/// Cargo looks for a workspace above a package, and would find the user's own above the results folder: fatal where the
/// revision's root has no `[workspace]` and the user's has. It stops looking at a folder `target/package`, where `cargo package`
/// unpacks what it verifies.
fn tree_in(slot: &Path) -> PathBuf {
    slot.join("target/package/tree")
}

fn lock_in(slot: &Path) -> io::Result<File> {
    fs::create_dir_all(slot)?;
    File::options().write(true).create(true).truncate(false).open(slot.join(LOCK))
}

/// Removes a worktree as `git worktree remove --force` would, even where only a part of it is left.
///
/// Git's own record goes first: without it the rest is a folder like any other. It is looked for behind the link in the worktree,
/// because a target directory may be shared by repositories, and among the records of this one, because the worktree may be gone.
fn remove_worktree(tree: &Path, common: &Path) -> io::Result<()> {
    let linked = fs::read_to_string(tree.join(".git")).ok();
    let linked =
        linked.as_deref().and_then(|text| text.strip_prefix("gitdir: ")).map(|path| tree.join(path.trim_end()));
    let records = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten().map(|record| record.path());
    for record in linked.into_iter().chain(records) {
        let Ok(text) = fs::read_to_string(record.join("gitdir")) else { continue };
        // With `worktree.useRelativePaths` it begins at the record.
        let link = record.join(text.trim_end_matches('\n'));
        if link == tree.join(".git") || is_same(&link, &tree.join(".git")) {
            fs::remove_dir_all(&record)?;
            // As git does; it is refused while there are others.
            let _ = record.parent().map(fs::remove_dir);
        }
    }
    match fs::remove_dir_all(tree) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}
