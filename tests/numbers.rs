//! `cargo httpbench compare A B`: two stored baselines, made up here, by their ratios to the reference server. Nothing is measured.

use std::fs;
use std::path::PathBuf;

use httpbench_tests::{Outcome, Project};
use serde_json::{Value, json};

/// A baseline as another machine wrote it.
const TEXT: &str = include_str!("../cargo-httpbench/src/baseline/schema_1.json");

/// Logarithm of a ratio that needs no thought: nothing but differences are compared.
const USUAL: f64 = 0.4;

struct Kept {
    project: Project,
    folder: PathBuf,
}

impl Kept {
    fn new() -> Self {
        let project = Project::copy("plain");
        let folder = project.beside("kept");
        Self { project, folder }
    }

    /// Saves a baseline of this name whose every value was `slower` times worse, beside the reference server, after an edit.
    fn save(&self, name: &str, slower: f64, edit: impl FnOnce(&mut Value)) -> &Self {
        let mut baseline: Value = serde_json::from_str(TEXT).expect("JSON");
        baseline["name"] = json!(name);
        for scenario in baseline["scenarios"].as_array_mut().expect("scenarios") {
            let rounds = (0..5).map(|round| {
                let noise = 0.002 * f64::from(round);
                let (less, more) = (USUAL - slower.ln() + noise, USUAL + slower.ln() + noise);
                json!({
                    "version": 1, "throughput_per_second": 90_000.0 - 100.0 * f64::from(round), "failed": 0,
                    "log_ratios": {
                        "throughput": less, "stalls": less, "cpu-per-request": more, "p50": more, "p90": more, "p95": more,
                        "p99": more
                    }
                })
            });
            scenario["against_reference"] = rounds.collect();
        }
        edit(&mut baseline);
        let folder = self.folder.join(name).join("shop");
        fs::create_dir_all(&folder).expect("a folder can be made");
        fs::write(folder.join("baseline.json"), baseline.to_string()).expect("written");
        self
    }

    fn compare(&self, arguments: &[&str]) -> Outcome {
        let command = self.project.httpbench().arg("compare").args(arguments);
        command.env("HTTPBENCH_BASELINE_DIR", &self.folder).run()
    }

    /// The verdict and its reason of every cell.
    fn verdicts(&self, arguments: &[&str]) -> Vec<(String, String)> {
        let outcome = self.compare(&[arguments, &["--message-format", "json"]].concat());
        let lines = outcome.json_lines();
        let verdicts = lines.iter().filter(|line| line["reason"] == "verdict");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        verdicts.map(|line| (text(&line["verdict"]), text(&line["why"]["reason"]))).collect()
    }
}

#[test]
fn slower_numbers_fail_with_100_and_are_labelled_weaker() {
    let kept = Kept::new();
    kept.save("main", 1.0, |_| ()).save("next", 1.3, |_| ());
    let outcome = kept.compare(&["main", "next"]);
    outcome.assert_code(100).assert_stdout(&[
        "8 regressed",
        "compared with baseline `main`",
        "two stored baselines, nothing measured now",
        "numbers only, for two stored baselines are compared",
        "no change below 10% is decided",
        "-23.1%",
    ]);
    let lines = kept.compare(&["main", "next", "--message-format", "json"]).json_lines();
    let verdict = lines.iter().find(|line| line["reason"] == "verdict").expect("a verdict");
    assert_eq!((&verdict["basis"], &verdict["verdict"]), (&json!("numbers-only"), &json!("regressed")));
    assert_eq!((&verdict["tolerance"], &verdict["metric"]), (&json!(0.1), &json!("throughput")));
    assert!(lines.iter().all(|line| line["reason"] != "scenario"), "nothing was measured");
    assert_eq!(lines.last().expect("lines")["exit_code"], 100);
    kept.compare(&["main", "next", "--no-fail-on-regression"]).assert_code(0);
    kept.compare(&["next", "main"]).assert_code(0).assert_stdout(&["8 improved"]);
}

#[test]
fn equal_numbers_are_unchanged_and_so_is_a_machine_that_was_slower_on_both() {
    let kept = Kept::new();
    kept.save("main", 1.0, |_| ()).save("next", 1.04, |baseline| {
        for round in baseline["scenarios"][0]["against_reference"].as_array_mut().expect("rounds") {
            round["throughput_per_second"] = json!(76_500.0);
        }
    });
    kept.compare(&["main", "next"]).assert_code(0).assert_stdout(&["8 unchanged"]);
}

#[test]
fn other_processor_or_features_are_not_comparable_and_both_are_named() {
    let kept = Kept::new();
    kept.save("main", 1.0, |_| ());
    kept.save("next", 3.0, |baseline| baseline["fingerprint"]["cpu_model"] = json!("AMD EPYC 9V74"));
    kept.compare(&["main", "next"])
        .assert_code(0)
        .assert_stdout(&["not comparable: CPU model: `AMD EPYC 9V74` here, `AMD EPYC 7763 64-Core Processor` there"]);
    let verdicts = kept.verdicts(&["main", "next"]);
    let not_comparable = ("inconclusive".to_owned(), "not-comparable".to_owned());
    assert_eq!((verdicts.len(), verdicts.iter().all(|cell| *cell == not_comparable)), (8, true), "{verdicts:?}");
    kept.compare(&["main", "next", "--on-inconclusive", "fail"]).assert_code(108);
    kept.save("unknown", 3.0, |baseline| baseline["fingerprint"]["cpu_model"] = Value::Null);
    kept.compare(&["main", "unknown"]).assert_code(0).assert_stdout(&["CPU model: `unknown` here"]);
    kept.save("features", 3.0, |baseline| baseline["fingerprint"]["features"] = json!("default, fast"));
    kept.compare(&["main", "features"]).assert_code(0).assert_stdout(&["features: `default, fast` here"]);
    kept.save("kernel", 3.0, |baseline| baseline["fingerprint"]["kernel"] = json!("6.18.1"));
    kept.compare(&["main", "kernel"]).assert_code(100).assert_stdout(&["worth knowing: kernel"]);
}

#[test]
fn changed_scenario_is_not_comparable_and_the_others_are() {
    let kept = Kept::new();
    kept.save("main", 1.0, |_| ());
    kept.save("next", 3.0, |baseline| {
        let definition = baseline["scenarios"][1]["definition"].clone();
        baseline["scenarios"][0]["definition"] = definition;
    });
    let outcome = kept.compare(&["main", "next"]);
    outcome.assert_code(100).assert_stdout(&["http::index", "the scenario changed", "4 regressed, 4 inconclusive"]);
}

#[test]
fn reference_server_that_failed_or_is_missing_concludes_nothing() {
    let kept = Kept::new();
    kept.save("main", 1.0, |_| ());
    kept.save("next", 3.0, |baseline| {
        baseline["scenarios"][0]["against_reference"][2]["failed"] = json!(1);
        baseline["scenarios"][1].as_object_mut().expect("a scenario").remove("against_reference");
    });
    let verdicts = kept.verdicts(&["next", "main"]);
    let count =
        |reason: &str| verdicts.iter().filter(|cell| *cell == &("inconclusive".to_owned(), reason.to_owned())).count();
    assert_eq!((count("reference-fails"), count("no-reference")), (4, 4), "{verdicts:?}");
}

#[test]
fn baseline_that_is_not_there_is_96() {
    let kept = Kept::new();
    kept.save("main", 1.0, |_| ());
    kept.compare(&["main", "mian"]).assert_code(96).assert_stderr(&["no baseline `mian`", "did you mean `main`?"]);
}

#[test]
fn package_that_only_the_judged_baseline_has_is_told() {
    let kept = Kept::new();
    kept.save("main", 1.0, |_| ()).save("next", 1.0, |_| ());
    let text = fs::read_to_string(kept.folder.join("next/shop/baseline.json")).expect("it was written");
    let mut other: Value = serde_json::from_str(&text).expect("JSON");
    other["package"] = json!("depot");
    fs::create_dir(kept.folder.join("next/depot")).expect("a folder can be made");
    fs::write(kept.folder.join("next/depot/baseline.json"), other.to_string()).expect("written");
    let outcome = kept.compare(&["main", "next"]);
    outcome.assert_code(0).assert_stderr(&["no baseline `main` of package `depot`, which `next` has"]);
}
