//! What a container does to a process: a system call that is forbidden.

use nix::libc;
use nix::sys::prctl;

/// Lets a system call of this thread, and of all that it starts, fail with EPERM from now on.
pub(crate) fn forbid(call: libc::c_long) {
    let instruction = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let refused = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::EPERM).unwrap();
    // Load the call's number; unless it is this one, skip the refusal. No other architecture runs in these tests.
    let mut program = [
        instruction(0x20, 0, 0),
        instruction(0x15, 1, u32::try_from(call).unwrap()),
        instruction(0x06, 0, refused),
        instruction(0x06, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: program.as_mut_ptr() };
    prctl::set_no_new_privs().unwrap();
    // SAFETY: `program` and its instructions live until the call returns; the kernel copies them.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}
