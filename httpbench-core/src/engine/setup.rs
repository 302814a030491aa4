//! What the operating system must grant before the first exchange: file descriptors and cores.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::EngineError;

/// Descriptors that are kept free for what is not a connection: the runtimes', `/proc` files, the user's own.
const MARGIN: u64 = 64;

/// Makes room for `connections` sockets on `threads` runtimes, by raising the soft limit where that is needed.
pub(super) fn reserve_descriptors(connections: u64, threads: u64) -> Result<(), EngineError> {
    let needed = connections + open_descriptors() + 4 * threads + MARGIN;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(io::Error::from)?;
    if soft >= needed {
        return Ok(());
    }
    if hard < needed {
        return Err(EngineError::Descriptors { connections, needed, hard });
    }
    setrlimit(Resource::RLIMIT_NOFILE, needed, hard).map_err(io::Error::from)?;
    Ok(())
}

/// How many descriptors this process holds; a guess where `/proc` does not tell.
fn open_descriptors() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(32, |entries| entries.count() as u64)
}

/// Binds the calling thread to a core.
#[cfg(target_os = "linux")]
pub(super) fn bind_to_core(core: u32) -> Result<(), EngineError> {
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;

    let refused = |source: nix::Error| EngineError::Core { core, source: source.into() };
    let mut cores = CpuSet::new();
    cores.set(core as usize).map_err(refused)?;
    sched_setaffinity(Pid::from_raw(0), &cores).map_err(refused)
}

/// Other systems bind no threads: the scheduler decides.
#[cfg(not(target_os = "linux"))]
pub(super) fn bind_to_core(_core: u32) -> Result<(), EngineError> {
    Ok(())
}
