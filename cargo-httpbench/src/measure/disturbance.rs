//! Evidence that a round was disturbed from outside: from the machine, never from the arms.
//!
//! A round is discarded only for what the machine tells of itself, by a rule that knows neither the arms nor their difference:
//! discarding by the result would bias it. Three things are looked at: whether the command was suspended, how much CPU time the
//! hypervisor took away from our cores, and how much others used of them.

use std::fmt;
use std::fs;

use super::Cores;

/// The share of our cores' time that may be stolen by the hypervisor in a round.
const STEAL: f64 = 0.05;

/// The share of our cores' time that others may use in a round.
const FOREIGN: f64 = 0.10;

/// Clock ticks of `/proc/stat` in a second: fixed at 100 in the interface to user space (time(7), USER_HZ).
const TICKS_PER_SECOND: f64 = 100.0;

/// Why a round is discarded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disturbance {
    /// The command was suspended in between.
    Suspended,
    /// The hypervisor gave this share of our cores' time to others.
    Steal(f64),
    /// Other processes of this machine used this share of our cores' time.
    Foreign(f64),
}

impl fmt::Display for Disturbance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suspended => out.write_str("the command was suspended"),
            Self::Steal(share) => write!(out, "the hypervisor took {:.0} % of the cores' time", share * 100.0),
            Self::Foreign(share) => write!(out, "other processes took {:.0} % of the cores' time", share * 100.0),
        }
    }
}

/// What the machine tells at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Witness {
    suspensions: u64,
    ticks: Option<Ticks>,
    /// CPU time of ourselves, the bench binary and the servers.
    own_ns: u64,
}

/// CPU time of our cores since boot, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    idle: u64,
    steal: u64,
}

impl Witness {
    /// Looks at our cores (at all of them where engine and server are not kept apart) and at what `ours`, the processes that belong
    /// to the run, have used of them.
    pub(super) fn now(suspensions: u64, cores: &Cores, ours: impl IntoIterator<Item = u32>) -> Self {
        let own_ns = ours.into_iter().map(cpu_time_ns).sum();
        let cores: Vec<u32> = cores.engine.iter().chain(&cores.server).copied().collect();
        let ticks = fs::read_to_string("/proc/stat").ok().map(|text| Ticks::of(&text, &cores));
        Self { suspensions, ticks, own_ns }
    }

    /// What disturbed the time between two looks.
    #[expect(clippy::cast_precision_loss, reason = "ticks and nanoseconds of a few seconds")]
    pub(super) fn disturbance(&self, after: &Self) -> Option<Disturbance> {
        let own = after.own_ns.saturating_sub(self.own_ns) as f64 / 1e9;
        if self.suspensions != after.suspensions {
            return Some(Disturbance::Suspended);
        }
        let (before, after) = (self.ticks?, after.ticks?);
        let ticks = |of: fn(&Ticks) -> u64| of(&after).saturating_sub(of(&before));
        let seconds = |ticks: u64| ticks as f64 / TICKS_PER_SECOND;
        let (busy, steal) = (seconds(ticks(|ticks| ticks.busy)), seconds(ticks(|ticks| ticks.steal)));
        let total = busy + steal + seconds(ticks(|ticks| ticks.idle));
        if total <= 0.0 {
            return None;
        }
        let stolen = steal / total;
        if stolen > STEAL {
            return Some(Disturbance::Steal(stolen));
        }
        let foreign = (busy - own) / total;
        (foreign > FOREIGN).then_some(Disturbance::Foreign(foreign))
    }
}

/// CPU time of a process and all its threads so far; 0 for one that is gone.
#[cfg(target_os = "linux")]
fn cpu_time_ns(pid: u32) -> u64 {
    use nix::time::{clock_getcpuclockid, clock_gettime};
    use nix::unistd::Pid;

    let time = clock_getcpuclockid(Pid::from_raw(pid.cast_signed())).and_then(clock_gettime);
    time.map_or(0, |time| std::time::Duration::from(time).as_nanos().try_into().unwrap_or(u64::MAX))
}

#[cfg(not(target_os = "linux"))]
fn cpu_time_ns(_: u32) -> u64 {
    0
}

impl Ticks {
    /// Sums the lines `cpuN` of `/proc/stat` (proc_stat(5)): user nice system idle iowait irq softirq steal. Guest time stands in
    /// user time already.
    fn of(text: &str, cores: &[u32]) -> Self {
        let mut sum = Self::default();
        for line in text.lines() {
            let mut fields = line.split_ascii_whitespace();
            let Some(core) = fields.next().and_then(|name| name.strip_prefix("cpu")?.parse::<u32>().ok()) else {
                continue;
            };
            if !cores.is_empty() && !cores.contains(&core) {
                continue;
            }
            let numbers: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
            let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = numbers[..] else { continue };
            sum.busy += user + nice + system + irq + softirq;
            sum.idle += idle + iowait;
            sum.steal += steal;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Witness = Witness { suspensions: 0, ticks: Some(Ticks { busy: 0, idle: 0, steal: 0 }), own_ns: 0 };

    fn after(busy: u64, idle: u64, steal: u64, own_millis: u64) -> Witness {
        Witness { suspensions: 0, ticks: Some(Ticks { busy, idle, steal }), own_ns: own_millis * 1_000_000 }
    }

    #[test]
    fn lines_of_our_cores_are_summed_and_no_others() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 10 5 1 1 7 0 0\ncpu1 10 0 0 0 0 0 0 0 0 0\nintr 5\n";
        assert_eq!(Ticks::of(text, &[0]), Ticks { busy: 8, idle: 15, steal: 7 });
        assert_eq!(Ticks::of(text, &[]), Ticks { busy: 18, idle: 15, steal: 7 });
    }

    #[test]
    fn our_own_work_disturbs_nothing() {
        assert_eq!(BEFORE.disturbance(&after(300, 60, 4, 2_900)), None);
    }

    #[test]
    fn stolen_time_and_foreign_work_are_told_apart() {
        assert_eq!(BEFORE.disturbance(&after(200, 100, 100, 2_000)), Some(Disturbance::Steal(0.25)));
        assert_eq!(BEFORE.disturbance(&after(300, 100, 0, 2_000)), Some(Disturbance::Foreign(0.25)));
    }

    #[test]
    fn suspension_is_a_disturbance_whatever_the_cores_did() {
        let after = Witness { suspensions: 1, ..BEFORE };
        assert_eq!(BEFORE.disturbance(&after), Some(Disturbance::Suspended));
    }

    #[test]
    fn our_own_cpu_time_is_seen() {
        let ourselves = || [std::process::id()];
        let before = Witness::now(0, &Cores::default(), ourselves());
        let start = std::time::Instant::now();
        while start.elapsed() < std::time::Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let after = Witness::now(0, &Cores::default(), ourselves());
        assert!(after.own_ns > before.own_ns, "{before:?} {after:?}");
    }

    #[test]
    fn machine_that_tells_nothing_disturbs_nothing() {
        assert_eq!(Witness::default().disturbance(&Witness::default()), None);
    }
}
