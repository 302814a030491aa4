//! How much memory a server's process tree holds.

/// Memory of a whole process tree, in bytes.
///
/// The sums of `VmRSS`, `VmHWM` and `RssFile` + `RssShmem` of `/proc/PID/status` over all live processes. A page that several
/// processes share counts once for each; peaks that were not at the same time are added all the same. Both make the
/// sums of a forking server an upper bound; of a single process they are exact. Processes that have ended count no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// In RAM now.
    pub resident_bytes: u64,
    /// The most that was in RAM at any time.
    pub peak_bytes: u64,
    /// The part of `resident_bytes` that other processes may share: mapped files and shared memory.
    pub shared_bytes: u64,
}

/// Adds up everything below `root`. `None`: nothing is below it, or nothing may be read.
#[cfg(target_os = "linux")]
pub(super) fn below(root: u32) -> Option<Memory> {
    let statuses = crate::process::tree::descendants(root)
        .into_iter()
        .filter_map(|member| procfs::process::Process::new(member.pid.cast_signed()).ok()?.status().ok());
    let kibibytes = |value: Option<u64>| value.unwrap_or(0) * 1024;
    statuses
        .filter(|status| status.vmrss.is_some())
        .map(|status| Memory {
            resident_bytes: kibibytes(status.vmrss),
            peak_bytes: kibibytes(status.vmhwm),
            shared_bytes: kibibytes(status.rssfile) + kibibytes(status.rssshmem),
        })
        .reduce(|sum, one| Memory {
            resident_bytes: sum.resident_bytes + one.resident_bytes,
            peak_bytes: sum.peak_bytes + one.peak_bytes,
            shared_bytes: sum.shared_bytes + one.shared_bytes,
        })
}

/// Nothing is known without `/proc`.
#[cfg(not(target_os = "linux"))]
pub(super) fn below(_: u32) -> Option<Memory> {
    None
}

/// Lets every process's `VmHWM` begin anew at what is resident now: 5 written to `/proc/PID/clear_refs` (proc(5)).
#[cfg(target_os = "linux")]
pub(super) fn reset_peak_below(root: u32) {
    for member in crate::process::tree::descendants(root) {
        // A process that has just died, or a kernel without this file, keeps its peak.
        let _ = std::fs::write(format!("/proc/{}/clear_refs", member.pid), "5");
    }
}

/// Nothing is known without `/proc`.
#[cfg(not(target_os = "linux"))]
pub(super) fn reset_peak_below(_: u32) {}
