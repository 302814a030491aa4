//! The story: discover → build → start server → measure rounds → judge → report.

use std::time::Instant;

use crate::cli::{Invocation, Task};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::gate;
use crate::interrupt::Interrupt;
use crate::looking;
use crate::measure::{Campaign, MeasuredPackage, Progress, Rounds, Selected, Stage, Subject, Turn};
use crate::prepare::{PreparedBenches, PreparedServer, Project, tell};
use crate::report::{ComparedReport, End, LoadAverage, PackageReport, Report, json, render_report};
use crate::shell::Shell;
use crate::verdict::{Comparison, Judged, first_exceeded};

/// Does what the command line asks for, and says how it went.
///
/// # Errors
///
/// What ends a run before it has a result. The caller shows it and exits with its code.
pub fn run(invocation: &Invocation, shell: &mut Shell, interrupt: &Interrupt) -> Result<ExitCode> {
    let project = Project::open(invocation, interrupt)?;
    match &invocation.task {
        Task::Serve => looking::serve(&project, shell, interrupt),
        Task::List => looking::list(&project, invocation, shell),
        Task::TraceOne(scenario) => looking::trace_one(&project, scenario, shell, interrupt),
        Task::BuildOnly => build_only(&project, shell),
        Task::Run => measure_all(&project, invocation, shell, interrupt),
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
    name: String,
    server: PreparedServer,
    benches: PreparedBenches,
    scenarios: Vec<Selected>,
}

fn measure_all(
    project: &Project<'_>,
    invocation: &Invocation,
    shell: &mut Shell,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let folder = project.run_folder()?;
    let mut packages = prepare_all(project, &folder, invocation, shell)?;
    let _turn = Turn::take(interrupt, |holder| shell.status("Waiting", &format!("for {holder}, which is measuring")))?;

    let load_at_start = load_average();
    let started = Instant::now();
    let mut measured = Vec::new();
    let mut findings = Vec::new();
    let mut end = End::Complete;
    for package in &mut packages {
        let Measured { package, comparison, ended } = measure_package(package, invocation, shell, interrupt);
        if let Some(error) = ended {
            shell.failure(&error)?;
            findings.push(error.exit);
            if matches!(error.exit, ExitCode::Signal(_)) {
                end = End::Interrupted;
            }
        }
        measured.push((package, comparison));
        if end == End::Interrupted {
            break;
        }
    }
    // What never got a round has nothing to report but its failure.
    measured.retain(|(package, _)| package.has_results());

    let report = Report {
        packages: measured.iter().map(|(package, comparison)| report_of(package, comparison.as_ref())).collect(),
        profile: &invocation.cargo.profile,
        elapsed: started.elapsed(),
        load_average: LoadAverage { at_start: load_at_start, at_end: load_average() },
        end,
    };
    findings.extend(report.packages.iter().flat_map(|package| &package.scenarios).flat_map(Judged::findings));
    let exit = gate::decide(&findings);
    tell_report(&report, exit, shell)?;
    Ok(exit)
}

/// Builds every selected package, and then lists what it holds.
fn prepare_all(
    project: &Project<'_>,
    folder: &crate::build::RunFolder,
    invocation: &Invocation,
    shell: &mut Shell,
) -> Result<Vec<Prepared>> {
    let mut built = Vec::new();
    for package in project.packages()? {
        let server = project.server(&package.package, folder, shell)?;
        let executables = project.build_benches(&package, shell)?;
        built.push((package, server, executables));
    }
    let mut prepared = Vec::new();
    for (package, server, executables) in built {
        let benches = project.start_benches(&package.package, &executables, shell)?;
        let scenarios = benches.select(invocation, &server.layers);
        prepared.push(Prepared { name: package.package.name.to_string(), server, benches, scenarios });
    }
    if prepared.iter().all(|package| package.scenarios.is_empty()) {
        let listings = prepared.iter().flat_map(|package| &package.benches.listings).map(|listed| &listed.listing);
        return Err(invocation.selection.takes_none(listings));
    }
    prepared.retain(|package| !package.scenarios.is_empty());
    Ok(prepared)
}

/// What was measured of a package, whatever ended it.
struct Measured {
    package: MeasuredPackage,
    comparison: Option<Comparison>,
    ended: Option<Error>,
}

fn measure_package(
    package: &mut Prepared,
    invocation: &Invocation,
    shell: &mut Shell,
    interrupt: &Interrupt,
) -> Measured {
    let subject = Subject {
        package: &package.name,
        arms: vec![&package.server.spec],
        cores: &package.server.cores,
        benches: &mut package.benches.binaries,
        scenarios: std::mem::take(&mut package.scenarios),
    };
    let seed = invocation.seed.unwrap_or_else(|| fastrand::u64(..));
    let rounds = Rounds { count: package.server.layers.settings().rounds, seed };
    shell.verbose(&format!("the order of scenarios and the lengths of slices follow --seed {seed}"));
    let mut watcher = |progress: Progress<'_>| show(&progress, shell);
    let mut campaign = Campaign::new(subject, rounds, interrupt, &mut watcher);
    let outcome = measure_one_arm(&mut campaign, rounds);
    let package = campaign.finish();
    shell.end_progress();
    Measured { package, comparison: None, ended: outcome.err() }
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
fn show(progress: &Progress<'_>, shell: &mut Shell) -> Result<()> {
    match progress {
        Progress::Step { scenario, done, total, left } => shell.progress(*done, *total, *left, scenario),
        Progress::Measured { scenario, done, total } => {
            shell.milestone("Measured", &format!("{done}/{total} {scenario}"));
        }
        Progress::Note(text) => shell.status("Note", text),
        Progress::Detail(text) => shell.verbose(text),
        Progress::Warning(warning) => tell(std::slice::from_ref(warning), shell)?,
    }
    Ok(())
}

fn report_of<'run>(measured: &'run MeasuredPackage, comparison: Option<&'run Comparison>) -> PackageReport<'run> {
    let cores = measured.cores.are_apart().then_some(measured.cores.server.len());
    PackageReport {
        measured,
        scenarios: measured.scenarios.iter().map(|scenario| Judged::new(scenario, cores)).collect(),
        compared: comparison.map(|comparison| ComparedReport { with: String::new(), comparison }),
    }
}

/// Tells failures first, then the report, then the JSON objects; the last of them holds the exit code.
fn tell_report(report: &Report<'_>, exit: ExitCode, shell: &mut Shell) -> Result<()> {
    let scenarios = || report.packages.iter().flat_map(|package| &package.scenarios);
    for failure in scenarios().filter_map(|judged| judged.scenario.failure.as_ref()) {
        shell.failure(failure)?;
    }
    if report.packages.is_empty() {
        return shell.object("run-finished", &json::finished_object(report, exit));
    }
    shell.answer(&render_report(report, shell.width()))?;
    for package in &report.packages {
        for object in json::scenario_objects(package) {
            shell.object("scenario", &object)?;
        }
        for object in json::verdict_objects(package) {
            shell.object("verdict", &object)?;
        }
    }
    shell.object("run-finished", &json::finished_object(report, exit))
}

fn load_average() -> Option<f64> {
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
