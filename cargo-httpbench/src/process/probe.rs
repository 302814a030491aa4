//! Whether calls of `bind` can be redirected on this system, found by doing it once.
//!
//! Too much decides about that to be asked one by one (kernel, sandboxes, containers, Yama), so that only the trial counts.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode as ProcessExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use super::child::Child;
use super::launch::{Bind, Launch};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;

/// The hidden first argument that makes this executable a program that binds to the port that comes second.
pub(super) const ARGUMENT: &str = "--httpbench-bind";

/// How long the trial may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether [`Bind::Redirect`] works here. Tried once in a process; the answer is kept.
///
/// # Errors
///
/// With the reason, in words for the user.
pub fn redirect_available() -> std::result::Result<(), String> {
    static KNOWN: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    let told = |error: Error| match error.cause {
        Some(cause) => cause.to_string(),
        None => error.what,
    };
    KNOWN.get_or_init(|| try_it().unwrap_or_else(|error| Err(told(error)))).clone()
}

/// Lets a program ask for a port that is taken. It can only get it if that is redirected.
fn try_it() -> Result<std::result::Result<(), String>> {
    let taken =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| Ok((socket.local_addr()?.port(), socket)));
    let (port, _taken) = taken.map_err(|error| Error::unexpected("cannot find a free port on 127.0.0.1", error))?;
    // A signal is noticed after the trial, which is short.
    let interrupt = Interrupt::deaf()?;
    // The supervisor is this very executable, and so is the program.
    let mut launch = Launch::new("the trial of a redirected port", "/proc/self/exe", "/");
    launch.args = vec![ARGUMENT.into(), port.to_string().into()];
    launch.bind = Bind::Redirect { port: 0 };
    launch.exit = ExitCode::Unexpected;
    let child = Child::spawn(launch, &interrupt)?;
    let ended = child.wait_timeout(PATIENCE, &interrupt)?;
    if ended.is_some_and(super::Ended::is_success) {
        return Ok(Ok(()));
    }
    let why = child.not_redirected()?.or_else(|| child.log().last(1).pop());
    Ok(Err(why.unwrap_or_else(|| "a trial did not end".to_owned())))
}

/// What the tried program does.
pub(super) fn bind_as_asked(port: Option<OsString>) -> ProcessExitCode {
    let Some(port) = port.and_then(|port| port.to_str()?.parse::<u16>().ok()) else {
        eprintln!("error: `{ARGUMENT}` is only for cargo-httpbench itself, and needs a port");
        return ExitCode::Usage.into();
    };
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(_) => ExitCode::Success.into(),
        Err(error) => {
            eprintln!("a call of `bind` was not redirected: {error}");
            ExitCode::Unexpected.into()
        }
    }
}
