//! `cargo httpbench baseline list|show|rm|export|import`: what a user does with stored baselines, without measuring anything.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::executable::StoredExecutable;
use super::lock::temporary_name;
use super::names::BaselineName;
use super::store::{Store, quoted};
use super::telling;
pub use super::transfer::Replacing;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::prepare::Project;
use crate::shell::Shell;

/// What to do with stored baselines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BaselineCommand {
    /// Name them all.
    List,
    /// Tell all about one.
    Show(BaselineName),
    /// Remove these.
    Remove(Vec<BaselineName>),
    /// Write one to a file.
    Export {
        /// Which.
        name: BaselineName,
        /// Where to; `None` makes a file's name of the baseline's.
        file: Option<PathBuf>,
        /// What becomes of a file that is there.
        replacing: Replacing,
    },
    /// Read one from a file.
    Import {
        /// Which file.
        file: PathBuf,
        /// What becomes of a baseline of that name.
        replacing: Replacing,
    },
}

/// Does it.
///
/// # Errors
///
/// When a baseline or a file is not there or cannot be read (96), or something cannot be written (110).
pub fn run(project: &Project<'_>, command: &BaselineCommand, shell: &mut Shell) -> Result<ExitCode> {
    let store = project.baselines(shell)?;
    match command {
        BaselineCommand::List => list(&store, shell),
        BaselineCommand::Show(name) => show(&store, name, shell),
        BaselineCommand::Remove(names) => remove(&store, names, shell),
        BaselineCommand::Export { name, file, replacing } => {
            let file = file.clone().unwrap_or_else(|| PathBuf::from(format!("{}.tar", name.folder())));
            export(&store, name, &file, *replacing, shell)
        }
        BaselineCommand::Import { file, replacing } => import(&store, file, *replacing, shell),
    }?;
    Ok(ExitCode::Success)
}

fn list(store: &Store, shell: &mut Shell) -> Result<()> {
    let all = store.list()?;
    if all.is_empty() {
        shell.status("Note", &format!("there is no baseline in {}", store.folder().display()));
    }
    for listed in &all {
        shell.answer(&telling::line(listed))?;
        shell.object("baseline", &telling::object(listed, None))?;
    }
    Ok(())
}

fn show(store: &Store, name: &BaselineName, shell: &mut Shell) -> Result<()> {
    let entries = store.of_name(name)?;
    if entries.is_empty() {
        return Err(store.no_such(name)?);
    }
    for listed in entries {
        let listed = listed.into_readable()?;
        if let Ok(baseline) = &listed.baseline {
            let executable = store.executable_of(baseline, &listed.folder)?;
            shell.answer(&telling::page(baseline, &executable))?;
            shell.object("baseline", &telling::object(&listed, Some(&executable)))?;
        }
    }
    Ok(())
}

fn remove(store: &Store, names: &[BaselineName], shell: &mut Shell) -> Result<()> {
    // All names are looked at first: a typing error removes nothing.
    for name in names {
        if store.of_name(name)?.is_empty() {
            return Err(store.no_such(name)?);
        }
    }
    for name in names {
        let packages = store.remove(name)?;
        shell.status("Removed", &format!("baseline `{name}` of {}", packages.join(", ")));
        shell.object("baseline-removed", &serde_json::json!({ "name": name, "packages": packages }))?;
    }
    Ok(())
}

fn export(store: &Store, name: &BaselineName, file: &Path, replacing: Replacing, shell: &mut Shell) -> Result<()> {
    if file.exists() && replacing == Replacing::No {
        return Err(Error::new(ExitCode::OutputFailed, format!("`{}` is there already", file.display()))
            .help("name another file, or replace it with `--force`"));
    }
    let failed = |error: io::Error| {
        Error::new(ExitCode::OutputFailed, format!("`{}` cannot be written", file.display())).caused_by(error)
    };
    // Under another name first, so that nobody uploads half an archive.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished = folder.join(temporary_name());
    let mut archive = File::create_new(&unfinished).map_err(failed)?;
    let done = store.export(name, &mut archive).and_then(|exported| {
        archive.sync_all().and_then(|()| fs::rename(&unfinished, file)).map_err(failed).map(|()| exported)
    });
    if done.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    let exported = done?;
    for part in &exported {
        let package = &part.baseline.package;
        let without = match &part.executable {
            StoredExecutable::Whole(_) => None,
            StoredExecutable::NotStored => Some("none was kept"),
            StoredExecutable::Missing => Some("it is missing"),
            StoredExecutable::Corrupt { .. } => Some("it is damaged: its hash is not the recorded one"),
        };
        if let Some(why) = without {
            shell.status("Note", &format!("the executable of `{package}` is not in the archive: {why}"));
        }
    }
    shell.status("Exported", &format!("baseline `{name}` to {}", file.display()));
    let packages: Vec<_> = exported.iter().map(|part| &part.baseline.package).collect();
    shell.object("baseline-exported", &serde_json::json!({ "name": name, "packages": packages, "file": file }))
}

fn import(store: &Store, file: &Path, replacing: Replacing, shell: &mut Shell) -> Result<()> {
    let archive = File::open(file).map_err(|error| {
        Error::new(ExitCode::Configuration, format!("`{}` cannot be read", file.display()))
            .caused_by(error)
            .help("name a file that `cargo httpbench baseline export` wrote")
    })?;
    for imported in store.import(archive, replacing)? {
        let (name, package) = (&imported.baseline.name, &imported.baseline.package);
        shell.status("Imported", &format!("baseline `{name}` of {package} to {}", imported.folder.display()));
        match &imported.executable {
            Some(record) => {
                shell.answer(&telling::origin(&imported.baseline, record))?;
                shell.status(
                    "Note",
                    &format!(
                        "`cargo httpbench --baseline {}` starts this executable: do so only if you trust where the file comes from",
                        quoted(name.as_str())
                    ),
                );
            }
            None => shell.status("Note", "no executable came with it: its numbers alone can be compared"),
        }
        shell.object(
            "baseline-imported",
            &serde_json::json!({
                "name": name,
                "package": package,
                "server": imported.baseline.server,
                "saved_at": imported.baseline.saved_at,
                "commit": imported.baseline.commit,
                "fingerprint": imported.baseline.fingerprint,
                "executable": imported.executable,
                "folder": imported.folder,
            }),
        )?;
    }
    Ok(())
}
