//! Which of cargo's configuration files are the revision's.
//!
//! Cargo reads `.cargo/config.toml` in every folder from its current directory up. Called in the worktree, which lies below the
//! user's workspace, it would mix the files of both: a flag that only the candidate has would reach the revision, and a flag of
//! both would be given twice. So cargo is called *above* the user's checkout, where it finds what applies to both, and the
//! revision's own files are named to it. Files that git ignores belong to the machine, not to a commit: both get the user's.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::git::Git;
use crate::cargo::Cargo;
use crate::error::Result;

/// The older name, without extension, wins where both exist.
const NAMES: [&str; 2] = ["config", "config.toml"];

/// Where cargo is called for a revision, and with which files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Configuration {
    /// Cargo's current directory.
    pub(super) current_dir: PathBuf,
    /// The files that it does not find from there, the one that wins last.
    pub(super) named: Vec<PathBuf>,
    /// The files that it finds itself, the one that wins last.
    found: Vec<PathBuf>,
}

/// The program that the user has put before every compiler, such as `sccache`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrapper {
    /// None.
    Absent,
    /// This one.
    Program(OsString),
    /// One that this command cannot tell.
    Hidden,
}

impl Configuration {
    /// What holds for `tree`, a worktree that stands for the checkout `toplevel`.
    pub(super) fn of(cargo: &Cargo, toplevel: &Path, tree: &Path, git: &Git) -> Result<Self> {
        let here = cargo.current_dir.canonicalize().unwrap_or_else(|_| cargo.current_dir.clone());
        let mut named = Vec::new();
        let current_dir = match here.strip_prefix(toplevel) {
            Ok(inside) => {
                // From the root to where the user stands.
                let mut levels: Vec<&Path> = inside.ancestors().collect();
                levels.reverse();
                for level in levels {
                    let own = file_in(&toplevel.join(level));
                    let ignored = match &own {
                        Some(file) => is_ignored(file, toplevel, git)?,
                        None => false,
                    };
                    named.extend(own.filter(|_| ignored).or_else(|| file_in(&tree.join(level))));
                }
                toplevel.parent().unwrap_or(toplevel).to_owned()
            }
            Err(_) => here,
        };
        let mut found: Vec<PathBuf> = current_dir.ancestors().filter_map(file_in).collect();
        let home = home(cargo).and_then(|home| NAMES.iter().map(|name| home.join(name)).find(|file| file.is_file()));
        found.extend(home.filter(|home| !found.contains(home)));
        found.reverse();
        Ok(Self { current_dir, named, found })
    }

    /// Every file that has a say, the one that wins last.
    pub(super) fn files(&self) -> impl DoubleEndedIterator<Item = &Path> {
        self.found.iter().chain(&self.named).map(PathBuf::as_path)
    }

    /// What stands before the compiler, by cargo's own order: variables, then the nearest file.
    pub(super) fn wrapper(&self, cargo: &Cargo) -> Wrapper {
        if cargo
            .options
            .config
            .iter()
            .any(|value| value.contains("rustc-wrapper") || cargo.absolute(Path::new(value)).is_file())
        {
            return Wrapper::Hidden;
        }
        for name in ["RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER"] {
            if let Some(program) = cargo.environment.get(name) {
                return wrapper(program, &cargo.current_dir);
            }
        }
        for file in self.files().rev() {
            let Ok(text) = fs::read_to_string(file) else { return Wrapper::Hidden };
            let Ok(root) = DeTable::parse(&text) else { return Wrapper::Hidden };
            let root = root.get_ref();
            let build = root.get("build").and_then(|build| build.get_ref().as_table());
            if let Some(program) = build.and_then(|build| build.get("rustc-wrapper")?.get_ref().as_str()) {
                // Relative paths begin above the file's folder.
                return wrapper(OsStr::new(program), file.ancestors().nth(2).unwrap_or(file));
            }
            if root.contains_key("include") {
                return Wrapper::Hidden;
            }
        }
        Wrapper::Absent
    }
}

/// A name is looked for in the `PATH`; anything else is a path.
fn wrapper(program: &OsStr, base: &Path) -> Wrapper {
    match program {
        program if program.is_empty() => Wrapper::Absent,
        program => Wrapper::Program(from(base, program)),
    }
}

/// A program as a user means it who stands in `base`.
pub(super) fn from(base: &Path, program: &OsStr) -> OsString {
    if Path::new(program).components().count() > 1 { base.join(program).into() } else { program.to_owned() }
}

/// Cargo's own folder.
pub(super) fn home(cargo: &Cargo) -> Option<PathBuf> {
    let named = cargo.environment.get("CARGO_HOME").filter(|home| !home.is_empty());
    named
        .map(|home| cargo.absolute(Path::new(home)))
        .or_else(|| cargo.environment.get("HOME").map(|home| Path::new(home).join(".cargo")))
}

fn file_in(folder: &Path) -> Option<PathBuf> {
    NAMES.iter().map(|name| folder.join(".cargo").join(name)).find(|file| file.is_file())
}

fn is_ignored(file: &Path, toplevel: &Path, git: &Git) -> Result<bool> {
    let args = [OsStr::new("check-ignore"), OsStr::new("--quiet"), OsStr::new("--"), file.as_os_str()];
    Ok(git.call(toplevel, args)?.ended.is_success())
}
