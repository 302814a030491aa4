//! Which processes a run has started, told by an environment variable that all of its descendants inherit.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Holds the run's id. It does not begin with `HTTPBENCH_`: those are the command's own settings.
pub(crate) const RUN_VARIABLE: &str = "FIXTURE_RUN_ID";

/// A process that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its arguments, joined by spaces.
    pub command: String,
}

/// The processes whose environment at their start held this run's id. Zombies have none and are not counted.
#[must_use]
pub fn processes_of(run_id: &str) -> Vec<Process> {
    let wanted = format!("{RUN_VARIABLE}={run_id}");
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    folder
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            // A process may end between any two of these lines: then it is not left over.
            let environment = fs::read(entry.path().join("environ")).ok()?;
            environment.split(|byte| *byte == 0).find(|variable| *variable == wanted.as_bytes())?;
            let command = fs::read(entry.path().join("cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).replace('\0', " ").trim_end().to_owned();
            Some(Process { pid, command })
        })
        .collect()
}

/// Ends what a failed test left behind.
pub(crate) fn kill_all_of(run_id: &str) {
    for process in processes_of(run_id) {
        _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
    }
}
