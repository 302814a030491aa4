//! Packages and targets: what a run is about, found out before anything is built.
//!
//! Everything comes from `cargo metadata` and the manifests and bench sources that it names. Dependencies are resolved only where
//! the answer depends on them: that takes several times as long. What is missing or
//! ambiguous ends here, with the lines to add or the choices to take, because a build may take minutes.

mod benches;
mod harness;
mod packages;
mod pattern;
mod server;

use std::path::{Path, PathBuf};

use cargo_metadata::{CargoOpt, Metadata, MetadataCommand, Package, PackageId};

use crate::cargo::{Cargo, CargoOptions, FeatureBase, RunCargo, StandardError};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

pub(crate) use packages::takes_feature;

/// The workspace that the user stands in, or that `--manifest-path` names.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// With dependencies only where they are needed.
    metadata: Metadata,
    /// The member in whose folder the user stands, or which `--manifest-path` names.
    stands_in: Option<PackageId>,
}

/// A bench target that is ours, as far as its source can tell.
#[derive(Clone, Debug)]
pub struct BenchTarget {
    /// Its package.
    pub package: Package,
    /// Its name.
    pub name: String,
    /// The file that holds its `main`.
    pub source: PathBuf,
}

/// A package with its bench targets, of which there is at least one.
#[derive(Clone, Debug)]
pub struct BenchPackage {
    /// The package.
    pub package: Package,
    /// Its bench targets that are ours.
    pub benches: Vec<BenchTarget>,
}

/// The binary target that is measured.
#[derive(Clone, Debug)]
pub struct ServerTarget {
    /// Its package.
    pub package: Package,
    /// Its name.
    pub bin: String,
}

impl Workspace {
    /// Asks cargo.
    ///
    /// # Errors
    ///
    /// When cargo cannot be started or finds nothing it understands: exit code 102 with cargo's own words. When the command line
    /// selects a package or a feature that does not exist: exit code 2.
    pub fn read(cargo: &Cargo, runner: &mut dyn RunCargo) -> Result<Self> {
        let metadata = ask(cargo, runner, Dependencies::LeftOut)?;
        let root = packages::stands_in(cargo, &metadata);
        let workspace = Self { metadata, stands_in: root };
        let selected = workspace.selected(&cargo.options)?;
        packages::check_features(&workspace.metadata, &selected, &cargo.options)?;
        if !benches::needs_dependencies(&selected) && !workspace.has_required_features() {
            return Ok(workspace);
        }
        Ok(Self { metadata: ask(cargo, runner, Dependencies::Resolved)?, ..workspace })
    }

    /// Asks cargo for the members only, whatever the command line selects and enables: for a workspace that it was not written for.
    ///
    /// # Errors
    ///
    /// When cargo cannot be started or finds nothing it understands: exit code 102 with cargo's own words.
    pub fn outline(cargo: &Cargo, runner: &mut dyn RunCargo) -> Result<Self> {
        Ok(Self { metadata: ask(cargo, runner, Dependencies::LeftOut)?, stands_in: None })
    }

    fn has_required_features(&self) -> bool {
        let packages = self.metadata.workspace_packages();
        let mut targets = packages.iter().flat_map(|package| &package.targets);
        targets.any(|target| (target.is_bin() || target.is_bench()) && !target.required_features.is_empty())
    }

    /// The folder of the workspace's root manifest.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// The one folder that holds everything which runs of this workspace leave behind.
    #[must_use]
    pub fn results(&self) -> PathBuf {
        self.metadata.target_directory.join("httpbench").into_std_path_buf()
    }

    /// The selected members, in the order of the workspace.
    ///
    /// # Errors
    ///
    /// When a specification matches no member: exit code 2.
    pub fn selected(&self, options: &CargoOptions) -> Result<Vec<&Package>> {
        packages::selected(&self.metadata, self.stands_in.as_ref(), options)
    }

    /// The bench targets that are ours among those of the selected packages, package by package. Never empty.
    ///
    /// # Errors
    ///
    /// When there is none (4), when one that `--bench` names does not exist or needs features that are not enabled (2), or when one
    /// lacks `harness = false` (96).
    pub fn benches(&self, options: &CargoOptions, selected: &[&Package]) -> Result<Vec<BenchPackage>> {
        benches::find(self, options, selected)
    }

    /// The server of `package`'s scenarios. `configured` is the configuration's `server.bin`; `--bin` wins over it.
    ///
    /// # Errors
    ///
    /// When there is none, or none can be chosen (2 where `--bin` is wrong, else 96), or its features are not enabled (2).
    pub fn server(
        &self,
        options: &CargoOptions,
        selected: &[&Package],
        package: &Package,
        configured: Option<&str>,
    ) -> Result<ServerTarget> {
        server::find(self, options, selected, package, configured)
    }

    /// The one package whose server is meant where no scenario tells, as for `serve`.
    ///
    /// # Errors
    ///
    /// When several have one: exit code 2 with the choices.
    pub fn serving_package<'w>(&self, options: &CargoOptions, selected: &[&'w Package]) -> Result<&'w Package> {
        server::serving_package(options, selected)
    }

    /// The features of a member that this run enables.
    fn enabled_features(&self, package: &PackageId) -> Vec<&str> {
        let nodes = self.metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
        nodes
            .filter(|node| node.id == *package)
            .flat_map(|node| &node.features)
            .map(|feature| feature.as_str())
            .collect()
    }

    /// Those of `required` that this run does not enable, as `--features` takes them.
    fn missing_features(&self, package: &Package, required: &[String]) -> Vec<String> {
        let enabled = self.enabled_features(&package.id);
        required.iter().filter(|feature| !enabled.contains(&feature.as_str())).cloned().collect()
    }
}

/// Whether dependencies are resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dependencies {
    LeftOut,
    Resolved,
}

fn ask(cargo: &Cargo, runner: &mut dyn RunCargo, dependencies: Dependencies) -> Result<Metadata> {
    let command = metadata_command(cargo, dependencies);
    let mut call = cargo.call(command.get_args().map(Into::into).collect(), StandardError::Capture);
    if let Some(path) = &cargo.options.target_dir {
        // `cargo metadata` has no `--target-dir`.
        call.environment.set("CARGO_TARGET_DIR", cargo.absolute(path));
    }
    let output = runner.run(&call).map_err(|error| match error.exit {
        ExitCode::BuildFailed => Error { exit: ExitCode::MetadataFailed, ..error },
        _ => error,
    })?;
    let failed = |what: &str| {
        Error::new(ExitCode::MetadataFailed, format!("`cargo metadata` {what}"))
            .details("cargo's own words", String::from_utf8_lossy(&output.stderr).lines().map(str::to_owned))
    };
    if !output.status.success() {
        return Err(failed("failed").help(
            "stand in a cargo package or name one with `--manifest-path PATH/Cargo.toml`, and let `cargo check` pass",
        ));
    }
    // A wrapper may print before or after; the answer is one line.
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with('{')).ok_or_else(|| failed("answered nothing"))?;
    MetadataCommand::parse(line)
        .map_err(|error| failed("answered what this command does not understand").caused_by(error))
}

fn metadata_command(cargo: &Cargo, dependencies: Dependencies) -> std::process::Command {
    let options = &cargo.options;
    let mut command = MetadataCommand::new();
    command.cargo_path(&cargo.program);
    if let Some(path) = &options.manifest_path {
        command.manifest_path(cargo.absolute(path));
    }
    if dependencies == Dependencies::LeftOut {
        command.no_deps().other_options(options.general_args());
        return command.cargo_command();
    }
    match options.feature_base {
        FeatureBase::Default => {}
        FeatureBase::None => {
            command.features(CargoOpt::NoDefaultFeatures);
        }
        FeatureBase::All => {
            command.features(CargoOpt::AllFeatures);
        }
    }
    if !options.features.is_empty() {
        command.features(CargoOpt::SomeFeatures(options.features.clone()));
    }
    let mut others = options.general_args();
    // Without it cargo wants every other platform's dependencies too, which may not be there offline.
    if let Some(platform) = options.target.clone().or_else(host).filter(|platform| !platform.ends_with(".json")) {
        others.extend(["--filter-platform".to_owned(), platform]);
    }
    command.other_options(others);
    command.cargo_command()
}

/// The platform of this machine, where its name follows from this executable's own; only what is not built is decided by it.
fn host() -> Option<String> {
    let environment = if cfg!(target_env = "gnu") {
        "gnu"
    } else if cfg!(target_env = "musl") {
        "musl"
    } else {
        return None;
    };
    let known = cfg!(target_os = "linux") && cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    known.then(|| format!("{}-unknown-linux-{environment}", std::env::consts::ARCH))
}

/// The name of the scenarios' crate, by which a package is known to depend on it.
const CORE: &str = "httpbench-core";
