//! From selected packages to what can be measured: built executables, a server that can be started, running bench binaries.
//!
//! Everything is built before anything is started, so that a build that fails wastes no measuring time.

use std::path::{Path, PathBuf};

use cargo_metadata::Package;

use crate::bench::{Bench, SupervisedBenches};
use crate::build::{self, BenchExecutable, RunFolder};
use crate::cargo::{Cargo, SupervisedCargo};
use crate::cli::Invocation;
use crate::config::{self, Layers};
use crate::discover::{BenchPackage, Workspace};
use crate::environment::{self, Environment};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::measure::{Cores, Selected};
use crate::server::{PortPolicy, ServerSpec};
use crate::shell::Shell;
use crate::warning::Warning;

/// The workspace, and how cargo is called in it.
#[derive(Debug)]
pub struct Project<'run> {
    invocation: &'run Invocation,
    interrupt: &'run Interrupt,
    cargo: Cargo,
    workspace: Workspace,
}

/// The server of one package, ready to be started.
#[derive(Debug)]
pub struct PreparedServer {
    /// How it is started.
    pub spec: ServerSpec,
    /// What was said about the package's run.
    pub layers: Layers,
    /// Who runs where.
    pub cores: Cores,
}

/// The bench binaries of one package, running, and the scenarios that were selected from them.
#[derive(Debug)]
pub struct PreparedBenches {
    /// In the order of their targets.
    pub binaries: Vec<Bench>,
    /// By the index of their bench binary, and by name.
    pub listings: Vec<Listed>,
}

/// A scenario and the bench binary that holds it.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Index into [`PreparedBenches::binaries`].
    pub bench: usize,
    /// What the bench binary says of it.
    pub listing: httpbench_core::model::ScenarioListing,
}

impl<'run> Project<'run> {
    /// Finds the workspace that the user stands in.
    ///
    /// # Errors
    ///
    /// When cargo does not find one (102), or a signal comes.
    pub fn open(invocation: &'run Invocation, interrupt: &'run Interrupt) -> Result<Self> {
        let here = std::env::current_dir()
            .map_err(|cause| Error::unexpected("the current directory cannot be told", cause))?;
        let own = environment::users_own(&Environment::inherited(), std::env::current_exe().ok().as_deref());
        let cargo = Cargo::new(&here, own, invocation.cargo.clone());
        let workspace = Workspace::read(&cargo, &mut SupervisedCargo::new(interrupt))?;
        Ok(Self { invocation, interrupt, cargo, workspace })
    }

    /// The selected packages that have bench targets of ours. Never empty.
    ///
    /// # Errors
    ///
    /// See [`Workspace::selected`] and [`Workspace::benches`].
    pub fn packages(&self) -> Result<Vec<BenchPackage>> {
        let options = &self.invocation.cargo;
        self.workspace.benches(options, &self.workspace.selected(options)?)
    }

    /// The only selected package that has a server, for a task that needs no scenario.
    ///
    /// # Errors
    ///
    /// See [`Workspace::serving_package`].
    pub fn serving_package(&self) -> Result<Package> {
        let options = &self.invocation.cargo;
        self.workspace.serving_package(options, &self.workspace.selected(options)?).cloned()
    }

    /// A folder for this run's executables.
    ///
    /// # Errors
    ///
    /// When it cannot be made (110).
    pub fn run_folder(&self) -> Result<RunFolder> {
        RunFolder::create(&self.workspace.results())
    }

    /// Reads a package's configuration, builds its server and puts it where later builds do not reach it.
    ///
    /// # Errors
    ///
    /// When the configuration is wrong (96), no server can be chosen, or it cannot be built (101).
    pub fn server(&self, package: &Package, folder: &RunFolder, shell: &mut Shell) -> Result<PreparedServer> {
        let layers = self.layers(package, shell)?;
        let settings = layers.settings();
        let options = &self.invocation.cargo;
        let selected = self.workspace.selected(options)?;
        let target = self.workspace.server(options, &selected, package, settings.server.bin.as_deref())?;
        let built = build::server(&self.cargo, &mut SupervisedCargo::new(self.interrupt), &target, folder)?;
        tell(&built.warnings, shell)?;
        let environment = self.cargo.environment_of(&target.package, &built.linked);
        let cores = Cores::of_this_machine(settings.load.threads);
        let spec = ServerSpec {
            name: target.bin,
            executable: built.path,
            settings: settings.server,
            package_root: root_of(package),
            base_env: environment.into(),
            cores: cores.server.clone(),
            ports: PortPolicy::Ask,
        };
        Ok(PreparedServer { spec, layers, cores })
    }

    /// Builds a package's bench targets.
    ///
    /// # Errors
    ///
    /// When they cannot be built (101), or one that was asked for holds no scenarios of ours (96).
    pub fn build_benches(&self, package: &BenchPackage, shell: &mut Shell) -> Result<Vec<BenchExecutable>> {
        let built = build::benches(&self.cargo, &mut SupervisedCargo::new(self.interrupt), &package.benches)?;
        tell(&built.warnings, shell)?;
        Ok(built.executables)
    }

    /// Starts a package's bench binaries and asks them for their scenarios.
    ///
    /// # Errors
    ///
    /// When one does not start, speaks another protocol, or cannot tell its scenarios (104).
    pub fn start_benches(
        &self,
        package: &Package,
        executables: &[BenchExecutable],
        shell: &mut Shell,
    ) -> Result<PreparedBenches> {
        let mut prepared = PreparedBenches { binaries: Vec::new(), listings: Vec::new() };
        for executable in executables {
            let environment = self.cargo.environment_of(package, &executable.linked);
            let spawner = Box::new(SupervisedBenches::new(self.interrupt.clone()));
            let mut binary = Bench::new(spawner, executable.clone(), root_of(package), environment);
            let (listings, warning) = binary.list(&mut || self.interrupt.check())?;
            tell(warning.as_slice(), shell)?;
            let bench = prepared.binaries.len();
            prepared.listings.extend(listings.into_iter().map(|listing| Listed { bench, listing }));
            prepared.binaries.push(binary);
        }
        Ok(prepared)
    }

    fn layers(&self, package: &Package, shell: &mut Shell) -> Result<Layers> {
        let files = config::read_files(self.workspace.root(), &root_of(package))?;
        let (environment, warnings) = config::read_variables(&Environment::inherited())?;
        tell(&files.warnings, shell)?;
        tell(&warnings, shell)?;
        Ok(Layers {
            workspace: files.workspace,
            package: files.package,
            environment,
            command_line: self.invocation.load,
        })
    }
}

impl PreparedBenches {
    /// The scenarios that the user chose, each with its settings.
    #[must_use]
    pub fn select(&self, invocation: &Invocation, layers: &Layers) -> Vec<Selected> {
        self.listings
            .iter()
            .filter(|listed| invocation.selection.takes(&listed.listing))
            .map(|listed| Selected {
                bench: listed.bench,
                load: layers.for_scenario(&listed.listing.options),
                listing: listed.listing.clone(),
            })
            .collect()
    }
}

fn root_of(package: &Package) -> PathBuf {
    package.manifest_path.parent().map(|root| root.as_std_path()).unwrap_or(Path::new(".")).to_owned()
}

/// Says what is odd, as text and as JSON.
///
/// # Errors
///
/// When standard output cannot be written.
pub fn tell(warnings: &[Warning], shell: &mut Shell) -> Result<()> {
    warnings.iter().try_for_each(|warning| shell.warning(warning))
}
