//! What is left when somebody kills a supervisor itself: its whole tree falls to the command, which ends it.
//!
//! The command is a subreaper, too, one level above its supervisors. It gets no orphans as long as they live. A process below
//! the command that is below no supervisor is the orphan of a dead one, because the command starts nothing else. If both are
//! killed at once, nobody is left to clean up: the launched programs lose their pipes, and that is all.

use std::io;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use super::platform::become_subreaper;
use super::tree::descendants_but;

/// How long orphans may take to die.
const PATIENCE: Duration = Duration::from_secs(2);

/// How soon processes that were forked while others were killed are looked for.
const KILL_AGAIN: Duration = Duration::from_millis(10);

/// Whether orphans fall to this process.
static ADOPTING: AtomicBool = AtomicBool::new(false);

/// The processes of this one's supervisors. Locked while one is started, so that a newborn is nobody's orphan.
static SUPERVISORS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Lets the descendants of a supervisor that somebody kills fall to this process, which then ends them.
///
/// Only for a process that starts nothing but supervisors, as the command: whatever else is below it counts as an orphan.
/// Without it, or where the system has no subreapers, only the process groups of launched programs are ended.
pub fn adopt_orphans() {
    ADOPTING.store(become_subreaper().is_ok(), Ordering::Release);
}

/// Starts a supervisor.
pub(super) fn spawn_supervisor(command: &mut Command) -> io::Result<Child> {
    let mut supervisors = SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = command.spawn()?;
    supervisors.push(process.id());
    Ok(process)
}

/// A supervisor has been reaped: its id may soon be somebody else's.
pub(super) fn forget_supervisor(pid: u32) {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner).retain(|&supervisor| supervisor != pid);
}

/// Ends all orphans of supervisors that are dead.
pub(super) fn end() {
    if !ADOPTING.load(Ordering::Acquire) {
        return;
    }
    let supervisors = SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner);
    let deadline = Instant::now() + PATIENCE;
    let mut dying = Vec::new();
    loop {
        let orphans = descendants_but(std::process::id(), &supervisors);
        for orphan in &orphans {
            let pid = Pid::from_raw(orphan.pid.cast_signed());
            let _ = kill(pid, Signal::SIGKILL);
            dying.push(pid);
        }
        // Those of them that are our own children by now. Others are refused here (ECHILD), until they are.
        dying.retain(|&pid| !matches!(waitpid(pid, Some(WaitPidFlag::WNOHANG)), Ok(status) if status.pid().is_some()));
        if orphans.is_empty() || Instant::now() >= deadline {
            return;
        }
        thread::sleep(KILL_AGAIN);
    }
}
