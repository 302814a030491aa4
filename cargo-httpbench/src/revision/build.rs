//! The server of a checked-out revision, built as the candidate's is: same toolchain, profile, features, target and flags.
//!
//! An executable of an earlier run is taken where nothing has changed, and kept for later ones where it is made of the commit alone.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cargo_metadata::Package;
use serde::{Deserialize, Serialize};

use super::cache::{Cache, Key, Record};
use super::checkout::Checkout;
use super::configuration::Configuration;
use super::no_server::NoServer;
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

/// A server that was built, in this run or an earlier one.
struct Ready {
    package: Package,
    executable: ServerExecutable,
    package_root: PathBuf,
    lock: LockOrigin,
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
            return Ok(self.server(cargo, &there, candidate, Ready { package, executable, package_root, lock }));
        }

        let workspace = Workspace::outline(&there, runner)?;
        if workspace.root() != beside {
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
        Ok(self.server(cargo, &there, candidate, Ready { package, executable, package_root, lock }))
    }

    fn server(&self, cargo: &Cargo, there: &Cargo, candidate: Counterpart<'_>, ready: Ready) -> RevisionServer {
        let Ready { package, executable, package_root, lock } = ready;
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
        // What neither takes is another package's.
        let is_lost =
            |feature: &&String| takes_feature(&candidate.server.package, feature) && !takes_feature(&package, feature);
        let features: Vec<String> = cargo.options.features.iter().filter(is_lost).cloned().collect();
        if !features.is_empty() {
            warnings.push(Warning::RevisionWithoutFeatures { revision, features });
        }
        // What is only for the build (its compiler, its wrapper) does not reach the server.
        let mut as_users = there.clone();
        as_users.environment.clone_from(&cargo.environment);
        as_users.program.clone_from(&cargo.program);
        let environment = as_users.environment_of(&package, &executable.linked);
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
