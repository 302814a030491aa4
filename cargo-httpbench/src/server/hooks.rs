//! `setup` and `teardown`: programs that run to their end before a server's start and after its stop.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::process::{Child, Launch, Supervisor};

/// How long either may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs one of them to its end. What it leaves running belongs to the server's tree from then on.
///
/// # Errors
///
/// When it cannot be started, fails, or takes too long; when a signal comes.
pub(super) fn run(launch: Launch, supervisor: &Supervisor, interrupt: &Interrupt) -> Result<()> {
    let child = Child::spawn_under(supervisor, launch, interrupt)?;
    match child.wait_timeout(TIMEOUT, interrupt)? {
        Some(ended) if ended.is_success() => Ok(()),
        Some(ended) => Err(child.failure(ExitCode::ServerFailed, ended, "")),
        None => {
            let timeout = humantime::format_duration(TIMEOUT);
            let error = Error::new(ExitCode::ServerFailed, format!("`{}` did not end within {timeout}", child.name()));
            child.stop(Duration::ZERO)?;
            Err(child.explain(error).help("it has to end by itself; a service that it starts goes into the background"))
        }
    }
}
