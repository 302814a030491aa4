//! `load`: any URL, without a project. Resolve → check this machine's limits → drive → say what it means.
//!
//! The engine runs in this very process. Nothing is sent beside the exchanges that are counted: no probe, and no warm-up
//! unless one is asked for. Laying out what came back is left to [`crate::report`]; passing or failing is decided by
//! [`crate::gate`] from what [`LoadMeasured::findings`] says.

mod advice;
mod drive;
mod interface;
mod measured;
mod options;
mod preflight;
mod request;
#[cfg(test)]
pub(crate) mod sample;
mod target;

pub use advice::Advice;
pub use measured::{LoadEnd, LoadMeasured};
pub(crate) use measured::{engine_busy, throughput, together};
pub use options::{
    BodySource, Detour, HeaderLine, LoadOptions, Period, RampSpan, RequestOptions, Route, TlsOptions, Verification,
};
pub use target::{Driven, TargetUrl};

use httpbench_core::scenario::WireRequest;

use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::gate;
use crate::interrupt::Interrupt;
use crate::report::{Detail, load_json, render_load};
use crate::shell::Shell;

/// Loads every URL, one after the other, and reports.
///
/// # Errors
///
/// 2 for what cannot be sent or read, 107 where this machine cannot do what is asked for; everything before the first
/// request. What the servers do wrong is in the report and in the exit code.
pub fn run(options: &LoadOptions, shell: &mut Shell, interrupt: &Interrupt) -> Result<ExitCode> {
    let targets = prepare(options)?;
    for (driven, _) in &targets {
        if let Some(warning) = preflight::check(driven, &options.load)? {
            shell.warning(&warning)?;
        }
    }
    let mut measured = Vec::new();
    let mut findings = Vec::new();
    for (driven, request) in targets {
        let result = drive::drive(driven, request, options, shell, interrupt)?;
        shell.end_progress();
        findings.extend(result.findings());
        let ended = result.end;
        measured.push(result);
        if let LoadEnd::Interrupted(signal) = ended {
            findings.push(ExitCode::Signal(signal));
            break;
        }
    }
    let exit = gate::decide(&findings);
    let detail = if shell.is_verbose() { Detail::Everything } else { Detail::WhatMatters };
    shell.answer(&render_load(&measured, options, detail, shell.width()))?;
    for target in &measured {
        shell.object("load", &load_json::load_object(target, options))?;
    }
    if let Some(failure) = in_words(&measured, exit) {
        shell.failure(&failure)?;
    }
    shell.object("load-finished", &load_json::finished_object(&measured, options, exit))?;
    Ok(exit)
}

/// Everything that can be refused by looking at the command line, its files and its names.
fn prepare(options: &LoadOptions) -> Result<Vec<(Driven, WireRequest)>> {
    let body = options.request.body.as_ref().map(request::read_body).transpose()?;
    let tls = target::read_tls(&options.tls)?;
    options.route.refuse_unused(&options.targets)?;
    let prepare = |url: &TargetUrl| {
        let request = request::render(&options.request, body.as_deref(), url, options)?;
        Ok((target::reach(url, &options.route, tls.as_ref(), options.protocol)?, request))
    };
    options.targets.iter().map(prepare).collect()
}

/// What made the run fail, as an error that tells what to do.
fn in_words(measured: &[LoadMeasured], exit: ExitCode) -> Option<Error> {
    match exit {
        ExitCode::InvalidMeasurement | ExitCode::Regression => {
            measured.iter().find_map(LoadMeasured::failure).map(|failure| Error { exit, ..failure })
        }
        _ => None,
    }
}
