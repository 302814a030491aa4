//! The folder of all baselines of a workspace: saving, loading, listing, removing.
//!
//! A save is done when `baseline.json` has been renamed into its place. Everything before leaves the old baseline as it is, and
//! everything after only tidies up. So a reader needs no lock, and a folder that can only be read is enough for it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::digest::Sha256Hex;
use super::executable::{self, EXECUTABLE_CAP, StoredExecutable};
use super::format::{Baseline, Commit, ExecutableRecord, FormatError, SCHEMA};
use super::lock::{self, StoreLock, temporary_name};
use super::names::{BaselineName, folder_of};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

/// The text's file. No executable's name, which is a hash, is like it.
pub(super) const TEXT: &str = "baseline.json";

/// How often a reader looks again when a save has replaced what it was about to read.
const LOOKS: u32 = 5;

/// The baselines of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    folder: PathBuf,
}

/// What a look for a baseline found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// None of that name for that package.
    Missing(Missing),
    /// This one.
    Stored(Box<StoredBaseline>),
}

/// A baseline that is not there, and what is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What was looked for.
    pub name: BaselineName,
    /// For which package.
    pub package: String,
    /// Where.
    pub searched: PathBuf,
    /// The baselines of that package that are there.
    pub existing: Vec<BaselineName>,
    /// The packages that do have a baseline of that name.
    pub other_packages: Vec<String>,
}

/// A baseline that was read, and its executable.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredBaseline {
    /// What was measured. It may be without scenarios only if somebody edited it.
    pub baseline: Baseline,
    /// What can be started. In the store a later save removes it: whoever starts it uses [`Store::check_out`].
    pub executable: StoredExecutable,
    /// Where both lie.
    pub folder: PathBuf,
}

/// What a save did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Where it lies.
    pub folder: PathBuf,
    /// What became of the executable, if there was one.
    pub executable: Option<ExecutableRecord>,
    /// What it took the place of.
    pub replaced: Option<Replaced>,
}

/// What a save took the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// When that was measured.
    pub saved_at: Timestamp,
    /// Its revision.
    pub commit: Option<Commit>,
    /// Scenarios that were in it and are not any more: a filter was given, or they were removed.
    pub lost: Vec<String>,
}

/// One entry of a list.
#[derive(Debug)]
pub struct Listed {
    /// Its name, or its folder's where that does not tell it.
    pub name: String,
    /// Its package's folder.
    pub package: String,
    /// Where it lies.
    pub folder: PathBuf,
    /// Itself, or why it cannot be read.
    pub baseline: Result<Baseline>,
}

impl Store {
    /// The store of a workspace whose results lie in `results`: there, or where the configuration says. Touches no file.
    #[must_use]
    pub fn open(results: &Path, configured: Option<&Path>) -> Self {
        Self { folder: configured.map_or_else(|| results.join("baselines"), Path::to_owned) }
    }

    /// The folder of all baselines.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn folder_of_name(&self, name: &BaselineName) -> PathBuf {
        self.folder.join(name.folder())
    }

    /// The folder of one package's baseline.
    pub(super) fn folder_of(&self, name: &BaselineName, package: &str) -> PathBuf {
        self.folder_of_name(name).join(folder_of(package))
    }

    /// Whether this package has a baseline of this name, readable or not.
    #[must_use]
    pub fn has(&self, name: &BaselineName, package: &str) -> bool {
        self.folder_of(name, package).join(TEXT).exists()
    }

    /// Finds out whether a save would work, before anything is measured.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written (110), or what is there cannot be read and so must not be overwritten (96).
    pub fn check_writable(&self, name: &BaselineName, package: &str) -> Result<()> {
        self.readable(name, package)?;
        let folder = self.folder_of(name, package);
        let probe = |folder: &Path| {
            let path = folder.join(temporary_name());
            File::create_new(&path).and_then(|_| fs::remove_file(&path))
        };
        fs::create_dir_all(&self.folder).map_err(|error| self.not_writable(error))?;
        // The save will need the lock as well.
        let _lock = StoreLock::take(&self.folder)?;
        // The folder of a baseline is made by the save alone, so that a run that fails leaves no empty one.
        let nearest = [folder, self.folder_of_name(name)].into_iter().find(|folder| folder.is_dir());
        probe(nearest.as_ref().unwrap_or(&self.folder)).map_err(|error| self.not_writable(error))
    }

    /// Saves what one package measured, in the place of what was there.
    ///
    /// # Errors
    ///
    /// When the baseline has no scenario, or what is there cannot be read (96); when it cannot be written, or somebody else
    /// keeps the store locked (110).
    pub fn save(&self, name: &BaselineName, baseline: &Baseline, executable: Option<&Path>) -> Result<Saved> {
        if baseline.scenarios.is_empty() {
            return Err(Error::new(
                ExitCode::Configuration,
                format!("baseline `{name}` is not saved: nothing was measured of package `{}`", baseline.package),
            )
            .help("select at least one scenario; `cargo httpbench list` shows them"));
        }
        let folder = self.folder_of(name, &baseline.package);
        fs::create_dir_all(&self.folder).map_err(|error| self.not_writable(error))?;
        let _lock = StoreLock::take(&self.folder)?;
        fs::create_dir_all(&folder).map_err(|error| self.not_writable(error))?;
        let before = self.readable(name, &baseline.package)?;
        lock::clear(&folder);
        let record = executable
            .map(|path| {
                executable::keep(path, &folder, EXECUTABLE_CAP).map_err(|error| {
                    Error::new(
                        ExitCode::OutputFailed,
                        format!("cannot keep the executable `{}` with baseline `{name}`", path.display()),
                    )
                    .caused_by(error)
                    .help(format!("check the space in `{}`", self.folder.display()))
                })
            })
            .transpose()?;
        let stored = Baseline { schema: SCHEMA, name: name.clone(), executable: record.clone(), ..baseline.clone() };
        let text = stored
            .to_json()
            .map_err(|error| Error::unexpected(format!("baseline `{name}` cannot be written as JSON"), error))?;
        self.commit(&folder, &text, record.as_ref().map(|record| &record.sha256))?;
        let replaced = before.map(|before| Replaced {
            lost: before
                .scenarios
                .iter()
                .filter(|scenario| !baseline.scenarios.iter().any(|kept| kept.name == scenario.name))
                .map(|scenario| scenario.name.clone())
                .collect(),
            saved_at: before.saved_at,
            commit: before.commit,
        });
        Ok(Saved { folder, executable: record, replaced })
    }

    /// Puts a text in its place, and then removes executables that it does not name. To be called with the lock held and the
    /// executable in its place.
    pub(super) fn commit(&self, folder: &Path, text: &[u8], executable: Option<&Sha256Hex>) -> Result<()> {
        let write = || {
            step(Step::BeforeText);
            let path = folder.join(temporary_name());
            let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
            file.write_all(&text[..text.len() / 2])?;
            step(Step::HalfOfText);
            file.write_all(&text[text.len() / 2..])?;
            file.sync_all()?;
            // The executable's rename must be on the disk before the text that names it.
            sync_folder(folder)?;
            step(Step::BeforeRename);
            fs::rename(&path, folder.join(TEXT))?;
            step(Step::AfterRename);
            sync_folder(folder)?;
            folder.parent().map_or(Ok(()), sync_folder)?;
            sync_folder(&self.folder)
        };
        write().map_err(|error: io::Error| self.not_writable(error))?;
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let other = Sha256Hex::try_from(name).is_ok_and(|found| Some(&found) != executable);
            if other {
                // An executable that stays is no harm, and the next save tries again.
                let _ = fs::remove_file(entry.path());
            }
        }
        step(Step::Done);
        Ok(())
    }

    /// Reads a package's baseline and proves its executable. Takes no lock and writes nothing.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or a later version wrote it: exit code 96.
    pub fn load(&self, name: &BaselineName, package: &str) -> Result<Found> {
        self.look(name, package, |baseline, folder| self.executable_of(baseline, folder))
    }

    /// Reads a package's baseline and copies its executable to `place`, where no later save reaches it. The bytes are proven while
    /// they are copied, so what is started is what was saved; a whole executable then is at `place`.
    ///
    /// # Errors
    ///
    /// As [`Store::load`]; when the copy cannot be written: exit code 110.
    pub fn check_out(&self, name: &BaselineName, package: &str, place: &Path) -> Result<Found> {
        self.look(name, package, |baseline, folder| {
            executable::copy_out(folder, baseline.executable.as_ref(), place).map_err(|error| {
                Error::new(ExitCode::OutputFailed, format!("the executable of baseline `{name}` cannot be copied"))
                    .caused_by(error)
                    .details("from and to", [folder.display().to_string(), place.display().to_string()])
            })
        })
    }

    fn look(
        &self,
        name: &BaselineName,
        package: &str,
        mut executable_of: impl FnMut(&Baseline, &Path) -> Result<StoredExecutable>,
    ) -> Result<Found> {
        let folder = self.folder_of(name, package);
        let mut looks = LOOKS;
        loop {
            let Some(baseline) = self.readable(name, package)? else {
                return self.missing(name, package).map(Found::Missing);
            };
            let executable = executable_of(&baseline, &folder)?;
            // A save may have come between the two looks, and taken the executable away; a second one may have brought the same back.
            looks -= 1;
            if executable == StoredExecutable::Missing && looks > 0 {
                continue;
            }
            return Ok(Found::Stored(Box::new(StoredBaseline { baseline, executable, folder })));
        }
    }

    /// The executable of a baseline that lies in `folder`, proven by its hash.
    pub fn executable_of(&self, baseline: &Baseline, folder: &Path) -> Result<StoredExecutable> {
        executable::find(folder, baseline.executable.as_ref()).map_err(|error| {
            Error::new(
                ExitCode::Configuration,
                format!("the executable of baseline `{}` cannot be read", baseline.name),
            )
            .caused_by(error)
            .details("looked in", [folder.display().to_string()])
            .help("make it readable, or save the baseline anew")
        })
    }

    fn missing(&self, name: &BaselineName, package: &str) -> Result<Missing> {
        let mut existing = Vec::new();
        let mut other_packages = Vec::new();
        for listed in self.list()? {
            let Ok(baseline) = listed.baseline else { continue };
            if baseline.package == package {
                existing.push(baseline.name);
            } else if baseline.name == *name {
                other_packages.push(baseline.package);
            }
        }
        Ok(Missing {
            name: name.clone(),
            package: package.to_owned(),
            searched: self.folder.clone(),
            existing,
            other_packages,
        })
    }

    /// Every baseline, by name and package. Executables are not looked at.
    ///
    /// # Errors
    ///
    /// When the folder is there and cannot be read: exit code 96.
    pub fn list(&self) -> Result<Vec<Listed>> {
        let mut all = Vec::new();
        for name in self.folders_in(&self.folder)? {
            for package in self.folders_in(&self.folder.join(&name))? {
                let folder = self.folder.join(&name).join(&package);
                let baseline = match fs::read(folder.join(TEXT)) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => Err(self.unreadable(&name, &package, &folder, error)),
                    Ok(text) => {
                        Baseline::from_json(&text).map_err(|error| self.unreadable(&name, &package, &folder, error))
                    }
                };
                let told = match &baseline {
                    Ok(baseline) => Some(baseline.name.clone()),
                    Err(_) => BaselineName::of_folder(&name),
                };
                all.push(Listed {
                    name: told.map_or_else(|| name.clone(), String::from),
                    package: baseline.as_ref().map_or_else(|_| package.clone(), |baseline| baseline.package.clone()),
                    folder,
                    baseline,
                });
            }
        }
        all.sort_by(|one, two| (&one.name, &one.package).cmp(&(&two.name, &two.package)));
        Ok(all)
    }

    /// The packages that have a baseline of this name, each with its folder and its text. Empty where there is none.
    pub fn of_name(&self, name: &BaselineName) -> Result<Vec<Listed>> {
        let folder = self.folder_of_name(name);
        Ok(self.list()?.into_iter().filter(|listed| listed.folder.starts_with(&folder)).collect())
    }

    /// Removes a baseline of every package, readable or not. Returns the packages that it was of; none if it was not there.
    ///
    /// # Errors
    ///
    /// When it cannot be removed, or somebody else keeps the store locked: exit code 110.
    pub fn remove(&self, name: &BaselineName) -> Result<Vec<String>> {
        let packages: Vec<String> = self.of_name(name)?.into_iter().map(|listed| listed.package).collect();
        let folder = self.folder_of_name(name);
        if !folder.exists() {
            return Ok(packages);
        }
        let _lock = StoreLock::take(&self.folder)?;
        lock::clear(&self.folder);
        // Renamed first: whoever looks while it is being removed sees all of it or nothing.
        let gone = self.folder.join(temporary_name());
        fs::rename(&folder, &gone).and_then(|()| fs::remove_dir_all(&gone)).map_err(|error| {
            Error::new(ExitCode::OutputFailed, format!("baseline `{name}` cannot be removed")).caused_by(error)
        })?;
        Ok(packages)
    }

    /// What is there; `None` where nothing is, in an empty folder too.
    pub(super) fn readable(&self, name: &BaselineName, package: &str) -> Result<Option<Baseline>> {
        let folder = self.folder_of(name, package);
        match fs::read(folder.join(TEXT)) {
            Ok(text) => Baseline::from_json(&text)
                .map(Some)
                .map_err(|error| self.unreadable(name.as_str(), package, &folder, error)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(self.unreadable(name.as_str(), package, &folder, error)),
        }
    }

    fn folders_in(&self, folder: &Path) -> Result<Vec<String>> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => {
                return Err(Error::new(
                    ExitCode::Configuration,
                    format!("the baselines in `{}` cannot be listed", self.folder.display()),
                )
                .caused_by(error)
                .help(
                    "make the folder readable, or choose another one with `baseline-dir` or HTTPBENCH_BASELINE_DIR",
                ));
            }
        };
        let names = entries.flatten().filter(|entry| entry.path().is_dir());
        // What begins with a dot is unfinished or somebody else's.
        Ok(names
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| !name.starts_with('.'))
            .collect())
    }

    fn unreadable(&self, name: &str, package: &str, folder: &Path, cause: impl Into<Unreadable>) -> Error {
        let cause = cause.into();
        let help = match &cause {
            Unreadable::Format(FormatError::Newer { needs, .. }) => format!(
                "update cargo-httpbench to {needs} or later, choose another name, or give that baseline up with `cargo httpbench \
                 baseline rm {}`",
                quoted(name)
            ),
            _ => format!(
                "restore the file, choose another name, or give that baseline up with `cargo httpbench baseline rm {}`; it is never \
                 overwritten",
                quoted(name)
            ),
        };
        Error::new(ExitCode::Configuration, format!("baseline `{name}` of package `{package}` cannot be read"))
            .caused_by(match cause {
                Unreadable::Format(error) => Box::new(error) as Box<dyn std::error::Error + Send + Sync>,
                Unreadable::File(error) => Box::new(error),
            })
            .details("it lies in", [folder.display().to_string()])
            .help(help)
    }

    fn not_writable(&self, error: io::Error) -> Error {
        Error::new(ExitCode::OutputFailed, format!("baselines cannot be written to `{}`", self.folder.display()))
            .caused_by(error)
            .help("make the folder writable, or choose another one with `baseline-dir` or HTTPBENCH_BASELINE_DIR")
    }
}

impl Listed {
    /// The same entry, if it can be read.
    pub(super) fn into_readable(self) -> Result<Self> {
        let baseline = self.baseline?;
        Ok(Self { baseline: Ok(baseline), ..self })
    }
}

/// Why a text cannot be read.
enum Unreadable {
    Format(FormatError),
    File(io::Error),
}

impl From<FormatError> for Unreadable {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl Missing {
    /// The failure that this is where the policy says so; for a warning, its text is [`Error::what`] and its help.
    #[must_use]
    pub fn error(&self, exit: ExitCode) -> Error {
        let Self { name, package, searched, existing, other_packages } = self;
        let list = |names: Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let mut error = Error::new(exit, format!("there is no baseline `{name}` of package `{package}`"))
            .details("searched", [searched.display().to_string()])
            .details(format!("baselines of `{package}`"), [list(existing.iter().map(ToString::to_string).collect())]);
        if !other_packages.is_empty() {
            error = error.details(format!("packages with a baseline `{name}`"), [list(other_packages.clone())]);
        }
        error.help(format!(
            "save one on the code to compare with: `cargo httpbench --save-baseline {}`",
            quoted(name.as_str())
        ))
    }
}

/// A name as a shell understands it.
pub(super) fn quoted(name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./+@".contains(&byte));
    if plain { name.to_owned() } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some network file systems cannot do this, and need not.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        done => done,
    }
}

/// The moments at which the tests kill a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    BeforeText,
    HalfOfText,
    BeforeRename,
    AfterRename,
    Done,
}

#[cfg(not(test))]
const fn step(_: Step) {}

#[cfg(test)]
fn step(step: Step) {
    tests::reached(step);
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
