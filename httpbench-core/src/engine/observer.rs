//! CPU time of the servers, asked at slice edges: the whole process tree below each arm's supervisor.
//!
//! Judges nothing, and knows no slice. Invariant: an arm's total never runs backwards, though processes come and go.

use std::collections::HashMap;

use crate::model::Nanos;

/// The CPU time of one arm's process tree, the root itself left out: that is the supervisor.
#[derive(Debug)]
pub(super) struct Observer {
    root: Option<u32>,
    /// The last reading of each process that was there at the last edge.
    alive: HashMap<u32, Nanos>,
    /// What processes had used when they were last seen.
    gone: Nanos,
}

impl Observer {
    /// Of the descendants of `root`. Without a root, nothing is observed.
    pub(super) fn new(root: Option<u32>) -> Self {
        Self { root, alive: HashMap::new(), gone: Nanos::ZERO }
    }

    /// The CPU time that the tree has used so far, as far as it was seen. `None` where it cannot be known.
    ///
    /// What a process uses between the last look and its end is not seen.
    pub(super) fn sample(&mut self) -> Option<Nanos> {
        let readings = tree::readings(self.root?)?;
        let mut alive = HashMap::with_capacity(readings.len());
        for (pid, reading) in readings {
            // A smaller reading than before is another process under the same number.
            if let Some(last) = self.alive.remove(&pid)
                && last > reading
            {
                self.gone += last;
            }
            alive.insert(pid, reading);
        }
        self.gone += self.alive.values().copied().sum();
        self.alive = alive;
        Some(self.gone + self.alive.values().copied().sum())
    }
}

#[cfg(target_os = "linux")]
mod tree {
    use std::fs;

    use nix::time::{clock_getcpuclockid, clock_gettime};
    use nix::unistd::Pid;

    use crate::engine::health::nanos;
    use crate::model::Nanos;

    /// The CPU time of each living descendant; `None` if the kernel does not tell who they are.
    pub(super) fn readings(root: u32) -> Option<Vec<(u32, Nanos)>> {
        let mut found = Vec::new();
        let mut open = vec![root];
        fs::read_to_string(format!("/proc/{root}/task/{root}/children")).ok()?;
        while let Some(parent) = open.pop() {
            for child in children(parent) {
                // A process that ended since is left to the caller's memory of it.
                if let Some(reading) = cpu_time(child) {
                    found.push((child, reading));
                }
                open.push(child);
            }
        }
        Some(found)
    }

    /// Any thread can be a process's parent, so each has a list of its own.
    fn children(parent: u32) -> Vec<u32> {
        let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
        let lists = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
    }

    /// All threads of the process, ended ones too, to the nanosecond.
    fn cpu_time(pid: u32) -> Option<Nanos> {
        let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
        clock_gettime(clock).ok().map(nanos)
    }
}

#[cfg(not(target_os = "linux"))]
mod tree {
    use crate::model::Nanos;

    /// Nothing tells who they are.
    pub(super) fn readings(_root: u32) -> Option<Vec<(u32, Nanos)>> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use super::*;

    /// A shell with a child of its own that works for a moment, waits, and ends with its standard input.
    fn tree() -> Child {
        let work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let script = format!("sh -c '{work}; read x' <&0 & wait");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(std::process::Stdio::piped());
        command.spawn().expect("a shell")
    }

    #[test]
    fn grandchildren_are_seen_and_what_they_used_stays_after_their_end() {
        let mut child = tree();
        // This process stands for the supervisor: it is left out itself.
        let mut observer = Observer::new(Some(std::process::id()));
        let begun = Instant::now();
        let mut last = observer.sample().expect("Linux tells");
        while last < Nanos::from_millis(3) && begun.elapsed() < Duration::from_secs(20) {
            let next = observer.sample().expect("Linux tells");
            assert!(next >= last, "{next:?} after {last:?}");
            last = next;
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(last >= Nanos::from_millis(3), "{last:?}");
        assert!(observer.alive.len() >= 2, "the shell and its child: {observer:?}");
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert!(observer.sample().expect("Linux tells") >= last);
    }

    #[test]
    fn nothing_is_observed_without_a_root_or_when_it_is_gone() {
        assert_eq!(Observer::new(None).sample(), None);
        let mut child = Command::new("true").spawn().expect("a process");
        child.wait().expect("it ends");
        assert_eq!(Observer::new(Some(child.id())).sample(), None);
    }
}
