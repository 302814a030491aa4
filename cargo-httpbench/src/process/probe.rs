//! Whether calls of `bind` can be redirected on this system, found by doing it once.
//!
//! Too much decides about that to be asked one by one (kernel, sandboxes, containers, Yama), so that only the trial counts.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode as ProcessExitCode;
use std::sync::{Mutex, PoisonError};
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

/// What the trial found: a reason against it is in words for the user.
pub type Available = std::result::Result<(), String>;

/// Whether [`Bind::Redirect`] works here. Tried once in a process; the answer is kept.
///
/// # Errors
///
/// When a signal comes. Then nothing was found out.
pub fn redirect_available(interrupt: &Interrupt) -> Result<Available> {
    static KNOWN: Mutex<Option<Available>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*known {
        return Ok(known.clone());
    }
    let available = match try_it(interrupt) {
        Ok(available) => available,
        Err(error) if matches!(error.exit, ExitCode::Signal(_)) => return Err(error),
        Err(Error { cause: Some(cause), .. }) => Err(cause.to_string()),
        Err(error) => Err(error.what),
    };
    Ok(known.insert(available).clone())
}

/// Lets a program ask for a port that is taken. It can only get it if that is redirected.
fn try_it(interrupt: &Interrupt) -> Result<Available> {
    let taken =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| Ok((socket.local_addr()?.port(), socket)));
    let (port, _taken) = taken.map_err(|error| Error::unexpected("cannot find a free port on 127.0.0.1", error))?;
    // The supervisor is this very executable, and so is the program.
    let mut launch = Launch::new("the trial of a redirected port", "/proc/self/exe", "/");
    launch.args = vec![ARGUMENT.into(), port.to_string().into()];
    launch.bind = Bind::Redirect { port: 0 };
    launch.exit = ExitCode::Unexpected;
    let child = Child::spawn(launch, interrupt)?;
    let ended = child.wait_timeout(PATIENCE, interrupt)?;
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
