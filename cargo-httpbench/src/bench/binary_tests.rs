//! A scripted bench binary at the other end of the channel, and real processes that die.

use std::cell::Cell;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::rc::Rc;

use httpbench_core::model::{ArmPlan, Load, Nanos};

use super::super::PlainSpawner;
use super::*;

/// Ended as soon as its script has.
struct Scripted(Option<thread::JoinHandle<()>>);

impl BenchProcess for Scripted {
    fn pid(&self) -> u32 {
        7
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let ended = self.0.as_ref().is_none_or(thread::JoinHandle::is_finished);
        Ok(ended.then(|| ExitStatus::from_raw(9)))
    }

    fn tail(&self) -> Vec<String> {
        vec!["its last words".to_owned()]
    }
}

fn hello(protocol: u32) -> Hello {
    Hello { protocol, package: "httpbench-core".to_owned(), version: "9.9.9".to_owned(), debug_build: true }
}

fn start(script: impl FnOnce(Channel) + Send + 'static) -> Result<BenchBinary> {
    let mut script = Some(script);
    let mut spawner = move |launch: BenchLaunch| -> Result<Box<dyn BenchProcess>> {
        assert_eq!(launch.control_variable, "HTTPBENCH_CONTROL_FD");
        let script = script.take().expect("it is started once");
        Ok(Box::new(Scripted(Some(thread::spawn(move || script(Channel::new(launch.control.into())))))))
    };
    let executable = BenchExecutable { name: "http".to_owned(), path: "/w/http".into(), linked: Default::default() };
    BenchBinary::start(&mut spawner, &executable, "/w".into(), Environment::default(), &mut || Ok(()))
}

fn greet(channel: &mut Channel) {
    let theirs: Hello = channel.receive().expect("a greeting").expect("no end");
    assert_eq!(theirs.package, "cargo-httpbench");
    channel.send(&hello(theirs.protocol)).expect("greeted");
}

fn plan() -> RoundPlan {
    RoundPlan {
        scenario: "http::index".to_owned(),
        arms: vec![ArmPlan::plain(([127, 0, 0, 1], 1).into())],
        load: Load {
            connections: 1,
            threads: 1,
            cores: Vec::new(),
            request_timeout: Nanos(1),
            connect_timeout: Nanos(1),
            ..Load::default()
        },
        warm_up: Nanos::ZERO,
        slices: Vec::new(),
    }
}

#[test]
fn scenarios_are_listed_and_a_debug_build_is_warned_of() {
    let mut binary = start(|mut channel| {
        greet(&mut channel);
        assert_eq!(channel.receive::<Ask>().expect("a question"), Some(Ask::List));
        channel.send(&Answer::Scenarios(Vec::new())).expect("answered");
        let _ = channel.receive::<Ask>();
    })
    .expect("greeted");
    assert_eq!(binary.warning(), Some(Warning::UnoptimisedBench { bench: "http".to_owned() }));
    assert_eq!(binary.list(&mut || Ok(())).expect("listed"), []);
}

#[test]
fn other_version_is_answered_with_the_command_that_helps() {
    for (protocol, help) in [(0, "cargo update -p httpbench-core"), (99, "cargo install cargo-httpbench")] {
        let error = start(move |mut channel| {
            let _: Option<Hello> = channel.receive().expect("a greeting");
            channel.send(&hello(protocol)).expect("greeted");
        })
        .err()
        .expect("they differ");
        assert_eq!(error.exit, ExitCode::ListingFailed);
        assert!(
            error.what.contains("httpbench-core 9.9.9") && error.what.contains("cargo-httpbench 0.1.0"),
            "{}",
            error.what
        );
        assert!(error.help.as_deref().is_some_and(|text| text.contains(help)), "{:?}", error.help);
    }
}

#[test]
fn bench_binary_that_dies_while_it_runs_is_reported_with_status_and_last_words() {
    let mut binary = start(|mut channel| {
        greet(&mut channel);
        let _: Option<Ask> = channel.receive().expect("a question");
    })
    .expect("greeted");
    let error = binary.run(&plan(), &mut || Ok(())).expect_err("it died");
    assert_eq!(error.exit, ExitCode::InvalidMeasurement);
    assert_eq!(error.what, "bench target `http` ended while it ran `http::index` (signal: 9 (SIGKILL))");
    assert_eq!(error.details[0].lines, ["/w/http"]);
    assert_eq!(error.details[1].lines, ["its last words"]);
}

#[test]
fn panic_of_a_scenario_is_told_and_the_binary_goes_on() {
    let mut binary = start(|mut channel| {
        greet(&mut channel);
        let _: Option<Ask> = channel.receive().expect("a question");
        channel.send(&Answer::Failed(RunFailure::Panicked("boom".to_owned()))).expect("answered");
        let _: Option<Ask> = channel.receive().expect("a question");
        channel.send(&Answer::ListingFailed("two scenarios `x`".to_owned())).expect("answered");
    })
    .expect("greeted");
    let error = binary.run(&plan(), &mut || Ok(())).expect_err("it panicked");
    assert_eq!(error.exit, ExitCode::InvalidMeasurement);
    assert_eq!(error.what, "scenario `http::index`: the scenario panicked: boom");
    let error = binary.list(&mut || Ok(())).expect_err("they cannot be told apart");
    assert_eq!(error.exit, ExitCode::ListingFailed);
    assert!(error.what.ends_with("two scenarios `x`"), "{}", error.what);
}

#[test]
fn wait_for_an_answer_ends_when_the_caller_says_so() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let mut binary = start(move |mut channel| {
        greet(&mut channel);
        let _ = stopped.recv();
    })
    .expect("greeted");
    let calls = Rc::new(Cell::new(0));
    let counted = Rc::clone(&calls);
    let mut waiting = move || {
        counted.set(counted.get() + 1);
        if counted.get() == 3 { Err(Error::new(ExitCode::ServerFailed, "the server died")) } else { Ok(()) }
    };
    let error = binary.run(&plan(), &mut waiting).expect_err("ended");
    assert_eq!((error.exit, error.what.as_str(), calls.get()), (ExitCode::ServerFailed, "the server died", 3));
    // The answer to the first question may still come, so a second one would be misread.
    assert!(!binary.is_usable());
    assert_eq!(binary.list(&mut || Ok(())).expect_err("not in step").exit, ExitCode::Unexpected);
    drop(stop);
}

#[test]
fn process_that_ends_before_it_greets_is_reported_with_what_it_printed() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("http");
    std::fs::write(
        &path,
        "#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22; do echo line $i; done\nexit 3\n",
    )
    .expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let executable = BenchExecutable { name: "http".to_owned(), path, linked: Default::default() };
    let error = BenchBinary::start(
        &mut PlainSpawner,
        &executable,
        dir.path().to_owned(),
        Environment::inherited(),
        &mut || Ok(()),
    )
    .err()
    .expect("it ended");
    assert_eq!(error.exit, ExitCode::ListingFailed);
    assert_eq!(error.what, "bench target `http` ended before it greeted (exit status: 3)");
    assert_eq!(error.details[1].lines.len(), 20);
    assert_eq!(error.details[1].lines.last().map(String::as_str), Some("line 22"));
}
