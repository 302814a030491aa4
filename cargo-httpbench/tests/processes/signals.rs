//! A command with a server, seen from outside: what signals do to both.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::{PART, SOON, send_signal, state_of, wait_for};

/// A command with a server, from outside.
struct Outside {
    command: Child,
    out: BufReader<ChildStdout>,
    supervisor: u32,
    server: u32,
    dir: PathBuf,
}

impl Outside {
    fn start(server_part: &str, configure: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "part", "--nocapture"]).env(PART, "command").env("SERVER_PART", server_part);
        command.stdout(Stdio::piped());
        configure(&mut command);
        let mut command = command.spawn().unwrap();
        let out = BufReader::new(command.stdout.take().unwrap());
        let mut outside = Self { command, out, supervisor: 0, server: 0, dir: PathBuf::new() };
        let line = outside.line("started ");
        let mut words = line.splitn(3, ' ');
        outside.supervisor = words.next().unwrap().parse().unwrap();
        outside.server = words.next().unwrap().parse().unwrap();
        outside.dir = words.next().unwrap().into();
        outside
    }

    /// The rest of the next line that starts so.
    fn line(&mut self, start: &str) -> String {
        let mut line = String::new();
        while self.out.read_line(&mut line).unwrap() > 0 {
            if let Some(rest) = line.trim_end().strip_prefix(start) {
                return rest.to_owned();
            }
            line.clear();
        }
        panic!("the command ended before it said `{start}`");
    }

    fn signal(&self, signal: Signal) {
        send_signal(self.command.id(), signal);
    }

    fn exit_code(&mut self) -> Option<i32> {
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(status) = self.command.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the command does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[test]
fn killed_command_leaves_no_process_and_no_folder() {
    let mut outside = Outside::start("forks", |_| ());
    let worker: u32 = fs::read_to_string(outside.dir.join("worker.pid")).unwrap().parse().unwrap();
    assert!(state_of(worker).is_some() && state_of(outside.server).is_some());
    outside.signal(Signal::SIGKILL);
    assert_eq!(outside.exit_code(), None);
    for pid in [worker, outside.server, outside.supervisor] {
        wait_for("the end of every process", || state_of(pid).is_none());
    }
    assert!(!outside.dir.exists());
}

#[test]
fn killed_supervisor_leaves_its_tree_to_the_command() {
    let mut outside = Outside::start("forks", |_| ());
    let worker: u32 = fs::read_to_string(outside.dir.join("worker.pid")).unwrap().parse().unwrap();
    send_signal(outside.supervisor, Signal::SIGKILL);
    wait_for("the worker's new parent", || parent_of(worker) == Some(outside.command.id()));
    outside.signal(Signal::SIGTERM);
    assert_eq!(outside.exit_code(), Some(143));
    assert_eq!((state_of(worker), state_of(outside.server)), (None, None));
    assert!(!outside.dir.exists());
}

#[test]
fn signal_ends_the_command_with_its_code_after_the_cleaning_up() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let mut outside = Outside::start("good", |_| ());
        outside.signal(signal);
        assert_eq!(outside.exit_code(), Some(code));
        assert_eq!((state_of(outside.server), state_of(outside.supervisor)), (None, None), "{signal}");
        assert!(!outside.dir.exists());
    }
}

#[test]
fn second_interrupt_does_not_wait_for_a_stubborn_server() {
    // Its stop timeout is far longer than what this test waits for.
    let mut outside = Outside::start("good", |command| {
        command.env("STUBBORN", "1");
    });
    outside.signal(Signal::SIGINT);
    outside.line("stopping");
    outside.signal(Signal::SIGINT);
    assert_eq!(outside.exit_code(), Some(130));
    assert_eq!(state_of(outside.server), None);
    // The command has seen it close its files; it may still be on its way out.
    wait_for("the supervisor's end", || state_of(outside.supervisor).is_none());
    assert!(!outside.dir.exists());
}

#[test]
fn suspended_command_suspends_its_server_and_counts_it() {
    let mut outside = Outside::start("good", |_| ());
    outside.signal(Signal::SIGTSTP);
    wait_for("the stop of the command", || state_of(outside.command.id()) == Some('T'));
    assert_eq!(state_of(outside.server), Some('T'));
    outside.signal(Signal::SIGCONT);
    wait_for("the server to go on", || state_of(outside.server) != Some('T'));
    wait_for("the count", || outside.dir.join("suspended").exists());
    outside.signal(Signal::SIGTERM);
    assert_eq!(outside.exit_code(), Some(143));
}

#[test]
fn interrupted_wait_for_a_server_that_never_gets_ready_ends_at_once() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "part", "--nocapture"]).env(PART, "command").env("SERVER_PART", "silent");
    let mut command = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(command.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "signals are caught"));
    std::thread::sleep(Duration::from_millis(300));
    send_signal(command.id(), Signal::SIGINT);
    let mut text = String::new();
    command.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    command.wait().unwrap();
    assert!(text.contains("Signal(2)"), "{text}");
}
