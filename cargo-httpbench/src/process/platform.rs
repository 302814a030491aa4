//! What only the kernel's own interface can do: signal handlers, descriptors that arrive in a message, Linux's process calls,
//! the filter on `bind`.
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
    use std::ffi::{CStr, CString};
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

    use nix::errno::Errno;
    use nix::libc;
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::sys::prctl;
    use nix::sys::socket::MsgFlags;
    use nix::unistd::Pid;

    /// How messages are taken from a socket: without waiting, and so that what they bring is closed in programs started later.
    pub(crate) const RECEIVE: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_CMSG_CLOEXEC);

    /// Makes this process the one that orphans among its descendants fall to.
    pub(crate) fn become_subreaper() -> io::Result<()> {
        Ok(prctl::set_child_subreaper(true)?)
    }

    /// Sets what `ps` and `top` show, of which the kernel keeps 15 bytes. It would be `exe` for a supervisor.
    pub(crate) fn be_called(name: &CStr) -> io::Result<()> {
        Ok(prctl::set_name(name)?)
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

    /// No filter on processors whose number we do not know.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
    const ARCHITECTURE: Option<u32> = None;

    /// This processor's number (linux/audit.h): the ELF machine, 64 bits, little-endian.
    #[cfg(target_arch = "x86_64")]
    const ARCHITECTURE: Option<u32> = Some(0xc000_0000 | libc::EM_X86_64 as u32);
    #[cfg(target_arch = "aarch64")]
    const ARCHITECTURE: Option<u32> = Some(0xc000_0000 | libc::EM_AARCH64 as u32);
    #[cfg(target_arch = "riscv64")]
    const ARCHITECTURE: Option<u32> = Some(0xc000_0000 | libc::EM_RISCV as u32);

    /// Opens a thread instead of a process (linux/pidfd.h, since 6.9).
    const PIDFD_THREAD: libc::c_uint = libc::O_EXCL.cast_unsigned();

    /// A call of `bind` that waits for an answer.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct BindCall {
        /// The kernel's number of the call.
        pub(crate) id: u64,
        /// The thread that calls.
        pub(crate) thread: u32,
        /// The number of the socket in that thread.
        pub(crate) socket: i32,
        /// Where the address lies in that thread's memory.
        pub(crate) address: u64,
        /// Its length, as the caller says.
        pub(crate) length: usize,
    }

    /// Lets every later `bind` of this thread, and of what it starts, wait for an answer through the returned descriptor.
    ///
    /// Every other system call is allowed by a filter that looks at nothing but its number, which kernels since 5.11 answer
    /// from a bitmap. Calls of 32-bit and x32 programs are let through. `no_new_privs` is set, without which only root may
    /// install a filter.
    pub(crate) fn filter_bind() -> io::Result<OwnedFd> {
        let Some(architecture) = ARCHITECTURE else {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this processor is not known to the filter"));
        };
        let bind = u32::try_from(libc::SYS_bind).map_err(io::Error::other)?;
        // `BPF_LD|BPF_W|BPF_ABS`, `BPF_JMP|BPF_JEQ|BPF_K` and `BPF_RET|BPF_K` (linux/bpf_common.h).
        let load = |offset| libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: offset };
        let skip_unless = |value, skipped| libc::sock_filter { code: 0x15, jt: 0, jf: skipped, k: value };
        let verdict = |action| libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: action };
        // `struct seccomp_data` begins with the call's number and the architecture, four bytes each.
        let mut program = [
            load(4),
            skip_unless(architecture, 3),
            load(0),
            skip_unless(bind, 1),
            verdict(libc::SECCOMP_RET_USER_NOTIF),
            verdict(libc::SECCOMP_RET_ALLOW),
        ];
        let length = u16::try_from(program.len()).map_err(io::Error::other)?;
        let program = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
        prctl::set_no_new_privs()?;
        // Without SPEC_ALLOW, kernels before 5.16 switch on mitigations that would slow the server. With WAIT_KILLABLE_RECV
        // (5.19), signals, of which Go programs send many, do not tear a call away while we work on it.
        let wanted = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
        for flags in [wanted | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, wanted] {
            // SAFETY: `program` and the instructions that it points to live until the call returns; the kernel copies them.
            let listener =
                unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
            match Errno::result(listener) {
                Ok(listener) => return owned(listener),
                Err(Errno::EINVAL) if flags != wanted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EINVAL.into())
    }

    /// Takes the next waiting call. `None`: it is gone already, with its thread or by a signal.
    pub(crate) fn next_bind(listener: BorrowedFd<'_>) -> io::Result<Option<BindCall>> {
        // SAFETY: a structure of integers, for which zeros are values; the kernel wants zeros.
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the request's number holds the structure's size, and the kernel writes no more.
        let taken = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) };
        match Errno::result(taken) {
            Ok(_) => {}
            Err(Errno::ENOENT | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let [socket, address, length, ..] = call.data.args;
        // The kernel looks at the lower halves of the two that are `int`.
        #[expect(clippy::cast_possible_truncation, reason = "an `int` argument is the lower half of its register")]
        let (socket, length) = (socket as i32, length as u32);
        let length = usize::try_from(length).map_err(io::Error::other)?;
        Ok(Some(BindCall { id: call.id, thread: call.pid, socket, address, length }))
    }

    /// Whether a call still waits. If so, its thread is who it was when the call was taken.
    pub(crate) fn still_waits(listener: BorrowedFd<'_>, call: &BindCall) -> bool {
        // SAFETY: the kernel reads eight bytes, which live as long as `call`.
        let valid =
            unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const call.id) };
        valid == 0
    }

    /// Ends a call: `None` lets the kernel do what the caller asked for.
    pub(crate) fn answer(
        listener: BorrowedFd<'_>,
        call: &BindCall,
        result: Option<Result<(), Errno>>,
    ) -> io::Result<()> {
        let error = result.and_then(Result::err).map_or(0, |errno| -(errno as i32));
        let flags = if result.is_none() { libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE } else { 0 };
        let flags = u32::try_from(flags).map_err(io::Error::other)?;
        let response = libc::seccomp_notif_resp { id: call.id, val: 0, error, flags };
        // SAFETY: the request's number holds the structure's size, and the kernel reads no more.
        let sent = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response) };
        match Errno::result(sent) {
            // The call is gone. Whoever was waiting asks again or is dead.
            Ok(_) | Err(Errno::ENOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A descriptor of our own for a caller's socket: the same open file description, with all its options.
    pub(crate) fn take_socket(call: &BindCall) -> Result<OwnedFd, Errno> {
        let process = match open_process(call.thread, PIDFD_THREAD) {
            // Before 6.9, only processes can be opened, by their first thread.
            Err(Errno::EINVAL) => open_process(process_of(call.thread).ok_or(Errno::ESRCH)?, 0),
            opened => opened,
        }?;
        // SAFETY: three numbers; the kernel checks them all.
        let socket = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), call.socket, 0) };
        owned(Errno::result(socket)?).map_err(|_| Errno::EBADF)
    }

    fn open_process(id: u32, flags: libc::c_uint) -> Result<OwnedFd, Errno> {
        // SAFETY: two numbers; the kernel checks them.
        let process = unsafe { libc::syscall(libc::SYS_pidfd_open, id, flags) };
        owned(Errno::result(process)?).map_err(|_| Errno::EBADF)
    }

    /// What the kernel calls the protocol of a caller's socket, such as `TCP`, `TCPv6` or `UDP`.
    pub(crate) fn protocol_of(call: &BindCall) -> io::Result<String> {
        let path = CString::new(format!("/proc/{}/fd/{}", call.thread, call.socket)).map_err(io::Error::other)?;
        let mut name = [0_u8; 32];
        // SAFETY: both strings end in a zero byte and live until the call returns; the kernel writes at most `name.len()` bytes.
        let length = unsafe {
            libc::getxattr(path.as_ptr(), c"system.sockprotoname".as_ptr(), name.as_mut_ptr().cast(), name.len())
        };
        let length = usize::try_from(Errno::result(length)?).map_err(io::Error::other)?;
        Ok(String::from_utf8_lossy(&name[..length]).trim_end_matches('\0').to_owned())
    }

    /// The process that a thread belongs to.
    fn process_of(thread: u32) -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
    }

    /// Takes a descriptor that the kernel has just made for us.
    fn owned(descriptor: libc::c_long) -> io::Result<OwnedFd> {
        let descriptor = i32::try_from(descriptor).map_err(io::Error::other)?;
        // SAFETY: a system call has just returned it, and nobody else has heard of its number.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::ffi::CStr;
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

    /// Refuses.
    pub(crate) fn be_called(_: &CStr) -> io::Result<()> {
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

pub(crate) use system::{Affinity, RECEIVE, be_called, become_subreaper};
#[cfg(target_os = "linux")]
pub(crate) use system::{BindCall, answer, filter_bind, next_bind, protocol_of, still_waits, take_socket};
