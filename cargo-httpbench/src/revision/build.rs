//! The server of a checked-out revision, built as the candidate's is: same toolchain, profile, features, target and flags.
//!
//! Paths: cargo names a package of a workspace by its place in it, so both builds compile under the same names, and only paths that
//! the compiler writes into the executable differ. A script before the compiler (`RUSTC_WRAPPER`) maps the worktree's to those of
//! the user's checkout. Unlike flags, it takes no part in the names of build folders, and the candidate's own build stays what the
//! user ships: equal sources give equal executables, byte by byte, unless one asks for its folder by `env!`.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cargo_metadata::Package;
use serde::{Deserialize, Serialize};

use super::cache::{Cache, Key, Record};
use super::checkout::Checkout;
use super::configuration::{Configuration, Wrapper, from, home};
use super::git::without_redirection;
use super::toolchain::{self, Toolchain};
use crate::build::{self, RunFolder, ServerExecutable};
use crate::cargo::{Cargo, CargoOptions, LockFlag, PackageChoice, RunCargo};
use crate::discover::{ServerTarget, Workspace, takes_feature};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::warning::Warning;

/// What the candidate is, whose counterpart is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Counterpart<'c> {
    /// The folder of the workspace's root manifest.
    pub workspace_root: &'c Path,
    /// The scenarios' package. The server runs in its folder.
    pub package: &'c Package,
    /// The server.
    pub server: &'c ServerTarget,
}

/// The revision's server, ready to be started.
#[derive(Clone, Debug)]
pub struct RevisionServer {
    /// Its executable, in the folder of the run.
    pub executable: ServerExecutable,
    /// Its environment, made as the candidate's is.
    pub environment: Environment,
    /// The folder of the scenarios' package in the worktree.
    pub package_root: PathBuf,
    /// Where its lock file comes from.
    pub lock: LockOrigin,
    /// What differs from the candidate's build beside the source.
    pub warnings: Vec<Warning>,
}

/// Whose `Cargo.lock` a revision is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LockOrigin {
    /// Its own, as it is (`--locked`).
    Revision,
    /// The candidate's: the revision has none. Cargo drops and adds what differs, and keeps every version that is in both.
    Candidate,
    /// None: cargo takes the newest versions.
    Neither,
}

/// Why a revision has no server.
#[derive(Debug)]
pub enum NoServer {
    /// Cargo cannot build it. Its own words stand above, or in the error.
    DoesNotBuild(Error),
    /// It has no such package.
    NoSuchPackage {
        /// The server's package.
        package: String,
        /// Those that it has.
        there: Vec<String>,
    },
    /// The package has no such binary there.
    NoSuchBinary {
        /// The server's package.
        package: String,
        /// The server.
        bin: String,
        /// The binaries that it has.
        there: Vec<String>,
    },
    /// Nothing about the revision: a signal came, or the disk is full. It ends the run.
    Failed(Error),
}

impl From<Error> for NoServer {
    fn from(error: Error) -> Self {
        match error.exit {
            ExitCode::BuildFailed | ExitCode::MetadataFailed | ExitCode::Usage => Self::DoesNotBuild(error),
            _ => Self::Failed(error),
        }
    }
}

impl NoServer {
    /// As an error, to be shown or to end the run. `revision` is how the commit is called.
    #[must_use]
    pub fn into_error(self, revision: &str) -> Error {
        match self {
            Self::Failed(error) => error,
            Self::DoesNotBuild(error) => Error {
                what: format!("`{revision}` does not build: {}", error.what),
                help: Some(
                    "the reason stands above, in cargo's own words; choose another revision, or mend it there"
                        .to_owned(),
                ),
                ..error
            },
            Self::NoSuchPackage { package, there } => {
                Error::new(ExitCode::BuildFailed, format!("`{revision}` has no package `{package}`"))
                    .details("packages that it has", there)
                    .help("choose a revision that has it; a package that was renamed cannot be followed")
            }
            Self::NoSuchBinary { package, bin, there } => {
                Error::new(ExitCode::BuildFailed, format!("package `{package}` of `{revision}` has no binary `{bin}`"))
                    .details("binaries that it has", there)
                    .help("choose a revision that has it; a binary that was renamed cannot be followed")
            }
        }
    }
}

impl Checkout {
    /// Builds the revision's server, or takes the executable that an earlier run has built, and puts it into `folder`.
    ///
    /// # Errors
    ///
    /// When the revision has no such server, or cargo cannot build it; see [`NoServer`].
    pub fn build_server(
        &self,
        cargo: &Cargo,
        runner: &mut dyn RunCargo,
        candidate: Counterpart<'_>,
        folder: &RunFolder,
    ) -> Result<RevisionServer, NoServer> {
        let Some(manifest) = self.manifest(candidate) else {
            return Err(no_package(candidate, &[]));
        };
        let toolchain = Toolchain::in_use(cargo, runner)?;
        let configuration = Configuration::of(cargo, &self.revision.toplevel, &self.root(), &self.git)?;
        let beside = manifest.parent().unwrap_or(&manifest).to_owned();
        let mut lock = copy_lock(&beside, candidate.workspace_root)?;
        let mut there = self.cargo_there(cargo, &toolchain, &configuration, &manifest);
        let key = self.key(&there, &toolchain, &configuration, candidate, lock, &beside);
        let cache = Cache::new(self.results.join("revisions/cache"));
        if let Some(kept) = key.as_ref().and_then(|key| cache.find(key)) {
            let path = place(folder, &candidate.server.bin, &kept.executable)?;
            let executable =
                ServerExecutable { path, built: kept.executable, linked: kept.record.linked(), warnings: Vec::new() };
            let Record { package, package_root, lock, .. } = kept.record;
            return Ok(self.server(cargo, &there, &package, executable, package_root, lock));
        }

        let workspace = Workspace::outline(&there, runner)?;
        if workspace.root() != beside && lock != LockOrigin::Revision {
            lock = copy_lock(workspace.root(), candidate.workspace_root)?;
        }
        let everything = CargoOptions { packages: PackageChoice::Workspace, ..CargoOptions::default() };
        let members = workspace.selected(&everything)?;
        let package = find(&members, candidate.server.package.name.as_str())
            .ok_or_else(|| no_package(candidate, &members))?
            .clone();
        let bins: Vec<String> =
            package.targets.iter().filter(|target| target.is_bin()).map(|target| target.name.clone()).collect();
        if !bins.contains(&candidate.server.bin) {
            let (package, bin) = (package.name.to_string(), candidate.server.bin.clone());
            return Err(NoServer::NoSuchBinary { package, bin, there: bins });
        }
        if lock == LockOrigin::Revision && !there.options.lock.contains(&LockFlag::Locked) {
            there.options.lock.push(LockFlag::Locked);
        }
        let package_root = self
            .counterpart(folder_of(candidate.package))
            .filter(|root| root.join("Cargo.toml").is_file())
            .or_else(|| find(&members, candidate.package.name.as_str()).map(|found| folder_of(found).to_owned()))
            .unwrap_or_else(|| folder_of(&package).to_owned());
        let target = ServerTarget { package: package.clone(), bin: candidate.server.bin.clone() };
        let executable = build::server(&there, runner, &target, folder)?;
        let may_be_kept = key.is_some() && self.is_self_contained(&executable) && self.is_pristine()?;
        if let Some(key) = key.filter(|_| may_be_kept) {
            // It is built again where it cannot be kept.
            let record = Record::new(&package, &package_root, lock, &executable.linked);
            let _ = cache.keep(&key, &executable.path, record);
        }
        Ok(self.server(cargo, &there, &package, executable, package_root, lock))
    }

    fn server(
        &self,
        cargo: &Cargo,
        there: &Cargo,
        package: &Package,
        executable: ServerExecutable,
        package_root: PathBuf,
        lock: LockOrigin,
    ) -> RevisionServer {
        let revision = self.revision.short().to_owned();
        let mut warnings = Vec::new();
        if lock != LockOrigin::Revision {
            warnings.push(Warning::RevisionWithoutLock {
                revision: revision.clone(),
                is_copied: lock == LockOrigin::Candidate,
            });
        }
        if let Some(file) = toolchain::other_file(&self.revision.toplevel, &self.root()) {
            warnings.push(Warning::RevisionsToolchain { revision: revision.clone(), file });
        }
        let features: Vec<String> =
            cargo.options.features.iter().filter(|feature| !takes_feature(package, feature)).cloned().collect();
        if !features.is_empty() {
            warnings.push(Warning::RevisionWithoutFeatures { revision, features });
        }
        // What is only for the build (its compiler, its wrapper) does not reach the server.
        let mut as_users = there.clone();
        as_users.environment.clone_from(&cargo.environment);
        as_users.program.clone_from(&cargo.program);
        let environment = as_users.environment_of(package, &executable.linked);
        let executable = ServerExecutable { warnings: Vec::new(), ..executable };
        RevisionServer { executable, environment, package_root, lock, warnings }
    }

    /// The manifest by which cargo finds the revision's workspace: that in the place of the candidate's, else the package's own.
    fn manifest(&self, candidate: Counterpart<'_>) -> Option<PathBuf> {
        let places = [candidate.workspace_root, folder_of(&candidate.server.package)];
        places
            .into_iter()
            .filter_map(|place| self.counterpart(place))
            .map(|place| place.join("Cargo.toml"))
            .find(|manifest| manifest.is_file())
    }

    /// The candidate's cargo, for the worktree.
    fn cargo_there(
        &self,
        cargo: &Cargo,
        toolchain: &Toolchain,
        configuration: &Configuration,
        manifest: &Path,
    ) -> Cargo {
        let target = self.slot.target();
        let mut environment = without_redirection(&cargo.environment);
        // They would take the build out of its own folder, and into that of the candidate.
        for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_BUILD_DIR", "CARGO_BUILD_ARTIFACT_DIR"]
        {
            environment.remove(name);
        }
        if let Some(pin) = &toolchain.pin {
            environment.set("RUSTUP_TOOLCHAIN", pin);
        }
        // Cargo is called elsewhere, so what is relative to where the user stands must not be.
        for name in ["RUSTC", "RUSTC_WORKSPACE_WRAPPER"] {
            if let Some(program) = environment.get(name).filter(|program| !program.is_empty()) {
                let program = from(&cargo.current_dir, program);
                environment.set(name, program);
            }
        }
        if environment.get("CARGO_HOME").is_some_and(|home| !home.is_empty())
            && let Some(home) = home(cargo)
        {
            environment.set("CARGO_HOME", home);
        }
        if let Some(script) = self.remapping(cargo, configuration) {
            environment.set("RUSTC_WRAPPER", script);
        }
        let mut config: Vec<String> =
            configuration.named.iter().filter_map(|file| file.to_str().map(str::to_owned)).collect();
        config.extend(cargo.options.config.iter().map(|value| {
            let file = cargo.absolute(Path::new(value));
            file.to_str().filter(|_| file.is_file()).unwrap_or(value).to_owned()
        }));
        if let Some(target) = target.to_str() {
            // Where cargo knows such a folder, it is not that of `--target-dir`.
            config.push(format!("build.build-dir={}", toml::Value::from(target)));
        }
        let options = CargoOptions {
            target_dir: Some(target),
            manifest_path: Some(manifest.to_owned()),
            target: cargo.options.target.as_ref().map(|target| {
                let file = cargo.absolute(Path::new(target));
                file.to_str().filter(|_| file.is_file()).unwrap_or(target).to_owned()
            }),
            lock: without_locked(&cargo.options.lock),
            config,
            ..cargo.options.clone()
        };
        Cargo {
            program: from(&cargo.current_dir, cargo.program.as_os_str()).into(),
            current_dir: configuration.current_dir.clone(),
            environment,
            options,
        }
    }

    /// Writes the script that stands before the compiler. `None`: paths stay as they are, and equal sources look different.
    fn remapping(&self, cargo: &Cargo, configuration: &Configuration) -> Option<PathBuf> {
        let users = match configuration.wrapper(cargo) {
            Wrapper::Absent => None,
            Wrapper::Program(program) => Some(program),
            Wrapper::Hidden => return None,
        };
        let here = &self.revision.toplevel;
        let target = self.results.parent()?;
        // The compiler takes what stands after the last `=` for the new path.
        if [here.as_path(), target].iter().any(|path| path.as_os_str().as_bytes().contains(&b'=')) {
            return None;
        }
        let mut script = b"#!/bin/sh\nexec".to_vec();
        if let Some(users) = users {
            script.push(b' ');
            script.extend(quoted(users.as_bytes()));
        }
        script.extend(b" \"$@\"");
        // The last one that fits is applied, and the worktree lies in the target directory.
        for (from, to) in [(self.slot.target(), target), (self.root(), here)] {
            let mut word = OsString::from("--remap-path-prefix=");
            word.push(from);
            word.push("=");
            word.push(to);
            script.push(b' ');
            script.extend(quoted(&word.into_vec()));
        }
        script.push(b'\n');
        let path = self.slot.path().join("rustc");
        let written =
            fs::write(&path, script).and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
        written.ok().map(|()| path)
    }

    /// Everything known that decides what is built. `None`: the compiler is not known.
    fn key(
        &self,
        there: &Cargo,
        toolchain: &Toolchain,
        configuration: &Configuration,
        candidate: Counterpart<'_>,
        lock: LockOrigin,
        beside: &Path,
    ) -> Option<Key> {
        let options = &there.options;
        let mut key = Key::default();
        key.add("commit", &self.revision.commit);
        // An executable may hold the path of its package.
        key.add("worktree", self.root());
        key.add("checkout", &self.revision.toplevel);
        key.add("results", &self.results);
        key.add("toolchain", toolchain.version.as_ref()?);
        key.add("cargo", &there.program);
        key.add("current-dir", &there.current_dir);
        key.add("package", candidate.server.package.name.as_str());
        key.add("scenarios", candidate.package.manifest_path.as_str());
        key.add("bin", &candidate.server.bin);
        key.add("profile", &options.profile);
        key.add("feature-base", format!("{:?}", options.feature_base));
        key.add("features", options.features.join(","));
        key.add("target", options.target.as_deref().unwrap_or_default());
        for value in options.config.iter().chain(&options.unstable) {
            key.add("option", value);
        }
        for file in configuration.files().chain(options.config.iter().map(Path::new).filter(|file| file.is_file())) {
            key.add_bytes("configuration", &fs::read(file).ok()?);
        }
        if lock == LockOrigin::Candidate {
            key.add_bytes("lock", &fs::read(beside.join("Cargo.lock")).ok()?);
        }
        key.add_environment(&there.environment);
        (lock != LockOrigin::Neither).then_some(key)
    }

    /// Whether an executable is made of the commit alone and needs no file that another build may overwrite.
    fn is_self_contained(&self, executable: &ServerExecutable) -> bool {
        let slot = self.slot.path();
        let sources = fs::read_to_string(executable.built.with_extension("d"));
        let of_commit = sources.is_ok_and(|text| prerequisites(&text).iter().all(|path| path.starts_with(slot)));
        let out_dir = executable.linked.out_dir.as_ref();
        let reads_out_dir = out_dir
            .is_some_and(|folder| build::mentions(&executable.path, folder.as_os_str().as_bytes()).unwrap_or(true));
        let shared = executable.linked.libraries.iter().any(|folder| {
            // Compiler plug-ins lie in `deps`, which no static executable needs.
            !folder.starts_with(slot) || (!folder.ends_with("deps") && has_shared_library(folder))
        });
        of_commit && !reads_out_dir && !shared
    }
}

/// The files behind the colon of the dep-info that cargo writes beside an executable.
fn prerequisites(text: &str) -> Vec<PathBuf> {
    let Some((_, list)) = text.lines().next().and_then(|line| line.split_once(": ")) else { return Vec::new() };
    // A space in a path has a backslash before it.
    list.replace("\\ ", "\0").split(' ').map(|path| PathBuf::from(path.replace('\0', " "))).collect()
}

fn has_shared_library(folder: &Path) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.contains(".so") || name.ends_with(".dylib")
    })
}

fn quoted(word: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for &byte in word {
        if byte == b'\'' {
            quoted.extend(b"'\\''");
        } else {
            quoted.push(byte);
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Cargo must be able to adapt a lock file that it is given; `--locked` is added where the revision has its own.
fn without_locked(flags: &[LockFlag]) -> Vec<LockFlag> {
    flags
        .iter()
        .filter_map(|flag| match flag {
            LockFlag::Locked => None,
            LockFlag::Frozen | LockFlag::Offline => Some(LockFlag::Offline),
        })
        .collect()
}

/// Copies the candidate's lock file into `folder`, if that has none.
fn copy_lock(folder: &Path, workspace_root: &Path) -> Result<LockOrigin> {
    let (own, candidates) = (folder.join("Cargo.lock"), workspace_root.join("Cargo.lock"));
    if own.is_file() {
        return Ok(LockOrigin::Revision);
    }
    match fs::copy(&candidates, &own) {
        Ok(_) => Ok(LockOrigin::Candidate),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LockOrigin::Neither),
        Err(error) => Err(Error::new(
            ExitCode::OutputFailed,
            format!("cannot copy `{}` to `{}`", candidates.display(), own.display()),
        )
        .caused_by(error)),
    }
}

fn place(folder: &RunFolder, bin: &str, executable: &Path) -> Result<PathBuf> {
    let path = folder.place(bin)?;
    fs::copy(executable, &path).map_err(|error| {
        Error::new(ExitCode::OutputFailed, format!("cannot copy `{}` to `{}`", executable.display(), path.display()))
            .caused_by(error)
    })?;
    Ok(path)
}

fn find<'m>(members: &[&'m Package], name: &str) -> Option<&'m Package> {
    members.iter().copied().find(|package| package.name.as_str() == name)
}

fn no_package(candidate: Counterpart<'_>, there: &[&Package]) -> NoServer {
    NoServer::NoSuchPackage {
        package: candidate.server.package.name.to_string(),
        there: there.iter().map(|package| package.name.to_string()).collect(),
    }
}

fn folder_of(package: &Package) -> &Path {
    package.manifest_path.parent().map_or(Path::new("."), |folder| folder.as_std_path())
}
