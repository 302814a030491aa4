//! One program under a supervisor.

use std::ffi::OsString;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::ended::{Ended, Stopped};
use super::launch::{Input, Launch, Output, Redirected};
use super::log::LogTail;
use super::supervision::Supervisor;
use super::wire::{Ask, Program, Role};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;

/// Lines of a dead program's log that its error shows.
const LINES: usize = 20;

/// A program that was started, and all that it starts in its turn.
///
/// Dropped, it and its whole tree are killed, unless others hold its supervisor.
#[derive(Debug)]
pub struct Child {
    supervisor: Supervisor,
    id: u64,
    pid: u32,
    name: String,
    command_line: String,
    log: LogTail,
    stdout: Option<PipeReader>,
    stderr: Option<PipeReader>,
}

impl Child {
    /// Starts a program under a supervisor of its own. A failure to start has [`Launch::exit`].
    ///
    /// # Errors
    ///
    /// When the program cannot be started, or a signal came.
    pub fn spawn(launch: Launch, interrupt: &Interrupt) -> Result<Self> {
        Self::spawn_under(&Supervisor::start(interrupt)?, launch, interrupt)
    }

    /// Starts one more program under a supervisor.
    ///
    /// # Errors
    ///
    /// When the program cannot be started, or a signal came.
    pub fn spawn_under(supervisor: &Supervisor, launch: Launch, interrupt: &Interrupt) -> Result<Self> {
        let command_line = launch.command_line();
        let (name, exit, current_dir) = (launch.name.clone(), launch.exit, launch.current_dir.clone());
        let failed = |why: String| {
            Error::new(exit, format!("cannot start `{name}`"))
                .caused_by(why)
                .details("command", [command_line.clone(), format!("in {}", current_dir.display())])
        };
        let streams = Streams::of(&launch).map_err(|error| failed(error.to_string()))?;
        let Streams { roles, mut descriptors, log, stdout, stderr } = streams;
        let mut roles = roles;
        if let Some(inherit) = launch.inherit {
            roles.push(Role::Extra(inherit.variable));
            descriptors.push(inherit.descriptor);
        }
        let ask = |id| {
            Ask::Launch(Box::new(Program {
                id,
                program: launch.program.into_os_string(),
                args: launch.args,
                current_dir: launch.current_dir.into_os_string(),
                env: launch.env.into_iter().collect::<Vec<(OsString, OsString)>>(),
                cores: launch.cores,
                bind: launch.bind,
                roles,
            }))
        };
        let id = supervisor.launch(ask, &descriptors).map_err(|error| failed(error.to_string()))?;
        // Our copies of the program's ends, or its pipes would never end.
        drop(descriptors);
        let pid = loop {
            match supervisor.spawned(id).map_err(|error| failed(error.to_string()))? {
                Some(Ok(pid)) => break pid,
                Some(Err(why)) => return Err(failed(why)),
                None => interrupt.wait_for(&[supervisor.news_descriptor()], None)?,
            };
        };
        let log = log.map(LogTail::drain).transpose().map_err(|error| failed(error.to_string()))?.unwrap_or_default();
        Ok(Self { supervisor: supervisor.clone(), id, pid, name, command_line, log, stdout, stderr })
    }

    /// What messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program's own process.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// The supervisor's process: its descendants are the program's whole tree.
    #[must_use]
    pub fn supervisor_pid(&self) -> u32 {
        self.supervisor.pid()
    }

    /// How it was started, as a shell would take it.
    #[must_use]
    pub fn command_line(&self) -> &str {
        &self.command_line
    }

    /// The last lines of what it writes to the streams that are [`Output::Log`].
    #[must_use]
    pub const fn log(&self) -> &LogTail {
        &self.log
    }

    /// The pipe of a standard output that is [`Output::Piped`]; the first time only.
    pub const fn take_stdout(&mut self) -> Option<PipeReader> {
        self.stdout.take()
    }

    /// The pipe of a standard error that is [`Output::Piped`]; the first time only.
    pub const fn take_stderr(&mut self) -> Option<PipeReader> {
        self.stderr.take()
    }

    /// Becomes readable when the program ends, for [`Interrupt::wait_for`]. Then ask [`Child::try_wait`].
    #[must_use]
    pub fn events(&self) -> BorrowedFd<'_> {
        self.supervisor.news_descriptor()
    }

    /// How the program ended; `None` while it runs. Its own children may outlive it, until [`Child::stop`].
    ///
    /// # Errors
    ///
    /// When the supervisor's messages cannot be read.
    pub fn try_wait(&self) -> Result<Option<Ended>> {
        self.supervisor.ended(self.id).map_err(|error| self.lost_sight(error))
    }

    /// With [`Bind::Redirect`](super::Bind::Redirect): the fixed ports that its tree has asked for so far, in that order, and
    /// what it got instead. A listener that can be connected to is among them.
    ///
    /// # Errors
    ///
    /// When the supervisor's messages cannot be read.
    pub fn redirected(&self) -> Result<Vec<Redirected>> {
        self.supervisor.redirected(self.id).map_err(|error| self.lost_sight(error))
    }

    /// With [`Bind::Redirect`](super::Bind::Redirect): why its tree got a fixed port that it asked for all the same.
    ///
    /// # Errors
    ///
    /// When the supervisor's messages cannot be read.
    pub fn not_redirected(&self) -> Result<Option<String>> {
        self.supervisor.not_redirected(self.id).map_err(|error| self.lost_sight(error))
    }

    /// Waits for the program's end.
    ///
    /// # Errors
    ///
    /// When a signal came.
    pub fn wait(&self, interrupt: &Interrupt) -> Result<Ended> {
        loop {
            if let Some(ended) = self.try_wait()? {
                self.log.settle();
                return Ok(ended);
            }
            interrupt.wait_for(&[self.events()], None)?;
        }
    }

    /// Waits for the program's end, for some time, not counting what it was suspended for. `None`: it still runs.
    ///
    /// # Errors
    ///
    /// When a signal came.
    pub fn wait_timeout(&self, timeout: Duration, interrupt: &Interrupt) -> Result<Option<Ended>> {
        let stopwatch = interrupt.stopwatch();
        loop {
            if let Some(ended) = self.try_wait()? {
                self.log.settle();
                return Ok(Some(ended));
            }
            let left = timeout.saturating_sub(stopwatch.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            interrupt.wait_for(&[self.events()], Some(left))?;
        }
    }

    /// Ends the program's whole tree: SIGTERM, and SIGKILL after the grace. Returns when no descendant is left. No signal
    /// cuts it short, but for the second Ctrl-C, which ends the command at once.
    ///
    /// # Errors
    ///
    /// When the supervisor does not answer.
    pub fn stop(&self, grace: Duration) -> Result<Stopped> {
        let gone = self.supervisor.stop(grace).map_err(|error| self.lost_sight(error))?;
        self.log.settle();
        Ok(match gone {
            super::supervision::Gone { left, .. } if !left.is_empty() => Stopped::Left { pids: left },
            super::supervision::Gone { killed: true, .. } => Stopped::Killed { after: grace },
            _ => Stopped::Politely,
        })
    }

    /// An error about a program that ended: how it did, its command, its last 20 lines.
    ///
    /// ``what`` continues "`name`", such as `before it was ready`; it may be empty.
    #[must_use]
    pub fn failure(&self, exit: ExitCode, ended: Ended, when: &str) -> Error {
        let space = if when.is_empty() { "" } else { " " };
        self.explain(Error::new(exit, format!("`{}` {ended}{space}{when}", self.name)))
    }

    /// Adds the command line and the last 20 lines to an error about this program.
    #[must_use]
    pub fn explain(&self, error: Error) -> Error {
        self.log.settle();
        let lines = self.log.last(LINES);
        let error = error.details("command", [self.command_line.clone()]);
        if lines.is_empty() {
            error.details(format!("log of `{}`", self.name), ["(it wrote nothing)".to_owned()])
        } else {
            error.details(format!("last {LINES} lines of `{}`", self.name), lines)
        }
    }

    fn lost_sight(&self, error: io::Error) -> Error {
        Error::unexpected(format!("lost sight of `{}`", self.name), error)
    }
}

/// The streams of a launch: what the program gets and what stays here.
struct Streams {
    roles: Vec<Role>,
    descriptors: Vec<OwnedFd>,
    log: Option<PipeReader>,
    stdout: Option<PipeReader>,
    stderr: Option<PipeReader>,
}

impl Streams {
    fn of(launch: &Launch) -> io::Result<Self> {
        let mut streams = Self { roles: Vec::new(), descriptors: Vec::new(), log: None, stdout: None, stderr: None };
        if launch.stdin == Input::Inherit {
            streams.give(Role::Stdin, io::stdin().as_fd().try_clone_to_owned()?);
        }
        let mut log_writer = None;
        for (role, output) in [(Role::Stdout, launch.stdout), (Role::Stderr, launch.stderr)] {
            match output {
                Output::Null => {}
                Output::Inherit if role == Role::Stdout => {
                    streams.give(role, io::stdout().as_fd().try_clone_to_owned()?)
                }
                Output::Inherit => streams.give(role, io::stderr().as_fd().try_clone_to_owned()?),
                Output::Log => {
                    if log_writer.is_none() {
                        let (reader, writer) = io::pipe()?;
                        streams.log = Some(reader);
                        log_writer = Some(OwnedFd::from(writer));
                    }
                    if let Some(writer) = &log_writer {
                        streams.give(role, writer.try_clone()?);
                    }
                }
                Output::Piped => {
                    let (reader, writer) = io::pipe()?;
                    if role == Role::Stdout {
                        streams.stdout = Some(reader)
                    } else {
                        streams.stderr = Some(reader)
                    }
                    streams.give(role, OwnedFd::from(writer));
                }
            }
        }
        Ok(streams)
    }

    fn give(&mut self, role: Role, descriptor: OwnedFd) {
        self.roles.push(role);
        self.descriptors.push(descriptor);
    }
}
