//! What only the kernel's own interface can do: signal handlers, descriptors that arrive in a message, Linux's process calls.
//!
//! The only file of this crate with `unsafe` code. Policy is left to its callers. Systems other than Linux get the same
//! functions, which refuse.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Where [`note`] writes; -1 until [`catch`] has been called.
static NOTES: AtomicI32 = AtomicI32::new(-1);

/// What happens to a signal that whoever started us told us to ignore (`nohup`, a background job of a script).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ignored {
    /// It stays ignored.
    Stays,
    /// It is caught all the same.
    IsCaught,
}

/// Catches signals for the rest of the process's life. Each arrives as one byte, its number, in the returned pipe.
///
/// Handlers, not a blocked mask: programs that are started later get the default behaviour back without any help. Called
/// once in a process.
pub(crate) fn catch(signals: &[Signal], ignored: Ignored) -> io::Result<File> {
    let (reader, writer) = io::pipe()?;
    let writer = OwnedFd::from(writer);
    // A handler that blocks on a full pipe would stop the process; a lost note behind 64 Ki unread ones changes nothing.
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    NOTES.store(writer.into_raw_fd(), Ordering::Relaxed);
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
    for &signal in signals {
        // SAFETY: `note` does nothing but what signal-safety(7) allows: an atomic load and `write`.
        let before = unsafe { sigaction(signal, &action) }?;
        if matches!(before.handler(), SigHandler::SigIgn) && ignored == Ignored::Stays {
            // SAFETY: `before` is what the kernel has just returned for this signal: it was ignored, without a handler.
            unsafe { sigaction(signal, &before) }?;
        }
    }
    Ok(File::from(OwnedFd::from(reader)))
}

/// The handler: one byte into the pipe. The interrupted code's `errno` is kept.
extern "C" fn note(signal: libc::c_int) {
    let errno = Errno::last_raw();
    let byte = u8::try_from(signal).unwrap_or(0);
    // SAFETY: the pointer is valid for one byte for the length of the call; a bad descriptor would only be refused.
    unsafe { libc::write(NOTES.load(Ordering::Relaxed), (&raw const byte).cast(), 1) };
    Errno::set_raw(errno);
}

/// Takes the descriptors that a message brought.
pub(crate) fn adopt(descriptors: &[RawFd]) -> Vec<OwnedFd> {
    // SAFETY: the kernel installed these descriptors for this message; nobody else has heard of their numbers.
    descriptors.iter().map(|&descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) }).collect()
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::sys::prctl;
    use nix::sys::socket::MsgFlags;
    use nix::unistd::Pid;

    /// How messages are taken from a socket: without waiting, and so that what they bring is closed in programs started later.
    pub(crate) const RECEIVE: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_CMSG_CLOEXEC);

    /// Makes this process the one that orphans among its descendants fall to.
    pub(crate) fn become_subreaper() -> io::Result<()> {
        prctl::set_child_subreaper(true)?;
        // What `ps` and `top` show, at most 15 bytes. It would be `exe` otherwise.
        prctl::set_name(c"httpbench-watch")?;
        Ok(())
    }

    /// The cores that this thread may run on, to be put back later.
    pub(crate) struct Affinity(CpuSet);

    impl Affinity {
        /// Moves this thread, and what it spawns from now on, to `cores`; returns where it was.
        pub(crate) fn change(cores: &[u32]) -> io::Result<Self> {
            let before = sched_getaffinity(Pid::from_raw(0))?;
            let mut set = CpuSet::new();
            for &core in cores {
                set.set(core as usize)?;
            }
            sched_setaffinity(Pid::from_raw(0), &set)?;
            Ok(Self(before))
        }

        /// Moves this thread back.
        pub(crate) fn restore(self) -> io::Result<()> {
            Ok(sched_setaffinity(Pid::from_raw(0), &self.0)?)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    use nix::sys::socket::MsgFlags;

    /// How messages are taken from a socket: without waiting.
    pub(crate) const RECEIVE: MsgFlags = MsgFlags::MSG_DONTWAIT;

    /// The sentence that every refusal is.
    const ONLY_LINUX: &str = "starting and watching a server works on Linux only so far";

    /// Refuses: without a subreaper, a server's orphans could outlive the run.
    pub(crate) fn become_subreaper() -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, ONLY_LINUX))
    }

    /// Cannot be made here.
    pub(crate) enum Affinity {}

    impl Affinity {
        /// Refuses.
        pub(crate) fn change(_: &[u32]) -> io::Result<Self> {
            Err(io::Error::new(io::ErrorKind::Unsupported, ONLY_LINUX))
        }

        /// Never called, as there is no value.
        pub(crate) fn restore(self) -> io::Result<()> {
            match self {}
        }
    }
}

pub(crate) use system::{Affinity, RECEIVE, become_subreaper};
