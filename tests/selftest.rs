//! `cargo httpbench selftest`: built-in servers, really started and compared, with certain outcomes alone.

use std::fs;

use httpbench_tests::Project;
use serde_json::Value;

/// A candidate that does eleven times the work, in as little time as can be: with one connection, the slices are as short as they get.
const ARGUMENTS: [&str; 16] = [
    "selftest",
    "--long",
    "--only",
    "+1000%",
    "--speed",
    "900",
    "--connections",
    "1",
    "--duration",
    "1400ms",
    "--warm-up",
    "50ms",
    "--rounds",
    "1",
    "--count",
    "1",
];

#[test]
fn injected_work_is_seen_kept_and_counted_by_a_later_call_in_any_folder() {
    let project = Project::copy("plain");
    let file = project.beside("soak.jsonl");
    let call = |resume: &[&str]| {
        let command = project.httpbench().args(ARGUMENTS).arg("--file").arg(&file).args(resume);
        command.args(["--message-format", "json"]).current_dir(project.temporary()).run()
    };
    let first = call(&[]);
    first.assert_code(0).assert_stderr(&["900/s", "+1000% CPU", "1 comparisons"]).assert_nothing_left();
    let lines = first.json_lines();
    let of = |reason: &str| lines.iter().filter(|line| line["reason"] == reason).collect::<Vec<_>>();
    let verdicts = of("verdict");
    assert_eq!(verdicts[0]["metric"], "throughput");
    let change = verdicts[0]["change"].as_f64().expect("an estimate");
    assert!(change < -0.5, "ten times slower, and it is said to have changed by {change}");
    assert_eq!(of("selftest-comparison")[0]["cells"].as_array().map(Vec::len), Some(verdicts.len()));
    assert_eq!(of("selftest")[0]["groups"][0]["comparisons"], 1);

    let kept = fs::read_to_string(&file).expect("it is kept");
    let record: Value = serde_json::from_str(kept.trim_end()).expect("one line");
    let rounds = record["rounds"].as_array().expect("rounds");
    assert!(rounds.len() >= 7, "{} rounds", rounds.len());
    assert!(rounds[0]["slices"].as_array().expect("slices").len() >= 4);

    let again = call(&["--resume"]);
    again.assert_code(0).assert_stderr(&["1 are there"]);
    assert_eq!(again.json_lines().last().expect("lines")["groups"][0]["comparisons"], 1, "nothing was missing");
    assert_eq!(fs::read_to_string(&file).expect("it is kept"), kept);
}

#[test]
fn wrong_speed_or_change_is_a_usage_error_that_says_what_is_accepted() {
    let project = Project::copy("plain");
    let call = |option: &str, value: &str| project.httpbench().args(["selftest", option, value]).run();
    call("--speed", "fast").assert_code(2).assert_stderr(&["3000@1000"]);
    call("--only", "-5%").assert_code(2);
    call("--only", "none").assert_code(2).assert_stderr(&["`aa`", "+5%"]);
    project.httpbench().args(["selftest", "--resume"]).run().assert_code(2).assert_stderr(&["--long"]);
}
