//! Answers the command over the control channel: greeting, then one answer to each request, until the channel closes.
//!
//! Two threads. The main one calls scenarios and the engine. The other one only reads, so that it sees at once when the
//! command is gone, whatever the main one is busy with, and then ends the process: nothing of ours outlives the command.

use std::error::Error;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::process;
use std::sync::mpsc::{self, Sender};
use std::thread;

use super::FAILED;
use crate::engine;
use crate::model::{ArmPlan, Asked, RoundPlan, TracePlan};
use crate::platform;
use crate::protocol::{Answer, Ask, CONTROL_VARIABLE, Channel, ChannelError, Hello, RunFailure, send};
use crate::scenario::registry::{CallError, Registry, RegistryError, Scenario, with_sources};
use crate::scenario::{Check, Request, WireOptions, caught};

/// Serves until the command closes the channel. Answers with the exit code.
pub(super) fn serve(descriptor: &OsStr) -> i32 {
    match session(descriptor) {
        Ok(()) => 0,
        Err(error) => {
            tell(&error);
            FAILED
        }
    }
}

/// Says on standard error why serving ends. Unlike `eprintln!` it does not panic where nobody reads that any more: the
/// process must end all the same.
fn tell(error: &(dyn Error + 'static)) {
    let _ = writeln!(io::stderr(), "error: {}", with_sources(error));
}

/// Why the command cannot be served.
#[derive(Debug, thiserror::Error)]
enum SessionError {
    #[error(
        "`{CONTROL_VARIABLE}` must name an inherited Unix socket, and is {0:?}: it is set by `cargo httpbench` only"
    )]
    Descriptor(String, #[source] Option<io::Error>),
    #[error("the command cannot be served")]
    Channel(#[from] ChannelError),
    #[error("the command cannot be served")]
    Io(#[from] io::Error),
    #[error("this bench target and the command do not fit together")]
    Mismatch(#[from] crate::protocol::Mismatch),
}

fn session(descriptor: &OsStr) -> Result<(), SessionError> {
    let given = || descriptor.to_string_lossy().into_owned();
    let number = descriptor.to_str().and_then(|text| text.parse().ok());
    let number = number.ok_or_else(|| SessionError::Descriptor(given(), None))?;
    let socket = platform::inherited_socket(number).map_err(|error| SessionError::Descriptor(given(), Some(error)))?;
    let mut channel = Channel::new(socket);

    // Ours goes out before theirs is judged, so that the command can name both versions.
    let ours = Hello::ours();
    channel.send(&ours)?;
    let Some(theirs) = channel.receive::<Hello>()? else { return Ok(()) };
    ours.meet(&theirs)?;

    let writer = channel.writer()?;
    let (sender, requests) = mpsc::channel();
    thread::Builder::new().name("httpbench-control".to_owned()).spawn(move || read(channel, &sender))?;
    let registry = Registry::collect();
    for request in requests {
        match send(&writer, &answer(&registry, request)) {
            // The reading thread ends the process, as it should without the command.
            Err(ChannelError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => break,
            sent => sent?,
        }
    }
    Ok(())
}

/// Hands requests over until the command is gone, then ends the process.
fn read(mut channel: Channel, requests: &Sender<Ask>) {
    let code = loop {
        match channel.receive::<Ask>() {
            Ok(Some(request)) => {
                if requests.send(request).is_err() {
                    // The main thread has ended, and says why itself.
                    return;
                }
            }
            Ok(None) => break 0,
            Err(error) => {
                tell(&error);
                break FAILED;
            }
        }
    };
    process::exit(code);
}

fn answer(registry: &Result<Registry, RegistryError>, request: Ask) -> Answer {
    match (registry, request) {
        (Ok(registry), Ask::List) => Answer::Scenarios(registry.iter().map(Scenario::listing).collect()),
        (Err(error), Ask::List) => Answer::ListingFailed(error.to_string()),
        (Ok(registry), Ask::Run(plan)) => {
            run(registry, &plan).map_or_else(Answer::Failed, |recording| Answer::Recording(Box::new(recording)))
        }
        (Ok(registry), Ask::Trace(plan)) => {
            trace(registry, &plan).map_or_else(Answer::Failed, |trace| Answer::Trace(Box::new(trace)))
        }
        (Err(_), Ask::Run(RoundPlan { scenario, .. }) | Ask::Trace(TracePlan { scenario, .. })) => {
            Answer::Failed(RunFailure::UnknownScenario(scenario))
        }
    }
}

fn run(registry: &Registry, plan: &RoundPlan) -> Result<crate::model::Recording, RunFailure> {
    let scenario = find(registry, &plan.scenario)?;
    let render = |arm: &ArmPlan| {
        let options = WireOptions::of(arm, &plan.load);
        match arm.asked {
            Asked::Scenario => scenario.render(&arm.host, options),
            Asked::Reference => Ok(reference_request().render_as(&arm.host, options)?),
        }
    };
    let requests = plan.arms.iter().map(render).collect::<Result<_, _>>().map_err(failure)?;
    drive(|| engine::run_round(plan, requests))
}

/// What the command's reference server is sent, beside whatever the scenario sends to the others.
fn reference_request() -> Request {
    Request::get("/").check(Check::status(200))
}

fn trace(registry: &Registry, plan: &TracePlan) -> Result<crate::model::Trace, RunFailure> {
    let scenario = find(registry, &plan.scenario)?;
    let options = WireOptions { version: plan.arm.protocol, ..WireOptions::default() };
    let request = scenario.render(&plan.arm.host, options).map_err(failure)?;
    drive(|| engine::trace(plan, &request))
}

fn find<'a>(registry: &'a Registry, name: &str) -> Result<&'a Scenario, RunFailure> {
    registry.find(name).ok_or_else(|| RunFailure::UnknownScenario(name.to_owned()))
}

fn failure(error: CallError) -> RunFailure {
    match error {
        CallError::Panicked(message) => RunFailure::Panicked(message),
        CallError::Request(error) => RunFailure::Request(with_sources(&error)),
    }
}

/// Calls the engine. A panic of it is a bug of ours, which the command reports better than a closed channel.
fn drive<T>(engine: impl FnOnce() -> Result<T, engine::EngineError>) -> Result<T, RunFailure> {
    match caught(engine) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(RunFailure::Engine(with_sources(&error))),
        Err(message) => Err(RunFailure::Engine(format!("it panicked: {message}"))),
    }
}
