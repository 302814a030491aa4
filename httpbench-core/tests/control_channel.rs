//! A bench binary as the command meets it: over the control channel, from greeting to end of file.
//!
//! The bench binary is this test binary itself, run again for its one test `bench_binary`, which calls
//! `httpbench_core::main` when the control variable is set.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use httpbench_core::model::{ArmPlan, Load, Metric, Nanos, RoundPlan, TracePlan};
use httpbench_core::prelude::*;
use httpbench_core::protocol::{Answer, Ask, CONTROL_VARIABLE, Channel, Hello, PROTOCOL_VERSION, RunFailure};

/// Two lines
/// of documentation.
#[http_bench(connections = 8, limit(p99 = "20ms"), warm_up = "10ms")]
fn index() -> Request {
    Request::get("/?q=1")
}

#[http_bench]
fn panics() -> Request {
    panic!("no credentials")
}

/// Sleeps longer than any test waits, but not while scenarios are listed.
#[http_bench]
fn stuck() -> Request {
    if std::env::var_os("STUCK").is_some() {
        thread::sleep(Duration::from_secs(600));
    }
    Request::get("relative")
}

#[test]
fn bench_binary() {
    if std::env::var_os(CONTROL_VARIABLE).is_some() {
        httpbench_core::main();
    }
}

/// A bench binary that is killed if a test forgets it.
struct BenchBinary {
    child: Child,
    channel: Option<Channel>,
}

impl BenchBinary {
    fn start(environment: &[(&str, &str)]) -> Self {
        let (near, far) = UnixStream::pair().expect("a socket pair");
        // The shell moves its standard input to descriptor 9, which std cannot do.
        let child = Command::new("sh")
            .args(["-c", "exec \"$0\" bench_binary --exact --nocapture 9<&0 </dev/null"])
            .arg(std::env::current_exe().expect("this binary"))
            .env(CONTROL_VARIABLE, "9")
            .envs(environment.iter().copied())
            .stdin(OwnedFd::from(far))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let channel = Channel::new(near);
        channel.set_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        Self { child, channel: Some(channel) }
    }

    /// Greets as the command of this version does.
    fn greeted(environment: &[(&str, &str)]) -> Self {
        let mut binary = Self::start(environment);
        binary.channel().send(&Hello::new("cargo-httpbench", "0.1.0")).expect("sent");
        let hello = binary.channel().receive::<Hello>().expect("understood").expect("a greeting");
        assert_eq!((hello.protocol, hello.package.as_str()), (PROTOCOL_VERSION, "httpbench-core"));
        assert_eq!(hello.debug_build, cfg!(debug_assertions));
        binary
    }

    fn channel(&mut self) -> &mut Channel {
        self.channel.as_mut().expect("open")
    }

    fn ask(&mut self, request: &Ask) -> Answer {
        self.channel().send(request).expect("sent");
        self.channel().receive().expect("understood").expect("an answer")
    }

    /// The exit code, once the process has ended by itself.
    fn end(&mut self) -> Option<i32> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("waits") {
                return status.code();
            }
            thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

impl Drop for BenchBinary {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn arm() -> ArmPlan {
    // Nobody listens on the discard port.
    ArmPlan::plain("127.0.0.1:9".parse().expect("an address"))
}

fn round(scenario: &str) -> Ask {
    Ask::Run(RoundPlan {
        scenario: scenario.to_owned(),
        arms: vec![arm()],
        load: Load {
            connections: 1,
            threads: 1,
            cores: Vec::new(),
            request_timeout: Nanos::from_secs(1),
            connect_timeout: Nanos::from_secs(1),
            ..Load::default()
        },
        warm_up: Nanos::ZERO,
        slices: Vec::new(),
    })
}

#[test]
fn scenarios_are_listed_with_options_place_and_request_or_the_reason_why_there_is_none() {
    let mut binary = BenchBinary::greeted(&[]);
    let Answer::Scenarios(scenarios) = binary.ask(&Ask::List) else { panic!("not a list") };
    let names: Vec<_> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    assert_eq!(names, ["index", "panics", "stuck"]);

    let index = &scenarios[0];
    assert_eq!(index.doc, "Two lines\nof documentation.");
    assert_eq!((index.options.connections, index.options.duration), (Some(8), None));
    assert_eq!(index.options.warm_up, Some(Nanos::from_millis(10)));
    assert_eq!((index.options.limit[0].metric, index.options.limit[0].bound), (Metric::P99, 20e6));
    assert_eq!(index.request.as_ref().expect("a request").target, "/?q=1");
    assert!(index.location.file.ends_with("control_channel.rs"));
    let line = include_str!("control_channel.rs").lines().position(|line| line == "fn index() -> Request {");
    assert_eq!(Some(index.location.line as usize), line.map(|line| line + 1));

    let panicked = scenarios[1].request.as_ref().expect_err("it panics");
    assert!(panicked.starts_with("the scenario panicked: no credentials ("), "{panicked}");
    let malformed = scenarios[2].request.as_ref().expect_err("no slash");
    assert!(malformed.contains("\"relative\" does not begin with `/`"), "{malformed}");
}

#[test]
fn every_failure_is_answered_as_what_it_is_and_serving_goes_on() {
    let mut binary = BenchBinary::greeted(&[]);
    for _ in 0..2 {
        let answer = binary.ask(&round("gone"));
        assert_eq!(answer, Answer::Failed(RunFailure::UnknownScenario("gone".to_owned())));
        let Answer::Failed(RunFailure::Panicked(message)) = binary.ask(&round("panics")) else { panic!("no panic") };
        assert!(message.starts_with("no credentials ("), "{message}");
        let trace = Ask::Trace(TracePlan { scenario: "stuck".to_owned(), arm: arm(), timeout: Nanos::from_secs(1) });
        let answer = binary.ask(&trace);
        assert!(matches!(answer, Answer::Failed(RunFailure::Request(_))), "{answer:?}");
    }
    drop(binary.channel.take());
    assert_eq!(binary.end(), Some(0));
}

#[test]
fn bench_binary_ends_with_the_command_even_while_a_scenario_is_stuck() {
    let mut binary = BenchBinary::greeted(&[("STUCK", "1")]);
    binary.channel().send(&round("stuck")).expect("sent");
    drop(binary.channel.take());
    assert_eq!(binary.end(), Some(0));
}

#[test]
fn other_protocol_version_is_answered_with_our_own_greeting_before_the_end() {
    let mut binary = BenchBinary::start(&[]);
    let other = Hello { protocol: PROTOCOL_VERSION + 1, ..Hello::new("cargo-httpbench", "9.0.0") };
    binary.channel().send(&other).expect("sent");
    let hello = binary.channel().receive::<Hello>().expect("understood").expect("a greeting");
    assert_eq!(hello.protocol, PROTOCOL_VERSION);
    assert!(binary.channel().receive::<Answer>().expect("an end").is_none());
    assert_eq!(binary.end(), Some(101));
}

#[test]
fn variable_that_names_no_socket_is_refused() {
    for value in ["7", "x", "-1", "0"] {
        let output = Command::new(std::env::current_exe().expect("this binary"))
            .args(["bench_binary", "--exact", "--nocapture"])
            .env(CONTROL_VARIABLE, value)
            .output()
            .expect("runs");
        assert_eq!(output.status.code(), Some(101), "{value}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("HTTPBENCH_CONTROL_FD") && text.contains("cargo httpbench"), "{text}");
    }
}
