//! From selected packages to what can be measured: built executables, a server that can be started, running bench binaries.
//!
//! Everything is built before anything is started, so that a build that fails wastes no measuring time.

use std::path::{Path, PathBuf};

use cargo_metadata::Package;
use httpbench_core::model::Metric;

use crate::baseline::{
    self, Baseline, BaselineScenario, BuildFacts, Commit, Fingerprint, Found, RoundValues, SetUp, Store, definition,
    may_save,
};
use crate::baseline_arm::{self, Opponent};
use crate::bench::{Bench, SupervisedBenches};
use crate::build::{self, BenchExecutable, RunFolder};
use crate::cargo::{Cargo, SupervisedCargo};
use crate::cli::Invocation;
use crate::config::{self, BaselineLayer, Layers, Purpose};
use crate::discover::{BenchPackage, ServerTarget, Workspace};
use crate::environment::{self, Environment};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::measure::{Cores, MeasuredPackage, MeasuredRound, MeasuredScenario, Selected};
use crate::numbers_only::numbers_of;
use crate::revision::{self, Against, Checkout, Counterpart, Git, NoServer, Revision, WhichCommit, WorkingTree};
use crate::server::{PortPolicy, ServerSpec};
use crate::shell::Shell;
use crate::verdict::AgainstReference;
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
    /// The binary target.
    pub target: ServerTarget,
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

    /// What the files say of a package, by its name; nothing where it is none of the workspace's.
    ///
    /// # Errors
    ///
    /// When the configuration is wrong (96).
    pub fn layers_of(&self, package: &str, shell: &mut Shell) -> Result<Layers> {
        let selected = self.workspace.selected(&self.invocation.cargo)?;
        match selected.into_iter().find(|known| known.name == package) {
            Some(known) => self.layers(known, shell),
            None => Ok(Layers::default()),
        }
    }

    /// The folder of what runs of this workspace leave behind.
    #[must_use]
    pub fn results(&self) -> PathBuf {
        self.workspace.results()
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
            name: target.bin.clone(),
            executable: built.path,
            settings: settings.server,
            package_root: root_of(package),
            base_env: environment.into(),
            cores: cores.server.clone(),
            ports: PortPolicy::Ask,
        };
        Ok(PreparedServer { spec, layers, cores, target })
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

    /// Where the baselines of a package are kept.
    #[must_use]
    pub fn store(&self, layers: &Layers) -> Store {
        Store::open(&self.workspace.results(), layers.baselines().dir.as_deref())
    }

    /// The one folder of baselines that the selected packages share.
    ///
    /// # Errors
    ///
    /// When a configuration is wrong, or says different folders for different packages: exit code 96.
    pub fn baselines(&self, shell: &mut Shell) -> Result<Store> {
        let mut stores: Vec<(Store, String)> = Vec::new();
        for package in self.workspace.selected(&self.invocation.cargo)? {
            let store = self.store(&self.layers(package, shell)?);
            if stores.iter().all(|(known, _)| *known != store) {
                stores.push((store, package.name.to_string()));
            }
        }
        match stores.len() {
            1 => Ok(stores.remove(0).0),
            // A workspace without any package has no configuration of one either.
            0 => Ok(Store::open(&self.workspace.results(), None)),
            _ => Err(Error::new(
                ExitCode::Configuration,
                "the selected packages keep their baselines in different folders",
            )
            .details(
                "folders",
                stores.iter().map(|(store, package)| format!("{package}: {}", store.folder().display())),
            )
            .help("choose one of the packages with `-p`, or say `baseline-dir` once for the whole workspace")),
        }
    }

    /// Checks out the revision that `--against` names, if it names one.
    ///
    /// # Errors
    ///
    /// See [`revision::resolve`] and [`revision::check_out`].
    pub fn check_out(&self, shell: &mut Shell) -> Result<Option<Checkout>> {
        let Some(against) = &self.invocation.comparison.against else { return Ok(None) };
        let git = Git::new(&self.cargo.environment, self.interrupt);
        let revision = revision::resolve(self.workspace.root(), against, &git)?;
        let candidate = match revision.working_tree {
            WorkingTree::Clean => format!("HEAD ({})", short(&revision.head)),
            WorkingTree::Uncommitted => format!("HEAD ({}) with uncommitted changes", short(&revision.head)),
        };
        shell.status("Comparing", &format!("{candidate} with {}", told(&revision)));
        revision::check_out(&revision, &self.workspace.results(), &git).map(Some)
    }

    /// What a package's server is compared with.
    ///
    /// # Errors
    ///
    /// When a baseline cannot be read (96), or a signal comes.
    pub fn opponent(
        &self,
        package: &Package,
        candidate: &PreparedServer,
        checkout: Option<&Checkout>,
        folder: &RunFolder,
        shell: &mut Shell,
    ) -> Result<Opponent> {
        let options = &self.invocation.comparison;
        if let Some(name) = &options.baseline {
            let place = folder.place(&candidate.spec.name)?;
            let found = self.store(&candidate.layers).check_out(name, &package.name, &place)?;
            if let Found::Stored(stored) = &found
                && let Some(numbers) = numbers_of(stored, &self.fingerprint()?)
            {
                return Ok(Opponent::Numbers(Box::new(numbers)));
            }
            return baseline_arm::from_baseline(found, &candidate.spec, options);
        }
        let Some(checkout) = checkout else { return Ok(Opponent::Nobody) };
        let counterpart = Counterpart { workspace_root: self.workspace.root(), package, server: &candidate.target };
        let mut runner = SupervisedCargo::new(self.interrupt);
        let built = match checkout.build_server(&self.cargo, &mut runner, counterpart, folder) {
            Ok(built) => built,
            Err(NoServer::Failed(error)) => return Err(error),
            Err(none) => return Ok(Opponent::Absent(none.into_error(&told(checkout.revision())))),
        };
        tell(&built.warnings, shell)?;
        let spec = ServerSpec {
            executable: built.executable.path,
            package_root: built.package_root,
            base_env: built.environment.into(),
            ..candidate.spec.clone()
        };
        let revision = checkout.revision();
        baseline_arm::from_revision(spec, told(revision), revision.commit.clone(), &candidate.spec, options)
    }

    /// This machine, and how the servers of this run are built.
    ///
    /// # Errors
    ///
    /// When the compiler cannot be asked.
    pub fn fingerprint(&self) -> Result<Fingerprint> {
        let facts = BuildFacts::ask(&self.cargo, &mut SupervisedCargo::new(self.interrupt))?;
        Ok(Fingerprint::of_this_machine(facts))
    }

    /// What this run's measurement is kept as, if it is to be kept: refused now rather than after measuring.
    ///
    /// # Errors
    ///
    /// When it may not be saved (96), or cannot be (110).
    pub fn check_saving(&self, package: &Package, layers: &Layers) -> Result<()> {
        let options = &self.invocation.comparison;
        let Some(name) = &options.save else { return Ok(()) };
        let store = self.store(layers);
        let exists = store.has(name, &package.name);
        may_save(name, exists, options.ci, layers.baselines().saving, &Environment::inherited())?;
        store.check_writable(name, &package.name)
    }

    /// Keeps what was measured of a package, and its server's executable.
    ///
    /// # Errors
    ///
    /// When the compiler or git cannot be asked, or it cannot be written (110).
    pub fn save(&self, measured: &MeasuredPackage, server: &PreparedServer, shell: &mut Shell) -> Result<()> {
        let Some(name) = &self.invocation.comparison.save else { return Ok(()) };
        let scenarios: Vec<BaselineScenario> =
            measured.scenarios.iter().filter(|scenario| scenario.failure.is_none()).map(kept).collect();
        if scenarios.is_empty() {
            return Err(Error::new(
                ExitCode::InvalidMeasurement,
                format!("nothing was measured that `{}` could keep", name.as_str()),
            )
            .help("mend what kept the scenarios from being measured, and save again"));
        }
        let fingerprint = self.fingerprint()?;
        let git = Git::new(&self.cargo.environment, self.interrupt);
        let head = Against { rev: "HEAD".to_owned(), commit: WhichCommit::Exact };
        // A baseline can be kept outside of any repository.
        let commit = revision::resolve(self.workspace.root(), &head, &git).ok().map(|revision| Commit {
            sha: revision.head,
            tree: match revision.working_tree {
                WorkingTree::Clean => baseline::WorkingTree::Clean,
                WorkingTree::Uncommitted => baseline::WorkingTree::Modified,
            },
        });
        let baseline = Baseline {
            schema: baseline::SCHEMA,
            name: name.clone(),
            saved_at: jiff::Timestamp::now(),
            package: measured.package.clone(),
            server: server.spec.name.clone(),
            fingerprint,
            commit,
            set_up: SetUp::of(&server.spec)?,
            scenarios,
            executable: None,
        };
        let saved = self.store(&server.layers).save(name, &baseline, Some(&server.spec.executable))?;
        shell.status("Saved", &format!("baseline `{}` in {}", name.as_str(), saved.folder.display()));
        let lost = saved.replaced.map(|replaced| replaced.lost).unwrap_or_default();
        if lost.is_empty() {
            return Ok(());
        }
        shell.warning(&Warning::BaselineNarrowed { name: name.as_str().to_owned(), lost })
    }

    fn layers(&self, package: &Package, shell: &mut Shell) -> Result<Layers> {
        let files = config::read_files(self.workspace.root(), &root_of(package))?;
        let (environment, warnings) = config::read_variables(&Environment::inherited())?;
        tell(&files.warnings, shell)?;
        tell(&warnings, shell)?;
        Ok(Layers {
            environment_baselines: BaselineLayer {
                dir: config::baseline_dir_variable(&Environment::inherited()).map(|dir| self.cargo.absolute(&dir)),
                saving: None,
            },
            purpose: if self.invocation.comparison.compares() { Purpose::Comparison } else { Purpose::Alone },
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

/// A revision as a person calls it.
fn told(revision: &Revision) -> String {
    let base = if revision.is_merge_base { ", its merge base with HEAD" } else { "" };
    format!("revision `{}` ({}{base})", revision.asked, revision.short())
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

/// What a baseline keeps of a scenario.
fn kept(scenario: &MeasuredScenario) -> BaselineScenario {
    let request = scenario.listing.request.as_ref().ok();
    let values = |round: &MeasuredRound| {
        RoundValues(Metric::ALL.into_iter().filter_map(|metric| Some((metric, round.value(metric)?))).collect())
    };
    BaselineScenario {
        name: scenario.name().to_owned(),
        request: request.cloned(),
        definition: definition(request, &scenario.load),
        rounds: scenario.rounds.iter().map(values).collect(),
        service: scenario.merged(|arm| &arm.service),
        counts: (&scenario.counts()).into(),
        arrival_rate: scenario.load.arrival_rate,
        against_reference: scenario.rounds.iter().filter_map(AgainstReference::of).collect(),
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
