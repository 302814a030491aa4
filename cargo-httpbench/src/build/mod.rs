//! Executables: the server as it is shipped, and the bench binaries.
//!
//! The server is built by a cargo call of its own and copied out at once. A call that builds both would unify the
//! dev-dependencies' features into the server, and the second call does rebuild the package's binaries with them. What was
//! built is known from cargo's `compiler-artifact` messages only, never from guessing paths.
//!
//! Which targets these are is decided in [`crate::discover`]; nothing here is started but cargo.

mod executable;
mod folder;
mod messages;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use cargo_metadata::Package;

pub(crate) use executable::mentions;
pub use folder::RunFolder;

use crate::cargo::{Cargo, FeatureBase, RunCargo, StandardError};
use crate::discover::{BenchTarget, ServerTarget, takes_feature};
use crate::environment::Linked;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::warning::Warning;
use messages::Built;

/// The server's executable, out of the way of later builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerExecutable {
    /// The copy that is started.
    pub path: PathBuf,
    /// What cargo built.
    pub built: PathBuf,
    /// What it needs to find at run time; [`Cargo::environment_of`] takes it.
    pub linked: Linked,
    /// What is odd about the build.
    pub warnings: Vec<Warning>,
}

/// A bench binary that speaks our protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchExecutable {
    /// The bench target's name.
    pub name: String,
    /// What cargo built.
    pub path: PathBuf,
    /// What it needs to find at run time.
    pub linked: Linked,
}

/// The bench binaries of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BenchExecutables {
    /// Those that are ours, in the order of their targets.
    pub executables: Vec<BenchExecutable>,
    /// Those that are not, and were not asked for by name.
    pub warnings: Vec<Warning>,
}

/// Builds the server by a cargo call of its own and copies it into `folder`.
///
/// # Errors
///
/// When cannot be built (101), or copied (110).
pub fn server(
    cargo: &Cargo,
    runner: &mut dyn RunCargo,
    target: &ServerTarget,
    folder: &RunFolder,
) -> Result<ServerExecutable> {
    let mut args = vec!["--bin".into(), OsString::from(&target.bin)];
    args.extend(package_args(cargo, &target.package));
    let what = format!("server `{}`", target.bin);
    let built = build(cargo, runner, args, &what)?;
    let artifact =
        built.executable(&target.package.id, &target.bin, "bin").ok_or_else(|| unexpected_artifact(&what))?;
    let source = PathBuf::from(&artifact.path);
    let path = folder.place(&target.bin)?;
    fs::copy(&source, &path).map_err(|error| {
        Error::new(ExitCode::OutputFailed, format!("cannot copy `{}` to `{}`", source.display(), path.display()))
            .caused_by(error)
            .help("make room on that disk, or choose another one with `--target-dir`")
    })?;
    let mut warnings = Vec::new();
    if artifact.opt_level == "0" {
        warnings.push(Warning::UnoptimisedServer { bin: target.bin.clone(), profile: cargo.options.profile.clone() });
    }
    let linked = linked(cargo, runner, &built, &target.package, &source)?;
    Ok(ServerExecutable { path, built: source, linked, warnings })
}

/// Builds the bench targets of one package, which is not empty, and looks whether each is ours.
///
/// # Errors
///
/// When cargo cannot build them (101), or when one that was asked for by name is not ours (96).
pub fn benches(cargo: &Cargo, runner: &mut dyn RunCargo, targets: &[BenchTarget]) -> Result<BenchExecutables> {
    let mut found = BenchExecutables::default();
    let Some(first) = targets.first() else { return Ok(found) };
    let package = &first.package;
    let mut args = Vec::new();
    for target in targets {
        args.extend(["--bench".into(), OsString::from(&target.name)]);
    }
    args.extend(package_args(cargo, package));
    let what = format!("bench target `{}` of package `{}`", first.name, package.name);
    let built = build(cargo, runner, args, &what)?;
    for target in targets {
        let artifact = built
            .executable(&package.id, &target.name, "bench")
            .ok_or_else(|| unexpected_artifact(&format!("bench target `{}`", target.name)))?;
        let path = PathBuf::from(&artifact.path);
        if executable::speaks_our_protocol(&path)? {
            let linked = linked(cargo, runner, &built, package, &path)?;
            found.executables.push(BenchExecutable { name: target.name.clone(), path, linked });
        } else if cargo.options.benches.contains(&target.name) {
            return Err(foreign(target));
        } else {
            found
                .warnings
                .push(Warning::ForeignBench { package: package.name.to_string(), bench: target.name.clone() });
        }
    }
    Ok(found)
}

fn foreign(target: &BenchTarget) -> Error {
    Error::new(
        ExitCode::Configuration,
        format!("bench target `{}` of package `{}` holds no scenarios of ours", target.name, target.package.name),
    )
    .details(
        format!("what `{}` needs", target.source.display()),
        ["use httpbench_core::prelude::*;".to_owned(), "fn main() { httpbench_core::main() }".to_owned()],
    )
    .help(
        "let its `main` call `httpbench_core::main()`; if it does, its `httpbench-core` is too old or too new for this \
         command: `cargo update -p httpbench-core` or `cargo install cargo-httpbench`",
    )
}

fn unexpected_artifact(what: &str) -> Error {
    Error::new(ExitCode::BuildFailed, format!("cargo reported success but no executable of {what}"))
        .help("run the same build with `cargo build -v` to see what it does; a `CARGO` wrapper must pass cargo's standard output on")
}

/// Selects the package, and of the chosen features those that it can take.
///
/// With several packages selected, cargo gives a feature to those that have it and ignores it elsewhere; one call a package must
/// do the same itself.
fn package_args(cargo: &Cargo, package: &Package) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["--package".into(), package.id.repr.clone().into()];
    match cargo.options.feature_base {
        FeatureBase::Default => {}
        FeatureBase::None => args.push("--no-default-features".into()),
        FeatureBase::All => args.push("--all-features".into()),
    }
    let features: Vec<&str> =
        cargo.options.features.iter().map(String::as_str).filter(|feature| takes_feature(package, feature)).collect();
    if !features.is_empty() {
        args.extend(["--features".into(), features.join(",").into()]);
    }
    args
}

fn build(cargo: &Cargo, runner: &mut dyn RunCargo, targets: Vec<OsString>, what: &str) -> Result<Built> {
    let mut args: Vec<OsString> = vec!["build".into()];
    args.extend(targets);
    args.extend(cargo.options.build_args(|path| cargo.absolute(path)));
    args.push("--message-format=json-render-diagnostics".into());
    let call = cargo.call(args, StandardError::Inherit);
    let output = runner.run(&call)?;
    if output.status.success() {
        return Ok(messages::read(&output.stdout));
    }
    Err(Error::new(ExitCode::BuildFailed, format!("cargo could not build {what} ({})", ending(output.status)))
        .details("the call", [call.command_line()])
        .help("the reason stands above, in cargo's own words"))
}

fn ending(status: ExitStatus) -> String {
    // `ExitStatus` words it per platform: "exit status: 101", "signal: 9 (SIGKILL)".
    status.to_string()
}

/// What `cargo run` would put on the library path: build scripts' folders that lie in the target directory, the executable's own
/// folder and `deps`; the toolchain's libraries only where the executable is linked to them.
fn linked(
    cargo: &Cargo,
    runner: &mut dyn RunCargo,
    built: &Built,
    package: &Package,
    executable: &Path,
) -> Result<Linked> {
    let mut linked = built.script(&package.id);
    let folder = executable.parent();
    // A bench binary lies in `deps` itself.
    let root = folder.map(|folder| if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder });
    let mut libraries: Vec<PathBuf> = built.library_folders(root);
    if let Some(root) = root {
        libraries.extend([root.to_owned(), root.join("deps")]);
    }
    if executable::needs_shared_std(executable)? {
        libraries.extend(executable::toolchain_libraries(cargo, runner)?);
    }
    linked.libraries = libraries;
    Ok(linked)
}
