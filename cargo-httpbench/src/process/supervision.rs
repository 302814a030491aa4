//! The command's end of its supervisors.
//!
//! All supervisors that live are in one list, because signals (suspend, the second Ctrl-C) concern them all. Acknowledgements
//! come through a pipe of their own: the thread that handles signals never takes messages from whoever waits for them.

use std::collections::HashMap;
use std::fs;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::ended::Ended;
use super::launch::Redirected;
use super::orphans;
use super::supervisor::{ARGUMENT, FOLDER_ARGUMENT};
use super::wait::{Woken, readable};
use super::wire::{Ask, Receiver, Report, send};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;

/// How long a supervisor may take to begin or to answer. Only a machine that swaps comes near.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long everything may take to die when there is no more time: somebody pressed Ctrl-C twice.
const AT_ONCE: Duration = Duration::from_secs(2);

/// How long a suspending command waits for its children to stop.
const FREEZE: Duration = Duration::from_millis(500);

/// Every supervisor that lives.
static SUPERVISORS: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

/// Set once everything is to end at once.
static HURRY: AtomicBool = AtomicBool::new(false);

/// What is run as a supervisor.
static EXECUTABLE: OnceLock<PathBuf> = OnceLock::new();

/// Names the executable to run as supervisor. It is this very one otherwise, which then has to call
/// [`main_if_asked`](super::supervisor::main_if_asked) first thing. For tests; later calls change nothing.
pub fn use_executable(path: impl Into<PathBuf>) {
    let _ = EXECUTABLE.set(path.into());
}

/// The path by which our own executable is started once more, as a supervisor or in another of its hidden parts.
pub(crate) fn own_executable() -> io::Result<PathBuf> {
    match EXECUTABLE.get() {
        Some(path) => Ok(path.clone()),
        // It stays this very program, even when its file is rebuilt or removed meanwhile.
        None if cfg!(target_os = "linux") => Ok(PathBuf::from("/proc/self/exe")),
        None => std::env::current_exe(),
    }
}

/// A process that watches over others and ends them with us.
///
/// Cheap to clone. When the last clone is dropped, everything below it is killed and its folder removed.
#[derive(Clone, Debug)]
pub struct Supervisor {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    process: Mutex<Process>,
    pid: u32,
    /// Read without waiting, by whoever holds `news`.
    socket: UnixStream,
    /// Written by one thread at a time, or messages would mix.
    sender: Mutex<UnixStream>,
    acknowledgements: Mutex<PipeReader>,
    news: Mutex<News>,
    folder: Option<PathBuf>,
}

/// What the supervisor has reported.
#[derive(Debug, Default)]
struct News {
    receiver: Receiver,
    launches: u64,
    spawned: HashMap<u64, Result<u32, String>>,
    ended: HashMap<u64, Ended>,
    redirected: HashMap<u64, Vec<Redirected>>,
    not_redirected: HashMap<u64, String>,
    gone: Option<Gone>,
    began: Option<Result<Option<PathBuf>, String>>,
}

/// The end of a stop.
#[derive(Clone, Debug)]
pub(crate) struct Gone {
    pub(crate) killed: bool,
    pub(crate) left: Vec<u32>,
}

/// What came through the pipe of acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledged {
    /// Nothing yet.
    Not,
    /// One request was carried out.
    Once,
    /// The supervisor is gone.
    ByItsEnd,
}

/// Whether a supervisor has a private folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Folder {
    /// It has none.
    None,
    /// It creates one in the system's folder for temporary files, and removes it at the end.
    Private,
}

impl Supervisor {
    /// Starts a supervisor.
    ///
    /// # Errors
    ///
    /// When this executable cannot be run again, or the system is not one that it can watch processes on.
    pub fn start(interrupt: &Interrupt) -> Result<Self> {
        Self::begin(Folder::None, interrupt)
    }

    /// Starts a supervisor with a folder of its own: see [`Supervisor::folder`].
    ///
    /// # Errors
    ///
    /// As for [`Supervisor::start`], and when the folder cannot be created.
    pub fn start_with_folder(interrupt: &Interrupt) -> Result<Self> {
        Self::begin(Folder::Private, interrupt)
    }

    fn begin(folder: Folder, interrupt: &Interrupt) -> Result<Self> {
        let unexpected = |error: io::Error| Error::unexpected("cannot start the supervisor of child processes", error);
        let mut inner = Inner::spawn(folder).map_err(unexpected)?;
        let deadline = Instant::now() + PATIENCE;
        let began = loop {
            inner.read_news().map_err(unexpected)?;
            let news = inner.news();
            if let Some(began) = news.began.clone() {
                break began;
            }
            if news.receiver.is_closed() || Instant::now() >= deadline {
                break Err("it ended, or said nothing".to_owned());
            }
            drop(news);
            interrupt.wait_for(&[inner.socket.as_fd()], Some(PATIENCE))?;
        };
        inner.folder = began
            .map_err(|why| Error::new(ExitCode::Unexpected, format!("cannot supervise child processes: {why}")))?;
        let inner = Arc::new(inner);
        let mut supervisors = SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner);
        supervisors.retain(|supervisor| supervisor.strong_count() > 0);
        supervisors.push(Arc::downgrade(&inner));
        Ok(Self { inner })
    }

    /// The supervisor's process. Its descendants are all that it launched.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.inner.pid
    }

    /// The private folder. It is removed at the end, even after `kill -9` of this process.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.inner.folder.as_deref()
    }

    /// Readable when there is news.
    #[must_use]
    pub(crate) fn news_descriptor(&self) -> BorrowedFd<'_> {
        self.inner.socket.as_fd()
    }

    /// Asks for a launch; returns its number.
    pub(crate) fn launch(&self, program: impl FnOnce(u64) -> Ask, descriptors: &[OwnedFd]) -> io::Result<u64> {
        let id = {
            let mut news = self.inner.news();
            news.launches += 1;
            news.launches
        };
        self.inner.ask(&program(id), descriptors)?;
        Ok(id)
    }

    /// What became of a launch. `None`: it is not known yet.
    pub(crate) fn spawned(&self, id: u64) -> io::Result<Option<Result<u32, String>>> {
        self.inner.read_news()?;
        let news = self.inner.news();
        let lost = || news.receiver.is_closed().then(|| Err("its supervisor was killed".to_owned()));
        Ok(news.spawned.get(&id).cloned().or_else(lost))
    }

    /// How a launched program ended. `None`: it runs.
    pub(crate) fn ended(&self, id: u64) -> io::Result<Option<Ended>> {
        self.inner.read_news()?;
        let news = self.inner.news();
        Ok(news.ended.get(&id).copied().or_else(|| news.receiver.is_closed().then_some(Ended::Unknown)))
    }

    /// The fixed ports that a launched program has asked for so far, and what it got instead.
    pub(crate) fn redirected(&self, id: u64) -> io::Result<Vec<Redirected>> {
        self.inner.read_news()?;
        Ok(self.inner.news().redirected.get(&id).cloned().unwrap_or_default())
    }

    /// Why a launched program could not be given another port, if that happened.
    pub(crate) fn not_redirected(&self, id: u64) -> io::Result<Option<String>> {
        self.inner.read_news()?;
        Ok(self.inner.news().not_redirected.get(&id).cloned())
    }

    /// Ends everything below, politely for as long as `grace`. Not cut short by a first signal: this is the cleaning up.
    pub(crate) fn stop(&self, grace: Duration) -> io::Result<Gone> {
        self.inner.news().gone = None;
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX).min(u64::from(u32::MAX));
        // A supervisor that is gone took everything along.
        let asked = self.inner.ask(&Ask::Stop { grace_ms }, &[]);
        let deadline = Instant::now() + Duration::from_millis(grace_ms) + 2 * PATIENCE;
        loop {
            self.inner.read_news()?;
            let news = self.inner.news();
            if let Some(gone) = &news.gone {
                return Ok(gone.clone());
            }
            if asked.is_err() || news.receiver.is_closed() {
                return Ok(Gone { killed: true, left: Vec::new() });
            }
            drop(news);
            let left = deadline.saturating_duration_since(Instant::now());
            if readable(&[self.inner.socket.as_fd()], Some(left))? == Woken::TimedOut {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the supervisor does not answer"));
            }
        }
    }
}

impl Inner {
    fn spawn(folder: Folder) -> io::Result<Self> {
        let (near, far) = UnixStream::pair()?;
        let (acknowledgements, acknowledge) = io::pipe()?;
        let mut command = Command::new(own_executable()?);
        command.arg0("cargo-httpbench").arg(ARGUMENT).process_group(0);
        if folder == Folder::Private {
            command.arg(FOLDER_ARGUMENT);
        }
        command.stdin(OwnedFd::from(far)).stdout(OwnedFd::from(acknowledge)).stderr(Stdio::null());
        let process = orphans::spawn_supervisor(&mut command)?;
        Ok(Self {
            pid: process.id(),
            process: Mutex::new(process),
            sender: Mutex::new(near.try_clone()?),
            socket: near,
            acknowledgements: Mutex::new(acknowledgements),
            news: Mutex::default(),
            folder: None,
        })
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, ask: &Ask, descriptors: &[OwnedFd]) -> io::Result<()> {
        send(&self.sender.lock().unwrap_or_else(PoisonError::into_inner), ask, descriptors)
    }

    /// Takes in what has arrived, without waiting.
    fn read_news(&self) -> io::Result<()> {
        if HURRY.load(Ordering::Acquire) {
            // The thread that handles signals ends the process in a moment. Nothing that is seen until then is worth an error
            // message.
            std::thread::sleep(2 * AT_ONCE);
        }
        let mut news = self.news();
        news.receiver.fill(&self.socket)?;
        while let Some(report) = news.receiver.next()? {
            match report {
                Report::Watching { folder } => news.began = Some(Ok(folder.map(PathBuf::from))),
                Report::Unable { why } => news.began = Some(Err(why)),
                Report::Spawned { id, pid } => drop(news.spawned.insert(id, Ok(pid))),
                Report::SpawnFailed { id, why } => drop(news.spawned.insert(id, Err(why))),
                Report::Exited { id, ended } => drop(news.ended.insert(id, ended)),
                Report::Redirected { id, redirected } => news.redirected.entry(id).or_default().push(redirected),
                Report::NotRedirected { id, why } => drop(news.not_redirected.insert(id, why)),
                Report::Gone { killed, left } => news.gone = Some(Gone { killed, left }),
            }
        }
        Ok(())
    }

    /// Closes the socket, upon which the supervisor kills everything and ends.
    fn let_go(&self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    fn acknowledgements(&self) -> MutexGuard<'_, PipeReader> {
        self.acknowledgements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what can still be done when somebody killed the supervisor itself: ends the programs that it launched, with their
    /// process groups and, if they fall to us, all their descendants, and removes its folder.
    fn clean_up_instead(&mut self) {
        let news = self.news.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (id, spawned) in &news.spawned {
            if let (Ok(pid), false) = (spawned, news.ended.contains_key(id)) {
                let _ = killpg(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
            }
        }
        orphans::end();
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.let_go();
        // The supervisor ends after everything below it, at the latest when it gives up on what cannot be killed.
        let patience = if HURRY.load(Ordering::Acquire) { AT_ONCE } else { PATIENCE + Duration::from_secs(2) };
        let pipe = self.acknowledgements.get_mut().unwrap_or_else(PoisonError::into_inner);
        wait_for_end(pipe, Instant::now() + patience);
        let deadline = Instant::now() + Duration::from_secs(1);
        let process = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut status = process.try_wait();
        while matches!(status, Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
            status = process.try_wait();
        }
        if matches!(status, Ok(Some(status)) if status.signal().is_some()) {
            self.clean_up_instead();
        }
        if matches!(status, Ok(Some(_))) {
            orphans::forget_supervisor(self.pid);
        }
    }
}

fn all() -> Vec<Arc<Inner>> {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
}

/// Waits for one acknowledgement, or for the supervisor's end.
fn acknowledgement(pipe: &mut PipeReader, deadline: Instant) -> Acknowledged {
    match readable(&[pipe.as_fd()], Some(deadline.saturating_duration_since(Instant::now()))) {
        Ok(Woken::TimedOut) => Acknowledged::Not,
        Ok(Woken::Readable) if matches!(pipe.read(&mut [0]), Ok(1)) => Acknowledged::Once,
        _ => Acknowledged::ByItsEnd,
    }
}

/// Waits for the supervisor's end.
fn wait_for_end(pipe: &mut PipeReader, deadline: Instant) {
    while acknowledgement(pipe, deadline) == Acknowledged::Once {}
}

/// Kills everything below every supervisor, without grace, and waits a moment for it to be gone.
pub(crate) fn kill_all() {
    HURRY.store(true, Ordering::Release);
    // Handles of their own: whoever owns a supervisor drops it meanwhile, and then waits for its end as well.
    let pipes: Vec<_> = all()
        .into_iter()
        .filter_map(|supervisor| {
            supervisor.let_go();
            supervisor.acknowledgements().try_clone().ok()
        })
        .collect();
    let deadline = Instant::now() + AT_ONCE;
    pipes.into_iter().for_each(|mut pipe| wait_for_end(&mut pipe, deadline));
}

/// Stops (SIGSTOP) everything below every supervisor.
pub(crate) fn freeze_all() {
    acknowledged_by_all(&Ask::Freeze);
}

/// Lets everything below every supervisor go on.
pub(crate) fn thaw_all() {
    acknowledged_by_all(&Ask::Thaw);
}

fn acknowledged_by_all(ask: &Ask) {
    let asked: Vec<_> = all().into_iter().filter(|supervisor| supervisor.ask(ask, &[]).is_ok()).collect();
    let deadline = Instant::now() + FREEZE;
    for supervisor in asked {
        acknowledgement(&mut supervisor.acknowledgements(), deadline);
    }
}
