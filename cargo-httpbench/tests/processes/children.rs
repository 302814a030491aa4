//! Single programs under a supervisor.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::time::Duration;

use cargo_httpbench::exit_code::ExitCode;
use cargo_httpbench::process::{Child, Ended, InheritedDescriptor, Launch, Output, Stopped};
use nix::sys::signal::Signal;

use crate::{SOON, details, interrupt, send_signal, state_of, wait_for};

fn shell(script: &str) -> Launch {
    let mut launch = Launch::new("script", "/bin/sh", "/");
    launch.args = vec!["-c".into(), script.into()];
    launch.env = std::env::vars_os().collect();
    launch
}

#[test]
fn output_and_status_of_a_program_are_seen() {
    let child = Child::spawn(shell("echo out; echo err >&2; exit 3"), &interrupt()).unwrap();
    assert_eq!(child.wait(&interrupt()).unwrap(), Ended::Exited { code: 3 });
    let error = child.failure(ExitCode::ServerFailed, Ended::Exited { code: 3 }, "too early");
    assert_eq!(error.what, "`script` exited with status 3 too early");
    assert!(details(&error).contains("out\nerr\n"), "{error:?}");
    assert!(details(&error).contains("/bin/sh -c 'echo out"), "{error:?}");
}

#[test]
fn program_that_kills_itself_is_reported_with_its_signal() {
    let child = Child::spawn(shell("kill -KILL $$"), &interrupt()).unwrap();
    assert_eq!(child.wait(&interrupt()).unwrap(), Ended::Killed { signal: 9, core_dumped: false });
}

#[test]
fn program_that_does_not_exist_fails_with_the_code_of_its_launch() {
    let mut launch = Launch::new("gone", "/nowhere/gone", "/");
    launch.exit = ExitCode::BuildFailed;
    let error = Child::spawn(launch, &interrupt()).unwrap_err();
    assert_eq!((error.exit, error.what.as_str()), (ExitCode::BuildFailed, "cannot start `gone`"));
    assert!(error.cause.unwrap().to_string().contains("No such file"));
}

#[test]
fn piped_output_is_the_callers_and_inherited_descriptor_is_open_in_the_program() {
    let (mut near, far) = std::io::pipe().unwrap();
    let mut launch = shell("echo \"$MARK\"; echo through >/proc/self/fd/$NUMBER");
    launch.env.insert("MARK".into(), "mark".into());
    launch.stdout = Output::Piped;
    launch.inherit = Some(InheritedDescriptor { descriptor: OwnedFd::from(far), variable: "NUMBER".into() });
    let mut child = Child::spawn(launch, &interrupt()).unwrap();
    let (mut out, mut through) = (String::new(), String::new());
    child.take_stdout().unwrap().read_to_string(&mut out).unwrap();
    near.read_to_string(&mut through).unwrap();
    assert_eq!((out.as_str(), through.as_str()), ("mark\n", "through\n"));
}

#[test]
fn no_descriptor_of_the_command_leaks_into_a_program() {
    let _other = Child::spawn(shell("sleep 60"), &interrupt()).unwrap();
    let child = Child::spawn(shell("for fd in /proc/$$/fd/*; do readlink $fd; done"), &interrupt()).unwrap();
    child.wait(&interrupt()).unwrap();
    let text = child.log().text();
    assert!(!text.contains("socket:"), "{text}");
    assert_eq!(text.lines().next(), Some("/dev/null"), "{text}");
}

#[test]
fn program_runs_on_the_cores_that_it_is_given_and_its_supervisor_stays_free() {
    let mut launch = shell("grep Cpus_allowed_list /proc/self/status");
    launch.cores = vec![0];
    let child = Child::spawn(launch, &interrupt()).unwrap();
    child.wait(&interrupt()).unwrap();
    assert_eq!(child.log().last(1), ["Cpus_allowed_list:    0"]);
    let mut impossible = shell("true");
    impossible.cores = vec![1000];
    let error = Child::spawn(impossible, &interrupt()).unwrap_err();
    assert!(error.cause.unwrap().to_string().contains("[1000]"));
}

#[test]
fn dropped_child_takes_its_whole_tree_along() {
    let child = Child::spawn(shell("sleep 60 & echo $!; sleep 60"), &interrupt()).unwrap();
    wait_for("the line", || child.log().text().ends_with('\n'));
    let grandchild: u32 = child.log().text().trim().parse().unwrap();
    let (pid, supervisor) = (child.pid(), child.supervisor_pid());
    assert!(state_of(pid).is_some() && state_of(grandchild).is_some() && state_of(supervisor).is_some());
    drop(child);
    assert_eq!((state_of(pid), state_of(grandchild), state_of(supervisor)), (None, None, None));
}

#[test]
fn supervisor_shrugs_off_signals_and_if_killed_its_child_is_reported_lost() {
    let child = Child::spawn(shell("sleep 60"), &interrupt()).unwrap();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGPIPE, Signal::SIGQUIT] {
        send_signal(child.supervisor_pid(), signal);
    }
    assert_eq!(child.wait_timeout(Duration::from_millis(100), &interrupt()).unwrap(), None);
    send_signal(child.supervisor_pid(), Signal::SIGKILL);
    assert_eq!(child.wait(&interrupt()).unwrap(), Ended::Unknown);
    let pid = child.pid();
    drop(child);
    wait_for("the orphan's end", || state_of(pid).is_none());
}

#[test]
fn stop_is_polite_at_first_and_then_is_not() {
    let polite =
        Child::spawn(shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"), &interrupt());
    let polite = polite.unwrap();
    wait_for("the trap", || polite.log().since(0).1 > 0);
    assert_eq!(polite.stop(SOON).unwrap(), Stopped::Politely);
    assert_eq!(polite.try_wait().unwrap(), Some(Ended::Exited { code: 0 }));
    assert_eq!(polite.log().last(1), ["bye"]);

    let stubborn = Child::spawn(shell("trap '' TERM; echo ready; while :; do sleep 1; done"), &interrupt()).unwrap();
    wait_for("the trap", || stubborn.log().since(0).1 > 0);
    let grace = Duration::from_millis(50);
    assert_eq!(stubborn.stop(grace).unwrap(), Stopped::Killed { after: grace });
    assert_eq!(stubborn.try_wait().unwrap(), Some(Ended::Killed { signal: 9, core_dumped: false }));
}
