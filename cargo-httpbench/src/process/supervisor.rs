//! The supervisor: our executable, run once more, between the command and what it starts.
//!
//! It is the subreaper of everything below it and watches a socket to the command. Whatever ends the command (success,
//! an error, a panic, `kill -9`) closes that socket; then the supervisor kills every descendant, those too that called
//! `setsid` or lost their parent, removes its folder, and ends. It has a session of its own, so that the terminal's Ctrl-C
//! reaches the command alone, and sleeps in `poll` unless something happens.
//!
//! Calls of `bind` that are to be redirected wait for it as well (see [`super::redirect`]).
//!
//! One thread, but for the moment of such a launch; no judgement: what an ending means is the command's affair.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode as ProcessExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, dup2_stdin, dup2_stdout, setsid};

use super::ended::Ended;
use super::launch::Bind;
use super::platform::{Affinity, Ignored, be_called, become_subreaper, catch};
use super::probe;
use super::redirect::{self, Redirection, State};
use super::tree::descendants;
use super::wait::readable;
use super::wire::{Ask, Program, Receiver, Report, Role, send};
use crate::exit_code::ExitCode;

/// The hidden first argument that makes this executable a supervisor.
pub(crate) const ARGUMENT: &str = "--httpbench-supervisor";

/// The argument after it that asks for a private folder.
pub(crate) const FOLDER_ARGUMENT: &str = "--with-folder";

/// What the names of private folders begin with; 10 random letters follow, so that all paths are equally long.
pub(crate) const FOLDER_PREFIX: &str = "httpbench-";

/// How long killing goes on. What survives that hangs in the kernel or may not be killed by us.
const KILLING: Duration = Duration::from_secs(10);

/// How soon processes that were forked while others were killed are looked for.
const KILL_AGAIN: Duration = Duration::from_millis(10);

/// Becomes a supervisor if the command line says so. The first thing that `main` calls.
#[must_use]
pub fn main_if_asked() -> Option<ProcessExitCode> {
    let mut args = std::env::args_os().skip(1);
    let first = args.next()?;
    if first == probe::ARGUMENT {
        return Some(probe::bind_as_asked(args.next()));
    }
    if first != ARGUMENT {
        return None;
    }
    let folder = args.next().is_some_and(|argument| argument == FOLDER_ARGUMENT);
    Some(match run(folder) {
        Ok(()) => ExitCode::Success.into(),
        // The command sees the socket's end, and gave us no standard error: this is for whoever types the argument by hand.
        Err(error) => {
            eprintln!(
                "error: `{ARGUMENT}` is only for cargo-httpbench itself, which sends its orders through a socket: {error}"
            );
            ExitCode::Usage.into()
        }
    })
}

/// The whole life of a supervisor.
fn run(with_folder: bool) -> io::Result<()> {
    // The command handed its two channels over as standard input and output. They move away from there, so that nobody
    // mistakes them for the program's.
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let acknowledgements = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    control.peer_addr()?;

    match Watch::begin(control.try_clone()?, acknowledgements, with_folder) {
        Ok(mut watch) => {
            let result = watch.go_on();
            watch.end();
            result
        }
        Err(error) => send(&control, &Report::Unable { why: error.to_string() }, &[]),
    }
}

/// Everything that a supervisor knows.
struct Watch {
    control: UnixStream,
    acknowledgements: File,
    receiver: Receiver,
    signals: File,
    folder: Option<PathBuf>,
    running: Vec<Running>,
    redirections: Vec<Redirection>,
    stopping: Option<Stopping>,
    frozen: bool,
}

/// A launched program that has not ended.
struct Running {
    id: u64,
    pid: Pid,
}

/// A stop that is under way.
struct Stopping {
    deadline: Instant,
    killed: bool,
}

impl Watch {
    /// Prepares this process and tells the command.
    fn begin(control: UnixStream, acknowledgements: File, with_folder: bool) -> io::Result<Self> {
        // Fails only if the process leads a group already; then it has left the terminal's, too.
        let _ = setsid();
        become_subreaper()?;
        be_called(c"httpbench-watch")?;
        // A supervisor ends when the command does, never by a signal but SIGKILL.
        let caught = [
            Signal::SIGCHLD,
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGHUP,
            Signal::SIGQUIT,
            Signal::SIGTSTP,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
        ];
        let signals = catch(&caught, Ignored::IsCaught)?;
        let folder = if with_folder {
            Some(tempfile::Builder::new().prefix(FOLDER_PREFIX).rand_bytes(10).tempdir()?.keep())
        } else {
            None
        };
        let watching = Report::Watching { folder: folder.as_ref().map(|folder| folder.clone().into_os_string()) };
        let watch = Self {
            control,
            acknowledgements,
            receiver: Receiver::default(),
            signals,
            folder,
            running: Vec::new(),
            redirections: Vec::new(),
            stopping: None,
            frozen: false,
        };
        watch.report(&watching);
        Ok(watch)
    }

    /// Obeys until the command's end of the socket is closed.
    fn go_on(&mut self) -> io::Result<()> {
        loop {
            let timeout = self.stopping.as_ref().map(|stopping| {
                if stopping.killed { KILL_AGAIN } else { stopping.deadline.saturating_duration_since(Instant::now()) }
            });
            let mut descriptors = vec![self.control.as_fd(), self.signals.as_fd()];
            descriptors.extend(self.redirections.iter().map(Redirection::descriptor));
            readable(&descriptors, timeout)?;
            self.forget_signals()?;
            self.redirect();
            self.reap();
            self.receiver.fill(&self.control)?;
            while let Some(ask) = self.receiver.next()? {
                self.obey(ask)?;
            }
            if self.receiver.is_closed() {
                return Ok(());
            }
            self.go_on_stopping();
        }
    }

    /// Kills whatever is left, and removes the folder.
    fn end(&mut self) {
        let deadline = Instant::now() + KILLING;
        while self.reap() == Descendants::Exist && Instant::now() < deadline {
            signal_all(&[Signal::SIGKILL]);
            let _ = readable(&[self.signals.as_fd()], Some(KILL_AGAIN));
            let _ = self.forget_signals();
        }
        let Some(folder) = &self.folder else { return };
        // A process that hangs in the kernel may still be writing: try again, for a while.
        for _ in 0..20 {
            match fs::remove_dir_all(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(Duration::from_millis(50)),
                _ => break,
            }
        }
    }

    /// Answers the calls of `bind` that wait, and forgets programs whose tree is gone.
    fn redirect(&mut self) {
        let control = &self.control;
        self.redirections.retain_mut(|redirection| {
            let state = redirection.go_on(&mut |report| {
                let _ = send(control, &report, &[]);
            });
            state == State::InUse
        });
    }

    fn obey(&mut self, ask: Ask) -> io::Result<()> {
        match ask {
            Ask::Launch(program) => {
                let (id, bind) = (program.id, program.bind);
                let descriptors = self.receiver.take_descriptors(program.roles.len());
                match spawn(*program, descriptors) {
                    Ok(Spawned { pid, binds }) => {
                        self.running.push(Running { id, pid: Pid::from_raw(pid.cast_signed()) });
                        if let (Some(binds), Bind::Redirect { port }) = (binds, bind) {
                            self.redirections.push(Redirection::new(id, binds, port));
                        }
                        if self.frozen {
                            freeze();
                        }
                        self.report(&Report::Spawned { id, pid });
                    }
                    Err(error) => self.report(&Report::SpawnFailed { id, why: error.to_string() }),
                }
            }
            Ask::Stop { grace_ms } => {
                let deadline = Instant::now() + Duration::from_millis(grace_ms);
                self.stopping = Some(Stopping { deadline, killed: false });
                if grace_ms > 0 {
                    // A stopped process only takes SIGTERM once it goes on.
                    signal_all(&[Signal::SIGTERM, Signal::SIGCONT]);
                }
                self.frozen = false;
            }
            Ask::Freeze => {
                self.frozen = true;
                freeze();
                self.acknowledgements.write_all(b".")?;
            }
            Ask::Thaw => {
                self.frozen = false;
                signal_all(&[Signal::SIGCONT]);
                self.acknowledgements.write_all(b".")?;
            }
        }
        Ok(())
    }

    /// The next step of a stop: done, kill, or give up.
    fn go_on_stopping(&mut self) {
        let Some(stopping) = &self.stopping else { return };
        let killed = stopping.killed;
        let now = Instant::now();
        let (deadline, report) = (stopping.deadline, self.reap() == Descendants::None);
        if report {
            self.stopping = None;
            self.report(&Report::Gone { killed, left: Vec::new() });
        } else if killed && now >= deadline {
            let left = descendants(std::process::id()).into_iter().map(|member| member.pid).collect();
            self.stopping = None;
            self.report(&Report::Gone { killed, left });
        } else if killed || now >= deadline {
            signal_all(&[Signal::SIGKILL]);
            let deadline = if killed { deadline } else { now + KILLING };
            self.stopping = Some(Stopping { deadline, killed: true });
        }
    }

    /// Collects every dead child, and reports those that the command launched.
    fn reap(&mut self) -> Descendants {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                // ECHILD: a process without children has no descendants.
                Err(nix::errno::Errno::ECHILD) => return Descendants::None,
                Err(nix::errno::Errno::EINTR) => {}
                Err(_) => return Descendants::Exist,
                Ok(status) => {
                    let (Some(pid), Some(ended)) = (status.pid(), Ended::from_wait(status)) else {
                        return Descendants::Exist;
                    };
                    if let Some(index) = self.running.iter().position(|running| running.pid == pid) {
                        let id = self.running.swap_remove(index).id;
                        self.report(&Report::Exited { id, ended });
                    }
                }
            }
        }
    }

    /// Tells the command. If it is gone, the next look at the socket shows that.
    fn report(&self, report: &Report) {
        let _ = send(&self.control, report, &[]);
    }

    /// Empties the pipe of signals: what they mean is found out by looking.
    fn forget_signals(&mut self) -> io::Result<()> {
        let mut buffer = [0; 256];
        while readable(&[self.signals.as_fd()], Some(Duration::ZERO))? == super::wait::Woken::Readable {
            let _ = self.signals.read(&mut buffer)?;
        }
        Ok(())
    }
}

/// Whether anything is below this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Descendants {
    None,
    Exist,
}

/// Sends signals to every descendant, parents first, so that a master does not replace its workers.
fn signal_all(signals: &[Signal]) {
    for member in descendants(std::process::id()) {
        for &signal in signals {
            let _ = kill(Pid::from_raw(member.pid.cast_signed()), signal);
        }
    }
}

/// Stops every descendant. Looks again until a look finds none that runs: a process may fork before it stops.
fn freeze() {
    for _ in 0..10 {
        let moving: Vec<_> = descendants(std::process::id()).into_iter().filter(|member| !member.stopped).collect();
        if moving.is_empty() {
            return;
        }
        for member in moving {
            let _ = kill(Pid::from_raw(member.pid.cast_signed()), Signal::SIGSTOP);
        }
    }
}

/// A program that has just been started.
struct Spawned {
    pid: u32,
    /// Where its calls of `bind` arrive.
    binds: Option<OwnedFd>,
}

/// Starts a program in a process group of its own, on its cores.
fn spawn(program: Program, descriptors: Vec<OwnedFd>) -> io::Result<Spawned> {
    if descriptors.len() != program.roles.len() {
        return Err(io::Error::other("a descriptor got lost on its way to the supervisor"));
    }
    let mut command = Command::new(&program.program);
    command.args(&program.args).current_dir(&program.current_dir).env_clear().envs(program.env).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Held until the program runs: it keeps the one descriptor whose number it is told.
    let mut kept = Vec::new();
    for (role, descriptor) in program.roles.into_iter().zip(descriptors) {
        match role {
            Role::Stdin => {
                command.stdin(descriptor);
            }
            Role::Stdout => {
                command.stdout(descriptor);
            }
            Role::Stderr => {
                command.stderr(descriptor);
            }
            Role::Extra(variable) => {
                fcntl(&descriptor, FcntlArg::F_SETFD(FdFlag::empty()))?;
                command.env(variable, std::os::fd::AsRawFd::as_raw_fd(&descriptor).to_string());
                kept.push(descriptor);
            }
        }
    }
    let affinity = match &program.cores[..] {
        [] => None,
        cores => Some(Affinity::change(cores).map_err(|error| {
            io::Error::new(error.kind(), format!("it cannot be bound to the cores {cores:?}: {error}"))
        })?),
    };
    let spawned = match program.bind {
        Bind::AsAsked => command.spawn().map(|child| Spawned { pid: child.id(), binds: None }),
        Bind::Redirect { .. } => {
            redirect::spawn(&mut command).map(|(child, binds)| Spawned { pid: child.id(), binds: Some(binds) })
        }
    };
    if let Some(affinity) = affinity {
        affinity.restore()?;
    }
    spawned
}
