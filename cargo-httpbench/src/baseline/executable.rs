//! Executables beside a baseline's text: copied in, hashed while they are copied, found again and proven whole.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::digest::{BLOCK, Sha256Hex, Summer};
use super::format::{ExecutableRecord, Kept};
use super::lock::temporary_name;

/// The largest executable that is kept, 256 MiB. A larger one is known by its hash only: baselines travel through caches.
pub const EXECUTABLE_CAP: u64 = 256 * 1024 * 1024;

/// The executable of a stored baseline, as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredExecutable {
    /// Every byte is as it was.
    Whole(PathBuf),
    /// It should be there and is not.
    Missing,
    /// It is not what was stored.
    Corrupt {
        /// What its hash should be.
        expected: Sha256Hex,
        /// What it is.
        found: Sha256Hex,
    },
    /// It never was there: none was given, or it was too large.
    NotStored,
}

/// Where an executable lies.
pub(super) fn place(folder: &Path, sha256: &Sha256Hex) -> PathBuf {
    folder.join(sha256.as_str())
}

/// Looks at the executable that a record tells of.
pub(super) fn find(folder: &Path, record: Option<&ExecutableRecord>) -> io::Result<StoredExecutable> {
    let Some(record) = record.filter(|record| record.kept == Kept::Whole) else {
        return Ok(StoredExecutable::NotStored);
    };
    let path = place(folder, &record.sha256);
    match Sha256Hex::of_file(&path) {
        Ok(found) if found == record.sha256 => Ok(StoredExecutable::Whole(path)),
        Ok(found) => Ok(StoredExecutable::Corrupt { expected: record.sha256.clone(), found }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(StoredExecutable::Missing),
        Err(error) => Err(error),
    }
}

/// Copies the executable that a record tells of to `to`, and proves the copy. Without a whole one, nothing is left at `to`.
pub(super) fn copy_out(folder: &Path, record: Option<&ExecutableRecord>, to: &Path) -> io::Result<StoredExecutable> {
    let Some(record) = record.filter(|record| record.kept == Kept::Whole) else {
        return Ok(StoredExecutable::NotStored);
    };
    let from = match File::open(place(folder, &record.sha256)) {
        Ok(from) => from,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(StoredExecutable::Missing),
        Err(error) => return Err(error),
    };
    let beside = to.parent().unwrap_or(Path::new("."));
    let written = write(from, beside, u64::MAX)?;
    if written.sha256 == record.sha256 {
        fs::rename(&written.path, to)?;
        return Ok(StoredExecutable::Whole(to.to_owned()));
    }
    fs::remove_file(&written.path)?;
    Ok(StoredExecutable::Corrupt { expected: record.sha256.clone(), found: written.sha256 })
}

/// Keeps an executable in `folder`. The same bytes are kept once; a damaged copy is replaced.
pub(super) fn keep(executable: &Path, folder: &Path, cap: u64) -> io::Result<ExecutableRecord> {
    let sha256 = Sha256Hex::of_file(executable)?;
    let size = fs::metadata(executable)?.len();
    if size > cap {
        return Ok(ExecutableRecord { sha256, size, kept: Kept::TooLarge });
    }
    let record = ExecutableRecord { sha256, size, kept: Kept::Whole };
    if !matches!(find(folder, Some(&record))?, StoredExecutable::Whole(_)) {
        let written = write(File::open(executable)?, folder, size)?;
        if written.sha256 != record.sha256 {
            fs::remove_file(&written.path)?;
            return Err(io::Error::other("the executable changed while it was copied"));
        }
        fs::rename(&written.path, place(folder, &record.sha256))?;
    }
    Ok(record)
}

/// A file that was written to its end and waits for its name.
pub(super) struct Written {
    /// Where it is now.
    pub(super) path: PathBuf,
    /// Of its bytes.
    pub(super) sha256: Sha256Hex,
}

/// Writes an executable under a temporary name, at most `most` bytes, and has the disk hold it.
pub(super) fn write(mut from: impl Read, folder: &Path, most: u64) -> io::Result<Written> {
    let path = folder.join(temporary_name());
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let mut summer = Summer::default();
    let mut block = vec![0; BLOCK];
    let mut size = 0;
    loop {
        let read = match from.read(&mut block) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        size += read as u64;
        if size > most {
            return Err(io::Error::other(format!("it is larger than {most} bytes")));
        }
        summer.add(&block[..read]);
        file.write_all(&block[..read])?;
    }
    file.set_permissions(Permissions::from_mode(0o755))?;
    file.sync_all()?;
    Ok(Written { path, sha256: summer.finish() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executable(folder: &Path, bytes: &[u8]) -> PathBuf {
        let path = folder.join("server");
        fs::write(&path, bytes).expect("written");
        path
    }

    #[test]
    fn kept_executable_is_whole_and_can_be_started() {
        let (here, folder) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let script = executable(here.path(), b"#!/bin/sh\nexit 7\n");
        let record = keep(&script, folder.path(), EXECUTABLE_CAP).expect("kept");
        assert_eq!(record.size, 17);
        let StoredExecutable::Whole(path) = find(folder.path(), Some(&record)).expect("readable") else {
            panic!("it is not whole");
        };
        assert_eq!(crate::baseline::sample::run(&path).code(), Some(7));
    }

    #[test]
    fn one_wrong_byte_is_noticed_and_the_next_save_mends_it() {
        let (here, folder) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let script = executable(here.path(), b"server");
        let record = keep(&script, folder.path(), EXECUTABLE_CAP).expect("kept");
        fs::write(place(folder.path(), &record.sha256), b"serveR").expect("written");
        let found = Sha256Hex::of_bytes(b"serveR");
        assert_eq!(
            find(folder.path(), Some(&record)).expect("readable"),
            StoredExecutable::Corrupt { expected: record.sha256.clone(), found }
        );
        keep(&script, folder.path(), EXECUTABLE_CAP).expect("kept");
        assert!(matches!(find(folder.path(), Some(&record)), Ok(StoredExecutable::Whole(_))));
    }

    #[test]
    fn same_bytes_are_kept_once_and_not_written_again() {
        let (here, folder) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let script = executable(here.path(), b"server");
        let record = keep(&script, folder.path(), EXECUTABLE_CAP).expect("kept");
        let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).expect("it is there"));
        let before = inode(&place(folder.path(), &record.sha256));
        keep(&script, folder.path(), EXECUTABLE_CAP).expect("kept");
        assert_eq!(inode(&place(folder.path(), &record.sha256)), before);
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    #[test]
    fn executable_above_the_cap_is_known_by_its_hash_only() {
        let (here, folder) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let script = executable(here.path(), b"server");
        let record = keep(&script, folder.path(), 5).expect("known");
        assert_eq!(record.kept, Kept::TooLarge);
        assert_eq!(record.sha256, Sha256Hex::of_bytes(b"server"));
        assert_eq!(find(folder.path(), Some(&record)).expect("readable"), StoredExecutable::NotStored);
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0);
    }

    #[test]
    fn copy_is_whole_and_can_be_started_or_is_not_there_at_all() {
        let (here, folder) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let script = executable(here.path(), b"#!/bin/sh\nexit 7\n");
        let record = keep(&script, folder.path(), EXECUTABLE_CAP).expect("kept");
        let to = here.path().join("copy");
        let copied = copy_out(folder.path(), Some(&record), &to).expect("copied");
        assert_eq!(copied, StoredExecutable::Whole(to.clone()));
        assert_eq!(crate::baseline::sample::run(&to).code(), Some(7));

        fs::write(place(folder.path(), &record.sha256), b"other").expect("written");
        let to = here.path().join("second");
        let copied = copy_out(folder.path(), Some(&record), &to).expect("looked at");
        assert!(matches!(copied, StoredExecutable::Corrupt { .. }));
        fs::remove_file(place(folder.path(), &record.sha256)).expect("removed");
        assert_eq!(copy_out(folder.path(), Some(&record), &to).expect("looked at"), StoredExecutable::Missing);
        assert_eq!(copy_out(folder.path(), None, &to).expect("looked at"), StoredExecutable::NotStored);
        assert_eq!(fs::read_dir(here.path()).expect("readable").count(), 2);
    }

    #[test]
    fn executable_that_is_gone_is_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        let record = ExecutableRecord { sha256: Sha256Hex::of_bytes(b"x"), size: 1, kept: Kept::Whole };
        assert_eq!(find(folder.path(), Some(&record)).expect("readable"), StoredExecutable::Missing);
        assert_eq!(find(folder.path(), None).expect("readable"), StoredExecutable::NotStored);
    }
}
