//! Looking closer, without measuring: the scenarios' names, one exchange on the wire, a server that stays up.

use std::time::Duration;

use httpbench_core::model::{ArmPlan, TracePlan};

use crate::bench::find_one;
use crate::cli::{Invocation, MessageFormat};
use crate::error::Result;
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::prepare::{PreparedBenches, Project, tell};
use crate::report::{json, render_trace};
use crate::server::{Server, ServerSpec};
use crate::shell::Shell;

/// How long the server's log is looked at between two looks at the server.
const GLANCE: Duration = Duration::from_millis(200);

/// Prints `name: benchmark` for every selected scenario. Starts no server.
///
/// # Errors
///
/// What ends a build or a listing, or 4 when nothing is selected.
pub fn list(project: &Project<'_>, invocation: &Invocation, shell: &mut Shell) -> Result<ExitCode> {
    let mut all = Vec::new();
    for package in project.packages()? {
        let executables = project.build_benches(&package, shell)?;
        let benches = project.start_benches(&package.package, &executables, shell)?;
        all.extend(benches.listings.into_iter().map(|listed| (package.package.name.to_string(), listed.listing)));
    }
    let selected: Vec<_> = all.iter().filter(|(_, listing)| invocation.selection.takes(listing)).collect();
    if selected.is_empty() {
        return Err(invocation.selection.takes_none(all.iter().map(|(_, listing)| listing)));
    }
    for (package, listing) in selected {
        match shell.format() {
            MessageFormat::Human => shell.answer(&format!("{}: benchmark\n", listing.name))?,
            MessageFormat::Json => shell.object("listed", &json::listed_object(package, listing))?,
        }
    }
    Ok(ExitCode::Success)
}

/// Prints one exchange as it went over the wire.
///
/// # Errors
///
/// What ends a build, a start or a listing; 4 when `name` does not mean one scenario.
pub fn trace_one(project: &Project<'_>, name: &str, shell: &mut Shell, interrupt: &Interrupt) -> Result<ExitCode> {
    let folder = project.run_folder()?;
    let mut packages = Vec::new();
    for package in project.packages()? {
        let server = project.server(&package.package, &folder, shell)?;
        let executables = project.build_benches(&package, shell)?;
        let benches = project.start_benches(&package.package, &executables, shell)?;
        packages.push((server, benches));
    }
    let listings = packages.iter().flat_map(|(_, benches)| &benches.listings).map(|listed| &listed.listing);
    let scenario = find_one(name, listings)?.clone();
    let holds_it = |benches: &PreparedBenches| benches.listings.iter().position(|listed| listed.listing == scenario);
    let (prepared, benches, index) = packages
        .iter_mut()
        .find_map(|(server, benches)| holds_it(benches).map(|index| (server, benches, index)))
        .expect("the scenario was found among these packages");
    let bench = benches.listings[index].bench;

    let server = Server::start(&prepared.spec, interrupt)?;
    let plan = TracePlan {
        scenario: scenario.name.clone(),
        arm: ArmPlan { host: server.host(), root_pid: Some(server.root_pid()), ..ArmPlan::plain(server.address()) },
        timeout: prepared.layers.for_scenario(&scenario.options).request_timeout,
    };
    let traced = benches.binaries[bench].trace(&plan, &mut || {
        interrupt.check()?;
        server.died().map_or(Ok(()), Err)
    });
    tell(&server.stop()?, shell)?;
    let trace = traced?;
    shell.answer(&render_trace(&scenario.name, &plan.arm.host, &trace))?;
    shell.object("trace", &json::trace_object(&scenario.name, &trace))?;
    Ok(if trace.outcome.is_ok() { ExitCode::Success } else { ExitCode::Regression })
}

/// Starts the server as a run would, and keeps it up until a signal comes.
///
/// # Errors
///
/// What ends a build or a start, 105 when the server dies, and the signal that ends it.
pub fn serve(project: &Project<'_>, shell: &mut Shell, interrupt: &Interrupt) -> Result<ExitCode> {
    let package = project.serving_package()?;
    let folder = project.run_folder()?;
    // Nothing competes for the cores here, so the server has them all.
    let spec = ServerSpec { cores: Vec::new(), ..project.server(&package, &folder, shell)?.spec };
    let server = Server::start(&spec, interrupt)?;
    for note in server.notes() {
        shell.status("Note", &format!("`{}` {note}", spec.name));
    }
    shell.status("Serving", &format!("`{}` until Ctrl-C, its files in {}", spec.name, server.dir().display()));
    shell.answer(&format!("http://{}/\n", server.host()))?;
    shell.object("serving", &json::serving_object(&server))?;
    let mut seen = 0;
    let ended = loop {
        seen = pass_on(&server, seen, shell);
        if let Some(error) = server.died() {
            break error;
        }
        if let Err(signal) = interrupt.wait_for(&[server.events()], Some(GLANCE)) {
            pass_on(&server, seen, shell);
            break signal;
        }
    };
    tell(&server.stop()?, shell)?;
    Err(ended)
}

/// Passes on what the server wrote since the last look.
fn pass_on(server: &Server, seen: u64, shell: &mut Shell) -> u64 {
    let (text, written) = server.log().since(seen);
    shell.echo(&text);
    written
}
