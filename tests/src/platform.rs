//! What only the kernel's own interface can do.

use std::sync::Once;

use nix::sys::signal::{SigHandler, Signal, signal};

/// Makes sure that a command started from now on does not ignore Ctrl-C.
///
/// A shell without job control lets its background jobs ignore SIGINT, children inherit that, and the command rightly leaves
/// it so. Tests that are started in the background of a script would wait for an end that never comes.
pub(crate) fn heed_interrupts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the default action runs no code in this process, so nothing can be interrupted in an unsafe place; no
        // handler of somebody else is replaced, because neither the test harness nor this kit installs one.
        unsafe { signal(Signal::SIGINT, SigHandler::SigDfl) }.expect("the action of SIGINT can be set");
    });
}

/// Makes sure that a command and all that it starts cannot set filters on system calls, as in some sandboxes.
#[cfg(target_os = "linux")]
pub(crate) fn forbid_filters(command: &mut std::process::Command) {
    use std::io::Error;
    use std::os::unix::process::CommandExt;

    use nix::libc;

    // The filters of this kernel interface are little programs: load the call's number; unless it is `seccomp`, skip the refusal.
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let instruction = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let forbidden = u32::try_from(libc::SYS_seccomp).expect("numbers of calls are small");
    let refused = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::EPERM).expect("it is positive");
    let instructions = [
        instruction(LOAD, 0, 0),
        instruction(JUMP_IF_EQUAL, 1, forbidden),
        instruction(RETURN, 0, refused),
        instruction(RETURN, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let set = move || {
        let mut instructions = instructions;
        let program = libc::sock_fprog { len: 4, filter: instructions.as_mut_ptr() };
        // SAFETY: takes plain numbers.
        let no_more_privileges = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        // SAFETY: `program` and its instructions live until the call returns; the kernel copies them.
        let filter = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
        if no_more_privileges == 0 && filter == 0 { Ok(()) } else { Err(Error::last_os_error()) }
    };
    // SAFETY: between fork and exec, `set` makes two system calls and allocates nothing.
    unsafe { command.pre_exec(set) };
}
