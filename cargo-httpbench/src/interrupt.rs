//! Signals, turned into one cancellation flag that every wait looks at.
//!
//! The first SIGINT, SIGTERM or SIGHUP sets the flag: waits end with an error, the run unwinds and cleans up, and the exit code
//! is 128 + n. A second one means *at once*: everything that was started is killed without grace and the process ends here.
//! SIGTSTP (Ctrl-Z) stops all children before ourselves, and is counted, so that a round that was torn in two is repeated
//! (they do not get the terminal's signals: each supervisor has its own session).
//!
//! Handlers only write a byte; a thread of this module does everything else.

use std::fs::File;
use std::io::{self, IsTerminal, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, raise};

use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::process::Woken;
use crate::process::platform::{Ignored, catch};
use crate::process::supervision::{freeze_all, kill_all, thaw_all};
use crate::process::wait::readable;

/// The one that [`Interrupt::install`] made: a process has one set of handlers.
static INSTALLED: Mutex<Option<Interrupt>> = Mutex::new(None);

/// Folders that no drop removes if a second signal ends the process at once.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Lets a second signal, which ends the process at once, remove this folder too.
pub fn also_remove(folder: &Path) {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).push(folder.to_owned());
}

/// Whether a signal has asked the command to end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Interrupt {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// The first signal's number, 0 before.
    signal: AtomicU8,
    suspensions: AtomicU64,
    suspended_ns: AtomicU64,
    /// At its end, and so readable for ever, once a signal has come.
    wake: PipeReader,
    waker: Mutex<Option<PipeWriter>>,
}

impl Interrupt {
    /// Catches SIGINT, SIGTERM, SIGHUP, SIGTSTP and SIGCONT for the rest of the process's life. Called again, it returns the same.
    ///
    /// What whoever started us made us ignore stays ignored: `nohup` and SIGHUP, a script's background job and SIGINT.
    ///
    /// # Errors
    ///
    /// When the system refuses a pipe, a thread or a handler.
    pub fn install() -> Result<Self> {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(interrupt) = &*installed {
            return Ok(interrupt.clone());
        }
        let interrupt = Self::set_up().map_err(|error| Error::unexpected("cannot catch signals", error))?;
        Ok(installed.insert(interrupt).clone())
    }

    /// One that no signal reaches: for what cleans up after a signal has come.
    ///
    /// # Errors
    ///
    /// When the system refuses a pipe.
    pub fn deaf() -> Result<Self> {
        Self::unconnected().map_err(|error| Error::unexpected("cannot create a pipe", error))
    }

    fn unconnected() -> io::Result<Self> {
        let (wake, waker) = io::pipe()?;
        let shared = Shared {
            signal: AtomicU8::new(0),
            suspensions: AtomicU64::new(0),
            suspended_ns: AtomicU64::new(0),
            wake,
            waker: Mutex::new(Some(waker)),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    fn set_up() -> io::Result<Self> {
        let interrupt = Self::unconnected()?;
        let caught = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGTSTP, Signal::SIGCONT];
        let signals = catch(&caught, Ignored::Stays)?;
        let shared = Arc::clone(&interrupt.shared);
        std::thread::Builder::new().name("signals".into()).spawn(move || shared.handle(signals))?;
        Ok(interrupt)
    }

    /// Fails once a signal has come.
    ///
    /// # Errors
    ///
    /// With [`ExitCode::Signal`].
    pub fn check(&self) -> Result<()> {
        match self.shared.signal.load(Ordering::Acquire) {
            0 => Ok(()),
            number => {
                let name = Signal::try_from(i32::from(number)).map_or("a signal", Signal::as_str);
                Err(Error::new(ExitCode::Signal(number), format!("interrupted by {name}")))
            }
        }
    }

    /// Sleeps.
    ///
    /// # Errors
    ///
    /// With [`ExitCode::Signal`], at once, when a signal comes.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        self.wait_for(&[], Some(time)).map(|_| ())
    }

    /// Waits until one of the descriptors can be read or is at its end. `None` waits for ever.
    ///
    /// # Errors
    ///
    /// With [`ExitCode::Signal`], at once, when a signal comes or has come.
    pub fn wait_for(&self, descriptors: &[BorrowedFd<'_>], timeout: Option<Duration>) -> Result<Woken> {
        let mut all = Vec::with_capacity(descriptors.len() + 1);
        all.push(self.shared.wake.as_fd());
        all.extend_from_slice(descriptors);
        let woken = readable(&all, timeout).map_err(|error| Error::unexpected("cannot wait for events", error))?;
        self.check()?;
        Ok(woken)
    }

    /// How often the command was suspended and went on. If it differs before and after a measurement, that is worthless.
    #[must_use]
    pub fn suspensions(&self) -> u64 {
        self.shared.suspensions.load(Ordering::Acquire)
    }

    /// Starts a clock that stands still while the command is suspended by Ctrl-Z: for deadlines of those that are suspended
    /// with it.
    #[must_use]
    pub fn stopwatch(&self) -> Stopwatch<'_> {
        Stopwatch { interrupt: self, started: Instant::now(), suspended_before: self.suspended() }
    }

    fn suspended(&self) -> Duration {
        Duration::from_nanos(self.shared.suspended_ns.load(Ordering::Acquire))
    }
}

/// Made by [`Interrupt::stopwatch`].
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch<'a> {
    interrupt: &'a Interrupt,
    started: Instant,
    suspended_before: Duration,
}

impl Stopwatch<'_> {
    /// When it was started.
    #[must_use]
    pub const fn started(&self) -> Instant {
        self.started
    }

    /// Time since then, without that for which the command was suspended.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        let suspended = self.interrupt.suspended().saturating_sub(self.suspended_before);
        self.started.elapsed().saturating_sub(suspended)
    }
}

impl AsFd for Interrupt {
    /// Readable for ever once a signal has come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }
}

impl Shared {
    /// The thread: one byte is one signal.
    fn handle(&self, mut signals: File) {
        let mut own_continue_is_due = false;
        let mut byte = [0];
        while signals.read_exact(&mut byte).is_ok() {
            match Signal::try_from(i32::from(byte[0])) {
                Ok(Signal::SIGTSTP) => {
                    self.suspend();
                    own_continue_is_due = true;
                }
                // After a SIGSTOP, which nobody can catch, this is all that is heard of the pause.
                Ok(Signal::SIGCONT) => {
                    if !std::mem::take(&mut own_continue_is_due) {
                        self.suspensions.fetch_add(1, Ordering::AcqRel);
                    }
                }
                Ok(_) => self.interrupt(byte[0]),
                Err(_) => {}
            }
        }
    }

    fn interrupt(&self, number: u8) {
        if self.signal.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            drop(self.waker.lock().unwrap_or_else(PoisonError::into_inner).take());
        } else if i32::from(number) != Signal::SIGHUP as i32 {
            end_at_once(number);
        }
    }

    fn suspend(&self) {
        self.suspensions.fetch_add(1, Ordering::AcqRel);
        freeze_all();
        let before = Instant::now();
        // Returns when somebody sends SIGCONT (`fg`, `bg`).
        let _ = raise(Signal::SIGSTOP);
        let pause = u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.suspended_ns.fetch_add(pause, Ordering::AcqRel);
        thaw_all();
    }
}

/// Kills everything, removes what no drop will, shows the cursor that a progress line may have hidden, and ends the process.
fn end_at_once(number: u8) -> ! {
    kill_all();
    for folder in &*FOLDERS.lock().unwrap_or_else(PoisonError::into_inner) {
        // What cannot be removed now is removed by the next run.
        let _ = std::fs::remove_dir_all(folder);
    }
    let mut terminal = io::stderr();
    if terminal.is_terminal() {
        let _ = terminal.write_all(b"\x1b[?25h\n");
    }
    std::process::exit(ExitCode::Signal(number).code().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_ends_with_its_time_and_with_its_descriptor() {
        let interrupt = Interrupt::deaf().expect("a pipe");
        let (reader, writer) = io::pipe().expect("a pipe");
        let short = Some(Duration::from_millis(1));
        assert_eq!(interrupt.wait_for(&[reader.as_fd()], short).expect("no signal"), Woken::TimedOut);
        drop(writer);
        assert_eq!(interrupt.wait_for(&[reader.as_fd()], None).expect("no signal"), Woken::Readable);
        assert!(interrupt.check().is_ok());
    }

    #[test]
    fn signal_ends_every_wait_with_its_own_exit_code() {
        let interrupt = Interrupt::deaf().expect("a pipe");
        interrupt.shared.interrupt(15);
        let error = interrupt.sleep(Duration::from_secs(3_600)).expect_err("a signal has come");
        assert_eq!((error.exit.code(), error.what.as_str()), (143, "interrupted by SIGTERM"));
        assert!(interrupt.wait_for(&[], None).is_err());
    }

    #[test]
    fn suspended_time_does_not_count_on_a_stopwatch() {
        let interrupt = Interrupt::deaf().expect("a pipe");
        let stopwatch = interrupt.stopwatch();
        let hour = Duration::from_secs(3_600);
        interrupt.shared.suspended_ns.store(3_600_000_000_000, Ordering::Release);
        assert_eq!(stopwatch.elapsed(), Duration::ZERO);
        assert!(stopwatch.started().elapsed() < hour);
    }
}
