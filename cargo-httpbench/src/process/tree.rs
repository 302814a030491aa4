//! The processes below one process, as `/proc` shows them.
//!
//! Threads and zombies are left out: a zombie needs its parent, not us. Read from all of `/proc` instead of the `children`
//! files, which miss processes while others exit (proc(5)) and are not in every kernel.

use std::collections::HashMap;
use std::fs;

/// A live process below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its id.
    pub(crate) pid: u32,
    /// Whether it is stopped (`T`), as after SIGSTOP.
    pub(crate) stopped: bool,
}

/// Every live descendant of `root`, parents before their children. Empty where there is no `/proc`.
pub(crate) fn descendants(root: u32) -> Vec<Member> {
    descendants_but(root, &[])
}

/// The same without some of them, and without what is below those.
pub(crate) fn descendants_but(root: u32, spared: &[u32]) -> Vec<Member> {
    let mut children: HashMap<u32, Vec<(u32, char)>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = fs::read(entry.path().join("stat")) else { continue };
        if let Some(stat) = parse(&stat).filter(|_| !spared.contains(&pid)) {
            children.entry(stat.parent).or_default().push((pid, stat.state));
        }
    }
    let mut members = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for (pid, state) in children.remove(&parent).unwrap_or_default() {
            open.insert(0, pid);
            if !matches!(state, 'Z' | 'X') {
                members.push(Member { pid, stopped: matches!(state, 'T' | 't') });
            }
        }
    }
    members
}

/// A process's name as the kernel holds it, for messages.
pub(crate) fn name_of(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// The two fields of `/proc/PID/stat` that matter here.
struct Stat {
    state: char,
    parent: u32,
}

/// Reads `pid (name) state ppid …`. The name may hold spaces and parentheses, so its end is the last `)` (proc_pid_stat(5)).
fn parse(stat: &[u8]) -> Option<Stat> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    Some(Stat { state: fields.next()?.chars().next()?, parent: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_name_with_parentheses_and_spaces_does_not_confuse_the_fields() {
        let stat = parse(b"42 (a) S 9 (b) T 7 1 1 0").expect("a line of stat");
        assert_eq!((stat.state, stat.parent), ('T', 7));
        assert!(parse(b"42 no name").is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn child_is_a_descendant_and_its_parent_is_not() {
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", "read line"]).stdin(std::process::Stdio::piped());
        let mut child = command.spawn().expect("a shell");
        let pids: Vec<_> = descendants(std::process::id()).into_iter().map(|member| member.pid).collect();
        let spared: Vec<_> =
            descendants_but(std::process::id(), &[child.id()]).into_iter().map(|member| member.pid).collect();
        drop(child.stdin.take());
        let pid = child.id();
        child.wait().expect("it ends");
        assert!(pids.contains(&pid) && !spared.contains(&pid), "{pids:?}");
        assert!(!pids.contains(&std::process::id()));
    }
}
