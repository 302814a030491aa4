//! Whether measuring could find anything at all: the strict rule for identical binaries.
//!
//! Equal executables, byte by byte, arguments and environment before port and private folder are filled in, and copied files.
//! Whether a limit or a save asks for a measurement all the same is the caller's.

use std::path::Path;

use super::digest::Sha256Hex;
use super::set_up::SetUp;
use super::store::StoredBaseline;
use crate::error::{Error, Result};

/// Whether a candidate is what a baseline was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// In everything that the rule asks for.
    Identical,
    /// In these parts it is not, each in words.
    Different(Vec<String>),
}

/// Compares a candidate with a stored baseline.
///
/// The baseline's executable is known by its recorded hash, so it need not lie in the store any more.
///
/// # Errors
///
/// When the candidate's executable cannot be read.
pub fn identical(stored: &StoredBaseline, candidate_executable: &Path, candidate_set_up: &SetUp) -> Result<Identity> {
    let mut differences = Vec::new();
    match &stored.baseline.executable {
        None => differences.push("the baseline does not know its executable".to_owned()),
        Some(record) => {
            let found = Sha256Hex::of_file(candidate_executable).map_err(|error| {
                Error::unexpected(format!("cannot read the executable `{}`", candidate_executable.display()), error)
            })?;
            if found != record.sha256 {
                differences.push("the executables differ".to_owned());
            }
        }
    }
    differences.extend(stored.baseline.set_up.differences(candidate_set_up));
    Ok(if differences.is_empty() { Identity::Identical } else { Identity::Different(differences) })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::baseline::sample::sample_baseline;
    use crate::baseline::{Baseline, ExecutableRecord, Kept, StoredExecutable};

    fn stored(executable: Option<&[u8]>) -> StoredBaseline {
        let record = executable.map(|bytes| ExecutableRecord {
            sha256: Sha256Hex::of_bytes(bytes),
            size: bytes.len() as u64,
            kept: Kept::Whole,
        });
        let baseline = Baseline { executable: record, ..sample_baseline() };
        StoredBaseline { baseline, executable: StoredExecutable::Missing, folder: "/nowhere".into() }
    }

    #[test]
    fn only_equal_bytes_and_an_equal_set_up_are_identical() {
        let folder = tempfile::tempdir().expect("a folder");
        let candidate = folder.path().join("shop");
        fs::write(&candidate, "server").expect("written");
        let set_up = sample_baseline().set_up;
        let verdict =
            |stored: &StoredBaseline, set_up: &SetUp| identical(stored, &candidate, set_up).expect("readable");

        assert_eq!(verdict(&stored(Some(b"server")), &set_up), Identity::Identical);
        assert_eq!(
            verdict(&stored(Some(b"serveR")), &set_up),
            Identity::Different(vec!["the executables differ".to_owned()])
        );
        assert_eq!(
            verdict(&stored(None), &set_up),
            Identity::Different(vec!["the baseline does not know its executable".to_owned()])
        );
        let other = SetUp { args: vec!["--port={port}".to_owned(), "-v".to_owned()], ..set_up };
        assert_eq!(
            verdict(&stored(Some(b"server")), &other),
            Identity::Different(vec!["the arguments differ".to_owned()])
        );
    }
}
