//! Supervised children and servers with one trick each, end to end: real processes, real sockets, real signals.
//!
//! This executable plays all parts: run again with [`PART`] set, it is a server with a trick, or a command that is killed.
//! The supervisor is the real one. Every wait has an end; only processes that were started here are signalled.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test says what failed by where it panics")]

mod children;
mod part;
mod platform;
mod redirects;
mod servers;
mod signals;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::time::{Duration, Instant};

use cargo_httpbench::config::{Ready, ServerSettings};
use cargo_httpbench::error::Error;
use cargo_httpbench::interrupt::Interrupt;
use cargo_httpbench::process::use_executable;
use cargo_httpbench::server::{PortPolicy, ServerSpec};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The environment variable that makes this executable somebody else.
const PART: &str = "HTTPBENCH_TEST_PART";

/// What is waited for, at most, when it has to happen soon.
const SOON: Duration = Duration::from_secs(20);

/// Not a test of its own: what this executable does when it is run as somebody else.
#[test]
fn part() {
    if let Ok(name) = std::env::var(PART) {
        part::play(&name);
    }
}

fn supervise_with_the_real_one() {
    use_executable(env!("CARGO_BIN_EXE_cargo-httpbench"));
}

fn interrupt() -> Interrupt {
    supervise_with_the_real_one();
    Interrupt::deaf().unwrap()
}

fn base_env(part: &str) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    env.insert(PART.into(), part.into());
    env
}

fn spec(part: &str) -> ServerSpec {
    ServerSpec {
        name: "fake".into(),
        executable: std::env::current_exe().unwrap(),
        settings: ServerSettings {
            bin: None,
            args: ["--exact", "part", "--nocapture"].map(String::from).to_vec(),
            env: BTreeMap::new(),
            copy: Vec::new(),
            setup: None,
            teardown: None,
            working_dir: None,
            ready: Ready { path: "/".into(), status: None, timeout: Duration::from_secs(30) },
            stop_timeout: Duration::from_secs(5),
        },
        package_root: env!("CARGO_MANIFEST_DIR").into(),
        base_env: base_env(part),
        cores: Vec::new(),
        ports: PortPolicy::Ask,
    }
}

/// Makes the server ignore SIGTERM: what a shell ignores stays ignored in what it becomes.
fn make_stubborn(spec: &mut ServerSpec, stop_timeout: Duration) {
    let me = spec.executable.to_str().unwrap().to_owned();
    spec.executable = "/bin/sh".into();
    let script = r#"trap '' TERM; exec "$0" --exact part --nocapture"#;
    spec.settings.args = vec!["-c".into(), script.into(), me];
    spec.settings.stop_timeout = stop_timeout;
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// `None` when the process is gone, or only waits to be reaped by whatever is process 1 here.
fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = stat[stat.rfind(')')? + 2..].chars().next()?;
    (!matches!(state, 'Z' | 'X')).then_some(state)
}

fn send_signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

fn details(error: &Error) -> String {
    error.details.iter().flat_map(|details| &details.lines).map(|line| format!("{line}\n")).collect()
}
