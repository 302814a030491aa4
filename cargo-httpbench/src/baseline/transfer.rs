//! Baselines as one file: `export` writes a tar archive, `import` reads it on another machine.
//!
//! An archive comes from anywhere, so nothing in it is believed: only regular files of the two known kinds are taken, their paths
//! are rebuilt from what they must be, sizes are bounded while reading, and an executable must have the hash that it is named by. The
//! text goes through unchanged, byte by byte, fields of later versions included.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use tar::{Archive, Builder, EntryType, Header};

use super::digest::Sha256Hex;
use super::executable::{self, EXECUTABLE_CAP, StoredExecutable, Written, place};
use super::format::{Baseline, ExecutableRecord};
use super::lock::{self, StoreLock, temporary_name};
use super::names::{BaselineName, folder_of};
use super::store::{Store, TEXT};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

/// The largest text that is read: 10,000 scenarios with full histograms are smaller.
const TEXT_CAP: u64 = 256 * 1024 * 1024;

/// More files than any workspace has packages, twice.
const ENTRIES: usize = 2_000;

/// One package's part of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// What is in the file.
    pub baseline: Baseline,
    /// What became of its executable: only a whole one is in the file.
    pub executable: StoredExecutable,
}

/// One package's part of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// What was in the file.
    pub baseline: Baseline,
    /// The executable that came with it.
    pub executable: Option<ExecutableRecord>,
    /// Where it lies now.
    pub folder: PathBuf,
}

/// What becomes of a baseline that is already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacing {
    /// It stays, and the import fails.
    No,
    /// It is replaced, if it can be read.
    Yes,
}

/// A package's files in an archive, before they are in their places.
#[derive(Default)]
struct Staged {
    text: Option<Vec<u8>>,
    executables: Vec<Written>,
}

impl Store {
    /// Writes a baseline of every package into one archive, the same bytes each time.
    ///
    /// # Errors
    ///
    /// When there is none, or one cannot be read (96); when the archive cannot be written (110).
    pub fn export(&self, name: &BaselineName, to: impl Write) -> Result<Vec<Exported>> {
        let entries = self.of_name(name)?;
        if entries.is_empty() {
            return Err(self.no_such(name)?);
        }
        let failed = |error: io::Error| {
            Error::new(ExitCode::OutputFailed, format!("baseline `{name}` cannot be exported")).caused_by(error)
        };
        let mut archive = Builder::new(to);
        let mut exported = Vec::new();
        for listed in entries {
            let listed = listed.into_readable()?;
            let text = fs::read(listed.folder.join(TEXT)).map_err(failed)?;
            // Read anew, because a save may have come in between: what the text says is what the archive holds.
            let baseline = Baseline::from_json(&text).map_err(|error| failed(io::Error::other(error)))?;
            let folder = folder_of(&baseline.package);
            add(&mut archive, &format!("{folder}/{TEXT}"), 0o644, text.len() as u64, &text[..]).map_err(failed)?;
            let executable = self.executable_of(&baseline, &listed.folder)?;
            if let (StoredExecutable::Whole(path), Some(record)) = (&executable, &baseline.executable) {
                let file = fs::File::open(path).map_err(failed)?;
                let name = format!("{folder}/{}", record.sha256);
                add(&mut archive, &name, 0o755, record.size, file).map_err(failed)?;
            }
            exported.push(Exported { baseline, executable });
        }
        archive.into_inner().and_then(|mut to| to.flush()).map_err(failed)?;
        Ok(exported)
    }

    /// Takes the baselines of an archive into the store.
    ///
    /// # Errors
    ///
    /// When the archive is none of ours or damaged, or a baseline of that name is there and stays (96); when the store cannot be
    /// written (110). Then the store is as it was, unless an earlier package of the same archive is already in its place.
    pub fn import(&self, from: impl Read, replacing: Replacing) -> Result<Vec<Imported>> {
        let unwritable = |error: io::Error| {
            Error::new(ExitCode::OutputFailed, format!("nothing can be imported to `{}`", self.folder().display()))
                .caused_by(error)
                .help("make the folder writable, or choose another one with `baseline-dir` or HTTPBENCH_BASELINE_DIR")
        };
        fs::create_dir_all(self.folder()).map_err(unwritable)?;
        let _lock = StoreLock::take(self.folder())?;
        lock::clear(self.folder());
        let stage = self.folder().join(temporary_name());
        fs::create_dir(&stage).map_err(unwritable)?;
        let imported = unpack(from, &stage)
            .map_err(|error| {
                Error::new(ExitCode::Configuration, "the file is no archive of a baseline that can be imported")
                    .caused_by(error)
                    .help("write one with `cargo httpbench baseline export NAME FILE`, and transfer it as binary data")
            })
            .and_then(|staged| self.take_in(staged, replacing));
        let _ = fs::remove_dir_all(&stage); // The next import clears what is left.
        imported
    }

    fn take_in(&self, staged: BTreeMap<String, Staged>, replacing: Replacing) -> Result<Vec<Imported>> {
        let mut read = Vec::new();
        for (folder, files) in staged {
            let text = files.text.unwrap_or_default();
            let baseline = Baseline::from_json(&text).map_err(|error| {
                Error::new(ExitCode::Configuration, format!("the baseline of `{folder}` in the archive cannot be read"))
                    .caused_by(error)
                    .help("export it anew, or update cargo-httpbench where a later version is needed")
            })?;
            if folder_of(&baseline.package) != folder {
                return Err(Error::new(
                    ExitCode::Configuration,
                    format!("the archive holds package `{}` in the place of `{folder}`", baseline.package),
                )
                .help("the archive was changed by hand; export it anew"));
            }
            if self.readable(&baseline.name, &baseline.package)?.is_some() && replacing == Replacing::No {
                return Err(Error::new(
                    ExitCode::Configuration,
                    format!("there is a baseline `{}` of package `{}` already", baseline.name, baseline.package),
                )
                .help("replace it with `--force`, or remove it first with `cargo httpbench baseline rm`"));
            }
            read.push((baseline, text, files.executables));
        }
        // Everything was looked at; from here on it counts.
        read.into_iter().map(|(baseline, text, executables)| self.place(baseline, &text, executables)).collect()
    }

    fn place(&self, baseline: Baseline, text: &[u8], executables: Vec<Written>) -> Result<Imported> {
        let folder = self.folder_of(&baseline.name, &baseline.package);
        let failed = |error: io::Error| {
            Error::new(ExitCode::OutputFailed, format!("baseline `{}` cannot be imported", baseline.name))
                .caused_by(error)
        };
        fs::create_dir_all(&folder).map_err(failed)?;
        let wanted = baseline.executable.clone();
        let found =
            executables.into_iter().find(|file| wanted.as_ref().is_some_and(|wanted| wanted.sha256 == file.sha256));
        if let Some(file) = &found {
            fs::rename(&file.path, place(&folder, &file.sha256)).map_err(failed)?;
        }
        self.commit(&folder, text, wanted.as_ref().map(|wanted| &wanted.sha256))?;
        Ok(Imported { executable: wanted.filter(|_| found.is_some()), baseline, folder })
    }

    /// The error of a name that nobody saved.
    pub fn no_such(&self, name: &BaselineName) -> Result<Error> {
        let mut names: Vec<String> = self.list()?.into_iter().map(|listed| listed.name).collect();
        names.dedup();
        let nearest = crate::nearest::nearest(name.as_str(), names.iter().map(String::as_str)).map(str::to_owned);
        let error = Error::new(ExitCode::Configuration, format!("there is no baseline `{name}`"))
            .details("searched", [self.folder().display().to_string()])
            .details("baselines", if names.is_empty() { vec!["none".to_owned()] } else { names });
        Ok(match nearest {
            Some(nearest) => error.help(format!("did you mean `{nearest}`?")),
            None => error.help(
                "save one with `cargo httpbench --save-baseline NAME`, or look into another folder with `baseline-dir`",
            ),
        })
    }
}

fn add(archive: &mut Builder<impl Write>, path: &str, mode: u32, size: u64, from: impl Read) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(mode);
    header.set_mtime(0); // So that equal baselines are equal archives.
    header.set_size(size);
    // What grew meanwhile must not spill into the next entry.
    archive.append_data(&mut header, path, from.take(size))
}

/// Reads an archive into a folder that nobody looks at. Every executable is proven by its name.
fn unpack(from: impl Read, stage: &Path) -> io::Result<BTreeMap<String, Staged>> {
    let wrong = |what: String| Err(io::Error::other(what));
    let mut staged: BTreeMap<String, Staged> = BTreeMap::new();
    let mut archive = Archive::new(from);
    for (index, entry) in archive.entries()?.enumerate() {
        if index >= ENTRIES {
            return wrong(format!("it holds more than {ENTRIES} files"));
        }
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        if entry.header().entry_type() != EntryType::Regular {
            return wrong(format!("`{}` is no regular file", path.display()));
        }
        let Some((folder, file)) = parts(&path) else {
            return wrong(format!("`{}` is no file of a baseline", path.display()));
        };
        let package = staged.entry(folder).or_default();
        if file == TEXT {
            let mut text = Vec::new();
            entry.by_ref().take(TEXT_CAP + 1).read_to_end(&mut text)?;
            if text.len() as u64 > TEXT_CAP {
                return wrong(format!("`{}` is larger than {TEXT_CAP} bytes", path.display()));
            }
            if package.text.replace(text).is_some() {
                return wrong(format!("`{}` is in it twice", path.display()));
            }
        } else if let Ok(named) = Sha256Hex::try_from(file) {
            if !package.executables.is_empty() {
                return wrong(format!("`{}` is a second executable", path.display()));
            }
            let written = executable::write(&mut entry, stage, EXECUTABLE_CAP)?;
            if written.sha256 != named {
                return wrong(format!(
                    "`{}` has the hash {}: it was damaged or changed",
                    path.display(),
                    written.sha256
                ));
            }
            package.executables.push(written);
        } else {
            return wrong(format!("`{}` is no file of a baseline", path.display()));
        }
    }
    match staged.iter().find(|(_, files)| files.text.is_none()) {
        _ if staged.is_empty() => wrong("it is empty".to_owned()),
        Some((folder, _)) => wrong(format!("`{folder}/{TEXT}` is missing")),
        None => Ok(staged),
    }
}

/// `package/file`, and nothing else: no root, no `..`, no deeper folder.
fn parts(path: &Path) -> Option<(String, String)> {
    let mut components = path.components();
    let (Component::Normal(folder), Component::Normal(file), None) =
        (components.next()?, components.next()?, components.next())
    else {
        return None;
    };
    let (folder, file) = (folder.to_str()?, file.to_str()?);
    // The folder must be one that an encoding can yield; `take_in` then compares it with the package.
    (!folder.starts_with('.')).then(|| (folder.to_owned(), file.to_owned()))
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
