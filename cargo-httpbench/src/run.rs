//! The story: discover → build → start server → measure rounds → judge → report.

use std::time::Instant;

use cargo_metadata::Package;

use crate::baseline::{self, Fingerprint};
use crate::baseline_arm::{OneSided, Opponent, Origin, settle_ports};
use crate::build::RunFolder;
use crate::cli::{Invocation, OnMissing, Task};
use crate::compare::{Judge, compare, rounds_that_decide};
use crate::compare_stored;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::gate;
use crate::interrupt::Interrupt;
use crate::load;
use crate::looking;
use crate::measure::{Arms, Campaign, MeasuredPackage, Progress, Rounds, Selected, Stage, Subject, Turn};
use crate::numbers_only::NumbersOnlyBecause;
use crate::prepare::{PreparedBenches, PreparedServer, Project, tell};
use crate::reference;
use crate::report::{ComparedReport, End, LoadAverage, PackageReport, Report, json, render_report};
use crate::revision::Checkout;
use crate::selftest;
use crate::server::shared_databases;
use crate::shell::Shell;
use crate::verdict::{Comparison, Judged, first_exceeded};
use crate::warning::Warning;

/// Does what the command line asks for, and says how it went.
///
/// # Errors
///
/// What ends a run before it has a result. The caller shows it and exits with its code.
pub fn run(invocation: &Invocation, shell: &mut Shell, interrupt: &Interrupt) -> Result<ExitCode> {
    let project = || Project::open(invocation, interrupt);
    match &invocation.task {
        Task::Load(options) => load::run(options, shell, interrupt),
        Task::Selftest(options) => selftest::run(invocation, options, shell, interrupt),
        Task::Compare { baseline, candidate } => {
            compare_stored::run(&project()?, baseline, candidate, invocation, shell)
        }
        Task::Serve => looking::serve(&project()?, shell, interrupt),
        Task::List => looking::list(&project()?, invocation, shell),
        Task::TraceOne(scenario) => looking::trace_one(&project()?, scenario, shell, interrupt),
        Task::BuildOnly => build_only(&project()?, shell),
        Task::Baseline(command) => baseline::run(&project()?, command, shell),
        Task::Run => measure_all(&project()?, invocation, shell, interrupt),
    }
}

fn build_only(project: &Project<'_>, shell: &mut Shell) -> Result<ExitCode> {
    let folder = project.run_folder()?;
    for package in project.packages()? {
        project.server(&package.package, &folder, shell)?;
        project.build_benches(&package, shell)?;
    }
    Ok(ExitCode::Success)
}

/// One package, built and listed.
struct Prepared {
    package: Package,
    server: PreparedServer,
    benches: PreparedBenches,
    opponent: Opponent,
    scenarios: Vec<Selected>,
}

/// What was measured of a package, whatever ended it.
struct Measured {
    package: MeasuredPackage,
    compared: Option<Compared>,
    ended: Option<Error>,
}

/// What two arms say, and who they are.
struct Compared {
    with: String,
    origin: Origin,
    numbers_only: Option<NumbersOnlyBecause>,
    differences: Vec<String>,
    fingerprint: Fingerprint,
    comparison: Comparison,
    one_sided: OneSided,
}

fn measure_all(
    project: &Project<'_>,
    invocation: &Invocation,
    shell: &mut Shell,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let folder = project.run_folder()?;
    let checkout = project.check_out(shell)?;
    let mut packages = prepare_all(project, &folder, checkout.as_ref(), invocation, shell)?;
    tell_identical(&mut packages, shell)?;
    let compares = packages.iter().any(|package| matches!(package.opponent, Opponent::Arm(_) | Opponent::Numbers(_)));
    let fingerprint = compares.then(|| project.fingerprint()).transpose()?;
    let _turn = match packages.is_empty() {
        true => None,
        false => Some(Turn::take(interrupt, |holder| {
            shell.status("Waiting", &format!("for {holder}, which is measuring"));
        })?),
    };

    let load_at_start = load_average();
    let started = Instant::now();
    let mut measured = Vec::new();
    let mut findings = Vec::new();
    let mut end = End::Complete;
    let scenarios: usize = packages.iter().map(|package| package.scenarios.len()).sum();
    for prepared in &mut packages {
        #[expect(clippy::cast_precision_loss, reason = "a number of scenarios")]
        let share = prepared.scenarios.len() as f64 / scenarios as f64;
        let result =
            measure_package(prepared, checkout.as_ref(), fingerprint.as_ref(), share, invocation, shell, interrupt);
        match &result.ended {
            None => project.save(&result.package, &prepared.server, shell)?,
            Some(error) => {
                shell.failure(error)?;
                findings.push(error.exit);
                if matches!(error.exit, ExitCode::Signal(_)) {
                    end = End::Interrupted;
                }
            }
        }
        measured.push(result);
        if end == End::Interrupted {
            break;
        }
    }
    // What never got a round has nothing to report but its failure.
    measured.retain(|measured| measured.package.has_results());

    let report = Report {
        packages: measured.iter().map(report_of).collect(),
        profile: &invocation.cargo.profile,
        elapsed: started.elapsed(),
        load_average: LoadAverage { at_start: load_at_start, at_end: load_average() },
        end,
        gaps: &shell.warnings().iter().filter(|warning| warning.is_gap()).cloned().collect::<Vec<_>>(),
    };
    findings.extend(report.packages.iter().flat_map(|package| &package.scenarios).flat_map(Judged::findings));
    for compared in report.packages.iter().filter_map(|package| package.compared.as_ref()) {
        findings.extend(gate::of_comparison(compared.comparison, compared.one_sided, &invocation.comparison));
    }
    let exit = gate::decide(&findings);
    tell_report(&report, exit, shell)?;
    Ok(exit)
}

/// Builds every selected package and what it is compared with, and then lists what it holds.
fn prepare_all(
    project: &Project<'_>,
    folder: &RunFolder,
    checkout: Option<&Checkout>,
    invocation: &Invocation,
    shell: &mut Shell,
) -> Result<Vec<Prepared>> {
    let mut built = Vec::new();
    for package in project.packages()? {
        let server = project.server(&package.package, folder, shell)?;
        let executables = project.build_benches(&package, shell)?;
        built.push((package.package, server, executables));
    }
    let mut prepared = Vec::new();
    for (package, server, executables) in built {
        let benches = project.start_benches(&package, &executables, shell)?;
        let scenarios = benches.select(invocation, &server.layers);
        tell(warn_of_shared_state(&package, &server, &scenarios).as_slice(), shell)?;
        prepared.push(Prepared { package, server, benches, opponent: Opponent::Nobody, scenarios });
    }
    if prepared.iter().all(|package| package.scenarios.is_empty()) {
        let listings = prepared.iter().flat_map(|package| &package.benches.listings).map(|listed| &listed.listing);
        return Err(invocation.selection.takes_none(listings));
    }
    prepared.retain(|package| !package.scenarios.is_empty());
    for Prepared { package, server, opponent, .. } in &mut prepared {
        project.check_saving(package, &server.layers)?;
        *opponent = match project.opponent(package, server, checkout, folder, shell)? {
            Opponent::Absent(error) => absent(error, invocation, shell)?,
            present => present,
        };
    }
    Ok(prepared)
}

/// Scenarios that write to what all starts of the server share.
fn warn_of_shared_state(package: &Package, server: &PreparedServer, scenarios: &[Selected]) -> Option<Warning> {
    let writes = scenarios.iter().filter(|it| it.listing.request.as_ref().is_ok_and(|request| request.writes()));
    let scenarios: Vec<String> = writes.map(|scenario| scenario.listing.name.clone()).collect();
    let variables = if scenarios.is_empty() { Vec::new() } else { shared_databases(&server.spec) };
    let package = package.name.to_string();
    (!variables.is_empty()).then_some(Warning::SharedDatabase { package, scenarios, variables })
}

/// There is nothing to compare with: a failure, a warning, or neither, as the policy has it.
fn absent(error: Error, invocation: &Invocation, shell: &mut Shell) -> Result<Opponent> {
    match invocation.comparison.on_missing {
        OnMissing::Fail => return Err(Error { exit: ExitCode::NothingCompared, ..error }),
        OnMissing::Warn => {
            let help = error.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
            shell.warning(&Warning::NotCompared { why: format!("{}{help}", error.what) })?;
            shell.explain_details(&error);
        }
        OnMissing::Ignore => {}
    }
    Ok(Opponent::Nobody)
}

/// Says which packages' servers are the same, byte by byte. Those that have no limit to be judged need no measuring.
fn tell_identical(packages: &mut Vec<Prepared>, shell: &mut Shell) -> Result<()> {
    for prepared in &*packages {
        if let Opponent::Identical(with) = &prepared.opponent {
            let name = prepared.package.name.as_str();
            let rest = if prepared.has_no_limit() {
                "--force-aa measures them all the same"
            } else {
                "one is measured for the limits; --force-aa measures both"
            };
            shell.answer(&format!(
                "{name}: unchanged, identical to {with}: executable, arguments, environment and copied files are equal \
                 ({rest})\n"
            ))?;
            shell.object("identical", &json::identical_object(name, with))?;
        }
    }
    packages.retain(|prepared| !(matches!(prepared.opponent, Opponent::Identical(_)) && prepared.has_no_limit()));
    Ok(())
}

impl Prepared {
    fn has_no_limit(&self) -> bool {
        self.scenarios.iter().all(|scenario| scenario.load.limits.is_empty())
    }
}

fn measure_package(
    prepared: &mut Prepared,
    checkout: Option<&Checkout>,
    fingerprint: Option<&Fingerprint>,
    share: f64,
    invocation: &Invocation,
    shell: &mut Shell,
    interrupt: &Interrupt,
) -> Measured {
    let one_sided = prepared.opponent.one_sided(&prepared.benches.listings, &prepared.scenarios, &invocation.selection);
    let differences =
        fingerprint.map_or(Ok(Vec::new()), |here| prepared.opponent.differences(&prepared.server.spec, here));
    let settled = match &mut prepared.opponent {
        Opponent::Arm(arm) => settle_ports(&mut prepared.server.spec, arm, checkout, interrupt),
        _ => Ok(Arms::default()),
    };
    let has_reference = invocation.comparison.save.is_some() || matches!(prepared.opponent, Opponent::Numbers(_));
    let reference = has_reference
        .then(|| reference::server_spec("reference", reference::RULER, &prepared.server.cores.server))
        .transpose();
    let ready = settled.and_then(|arms_run| Ok((arms_run, differences?, reference?)));
    let (arms_run, differences, reference, ready) = match ready {
        Ok((arms_run, differences, reference)) => (arms_run, differences, reference, Ok(())),
        Err(error) => (Arms::default(), Vec::new(), None, Err(error)),
    };
    let mut arms = vec![&prepared.server.spec];
    let judge = match &prepared.opponent {
        Opponent::Arm(arm) => {
            arms.push(&arm.spec);
            Some(Judge::Arms)
        }
        Opponent::Numbers(numbers) => Some(Judge::Numbers(numbers)),
        Opponent::Nobody | Opponent::Identical(_) | Opponent::Absent(_) => None,
    };
    let subject = Subject {
        package: prepared.package.name.as_str(),
        arms,
        reference: reference.as_ref(),
        arms_run,
        cores: &prepared.server.cores,
        benches: &mut prepared.benches.binaries,
        scenarios: std::mem::take(&mut prepared.scenarios),
    };
    let seed = invocation.seed.unwrap_or_else(|| fastrand::u64(..));
    let asked = prepared.server.layers.settings().rounds;
    let count = match judge {
        Some(_) => rounds_that_decide(asked, subject.scenarios.len(), share),
        None => asked,
    };
    let rounds = Rounds { count, seed };
    shell.verbose(&format!("the order of scenarios and the lengths of slices follow --seed {seed}"));
    let mut watcher = |progress: Progress<'_>| show(&progress, shell);
    let mut campaign = Campaign::new(subject, rounds, interrupt, &mut watcher);
    let outcome = ready.and_then(|()| match judge {
        Some(judge) => compare(&mut campaign, rounds.count, share, &one_sided.new, judge).map(Some),
        None => measure_one_arm(&mut campaign, rounds).map(|()| None),
    });
    let package = campaign.finish();
    shell.end_progress();
    let (comparison, ended) = match outcome {
        Ok(comparison) => (comparison, None),
        Err(error) => (None, Some(error)),
    };
    let known = prepared.opponent.known().zip(fingerprint).zip(comparison);
    let compared = known.map(|(((with, origin, numbers_only), fingerprint), comparison)| Compared {
        with: with.to_owned(),
        origin: origin.clone(),
        numbers_only: numbers_only.cloned(),
        differences,
        fingerprint: fingerprint.clone(),
        comparison,
        one_sided,
    });
    Measured { package, compared, ended }
}

/// The rounds of the plan, and as many fresh ones for the scenarios whose limits they exceed.
fn measure_one_arm(campaign: &mut Campaign<'_>, rounds: Rounds) -> Result<()> {
    campaign.pilot()?;
    let all: Vec<usize> = (0..campaign.measured().scenarios.len()).collect();
    campaign.run(rounds.count, Stage::First, &all)?;
    let exceeded = |index: &usize| !first_exceeded(&campaign.measured().scenarios[*index]).is_empty();
    let concerned: Vec<usize> = all.into_iter().filter(exceeded).collect();
    campaign.run(rounds.count, Stage::Fresh, &concerned)?;
    campaign.tell_measured()
}

/// Draws what goes on. Called between slices only.
pub(crate) fn show(progress: &Progress<'_>, shell: &mut Shell) -> Result<()> {
    match progress {
        Progress::Step { scenario, done, total, left } => shell.progress(*done, *total, *left, scenario),
        Progress::Measured { scenario, done, total } => {
            shell.milestone("Measured", &format!("{done}/{total} {scenario}"));
        }
        Progress::Confirming(text) => shell.status("Confirming", text),
        Progress::Note(text) => shell.status("Note", text),
        Progress::Detail(text) => shell.verbose(text),
        Progress::Warning(warning) => tell(std::slice::from_ref(warning), shell)?,
    }
    Ok(())
}

fn report_of(measured: &Measured) -> PackageReport<'_> {
    let package = &measured.package;
    let cores = package.cores.are_apart().then_some(package.cores.server.len());
    PackageReport {
        measured: package,
        scenarios: package.scenarios.iter().map(|scenario| Judged::new(scenario, cores)).collect(),
        compared: measured.compared.as_ref().map(|compared| ComparedReport {
            with: &compared.with,
            origin: &compared.origin,
            numbers_only: compared.numbers_only.as_ref(),
            differences: &compared.differences,
            fingerprint: &compared.fingerprint,
            comparison: &compared.comparison,
            one_sided: &compared.one_sided,
        }),
    }
}

/// Tells failures first, then the report, then the JSON objects; the last of them holds the exit code.
pub(crate) fn tell_report(report: &Report<'_>, exit: ExitCode, shell: &mut Shell) -> Result<()> {
    let scenarios = || report.packages.iter().flat_map(|package| &package.scenarios);
    for failure in scenarios().filter_map(|judged| judged.scenario.failure.as_ref()) {
        shell.failure(failure)?;
    }
    if report.packages.is_empty() {
        return shell.object("run-finished", &json::finished_object(report, exit));
    }
    shell.answer(&render_report(report, shell.width()))?;
    for package in &report.packages {
        // Of two stored baselines, nothing was measured.
        if package.measured.has_results() {
            for object in json::scenario_objects(package) {
                shell.object("scenario", &object)?;
            }
        }
        for object in json::verdict_objects(package) {
            shell.object("verdict", &object)?;
        }
        if let Some(compared) = &package.compared {
            shell.object("one-sided", &json::one_sided_object(package, compared))?;
        }
    }
    shell.object("run-finished", &json::finished_object(report, exit))
}

pub(crate) fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Shows what ended a run before it had a result.
pub fn show_failure(error: &Error, shell: &mut Shell) -> ExitCode {
    shell.end_progress();
    match shell.failure(error) {
        Ok(()) => error.exit,
        Err(output) => output.exit,
    }
}
