//! From typed flags to what they mean.

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::baseline_flags::{BaselineFlags, BaselineFlagsCommand, CompareFlags, StoreFlags};
use super::flags::{
    ColorFlag, Command, ComparisonFlags, CompilationFlags, Flags, FormatFlag, ListFlags, LoadFlags, OnInconclusiveFlag,
    OnMissingFlag, OutputFlags, PackageFlags, RunFlags, SelectionFlags, ServeFlags,
};
use super::load_flags::LoadUrlFlags;
use super::selftest_flags::SelftestFlags;
use super::{
    ComparisonOptions, IdenticalServers, Invocation, MessageFormat, OnInconclusive, OnMissing, OnRegression,
    OutputOptions, Task, load_meaning,
};
use crate::baseline::{BaselineCommand, Ci, Replacing};
use crate::bench::{Ignored, Matching, Selection};
use crate::cargo::{CargoOptions, Color, FeatureBase, LockFlag, PackageChoice, Verbosity};
use crate::config::LoadLayer;
use crate::revision::{Against, WhichCommit};
use crate::selftest::{ArmOrder, Earlier, Length, Neighbour, SelftestOptions};

pub(super) fn of(flags: Flags, ci: Ci) -> Result<Invocation, clap::Error> {
    match flags.command {
        None => {
            // An option has come before it, so clap took the word as a filter; that is hardly what was meant.
            if let Some(name) =
                flags.run.selection.filters.iter().find(|filter| Command::NAMES.contains(&filter.as_str()))
            {
                return Err(Flags::command().error(
                    ErrorKind::ArgumentConflict,
                    format!(
                        "`{name}` after other arguments is taken as a filter\n\n  For the command put it first: `cargo httpbench \
                         {name} …`; to filter by `{name}` write `cargo httpbench run … {name}`"
                    ),
                ));
            }
            Ok(run(flags.run, ci))
        }
        Some(Command::Run(flags)) => Ok(run(*flags, ci)),
        Some(Command::List(flags)) => Ok(list(*flags)),
        Some(Command::Serve(flags)) => Ok(serve(*flags)),
        Some(Command::Baseline(flags)) => Ok(baseline(*flags)),
        Some(Command::Compare(flags)) => Ok(compare(*flags, ci)),
        Some(Command::Selftest(flags)) => Ok(selftest(*flags)),
        Some(Command::Load(flags)) => load_url(*flags),
    }
}

fn run(flags: RunFlags, ci: Ci) -> Invocation {
    let output = output(&flags.output);
    let seed = flags.load.seed;
    let task = match (flags.trace_one, flags.list, flags.no_run) {
        (Some(scenario), _, _) => Task::TraceOne(scenario),
        (None, true, _) => Task::List,
        (None, false, true) => Task::BuildOnly,
        (None, false, false) => Task::Run,
    };
    Invocation {
        task,
        cargo: cargo(flags.packages, flags.benches, flags.compilation, output),
        selection: selection(flags.selection),
        load: load(&flags.load, &flags.comparison),
        comparison: comparison(flags.comparison, ci),
        seed,
        output,
    }
}

fn list(flags: ListFlags) -> Invocation {
    let output = output(&flags.output);
    Invocation {
        task: Task::List,
        cargo: cargo(flags.packages, flags.benches, flags.compilation, output),
        selection: selection(flags.selection),
        load: LoadLayer::default(),
        comparison: ComparisonOptions::default(),
        seed: None,
        output,
    }
}

fn serve(flags: ServeFlags) -> Invocation {
    let output = output(&flags.output);
    Invocation {
        task: Task::Serve,
        cargo: cargo(flags.packages, Vec::new(), flags.compilation, output),
        selection: Selection::default(),
        load: LoadLayer::default(),
        comparison: ComparisonOptions::default(),
        seed: None,
        output,
    }
}

fn load_url(flags: LoadUrlFlags) -> Result<Invocation, clap::Error> {
    let output = output(&flags.output);
    Ok(Invocation {
        task: Task::Load(Box::new(load_meaning::options(flags)?)),
        cargo: CargoOptions { verbosity: output.verbosity, color: output.color, ..CargoOptions::default() },
        selection: Selection::default(),
        load: LoadLayer::default(),
        comparison: ComparisonOptions::default(),
        seed: None,
        output,
    })
}

fn baseline(flags: BaselineFlags) -> Invocation {
    let replacing = |force| if force { Replacing::Yes } else { Replacing::No };
    let (command, store) = match flags.command {
        BaselineFlagsCommand::List(store) => (BaselineCommand::List, store),
        BaselineFlagsCommand::Show { name, store } => (BaselineCommand::Show(name), store),
        BaselineFlagsCommand::Rm { names, store } => (BaselineCommand::Remove(names), store),
        BaselineFlagsCommand::Export { name, file, force, store } => {
            (BaselineCommand::Export { name, file, replacing: replacing(force) }, store)
        }
        BaselineFlagsCommand::Import { file, force, store } => {
            (BaselineCommand::Import { file, replacing: replacing(force) }, store)
        }
    };
    of_store(Task::Baseline(command), ComparisonOptions::default(), store)
}

fn compare(flags: CompareFlags, ci: Ci) -> Invocation {
    let policy = ComparisonFlags {
        on_missing: flags.on_missing,
        on_inconclusive: flags.on_inconclusive,
        no_fail_on_regression: flags.no_fail_on_regression,
        ci: flags.ci,
        ..ComparisonFlags::default()
    };
    let task = Task::Compare { baseline: flags.baseline, candidate: flags.candidate };
    of_store(task, comparison(policy, ci), flags.store)
}

/// A task that only reads or changes stored baselines.
fn of_store(task: Task, comparison: ComparisonOptions, store: StoreFlags) -> Invocation {
    let output = output(&store.output);
    Invocation {
        task,
        cargo: CargoOptions {
            packages: if store.packages.is_empty() {
                PackageChoice::Default
            } else {
                PackageChoice::Named(store.packages)
            },
            target_dir: store.target_dir,
            manifest_path: store.manifest_path,
            verbosity: output.verbosity,
            color: output.color,
            ..CargoOptions::default()
        },
        selection: Selection::default(),
        load: LoadLayer::default(),
        comparison,
        seed: None,
        output,
    }
}

fn selftest(flags: SelftestFlags) -> Invocation {
    let output = output(&flags.output);
    let load = LoadLayer {
        connections: flags.connections,
        duration: flags.duration,
        warm_up: flags.warm_up,
        rounds: flags.rounds,
        slice: flags.slice,
        ..LoadLayer::default()
    };
    let options = SelftestOptions {
        length: match (flags.long, flags.resume) {
            (true, true) => Length::Long(Earlier::Counted),
            (true, false) => Length::Long(Earlier::Removed),
            (false, _) => Length::Short,
        },
        changes: flags.only,
        speeds: flags.speed,
        count: flags.count,
        time: flags.time,
        tolerance: flags.tolerance.map(|tolerance| tolerance.0),
        order: if flags.sequential { ArmOrder::Sequential } else { ArmOrder::Interleaved },
        neighbour: if flags.beside_load { Neighbour::Busy } else { Neighbour::None },
        file: flags.file,
        load,
    };
    Invocation {
        task: Task::Selftest(Box::new(options)),
        cargo: CargoOptions { verbosity: output.verbosity, color: output.color, ..CargoOptions::default() },
        selection: Selection::default(),
        load: LoadLayer::default(),
        comparison: ComparisonOptions::default(),
        seed: flags.seed,
        output,
    }
}

fn comparison(flags: ComparisonFlags, environment: Ci) -> ComparisonOptions {
    let commit = if flags.exact_rev { WhichCommit::Exact } else { WhichCommit::MergeBase };
    let ci = if flags.ci { Ci::Yes } else { environment };
    ComparisonOptions {
        save: flags.save_baseline,
        baseline: flags.baseline,
        against: flags.against.map(|rev| Against { rev, commit }),
        identical: if flags.force_aa { IdenticalServers::Measured } else { IdenticalServers::Trusted },
        on_missing: match (flags.on_missing, ci) {
            (Some(OnMissingFlag::Fail), _) | (None, Ci::Yes) => OnMissing::Fail,
            (Some(OnMissingFlag::Warn), _) | (None, Ci::No) => OnMissing::Warn,
            (Some(OnMissingFlag::Ignore), _) => OnMissing::Ignore,
        },
        on_inconclusive: match flags.on_inconclusive {
            Some(OnInconclusiveFlag::Fail) => OnInconclusive::Fail,
            Some(OnInconclusiveFlag::Warn) | None => OnInconclusive::Warn,
        },
        on_regression: if flags.no_fail_on_regression { OnRegression::Tell } else { OnRegression::Fail },
        ci,
    }
}

fn selection(flags: SelectionFlags) -> Selection {
    Selection {
        filters: flags.filters,
        matching: if flags.exact { Matching::Exact } else { Matching::Substring },
        skip: flags.skip,
        ignored: match (flags.ignored, flags.include_ignored) {
            (true, _) => Ignored::Only,
            (false, true) => Ignored::Included,
            (false, false) => Ignored::LeftOut,
        },
    }
}

fn load(flags: &LoadFlags, comparison: &ComparisonFlags) -> LoadLayer {
    let said = LoadLayer {
        connections: flags.connections,
        arrival_rate: flags.arrival_rate,
        threads: flags.threads,
        duration: flags.duration,
        warm_up: flags.warm_up,
        rounds: flags.rounds,
        slice: flags.slice,
        request_timeout: flags.request_timeout,
        connect_timeout: flags.connect_timeout,
    };
    let compares = comparison.against.is_some() || comparison.baseline.is_some();
    match (flags.quick, compares) {
        (true, true) => said.over(LoadLayer::QUICK_COMPARISON),
        (true, false) => said.over(LoadLayer::QUICK),
        (false, _) => said,
    }
}

fn cargo(
    packages: PackageFlags,
    benches: Vec<String>,
    compilation: CompilationFlags,
    output: OutputOptions,
) -> CargoOptions {
    let feature_base = match (compilation.all_features, compilation.no_default_features) {
        (true, _) => FeatureBase::All,
        (false, true) => FeatureBase::None,
        (false, false) => FeatureBase::Default,
    };
    let lock = [
        (compilation.locked, LockFlag::Locked),
        (compilation.offline, LockFlag::Offline),
        (compilation.frozen, LockFlag::Frozen),
    ];
    CargoOptions {
        packages: match (packages.workspace, packages.packages) {
            (true, _) => PackageChoice::Workspace,
            (false, specs) if specs.is_empty() => PackageChoice::Default,
            (false, specs) => PackageChoice::Named(specs),
        },
        exclude: packages.exclude,
        benches,
        bin: packages.bin,
        features: compilation
            .features
            .iter()
            .flat_map(|list| list.split([',', ' ']))
            .filter(|feature| !feature.is_empty())
            .map(str::to_owned)
            .collect(),
        feature_base,
        profile: compilation.profile.unwrap_or_else(|| CargoOptions::default().profile),
        target: compilation.target,
        target_dir: compilation.target_dir,
        manifest_path: packages.manifest_path,
        lock: lock.into_iter().filter(|(given, _)| *given).map(|(_, flag)| flag).collect(),
        jobs: compilation.jobs,
        config: compilation.config,
        unstable: compilation.unstable,
        verbosity: output.verbosity,
        color: output.color,
    }
}

fn output(flags: &OutputFlags) -> OutputOptions {
    OutputOptions {
        format: match flags.message_format {
            FormatFlag::Human => MessageFormat::Human,
            FormatFlag::Json => MessageFormat::Json,
        },
        color: match flags.color {
            ColorFlag::Auto => Color::Auto,
            ColorFlag::Always => Color::Always,
            ColorFlag::Never => Color::Never,
        },
        verbosity: match (flags.quiet, flags.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        },
    }
}
