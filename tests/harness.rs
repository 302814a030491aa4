//! Bench targets: what they do without the command, and what the command says of those it cannot use.

use std::process::Output;

use httpbench_tests::Project;

fn both(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn bench_target_without_the_command_lists_renders_and_says_how_to_run_it() {
    let project = Project::copy("plain");

    // What nextest asks first.
    let output = project.cargo(["test", "--quiet", "--bench", "http", "--", "--list", "--format", "terse"]);
    assert!(output.status.success(), "{}", both(&output));
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: Vec<&str> = listed
        .lines()
        .map(|line| line.strip_suffix(": benchmark").unwrap_or_else(|| panic!("{line:?} is no line of a list")))
        .collect();
    assert_eq!(names.iter().filter(|name| name.contains("page[")).count(), 2, "{listed}");

    let terse = ["test", "--quiet", "--bench", "http", "--", "--list", "--format", "terse", "--ignored"];
    let ignored = String::from_utf8_lossy(&project.cargo(terse).stdout).into_owned();
    assert!(ignored.contains("panics: benchmark") && !ignored.contains("index"), "{ignored}");

    // How nextest runs one.
    let index = names.iter().find(|name| name.ends_with("index")).expect("index is listed");
    let output = project.cargo(["test", "--quiet", "--bench", "http", "--", "--exact", index, "--nocapture"]);
    assert!(output.status.success(), "{}", both(&output));
    let panics = ignored.lines().find(|line| line.contains("panics")).expect("it is listed");
    let panics = panics.trim_end_matches(": benchmark");
    let arguments = ["test", "--quiet", "--bench", "http", "--", "--exact", panics, "--nocapture", "--ignored"];
    let output = project.cargo(arguments);
    assert!(!output.status.success() && both(&output).contains("no flux today"), "{}", both(&output));

    let output = project.cargo(["test", "--quiet", "--all-targets"]);
    assert!(output.status.success(), "{}", both(&output));

    let output = project.cargo(["bench", "--quiet", "--bench", "http"]);
    assert!(both(&output).contains("cargo httpbench"), "{}", both(&output));
}

#[test]
fn declared_bench_target_without_harness_false_is_refused_with_the_lines_to_add() {
    let project = Project::copy("no-harness");
    let outcome = project.httpbench().short().args(["-p", "declared"]).run();
    outcome.assert_code(96).assert_stderr(&["declared", "name = \"http\"", "harness = false"]);
}

#[test]
fn discovered_bench_target_is_refused_with_the_lines_to_add() {
    let project = Project::copy("no-harness");
    let outcome = project.httpbench().short().args(["-p", "discovered"]).run();
    outcome.assert_code(96).assert_stderr(&["discovered", "[[bench]]", "name = \"http\"", "harness = false"]);
}

#[test]
fn bench_target_that_panics_before_it_listens_is_104_with_its_last_lines() {
    let project = Project::copy("panicking-bench");
    let outcome = project.httpbench().short().args(["--bench", "panics"]).run();
    outcome.assert_code(104).assert_stderr(&["panics", "101", "loading the flux table", "the flux table is missing"]);
}

#[test]
fn bench_target_that_dies_by_a_signal_is_104_and_the_signal_is_named() {
    let project = Project::copy("panicking-bench");
    let outcome = project.httpbench().short().args(["--bench", "crashes"]).run();
    outcome.assert_code(104).assert_stderr(&["crashes", "SIGABRT", "loading the flux table"]);
}

#[test]
fn bench_target_of_another_framework_is_left_alone() {
    let project = Project::copy("foreign-bench");
    let outcome = project.httpbench().short().run();
    outcome.assert_code(0).assert_stdout(&["index"]);
    assert!(!project.root().join("foreign-ran.txt").exists(), "the foreign bench target was run\n{outcome}");
    project.httpbench().arg("--list").run().assert_code(0);
    assert!(!project.root().join("foreign-ran.txt").exists(), "the foreign bench target was run to list it");
}

#[test]
fn naming_a_foreign_bench_target_is_refused_without_running_it() {
    let project = Project::copy("foreign-bench");
    let outcome = project.httpbench().short().args(["--bench", "foreign"]).run();
    assert_ne!(outcome.code(), Some(0), "{outcome}");
    outcome.assert_stderr(&["foreign", "httpbench_core::main"]).assert_nothing_left();
    assert!(!project.root().join("foreign-ran.txt").exists(), "the foreign bench target was run\n{outcome}");
}

#[test]
fn scenario_that_panics_is_107_and_the_others_still_run() {
    let project = Project::copy("plain");
    let outcome = project.httpbench().short().args(["--ignored", "panics", "asked"]).run();
    outcome.assert_code(107).assert_stderr(&["panics", "no flux today"]).assert_stdout(&["asked"]);
}

#[test]
fn bench_target_without_optimisation_says_so() {
    let project = Project::copy("plain");
    let outcome = project.httpbench().short().args(["index", "--profile", "dev", "--connections", "1"]).run();
    outcome.assert_code(0).assert_stderr_any(&["optimis", "optimiz"]);
}
