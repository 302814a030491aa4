//! The reference server: a small HTTP server inside our own executable, whose work per request is a number.
//!
//! It is the ruler beside which servers are measured that are never there at the same time, and the subject of `selftest`, which
//! slows it down by a known amount. It is started, pinned, watched and stopped like any other server, through
//! [`Server`](crate::server::Server); the load on it is made by our own executable as a bench binary, with the scenario in [`bench`](mod@bench).
//! Neither is for users: both hide behind a first argument, like the supervisor.

pub mod bench;
mod busy;
mod server;
mod work;

use std::path::PathBuf;
use std::process::ExitCode as ProcessExitCode;

use crate::config::Layers;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::process::own_executable;
use crate::server::{PortPolicy, ServerSpec};

pub use busy::{Busy, launch as launch_busy};
pub use work::{Work, steps_per_second};

/// The version of the reference server. Raised with every change that makes it faster or slower: ratios to another version say
/// nothing.
pub const VERSION: u32 = 1;

/// What the ruler does for each request: about 10 µs on a processor of 2024, little enough to be quick, and enough for the kernel's share
/// of an exchange to be no more than half of it.
pub const RULER: Work = Work(5_000);

/// The hidden first argument that makes this executable the server; the work follows it.
const SERVER_ARGUMENT: &str = "--httpbench-reference-server";

/// Becomes the reference server, its bench binary or the busy neighbour if the command line says so. One of the first things that `main`
/// does.
#[must_use]
pub fn main_if_asked() -> Option<ProcessExitCode> {
    let mut args = std::env::args().skip(1);
    let ended = |result: std::io::Result<()>| match result {
        Ok(()) => ExitCode::Success.into(),
        Err(error) => {
            eprintln!("error: the reference server cannot serve: {error}");
            ExitCode::Unexpected.into()
        }
    };
    match args.next()?.as_str() {
        SERVER_ARGUMENT => {
            let work = args.next().and_then(|steps| steps.parse().ok()).map_or(RULER, Work);
            let port = std::env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(0);
            Some(ended(server::serve(port, work)))
        }
        bench::ARGUMENT => {
            httpbench_core::main();
            Some(ExitCode::Success.into())
        }
        busy::ARGUMENT => {
            busy::keep_busy();
            Some(ExitCode::Success.into())
        }
        _ => None,
    }
}

/// A reference server that does this work, ready to be started on these cores.
///
/// # Errors
///
/// When our own executable cannot be told.
pub fn server_spec(name: &str, work: Work, cores: &[u32]) -> Result<ServerSpec> {
    let mut settings = Layers::default().settings().server;
    // Arguments of equal length, so that two servers with different work start with equal stacks.
    settings.args = vec![SERVER_ARGUMENT.to_owned(), format!("{:012}", work.0)];
    settings.ready.status = Some(200);
    Ok(ServerSpec {
        name: name.to_owned(),
        package_root: PathBuf::from("/"),
        executable: executable()?,
        settings,
        base_env: std::collections::BTreeMap::new(),
        cores: cores.to_vec(),
        ports: PortPolicy::Ask,
    })
}

fn executable() -> Result<PathBuf> {
    own_executable().map_err(|cause| Error::unexpected("the path of cargo-httpbench itself cannot be told", cause))
}
