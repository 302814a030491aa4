//! Which cores the engine gets, and which the server.
//!
//! On Linux the two get disjoint *physical* cores: two hardware threads of one core share its execution units, and a
//! server beside its own load generator on one core is measured slower than it is. The inherited affinity mask and the
//! cgroup's CPU quota are respected, because cores that we may not use do not help.

use std::collections::BTreeMap;
use std::fs;

/// Who runs where. Empty lists mean "wherever the operating system likes".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// The engine's threads, one on each.
    pub engine: Vec<u32>,
    /// The server's process tree.
    pub server: Vec<u32>,
}

impl Cores {
    /// Reads this machine's topology and divides the usable cores: as many for the engine as it has threads, where the
    /// user asked for a number of them.
    #[must_use]
    pub fn of_this_machine(threads: Option<u32>) -> Self {
        let siblings =
            |core| fs::read_to_string(format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")).ok();
        Self::divide(&usable(), siblings, quota(), threads)
    }

    /// Whether engine and server are kept apart.
    #[must_use]
    pub fn are_apart(&self) -> bool {
        !self.engine.is_empty()
    }

    /// Divides `usable` hardware threads: unless the user says how many, a third of the physical cores drive, at least
    /// one; the rest serve, at least one.
    ///
    /// A keep-alive exchange costs the engine a small part of what it costs a server in user space, and about the same
    /// in the kernel; a third leaves the server the bottleneck. With a single physical core both share it.
    fn divide(
        usable: &[u32],
        siblings: impl Fn(u32) -> Option<String>,
        quota: Option<f64>,
        threads: Option<u32>,
    ) -> Self {
        let mut physical: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for &core in usable {
            let key = siblings(core).unwrap_or_else(|| core.to_string());
            physical.entry(key.trim().to_owned()).or_default().push(core);
        }
        let mut groups: Vec<Vec<u32>> = physical.into_values().collect();
        groups.sort();
        if let Some(quota) = quota {
            // A quota of 2.5 CPUs keeps three cores busy at most.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
            groups.truncate((quota.ceil() as usize).max(1));
        }
        if groups.len() < 2 {
            return Self::default();
        }
        let wanted = threads.map_or(groups.len() / 3, |threads| threads as usize);
        let driving = wanted.clamp(1, groups.len() - 1);
        let serving = groups.split_off(driving);
        Self {
            // One hardware thread of each: a second engine thread on the same core would only compete with the first.
            engine: groups.into_iter().filter_map(|group| group.first().copied()).collect(),
            server: serving.into_iter().flatten().collect(),
        }
    }
}

#[cfg(target_os = "linux")]
fn usable() -> Vec<u32> {
    use nix::sched::{CpuSet, sched_getaffinity};
    use nix::unistd::Pid;

    let Ok(mask) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count())
        .filter(|&core| mask.is_set(core).unwrap_or(false))
        .filter_map(|core| u32::try_from(core).ok())
        .collect()
}

#[cfg(not(target_os = "linux"))]
fn usable() -> Vec<u32> {
    Vec::new()
}

/// How many hardware threads this process may use; 0 where the system does not tell.
#[must_use]
pub fn usable_cores() -> usize {
    usable().len()
}

/// CPUs that the control group allows this process on average; `None` without a bound.
#[must_use]
pub fn cpu_quota() -> Option<f64> {
    quota()
}

/// CPUs that the cgroup allows on average, from cgroup v2's `cpu.max` or v1's pair of files.
fn quota() -> Option<f64> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let membership = read("/proc/self/cgroup")?;
    membership
        .lines()
        .filter_map(|line| {
            let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
            if controllers.is_empty() {
                parse_cpu_max(&read(&format!("/sys/fs/cgroup{group}/cpu.max"))?)
            } else if controllers.split(',').any(|controller| controller == "cpu") {
                let number = |file| read(&format!("/sys/fs/cgroup/cpu{group}/{file}"))?.trim().parse::<f64>().ok();
                let quota = number("cpu.cfs_quota_us")?;
                (quota > 0.0).then_some(quota / number("cpu.cfs_period_us")?)
            } else {
                None
            }
        })
        .reduce(f64::min)
}

fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divide(usable: &[u32], pairs: &[&str], quota: Option<f64>) -> Cores {
        Cores::divide(usable, |core| pairs.get(core as usize).map(|&pair| format!("{pair}\n")), quota, None)
    }

    #[test]
    fn two_cores_are_one_each() {
        let cores = divide(&[0, 1], &["0", "1"], None);
        assert_eq!(cores, Cores { engine: vec![0], server: vec![1] });
    }

    #[test]
    fn hardware_threads_of_one_core_stay_on_one_side() {
        let cores = divide(&[0, 1, 2, 3], &["0,2", "1,3", "0,2", "1,3"], None);
        assert_eq!(cores, Cores { engine: vec![0], server: vec![1, 3] });
    }

    #[test]
    fn one_physical_core_is_shared() {
        assert!(!divide(&[0, 1], &["0-1", "0-1"], None).are_apart());
        assert!(!divide(&[5], &[], None).are_apart());
        assert!(!divide(&[], &[], None).are_apart());
    }

    #[test]
    fn cores_outside_the_mask_are_left_alone() {
        let cores = divide(&[4, 6, 7], &[], None);
        assert_eq!(cores, Cores { engine: vec![4], server: vec![6, 7] });
    }

    #[test]
    fn quota_bounds_the_cores_in_use() {
        let cores = divide(&[0, 1, 2, 3, 4, 5, 6, 7], &[], Some(2.5));
        assert_eq!(cores, Cores { engine: vec![0], server: vec![1, 2] });
        assert!(!divide(&[0, 1], &[], Some(0.5)).are_apart());
    }

    #[test]
    fn threads_that_the_user_asked_for_get_a_core_each_and_leave_one_for_the_server() {
        let divide = |threads| Cores::divide(&[0, 1, 2, 3], |_| None, None, Some(threads));
        assert_eq!(divide(2), Cores { engine: vec![0, 1], server: vec![2, 3] });
        assert_eq!(divide(9), Cores { engine: vec![0, 1, 2], server: vec![3] });
    }

    #[test]
    fn quota_file_of_cgroup_v2_is_understood() {
        assert_eq!(parse_cpu_max("150000 100000\n"), Some(1.5));
        assert_eq!(parse_cpu_max("max 100000\n"), None);
    }
}
