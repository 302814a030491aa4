//! Two arms that insist on the same port: redirected, or one at a time where that is refused.

#![cfg(target_os = "linux")]

use std::sync::{Mutex, PoisonError};

use httpbench_tests::{Outcome, Project};
use serde_json::Value;

/// The fixture's port is one for all tests: only one at a time may use it.
static PORT: Mutex<()> = Mutex::new(());

/// Two scenarios, of which one writes, of a server with a port of its own, and its baseline.
fn with_hard_coded_baseline() -> Project {
    let project = Project::copy("hard-coded-port");
    project.edit(
        "benches/http.rs",
        "fn main()",
        "#[http_bench]\nfn add() -> Request {\n    Request::post(\"/\")\n}\n\nfn main()",
    );
    project.write("httpbench.toml", "[defaults]\nbaseline-dir = \"kept\"\nwarm-up = \"20ms\"\nduration = \"400ms\"\n");
    project.httpbench().args(["--quick", "--save-baseline", "main"]).run().assert_code(0);
    project
}

/// The verdicts of a comparison with the baseline, and how the last line says that the arms ran.
fn verdicts(outcome: &Outcome) -> (Vec<Value>, Value) {
    let of = |reason: &str| {
        let lines = outcome.json_lines().into_iter();
        lines.filter(|line| line["reason"] == reason).collect::<Vec<_>>()
    };
    let finished = of("run-finished").pop().unwrap_or_else(|| panic!("no last line\n{outcome}"));
    (of("verdict"), finished["arms"]["hard-coded-port"].clone())
}

const COMPARED: [&str; 8] =
    ["--quick", "--slice", "20ms", "--baseline", "main", "--force-aa", "--message-format", "json"];

#[test]
fn arms_with_one_hard_coded_port_run_one_at_a_time_where_it_cannot_be_redirected() {
    let _alone = PORT.lock().unwrap_or_else(PoisonError::into_inner);
    let project = with_hard_coded_baseline();
    let outcome = project.httpbench().args(COMPARED).without_filters().run();
    let (verdicts, arms) = verdicts(&outcome);
    // Two servers at once could not both have had the port: that both arms have values says that they took turns.
    for scenario in ["add", "index"] {
        let of = |metric: &str| {
            let named = |verdict: &&Value| verdict["scenario"].as_str().is_some_and(|name| name.ends_with(scenario));
            verdicts.iter().filter(named).find(|verdict| verdict["metric"] == metric).cloned()
        };
        for metric in ["throughput", "cpu-per-request"] {
            let verdict = of(metric).unwrap_or_else(|| panic!("{scenario} {metric} is missing: {verdicts:#?}"));
            assert!(verdict["baseline"].as_f64() > Some(0.0) && verdict["candidate"].as_f64() > Some(0.0), "{verdict}");
            assert!(verdict["rounds"].as_u64() >= Some(7), "{verdict}");
            assert_eq!(verdict["arms"], arms, "{verdict}");
        }
    }
    assert_eq!(arms["run"], "one-at-a-time");
    let why = arms["why"].as_str().unwrap_or_default();
    assert!(why.starts_with("a sandbox around this process forbids seccomp filters"), "{arms}");
    outcome.assert_stderr(&["run one at a time", "4.8 %", "instead of 1.0 %", "`PORT`"]).assert_nothing_left();
}

#[test]
fn hard_coded_ports_of_both_arms_are_redirected_and_the_report_says_so() {
    let _alone = PORT.lock().unwrap_or_else(PoisonError::into_inner);
    let project = with_hard_coded_baseline();
    let outcome = project.httpbench().arg("index").args(COMPARED).run();
    let (verdicts, arms) = verdicts(&outcome);
    assert!(!verdicts.is_empty(), "{outcome}");
    assert_eq!((arms["run"].as_str(), arms["ports"].as_str()), (Some("together"), Some("redirect")));
    outcome.assert_stderr(&["fixed ports redirected"]).assert_silent_about(&["one at a time"]);
}
