//! Scenarios whose exchanges start on a schedule: asked for in every way, reported as what they are.

use httpbench_tests::{Outcome, Project};
use serde_json::Value;

fn scenario(outcome: &Outcome) -> Value {
    outcome.assert_code(0);
    let mut lines = outcome.json_lines();
    let at = lines.iter().position(|line| line["reason"] == "scenario").expect("a scenario's line");
    lines.swap_remove(at)
}

#[test]
fn arrival_rate_is_reported_with_response_times_and_the_engines_lateness() {
    let project = Project::copy("plain");
    let arguments = ["index", "--arrival-rate", "200", "--message-format", "json"];
    let outcome = project.httpbench().short().args(arguments).env("HTTPBENCH_ARRIVAL_RATE", "50").run();
    let measured = scenario(&outcome);
    assert_eq!(measured["arrival_rate"], 200.0, "the flag wins over the variable");
    let exchanges = measured["exchanges"]["good"].as_u64().expect("a number");
    let slices = &measured["slices"];
    let number = |value: &Value| value.as_f64().expect("a number");
    let loaded = number(&slices["per_round"]) * number(&slices["length_ns"]) / 1e9 * number(&measured["rounds"]);
    // Lengths are jittered by a fifth.
    let asked = loaded * 200.0;
    assert!((asked * 0.75..asked * 1.25).contains(&(exchanges as f64)), "{exchanges} exchanges in {loaded} s");
    assert_eq!(measured["response"]["count"], exchanges);
    assert_eq!(measured["service"]["count"], exchanges);
    let starts = number(&measured["lateness"]["count"]) + number(&measured["queued"]["count"]);
    assert_eq!(starts, exchanges as f64);
    assert!(number(&measured["response"]["max_ns"]) >= number(&measured["service"]["max_ns"]));
    assert!(number(&measured["arrival_rate_reached"]) > 0.0);
}

#[test]
fn arrival_rate_that_the_connections_cannot_reach_is_warned_of_with_both_numbers() {
    // 20 ms an answer on one connection are 50 a second.
    let project = Project::copy("plain");
    let arguments = ["slow", "--arrival-rate", "250", "--connections", "1", "--message-format", "json"];
    let outcome = project.httpbench().short().args(arguments).run();
    let reached = scenario(&outcome)["arrival_rate_reached"].as_f64().expect("a number");
    assert!((1.0..=100.0).contains(&reached), "{reached} of 250");
    let warning = outcome.json_lines().into_iter().find(|line| line["code"] == "arrival-rate-not-reached");
    let text = warning.expect("a warning")["text"].to_string();
    assert!(text.contains("`slow` did not reach its arrival rate") && text.contains(" of 250 starts"), "{text}");
}

#[test]
fn configured_arrival_rate_makes_the_report_speak_of_response_times() {
    let project = Project::copy("plain");
    project.write("httpbench.toml", "[defaults]\narrival-rate = 100.5\n");
    let outcome = project.httpbench().short().arg("index").run();
    outcome.assert_code(0);
    outcome.assert_stdout(&["arrival rate 100.5/s", "response times (intended start to last byte)"]);
}
