//! Ctrl-C, SIGTERM and SIGKILL at every stage of a run.
//!
//! After the first two, the command cleans up, says so by its exit code, and leaves nothing. After the last one it can do
//! nothing any more, and still no process is left.

use std::time::{Duration, Instant};

use httpbench_tests::{Project, Run, run_folders};
use nix::sys::signal::Signal;

/// "Within seconds".
const SOON: Duration = Duration::from_secs(8);

/// A project whose builds are done, so that signals meet the stage that they are meant for.
fn built(name: &str) -> Project {
    let project = Project::copy(name);
    project.httpbench().arg("--no-run").run().assert_code(0);
    project
}

/// A run in its warm-up: 60 s of it, and the server has answered 100 requests.
fn in_warm_up<'a>(project: &'a Project, environment: &[(&str, &str)]) -> Run<'a> {
    under_load(project, &["--warm-up", "60s", "--duration", "60s"], environment)
}

/// A run in a measurement of 60 s: the server has answered 100 requests, and there is no warm-up.
fn in_measurement<'a>(project: &'a Project, environment: &[(&str, &str)]) -> Run<'a> {
    under_load(project, &["--warm-up", "0s", "--duration", "60s"], environment)
}

fn under_load<'a>(project: &'a Project, times: &[&str], environment: &[(&str, &str)]) -> Run<'a> {
    let mark = project.beside("mark");
    let mut httpbench = project.httpbench().args(["index", "--rounds", "1"]).args(times).env("MARK", &mark);
    for (name, value) in environment {
        httpbench = httpbench.env(name, value);
    }
    let mut run = httpbench.start();
    run.wait_for_file(&mark);
    run
}

/// A run whose server is being compiled, for two minutes.
fn in_build(project: &Project) -> Run<'_> {
    let mark = project.beside("building");
    let mut run = project.httpbench().short().env("BUILD_MARK", &mark).start();
    run.wait_for_file(&mark);
    run
}

#[track_caller]
fn assert_ends_soon(run: Run<'_>, code: i32) {
    let signalled = Instant::now();
    let outcome = run.wait();
    outcome.assert_code(code);
    assert!(signalled.elapsed() < SOON, "it took {:?} to stop\n{outcome}", signalled.elapsed());
}

#[test]
fn ctrl_c_in_the_build_ends_cargo_and_its_children_with_130() {
    let project = Project::copy("slow-build");
    let run = in_build(&project);
    run.signal_group(Signal::SIGINT);
    assert_ends_soon(run, 130);
}

#[test]
fn sigterm_to_the_command_alone_in_the_build_ends_cargo_too_with_143() {
    let project = Project::copy("slow-build");
    let run = in_build(&project);
    run.signal(Signal::SIGTERM);
    assert_ends_soon(run, 143);
}

#[test]
fn kill_in_the_build_leaves_no_process() {
    let project = Project::copy("slow-build");
    let mut run = in_build(&project);
    run.signal(Signal::SIGKILL);
    run.wait_until_gone(SOON);
}

#[test]
fn ctrl_c_in_the_warm_up_is_130() {
    let project = built("plain");
    let run = in_warm_up(&project, &[]);
    run.signal_group(Signal::SIGINT);
    assert_ends_soon(run, 130);
}

#[test]
fn ctrl_c_in_the_measurement_is_130_and_leaves_no_file() {
    let project = built("plain");
    let run = in_measurement(&project, &[]);
    run.signal_group(Signal::SIGINT);
    assert_ends_soon(run, 130);
    assert!(project.new_files().is_empty(), "{:?}", project.new_files());
}

#[test]
fn sigint_to_the_command_alone_ends_the_others_too() {
    let project = built("plain");
    let run = in_measurement(&project, &[("FORK_WORKERS", "2")]);
    run.signal(Signal::SIGINT);
    assert_ends_soon(run, 130);
}

#[test]
fn after_ctrl_c_what_was_measured_before_is_still_reported() {
    let project = built("plain");
    let mark = project.beside("mark");
    // A round is over after a second; the mark comes with the second server at the earliest.
    let run = project.httpbench().args(["index", "--rounds", "60", "--duration", "60s", "--warm-up", "0s"]);
    let mut run = run.env("MARK", &mark).env("MARK_AFTER", "50").args(["--message-format", "json"]).start();
    for _ in 0..3 {
        run.wait_for_file(&mark);
        std::fs::remove_file(&mark).expect("the mark is there");
    }
    run.signal_group(Signal::SIGINT);
    let outcome = run.wait();
    outcome.assert_code(130).assert_stderr_any(&["interrupted", "Interrupted", "Ctrl-C", "SIGINT"]);
    assert!(outcome.json_lines().iter().any(|line| line.to_string().contains("index")), "{outcome}");
}

#[test]
fn second_ctrl_c_does_not_wait_for_a_server_that_ignores_sigterm() {
    let project = built("plain");
    project.write("httpbench.toml", "[server]\nstop-timeout = \"120s\"\n");
    let mut run = in_measurement(&project, &[("IGNORE_SIGTERM", "1")]);
    run.signal_group(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(500));
    assert!(!run.is_over(), "the polite stop should still be going on");
    run.signal_group(Signal::SIGINT);
    assert_ends_soon(run, 130);
}

#[test]
fn second_ctrl_c_in_the_warm_up_ends_at_once() {
    let project = built("plain");
    project.write("httpbench.toml", "[server]\nstop-timeout = \"120s\"\n");
    let run = in_warm_up(&project, &[("IGNORE_SIGTERM", "1"), ("FORK_WORKERS", "2")]);
    run.signal_group(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(300));
    run.signal_group(Signal::SIGINT);
    assert_ends_soon(run, 130);
}

#[test]
fn sigterm_in_the_measurement_is_143() {
    let project = built("plain");
    let run = in_measurement(&project, &[]);
    run.signal(Signal::SIGTERM);
    assert_ends_soon(run, 143);
}

#[test]
fn kill_in_the_measurement_leaves_no_process() {
    let project = built("plain");
    let mut run = in_measurement(&project, &[]);
    run.signal(Signal::SIGKILL);
    run.wait_until_gone(SOON);
}

#[test]
fn files_of_a_killed_run_are_removed_by_the_next_one() {
    let project = built("plain");
    let mut run = in_measurement(&project, &[]);
    run.signal(Signal::SIGKILL);
    run.wait_until_gone(SOON);
    drop(run);
    project.httpbench().short().arg("index").run().assert_code(0);
    assert!(run_folders().is_empty(), "{:?}", run_folders());
}

#[test]
fn kill_leaves_no_worker_even_in_a_session_of_its_own_and_deaf_to_sigterm() {
    let project = built("plain");
    let mut run = in_warm_up(&project, &[("FORK_WORKERS", "3"), ("IGNORE_SIGTERM", "1")]);
    run.signal(Signal::SIGKILL);
    run.wait_until_gone(SOON);
}

#[test]
fn serve_keeps_the_server_up_until_ctrl_c() {
    let project = built("plain");
    let mut run = project.httpbench().arg("serve").start();
    run.wait_for_text("http://127.0.0.1:");
    std::thread::sleep(Duration::from_millis(500));
    assert!(!run.is_over(), "nobody has stopped it");
    run.signal_group(Signal::SIGINT);
    assert_ends_soon(run, 130);
}
