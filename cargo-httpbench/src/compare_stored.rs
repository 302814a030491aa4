//! `cargo httpbench compare A B`: two stored baselines, by their numbers. Nothing is started and nothing measured.
//!
//! The rules, the report, the JSON and the exit codes are those of a comparison by numbers only; only the candidate's rounds come from
//! a file, too, so there are no looks and no fresh rounds: what is `regressed` is so by one look at all that was kept. Tolerances are those
//! of `httpbench.toml`; what a scenario's attribute says is not kept in a baseline.

use std::time::{Duration, Instant};

use httpbench_core::model::{Location, Options, ScenarioListing};

use crate::baseline::{Baseline, BaselineName, BaselineScenario, Store, StoredBaseline};
use crate::baseline_arm::{OneSided, Removed};
use crate::cli::{Invocation, OnMissing};
use crate::config::Layers;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::gate;
use crate::measure::{Arms, Cores, MeasuredPackage, MeasuredScenario, Pilot, SliceScheme};
use crate::numbers_only::{NumbersOnly, NumbersOnlyBecause, fails_of, side_of};
use crate::prepare::Project;
use crate::report::{ComparedReport, End, LoadAverage, PackageReport, Report};
use crate::run::tell_report;
use crate::shell::Shell;
use crate::verdict::{Comparison, Family, Judged, Looks, Numbers, Verdict, errors_limit};
use crate::warning::Warning;

/// What two baselines of one package say of each other.
struct ComparedPackage {
    measured: MeasuredPackage,
    candidate: Baseline,
    numbers: NumbersOnly,
    differences: Vec<String>,
    one_sided: OneSided,
    comparison: Comparison,
}

/// Compares `baseline` with `candidate`, for every package that has both.
///
/// # Errors
///
/// When one of them is not there or cannot be read (96), or nothing can be compared where the policy says that this fails (108).
pub fn run(
    project: &Project<'_>,
    baseline: &BaselineName,
    candidate: &BaselineName,
    invocation: &Invocation,
    shell: &mut Shell,
) -> Result<ExitCode> {
    let started = Instant::now();
    let store = project.baselines(shell)?;
    let (there, mut here) = (all_of(&store, baseline)?, all_of(&store, candidate)?);
    let mut pairs = Vec::new();
    let mut missing = Vec::new();
    for stored in there {
        match here.iter().position(|other| other.baseline.package == stored.baseline.package) {
            Some(index) => pairs.push((stored, here.remove(index))),
            None => missing.push(stored.baseline.package.clone()),
        }
    }
    for package in &missing {
        let why = format!("there is no baseline `{candidate}` of package `{package}`");
        match invocation.comparison.on_missing {
            OnMissing::Fail => return Err(Error::new(ExitCode::NothingCompared, why)),
            OnMissing::Warn => shell.warning(&Warning::NotCompared { why })?,
            OnMissing::Ignore => {}
        }
    }
    for new in &here {
        let why =
            format!("there is no baseline `{baseline}` of package `{}`, which `{candidate}` has", new.baseline.package);
        shell.warning(&Warning::NotCompared { why })?;
    }
    let scenarios: usize = pairs.iter().map(|(_, candidate)| candidate.baseline.scenarios.len()).sum();
    let mut compared = Vec::new();
    for (there, here) in pairs {
        let layers = project.layers_of(&here.baseline.package, shell)?;
        #[expect(clippy::cast_precision_loss, reason = "a number of scenarios")]
        let share = here.baseline.scenarios.len() as f64 / scenarios.max(1) as f64;
        compared.push(compare_package(&there, here.baseline, &layers, share)?);
    }
    let mut findings = Vec::new();
    for package in &compared {
        findings.extend(gate::of_comparison(&package.comparison, &package.one_sided, &invocation.comparison));
    }
    if compared.is_empty() && invocation.comparison.on_missing == OnMissing::Fail {
        findings.push(ExitCode::NothingCompared);
    }
    let exit = gate::decide(&findings);
    let profile = compared.first().map_or("unknown", |package| package.candidate.fingerprint.build.profile.as_str());
    let report = Report {
        packages: compared.iter().map(report_of).collect(),
        profile,
        elapsed: started.elapsed().max(Duration::from_millis(1)),
        load_average: LoadAverage::default(),
        gaps: &[],
        end: End::Complete,
    };
    tell_report(&report, exit, shell)?;
    Ok(exit)
}

/// Every package's baseline of this name, with what is left of its executable.
fn all_of(store: &Store, name: &BaselineName) -> Result<Vec<StoredBaseline>> {
    let entries = store.of_name(name)?;
    if entries.is_empty() {
        return Err(store.no_such(name)?);
    }
    let read = |listed: crate::baseline::Listed| {
        let folder = listed.folder.clone();
        let baseline = listed.baseline?;
        let executable = store.executable_of(&baseline, &folder)?;
        Ok(StoredBaseline { baseline, executable, folder })
    };
    entries.into_iter().map(read).collect()
}

fn compare_package(
    there: &StoredBaseline,
    candidate: Baseline,
    layers: &Layers,
    share: f64,
) -> Result<ComparedPackage> {
    let because = NumbersOnlyBecause { why: "two stored baselines are compared".to_owned(), help: None };
    let numbers = NumbersOnly::new(there, because, &candidate.fingerprint);
    let kept = |name: &str| there.baseline.scenarios.iter().find(|kept| kept.name == name);
    let scenarios: Vec<MeasuredScenario> =
        candidate.scenarios.iter().map(|scenario| as_measured(scenario, kept(&scenario.name), layers)).collect();
    let sides: Vec<Numbers> = candidate
        .scenarios
        .iter()
        .zip(&scenarios)
        .map(|(scenario, measured)| beside(&numbers, scenario, kept(&scenario.name), errors_limit(measured).bound))
        .collect();
    let measured = MeasuredPackage {
        package: candidate.package.clone(),
        server: candidate.server.clone(),
        cores: Cores::default(),
        arms_run: Arms::default(),
        rounds: 0,
        scenarios,
        startups: Vec::new(),
    };
    let one_sided = one_sided(&there.baseline.scenarios, &candidate.scenarios);
    let family = Family::fix(&measured, share, &one_sided.new).map_err(|unsupported| {
        let lines = unsupported.iter().map(|it| format!("`{}`: {}", it.scenario, it.metric));
        Error::new(ExitCode::Configuration, "a tolerance stands on a quantile that was not measured well enough")
            .details("tolerances that cannot be judged", lines)
            .help("leave the tolerance out: a lower quantile is then judged in its place")
    })?;
    let comparison = Comparison::look_at_numbers(&sides, &family.for_numbers(), Looks::ONLY);
    let differences = numbers.told_differences();
    Ok(ComparedPackage { measured, candidate, numbers, differences, one_sided, comparison })
}

fn beside(numbers: &NumbersOnly, candidate: &BaselineScenario, kept: Option<&BaselineScenario>, limit: f64) -> Numbers {
    let Some(kept) = kept else { return Numbers { candidate: side_of(candidate), ..Numbers::default() } };
    let failing = (fails_of(kept, limit), fails_of(candidate, limit));
    let obstacle: Option<(Verdict, _)> = numbers.obstacle(kept.definition == candidate.definition, failing);
    Numbers { baseline: side_of(kept), candidate: side_of(candidate), obstacle, ..Numbers::default() }
}

/// A stored scenario as if it had just been measured, without any rounds: what families and reports know of one.
fn as_measured(scenario: &BaselineScenario, kept: Option<&BaselineScenario>, layers: &Layers) -> MeasuredScenario {
    let mut load = layers.settings().load;
    load.arrival_rate = scenario.arrival_rate;
    // Limits need no baseline, and no values are left that they could be judged by.
    load.limits.retain(|limit| limit.metric == httpbench_core::model::Metric::Errors);
    #[expect(clippy::cast_precision_loss, reason = "a count of exchanges")]
    let a_round = |scenario: &BaselineScenario| scenario.counts.good as f64 / scenario.rounds.len().max(1) as f64;
    let exchanges_a_round = kept.map_or(f64::INFINITY, a_round).min(a_round(scenario));
    MeasuredScenario {
        listing: ScenarioListing {
            name: scenario.name.clone(),
            doc: String::new(),
            location: Location { file: String::new(), line: 0 },
            options: Options::default(),
            request: scenario.request.clone().ok_or_else(|| "it is not known in advance".to_owned()),
        },
        pilot: Some(Pilot { scheme: SliceScheme::new(&load, 1, None), exchanges_a_round }),
        load,
        rounds: Vec::new(),
        confirmation: Vec::new(),
        discarded: Vec::new(),
        last_lines: Vec::new(),
        failure: None,
    }
}

fn one_sided(there: &[BaselineScenario], here: &[BaselineScenario]) -> OneSided {
    let lacks = |scenarios: &[BaselineScenario], name: &str| scenarios.iter().all(|scenario| scenario.name != name);
    let new: Vec<&BaselineScenario> = here.iter().filter(|scenario| lacks(there, &scenario.name)).collect();
    let renamed = |gone: &BaselineScenario| new.iter().find(|new| new.definition == gone.definition);
    let removed = there
        .iter()
        .filter(|scenario| lacks(here, &scenario.name))
        .map(|gone| Removed { name: gone.name.clone(), looks_renamed_to: renamed(gone).map(|new| new.name.clone()) });
    // What was redefined is told by its own verdict.
    let new = new.iter().map(|scenario| scenario.name.clone()).collect();
    OneSided { removed: removed.collect(), new, redefined: Vec::new() }
}

fn report_of(package: &ComparedPackage) -> PackageReport<'_> {
    PackageReport {
        measured: &package.measured,
        scenarios: package.measured.scenarios.iter().map(|scenario| Judged::new(scenario, None)).collect(),
        compared: Some(ComparedReport {
            with: &package.numbers.with,
            origin: &package.numbers.origin,
            numbers_only: Some(&package.numbers.because),
            differences: &package.differences,
            fingerprint: &package.candidate.fingerprint,
            comparison: &package.comparison,
            one_sided: &package.one_sided,
        }),
    }
}
