//! The toolchain in use, kept for the revision: it is the server that is compared, not the compiler.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cargo::{Cargo, RunCargo, StandardError};
use crate::error::Result;
use crate::exit_code::ExitCode;

/// The files by which a checkout chooses its toolchain, the one that wins first.
const FILES: [&str; 2] = ["rust-toolchain", "rust-toolchain.toml"];

/// The compiler that builds the candidate.
#[derive(Clone, Debug)]
pub(super) struct Toolchain {
    /// What `rustc -vV` says. `None`: it cannot be asked.
    pub(super) version: Option<String>,
    /// What `RUSTUP_TOOLCHAIN` has to be elsewhere for the same to be taken. `None`: it is the user's own already.
    pub(super) pin: Option<OsString>,
}

impl Toolchain {
    /// Asks the compiler where the user stands: `rust-toolchain.toml` and rustup's overrides depend on that.
    pub(super) fn in_use(cargo: &Cargo, runner: &mut dyn RunCargo) -> Result<Self> {
        let version = ask(cargo, runner, &["-vV"])?;
        let pin = match cargo.environment.get("RUSTUP_TOOLCHAIN") {
            Some(_) => None,
            None => ask(cargo, runner, &["--print", "sysroot"])?.and_then(|sysroot| pin(Path::new(sysroot.trim()))),
        };
        Ok(Self { version, pin })
    }
}

/// A toolchain of rustup's by its name; rustup takes any other by its path, and without rustup nobody reads this.
fn pin(sysroot: &Path) -> Option<OsString> {
    let is_rustups = sysroot.parent().and_then(Path::file_name).is_some_and(|parent| parent == "toolchains");
    let name = if is_rustups { sysroot.file_name()?.to_owned() } else { sysroot.as_os_str().to_owned() };
    (!name.is_empty()).then_some(name)
}

fn ask(cargo: &Cargo, runner: &mut dyn RunCargo, args: &[&str]) -> Result<Option<String>> {
    let mut call = cargo.call(args.iter().map(Into::into).collect(), StandardError::Capture);
    call.program = cargo.environment.get("RUSTC").map_or("rustc".into(), PathBuf::from);
    let output = match runner.run(&call) {
        Ok(output) => output,
        Err(error) if matches!(error.exit, ExitCode::Signal(_)) => return Err(error),
        // If there is none, cargo says so in better words.
        Err(_) => return Ok(None),
    };
    Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// The toolchain file of the revision, where it says something else than the candidate's, which is followed for both.
pub(super) fn other_file(candidate: &Path, revision: &Path) -> Option<PathBuf> {
    let file = |root: &Path| FILES.iter().map(|name| root.join(name)).find(|path| path.is_file());
    let read = |path: &Option<PathBuf>| path.as_ref().and_then(|path| std::fs::read(path).ok());
    let (here, there) = (file(candidate), file(revision));
    if read(&here) == read(&there) {
        return None;
    }
    let named = there.or(here)?;
    named.file_name().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolchain_of_rustup_is_pinned_by_name_and_others_by_path() {
        let pinned = |path: &str| pin(Path::new(path)).and_then(|pin| pin.into_string().ok());
        assert_eq!(pinned("/h/.rustup/toolchains/nightly-x"), Some("nightly-x".to_owned()));
        assert_eq!(pinned("/opt/rust"), Some("/opt/rust".to_owned()));
        assert_eq!(pinned(""), None);
    }

    #[test]
    fn toolchain_file_is_named_only_where_it_differs() {
        let (here, there) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let other = || other_file(here.path(), there.path());
        assert_eq!(other(), None);
        std::fs::write(there.path().join("rust-toolchain.toml"), "[toolchain]\nchannel = \"1.80\"\n").expect("written");
        assert_eq!(other(), Some("rust-toolchain.toml".into()));
        std::fs::copy(there.path().join("rust-toolchain.toml"), here.path().join("rust-toolchain.toml"))
            .expect("copied");
        assert_eq!(other(), None);
        std::fs::remove_file(there.path().join("rust-toolchain.toml")).expect("removed");
        assert_eq!(other(), Some("rust-toolchain.toml".into()));
    }
}
