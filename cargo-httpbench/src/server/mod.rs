//! The server under test: its private folder, its port, its start, its life and its end.
//!
//! A [`Server`] that exists has answered an HTTP request, and whatever is sent to its address reaches a process below its
//! supervisor. How it is loaded is left to others; what its death means for a run, too.

mod address;
#[cfg(target_os = "linux")]
mod diag;
mod failure;
mod folder;
mod hooks;
mod memory;
mod placeholders;
mod probe;
mod ready;
mod shared_state;
mod sockets;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::placeholders::Placeholders;
use self::ready::Wait;
use crate::config::ServerSettings;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::process::{Bind, Child, Launch, LogTail, Stopped, Supervisor};
use crate::warning::Warning;

pub use self::memory::Memory;
pub(crate) use self::placeholders::near_misses;
pub use self::shared_state::shared_databases;

/// Where servers are asked to listen.
const HOST: &str = "127.0.0.1";

/// Whether a socket of this machine takes connections to an address of its own; `None` where the system does not tell.
pub(crate) fn somebody_listens(address: SocketAddr) -> Option<bool> {
    let listeners = sockets::listeners().ok()?;
    Some(listeners.iter().any(|listener| address::claim(listener.address, address).is_some()))
}

/// A server to be started.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    /// What messages call it.
    pub name: String,
    /// Its executable.
    pub executable: PathBuf,
    /// How it is configured.
    pub settings: ServerSettings,
    /// The folder of its package: `copy` and `working_dir` are relative to it.
    pub package_root: PathBuf,
    /// What it inherits. Configured variables and `PORT`, `HOST`, `HTTPBENCH_DIR` come on top.
    pub base_env: BTreeMap<OsString, OsString>,
    /// The cores that it may run on. Empty: all.
    pub cores: Vec<u32>,
    /// How it is brought to a port of its own.
    pub ports: PortPolicy,
}

/// How a server is brought to a port of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortPolicy {
    /// It is asked to listen on a free port, and measured wherever it does listen. Two servers that ignore `PORT` and insist on
    /// the same port cannot run at once.
    #[default]
    Ask,
    /// Besides, whatever fixed port it insists on becomes another one ([`Bind::Redirect`]), so that any number of them run side
    /// by side, and whoever else holds the fixed port does not matter. Needs
    /// [`redirect_available`](crate::process::redirect_available); slows `bind` alone. A `PORT` that the user configured is
    /// such a fixed port, too.
    Redirect,
}

/// A server that runs and answers. Dropped without [`Server::stop`], it is killed, and its `teardown` does not run.
#[derive(Debug)]
pub struct Server {
    child: Child,
    supervisor: Supervisor,
    address: SocketAddr,
    startup: Duration,
    notes: Vec<Note>,
    stop_timeout: Duration,
    teardown: Option<Hook>,
}

/// Something that a user should know about a server that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// It listens somewhere else than it was asked to.
    IgnoredPort {
        /// What it was asked.
        asked: u16,
        /// What it does.
        bound: u16,
    },
    /// It asked for a fixed port and was given another one: [`PortPolicy::Redirect`].
    Redirected {
        /// What it asked for.
        from: u16,
        /// What it got.
        to: u16,
    },
    /// It asked for a fixed port, and could not be given another one.
    NotRedirected {
        /// The reason.
        why: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IgnoredPort { asked, bound } => write!(out, "ignored PORT={asked} and listens on {bound}"),
            Self::Redirected { from, to } => write!(out, "bind to {from} redirected to {to}"),
            Self::NotRedirected { why } => write!(out, "bind to a fixed port could not be redirected: {why}"),
        }
    }
}

/// What a `setup`, a server and a `teardown` have in common, and what is theirs.
#[derive(Clone, Debug)]
struct Hook {
    name: String,
    program: PathBuf,
    args: Vec<OsString>,
    current_dir: PathBuf,
    env: BTreeMap<OsString, OsString>,
    cores: Vec<u32>,
}

impl Hook {
    fn launch(&self) -> Launch {
        let mut launch = Launch::new(&self.name, &self.program, &self.current_dir);
        launch.args.clone_from(&self.args);
        launch.env.clone_from(&self.env);
        launch.cores.clone_from(&self.cores);
        launch.exit = ExitCode::ServerFailed;
        launch
    }
}

impl Server {
    /// Prepares the private folder, runs `setup`, starts the server and waits until it is ready.
    ///
    /// # Errors
    ///
    /// With [`ExitCode::Configuration`] when what is configured cannot be found, with [`ExitCode::ServerFailed`] when
    /// `setup` fails or the server dies or does not get ready, and when a signal comes. Nothing is left running then, and
    /// `teardown` has run if `setup` did.
    pub fn start(spec: &ServerSpec, interrupt: &Interrupt) -> Result<Self> {
        let current_dir = working_dir(spec)?;
        let supervisor = Supervisor::start_with_folder(interrupt)?;
        let dir = supervisor.folder().map(Path::to_path_buf).unwrap_or_default();
        folder::copy(&spec.settings.copy, &spec.package_root, &dir)?;

        let asked_port = configured_port(spec).map_or_else(free_port, Ok)?;
        let placeholders =
            Placeholders { port: asked_port, host: HOST.to_owned(), dir: dir.to_string_lossy().into_owned() };
        let env = environment(spec, &placeholders);
        let command = |name: &str, program: PathBuf, args: &[String]| Hook {
            name: name.to_owned(),
            program,
            args: args.iter().map(|arg| placeholders.fill(arg).into()).collect(),
            current_dir: current_dir.clone(),
            env: env.clone(),
            cores: spec.cores.clone(),
        };
        let hook = |kind: &str, words: &Option<Vec<String>>| {
            let (program, args) = words.as_ref()?.split_first()?;
            Some(command(&format!("{kind} of {}", spec.name), placeholders.fill(program).into(), args))
        };
        let teardown = hook("teardown", &spec.settings.teardown);
        let setup = hook("setup", &spec.settings.setup);
        let server = command(&spec.name, spec.executable.clone(), &spec.settings.args);

        let started = setup
            .map_or(Ok(()), |setup| hooks::run(setup.launch(), &supervisor, interrupt))
            .and_then(|()| Self::bring_up(spec, &server, asked_port, supervisor.clone(), interrupt));
        match started {
            Ok(server) => Ok(Self { teardown, ..server }),
            Err(error) => {
                // The error that is told is the first one: a teardown after a failed start may well fail, too.
                let _ = supervisor.stop(spec.settings.stop_timeout);
                let _ = tear_down(teardown.as_ref(), &supervisor);
                Err(error)
            }
        }
    }

    fn bring_up(
        spec: &ServerSpec,
        server: &Hook,
        asked_port: u16,
        supervisor: Supervisor,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let mut launch = server.launch();
        launch.bind = match spec.ports {
            PortPolicy::Ask => Bind::AsAsked,
            // The user's own `PORT` is the same for every server: none can have it.
            PortPolicy::Redirect if configured_port(spec).is_some() => Bind::Redirect { port: free_port()? },
            PortPolicy::Redirect => Bind::Redirect { port: asked_port },
        };
        let stopwatch = interrupt.stopwatch();
        let child = Child::spawn_under(&supervisor, launch, interrupt)?;
        let wait =
            Wait { child: &child, stopwatch, asked_port, ports: spec.ports, ready: &spec.settings.ready, interrupt };
        let found = wait.until_ready().map_err(|error| with_ports(error, &child))?;
        let notes = notes(&child, asked_port, found.address.port())?;
        Ok(Self {
            child,
            supervisor,
            address: found.address,
            startup: found.startup,
            notes,
            stop_timeout: spec.settings.stop_timeout,
            teardown: None,
        })
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.child.name()
    }

    /// Where to connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The `Host` header of requests to it, such as `127.0.0.1:3000`.
    #[must_use]
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The process whose descendants are the server: its supervisor.
    #[must_use]
    pub fn root_pid(&self) -> u32 {
        self.supervisor.pid()
    }

    /// The server's own first process.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// From the start of its process to its first good answer.
    #[must_use]
    pub const fn startup(&self) -> Duration {
        self.startup
    }

    /// What a user should know about it.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Its private folder, gone after its end.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.supervisor.folder().unwrap_or(Path::new(""))
    }

    /// The last lines that it wrote.
    #[must_use]
    pub const fn log(&self) -> &LogTail {
        self.child.log()
    }

    /// The memory of its whole process tree. `None` when it is dead, or nothing may be read.
    #[must_use]
    pub fn memory(&self) -> Option<Memory> {
        memory::below(self.root_pid())
    }

    /// Lets the peak of [`Server::memory`] count from now on. Where the kernel does not allow it, the peak stays that since the
    /// start.
    pub fn reset_peak_memory(&self) {
        memory::reset_peak_below(self.root_pid());
    }

    /// Becomes readable when it dies, for [`Interrupt::wait_for`]. Then ask [`Server::died`].
    #[must_use]
    pub fn events(&self) -> BorrowedFd<'_> {
        self.child.events()
    }

    /// The error to report if it has ended by itself, with its status and its last lines.
    #[must_use]
    pub fn died(&self) -> Option<Error> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(ended)) => Some(failure::died_in_use(&self.child, ended)),
            Err(error) => Some(error),
        }
    }

    /// Stops the server's whole process tree, runs `teardown`, and removes the private folder. No signal cuts this short.
    ///
    /// # Errors
    ///
    /// When its supervisor does not answer.
    pub fn stop(self) -> Result<Vec<Warning>> {
        let name = self.name().to_owned();
        let mut warnings = Vec::new();
        match self.child.stop(self.stop_timeout)? {
            Stopped::Politely => {}
            Stopped::Killed { after } => warnings.push(Warning::ServerKilled { server: name, grace: after }),
            Stopped::Left { pids } => warnings.push(Warning::ProcessesLeft { server: name, pids }),
        }
        if let Err(error) = tear_down(self.teardown.as_ref(), &self.supervisor) {
            warnings.push(Warning::TeardownFailed { text: told_in_full(&error) });
        }
        Ok(warnings)
    }
}

/// Tells where a server that did not get ready really is.
fn with_ports(error: Error, child: &Child) -> Error {
    let redirected = child.redirected().unwrap_or_default();
    let lines = redirected.iter().map(|it| Note::Redirected { from: it.from, to: it.to });
    let refused = child.not_redirected().ok().flatten().map(|why| Note::NotRedirected { why });
    let lines: Vec<_> = lines.chain(refused).map(|note| note.to_string()).collect();
    if lines.is_empty() { error } else { error.details("its ports", lines) }
}

/// What is worth knowing about the ports of a server that is ready.
fn notes(child: &Child, asked: u16, bound: u16) -> Result<Vec<Note>> {
    let redirected = child.redirected()?;
    let mut notes: Vec<_> = redirected
        .iter()
        .filter(|it| it.from != it.to)
        .map(|it| Note::Redirected { from: it.from, to: it.to })
        .collect();
    notes.extend(child.not_redirected()?.map(|why| Note::NotRedirected { why }));
    if bound != asked && !redirected.iter().any(|it| it.to == bound) {
        notes.push(Note::IgnoredPort { asked, bound });
    }
    Ok(notes)
}

/// Runs `teardown` after whatever happened, a signal included.
fn tear_down(teardown: Option<&Hook>, supervisor: &Supervisor) -> Result<()> {
    teardown.map_or(Ok(()), |hook| hooks::run(hook.launch(), supervisor, &Interrupt::deaf()?))
}

/// An error as a text of several lines.
fn told_in_full(error: &Error) -> String {
    let details = error.details.iter().flat_map(|details| {
        std::iter::once(format!("{}:", details.title)).chain(details.lines.iter().map(|line| format!("  {line}")))
    });
    std::iter::once(error.what.clone()).chain(details).collect::<Vec<_>>().join("\n")
}

/// The folder that everything runs in.
fn working_dir(spec: &ServerSpec) -> Result<PathBuf> {
    let Some(configured) = &spec.settings.working_dir else { return Ok(spec.package_root.clone()) };
    let dir = spec.package_root.join(configured);
    if dir.is_dir() {
        return Ok(dir);
    }
    Err(Error::new(
        ExitCode::Configuration,
        format!("`server.working-dir` is `{}`, which is not a folder", configured.display()),
    )
    .details("looked for", [dir.display().to_string()])
    .help("`server.working-dir` is relative to the package"))
}

/// The port that the user wants the server to listen on.
fn configured_port(spec: &ServerSpec) -> Option<u16> {
    spec.settings.env.get("PORT")?.parse().ok()
}

fn free_port() -> Result<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|socket| socket.local_addr())
        .map(|address| address.port())
        .map_err(|error| Error::unexpected("cannot find a free port on 127.0.0.1", error))
}

/// The server's whole environment. What the user configured wins over what is always set.
fn environment(spec: &ServerSpec, placeholders: &Placeholders) -> BTreeMap<OsString, OsString> {
    let mut env = spec.base_env.clone();
    let port = placeholders.port.to_string();
    let always = [
        ("PORT", port.as_str()),
        ("HOST", &placeholders.host),
        ("HTTPBENCH_DIR", &placeholders.dir),
        ("ROCKET_PORT", &port),
        ("ROCKET_ADDRESS", &placeholders.host),
    ];
    env.extend(always.map(|(name, value)| (name.into(), value.into())));
    env.extend(spec.settings.env.iter().map(|(name, value)| (name.into(), placeholders.fill(value).into())));
    env
}
