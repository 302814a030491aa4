//! Two arms side by side: what is compared, what is said, and how it ends.
//!
//! Certain by size: what must be found is many times slower, what must not be found is muted by a huge tolerance. A round that
//! something else on the machine disturbed proves nothing, so such a run is made again.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use httpbench_tests::{Httpbench, Outcome, Project, wait_until_quiet};
use nix::sys::signal::Signal;
use serde_json::Value;

/// As short as a comparison of two scenarios can be and still decide.
const SHORT: [&str; 13] = [
    "--quick",
    "--rounds",
    "8",
    "--duration",
    "400ms",
    "--slice",
    "20ms",
    "--warm-up",
    "20ms",
    "--connections",
    "4",
    "--message-format",
    "json",
];

/// Runs that are made again because something else disturbed them.
const REPEATS: usize = 3;

/// What is waited for the end of that.
const PATIENCE: Duration = Duration::from_secs(60);

/// Accepts whatever the other work of a machine can do to a server: the most that can be written. Rounds are too short for p99, so
/// that p50 stands in for it, by its own tolerance.
const HUGE: &str = "[tolerance]\nthroughput = \"1000%\"\ncpu-per-request = \"1000%\"\np50 = \"1000%\"\n";

/// Makes `/` many times slower.
const SLOWER: (&str, &str) = ("from_millis(0)", "from_millis(5)");

/// A project whose baselines lie beside it, because all tests share one target directory.
struct Arms {
    project: Project,
    kept: PathBuf,
}

impl Arms {
    fn of(fixture: &str) -> Self {
        let project = Project::copy(fixture);
        let kept = project.beside("kept");
        Self { project, kept }
    }

    /// The fixture `changing` as a repository.
    fn repository() -> Self {
        let arms = Self::of("changing");
        arms.project.init_repository();
        arms
    }

    /// The fixture `changing`, and a baseline `main` of it.
    fn with_main() -> Self {
        let arms = Self::of("changing");
        arms.save_main();
        arms
    }

    fn save_main(&self) {
        // The load that it is compared under: else a scenario would not be the same.
        let save = ["--connections", "4", "--save-baseline", "main"];
        self.httpbench().short().args(save).run().assert_code(0);
    }

    fn httpbench(&self) -> Httpbench<'_> {
        self.project.httpbench().env("HTTPBENCH_BASELINE_DIR", &self.kept)
    }

    /// For what is said whatever else the machine does.
    fn run(&self, arguments: &[&str]) -> Outcome {
        self.httpbench().args(SHORT).args(arguments).run()
    }

    /// For verdicts.
    fn judge(&self, arguments: &[&str]) -> Outcome {
        undisturbed(|| self.httpbench().args(SHORT).args(arguments))
    }

    fn slow_down(&self) {
        self.project.edit("src/main.rs", SLOWER.0, SLOWER.1);
    }

    /// All files of a stored baseline, by name.
    fn bytes_of(&self, baseline: &str) -> Vec<(PathBuf, Vec<u8>)> {
        let folder = self.kept.join(baseline).join("changing");
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.sort();
        files.into_iter().map(|path| (path.clone(), fs::read(path).expect("a file can be read"))).collect()
    }

    /// What a user sees of the repository: the commit, the changes, and the only worktree.
    fn checkout(&self) -> [String; 3] {
        [&["rev-parse", "--symbolic-full-name", "HEAD"][..], &["status", "--porcelain"], &["worktree", "list"]]
            .map(|arguments| self.project.git(arguments))
    }
}

#[track_caller]
fn undisturbed<'a>(mut run: impl FnMut() -> Httpbench<'a>) -> Outcome {
    let mut outcome = run().run();
    for _ in 0..REPEATS {
        // So busy a machine that a round holds too few exchanges for the tolerances in HUGE is disturbed, too.
        let signs = [r#""reason":"disturbed""#, "a tolerance stands on a quantile"];
        if !signs.iter().any(|sign| outcome.stdout.contains(sign)) {
            break;
        }
        wait_until_quiet(PATIENCE);
        outcome = run().run();
    }
    outcome
}

fn lines(outcome: &Outcome, reason: &str) -> Vec<Value> {
    outcome.json_lines().into_iter().filter(|line| line["reason"] == reason).collect()
}

/// The verdicts of a scenario's cells.
fn verdicts(outcome: &Outcome, scenario: &str) -> Vec<String> {
    let cells = lines(outcome, "verdict").into_iter().filter(|cell| cell["scenario"] == scenario);
    cells.map(|cell| cell["verdict"].as_str().expect("a word").to_owned()).collect()
}

/// The one cell of a scenario's metric.
#[track_caller]
fn cell(outcome: &Outcome, scenario: &str, metric: &str) -> Value {
    let mut cells = lines(outcome, "verdict");
    cells.retain(|cell| cell["scenario"] == scenario && cell["metric"] == metric);
    assert_eq!(cells.len(), 1, "cells of {metric} of {scenario}\n{outcome}");
    cells.remove(0)
}

/// Why a scenario's cells say what they say.
fn reasons(outcome: &Outcome, scenario: &str) -> Vec<(String, String)> {
    let cells = lines(outcome, "verdict").into_iter().filter(|cell| cell["scenario"] == scenario);
    let word = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    cells.map(|cell| (word(&cell["verdict"]), word(&cell["why"]["reason"]))).collect()
}

#[track_caller]
fn assert_all(outcome: &Outcome, scenario: &str, verdict: &str, reason: &str) {
    let cells = reasons(outcome, scenario);
    assert!(!cells.is_empty(), "{scenario} is not compared\n{outcome}");
    for cell in cells {
        assert_eq!((cell.0.as_str(), cell.1.as_str()), (verdict, reason), "{scenario}\n{outcome}");
    }
}

/// `index` became slower, and `page` did not; the last line says how the run ended.
#[track_caller]
fn assert_regressed(outcome: &Outcome, exit: i32) {
    outcome.assert_code(exit).assert_stderr(&["regressed"]);
    assert!(verdicts(outcome, "index").contains(&"regressed".to_owned()), "{outcome}");
    assert!(!verdicts(outcome, "page").contains(&"regressed".to_owned()), "{outcome}");
    let last = outcome.json_lines().pop().expect("a line");
    assert_eq!((last["reason"].as_str(), last["exit_code"].as_i64()), (Some("run-finished"), Some(exit.into())));
}

/// The candidate was measured, and there was nothing beside it.
#[track_caller]
fn assert_measured_alone(outcome: &Outcome, scenarios: usize) {
    assert_eq!(lines(outcome, "scenario").len(), scenarios, "{outcome}");
    assert!(lines(outcome, "verdict").is_empty(), "{outcome}");
}

/// There is nothing to compare with: a warning, unless it is CI.
#[track_caller]
fn assert_follows_policy(arms: &Arms, arguments: &[&str], words: &[&str]) {
    let outcome = arms.run(&[&["page"], arguments].concat());
    outcome.assert_code(0).assert_stderr(words).assert_stderr(&["warning", "measured alone"]);
    assert_measured_alone(&outcome, 1);
    assert!(lines(&outcome, "warning").iter().any(|warning| warning["code"] == "not-compared"), "{outcome}");
    let ci = arms.run(&[&["page", "--ci"], arguments].concat());
    ci.assert_code(108).assert_stderr(words);
    assert!(lines(&ci, "scenario").is_empty(), "it is refused before anything is measured\n{ci}");
}

#[test]
fn same_server_is_identical_and_nothing_is_measured_unless_it_is_asked_for() {
    let arms = Arms::with_main();
    let outcome = arms.run(&["--baseline", "main"]);
    outcome.assert_code(0).assert_stderr(&["unchanged", "identical to baseline `main`", "--force-aa"]);
    let [identical] = &lines(&outcome, "identical")[..] else { panic!("{outcome}") };
    assert_eq!((identical["package"].as_str(), identical["verdict"].as_str()), (Some("changing"), Some("unchanged")));
    assert!(lines(&outcome, "scenario").is_empty(), "{outcome}");

    arms.project.write("httpbench.toml", HUGE);
    let outcome = arms.judge(&["--baseline", "main", "--force-aa"]);
    outcome.assert_code(0).assert_silent_about(&["identical to"]);
    for scenario in ["index", "page"] {
        let found = verdicts(&outcome, scenario);
        assert!(!found.is_empty() && !found.contains(&"regressed".to_owned()), "{found:?}\n{outcome}");
    }
    assert_eq!(cell(&outcome, "page", "throughput")["verdict"], "unchanged", "a huge tolerance\n{outcome}");

    arms.project.write("httpbench.toml", "[limit]\np50 = \"100s\"\n");
    let outcome = arms.run(&["page", "--baseline", "main"]);
    outcome.assert_code(0).assert_stderr(&["identical to baseline `main`"]);
    assert_measured_alone(&outcome, 1);
    assert!(lines(&outcome, "scenario")[0]["limits"].to_string().contains("held"), "{outcome}");
}

#[test]
fn slower_scenario_is_regressed_through_cargo_and_its_verdict_is_complete() {
    let arms = Arms::with_main();
    arms.slow_down();
    let outcome =
        undisturbed(|| arms.httpbench().through_cargo().args(SHORT).args(["index", "page", "--baseline", "main"]));
    assert_regressed(&outcome, 100);
    let cell = cell(&outcome, "index", "throughput");
    let number = |name: &str| cell[name].as_f64().unwrap_or_else(|| panic!("{name} in {cell}"));
    assert_eq!((cell["direction"].as_str(), cell["unit"].as_str()), (Some("higher-is-better"), Some("per-second")));
    assert_eq!((cell["verdict"].as_str(), cell["tolerance"].as_f64()), (Some("regressed"), Some(0.03)));
    assert!(number("change_low") <= number("change") && number("change") <= number("change_high"), "{cell}");
    assert!(number("change_high") < -0.2, "5 ms an answer: {cell}");
    assert!(number("candidate") < number("baseline"), "{cell}");
    assert!(number("p_worse") < 0.05 && number("p_better") > 0.5, "{cell}");
    assert!(number("rounds") >= 8.0 && number("fresh_rounds") >= 5.0, "{cell}");
    assert!(cell["with"].as_str().is_some_and(|with| with.starts_with("baseline `main` (saved ")), "{cell}");
    let sha256 = cell["origin"]["executable_sha256"].as_str().unwrap_or_default();
    let stored = arms.bytes_of("main");
    assert!(stored.iter().any(|(path, _)| path.to_string_lossy().contains(sha256)) && sha256.len() == 64, "{cell}");
    assert!(cell["fingerprint"]["toolchain"].as_str().is_some_and(|rustc| rustc.starts_with("rustc 1.")), "{cell}");

    assert_regressed(&arms.judge(&["--baseline", "main", "--no-fail-on-regression"]), 0);

    // A few times slower is within a tolerance of 1000 %.
    arms.project.edit("src/main.rs", SLOWER.1, "from_micros(200)").write("httpbench.toml", HUGE);
    let muted = arms.judge(&["index", "--baseline", "main"]);
    muted.assert_code(0);
    assert_eq!(self::cell(&muted, "index", "throughput")["verdict"], "unchanged", "{muted}");
}

/// What is regressed of `index`.
fn regressed(outcome: &Outcome) -> Vec<String> {
    let cells = lines(outcome, "verdict").into_iter().filter(|cell| cell["verdict"] == "regressed");
    cells.map(|cell| cell["metric"].as_str().expect("a word").to_owned()).collect()
}

#[test]
fn stall_of_200_ms_each_second_is_found_through_the_mean_and_only_there() {
    let arms = Arms::with_main();
    arms.project.edit("src/main.rs", "from_millis(0x0)", "from_millis(200)");
    // A round of 750 ms for each arm sees one stall or two.
    let outcome = arms.judge(&["index", "--duration", "6s", "--baseline", "main"]);
    outcome.assert_code(100).assert_stderr(&["intermittent stalls"]);
    assert_eq!(regressed(&outcome), ["stalls"], "{outcome}");
}

#[test]
fn few_slow_answers_at_a_fixed_arrival_rate_are_found_in_p99_and_only_there() {
    let arms = Arms::with_main();
    arms.project.edit("src/main.rs", "SLOW_PER_MILLE: u64 = 0", "SLOW_PER_MILLE: u64 = 15");
    // 8,000/s for 1.5 s are 12,000 exchanges in each round of an arm, 120 of them beyond p99. The median is muted: it is not
    // certain by its size.
    arms.project.write("httpbench.toml", "[tolerance]\np50 = \"1000%\"\n");
    let load = ["--arrival-rate", "8000", "--rounds", "6", "--duration", "9s", "--connections", "16"];
    let outcome = undisturbed(|| {
        let bounded = arms.httpbench().args(SHORT).args(["index", "--baseline", "main"]);
        bounded.args(load).env("SPIN_US", "5")
    });
    outcome.assert_code(100);
    assert_eq!(regressed(&outcome), ["p99"], "{outcome}");
    assert_eq!(cell(&outcome, "index", "p50")["verdict"], "unchanged", "{outcome}");
}

#[test]
fn uncommitted_slow_down_is_found_against_head_and_the_checkout_stays_as_it_was() {
    let arms = Arms::repository();
    arms.slow_down();
    let before = arms.checkout();
    let outcome = arms.judge(&["--against", "HEAD"]);
    assert_regressed(&outcome, 100);
    outcome.assert_stderr(&["with uncommitted changes", "revision `HEAD`"]).assert_silent_about(&["merge base"]);
    assert_eq!(arms.checkout(), before);
    assert_eq!(before[2].lines().count(), 1, "{before:?}");
}

#[test]
fn revisions_that_differ_only_in_a_library_answer_each_with_its_own_constant() {
    let arms = Arms::repository();
    arms.project.edit("library/src/lib.rs", "= 1", "= 2").commit("second");

    let constants = ["--ignored", "constant_is", "--against"];
    let forward = arms.run(&[&constants[..], &["HEAD~1"]].concat());
    forward.assert_code(100).assert_stderr(&["exchanges failed in the candidate", "exceeded a limit"]);
    assert_all(&forward, "constant_is_1", "inconclusive", "candidate-fails");
    assert_all(&forward, "constant_is_2", "inconclusive", "baseline-fails");

    arms.project.git(&["checkout", "--quiet", "--detach", "HEAD~1"]);
    let back = arms.run(&[&constants[..], &["main", "--exact-rev"]].concat());
    back.assert_code(100);
    assert_all(&back, "constant_is_1", "inconclusive", "baseline-fails");
    assert_all(&back, "constant_is_2", "inconclusive", "candidate-fails");

    // Behind `main`, the merge base is this very commit.
    let behind = arms.run(&["page", "--against", "main"]);
    behind.assert_code(0).assert_stderr(&["merge base", "identical to revision `main`"]);
    assert_measured_alone(&behind, 0);
}

#[test]
fn server_on_a_hard_coded_port_is_compared_with_its_own_faster_revision() {
    let arms = Arms::of("hard-coded-port");
    arms.project.init_repository();
    let slower = "knobs.port = 38417;\n    knobs.delay = std::time::Duration::from_millis(5);";
    arms.project.edit("src/main.rs", "knobs.port = 38417;", slower);
    let outcome = arms.judge(&["--against", "HEAD"]);
    outcome.assert_code(100);
    assert_eq!(cell(&outcome, "index", "throughput")["verdict"], "regressed", "{outcome}");
}

#[test]
fn missing_baseline_is_a_warning_here_and_108_in_ci() {
    let arms = Arms::of("changing");
    let kept = arms.kept.to_str().expect("text").to_owned();
    let save = "cargo httpbench --save-baseline main";
    let words = ["there is no baseline `main` of package `changing`", "searched", kept.as_str(), save];
    assert_follows_policy(&arms, &["--baseline", "main"], &words);
    let outcome = arms.httpbench().args(SHORT).args(["page", "--baseline", "main"]).env("CI", "true").run();
    outcome.assert_code(108);
    let ignored = arms.run(&["page", "--ci", "--on-missing", "ignore", "--baseline", "main"]);
    ignored.assert_code(0).assert_silent_about(&["no baseline `main`"]);

    // An empty folder is no baseline either, and the names that there are are told.
    fs::create_dir_all(arms.kept.join("main/changing")).expect("a folder can be made");
    arms.httpbench().short().args(["page", "--save-baseline", "other"]).run().assert_code(0);
    arms.run(&["page", "--ci", "--baseline", "main"]).assert_code(108).assert_stderr(&["other"]);
}

#[test]
fn new_removed_and_renamed_scenarios_are_told_apart_and_a_removed_one_fails_in_ci() {
    let arms = Arms::with_main();
    arms.project.write("httpbench.toml", HUGE);
    let bench = fs::read_to_string(arms.project.root().join("benches/http.rs")).expect("a bench");
    let with = |text: &str| arms.project.write("benches/http.rs", text);

    let third = "/// New.\n#[http_bench]\nfn third() -> Request {\n    Request::get(\"/page/3\")\n}\n\nfn main";
    with(&bench.replace("fn main", third));
    let added = arms.judge(&["--ci", "--baseline", "main", "--force-aa"]);
    added.assert_code(0).assert_stderr(&["new, not compared: third"]);
    let [sides] = &lines(&added, "one-sided")[..] else { panic!("{added}") };
    assert_eq!(sides["only_in_candidate"], serde_json::json!(["third"]));
    assert_eq!(sides["only_in_baseline"], serde_json::json!([]));
    assert!(verdicts(&added, "third").is_empty() && !verdicts(&added, "page").is_empty(), "{added}");

    with(&bench.replace("Request::get(\"/page/1\")", "Request::get(\"/page/2\")"));
    let redefined = arms.judge(&["page", "--ci", "--baseline", "main", "--force-aa"]);
    redefined.assert_code(0).assert_stderr(&["changed since the baseline: page"]);
    assert_eq!(lines(&redefined, "one-sided")[0]["redefined"], serde_json::json!(["page"]), "{redefined}");

    with(&bench.replace("fn page()", "fn first_page()"));
    let renamed = arms.judge(&["--baseline", "main", "--force-aa"]);
    renamed.assert_code(0).assert_stderr(&["removed since the baseline: page", "looks like a rename to first_page"]);
    let [sides] = &lines(&renamed, "one-sided")[..] else { panic!("{renamed}") };
    assert_eq!(sides["only_in_candidate"], serde_json::json!(["first_page"]));
    let removed = serde_json::json!([{ "name": "page", "looks_renamed_to": "first_page" }]);
    assert_eq!(sides["only_in_baseline"], removed);
    let ci = arms.judge(&["--ci", "--baseline", "main", "--force-aa"]);
    ci.assert_code(108).assert_stderr(&["removed since the baseline: page"]);
    // Who asks for `index` alone has not missed `page`.
    arms.judge(&["index", "--ci", "--baseline", "main", "--force-aa"])
        .assert_code(0)
        .assert_silent_about(&["removed since the baseline"]);

    with(&bench.replace("fn page()", "fn b()").replace("fn index()", "fn a()"));
    let nothing = arms.judge(&["--baseline", "main", "--force-aa"]);
    nothing.assert_code(0).assert_stderr(&["nothing could be compared", "new, not compared: a", "baseline: index"]);
    arms.judge(&["--ci", "--baseline", "main", "--force-aa"])
        .assert_code(108)
        .assert_stderr(&["nothing could be compared"]);
}

#[test]
fn damaged_executable_is_never_started_and_its_numbers_are_compared_instead() {
    let arms = Arms::with_main();
    arms.project.write("httpbench.toml", HUGE);
    let (path, mut bytes) = arms.bytes_of("main").into_iter().max_by_key(|(_, bytes)| bytes.len()).expect("two files");
    *bytes.last_mut().expect("not empty") ^= 1;
    fs::write(path, bytes).expect("written");
    let outcome = arms.run(&["page", "--baseline", "main"]);
    outcome.assert_code(0).assert_stderr(&["numbers only", "was damaged", "SHA-256", "weaker", "--save-baseline main"]);
    let cell = cell(&outcome, "page", "throughput");
    assert_eq!(cell["basis"], "numbers-only", "{outcome}");
    assert!(cell["change"].is_number(), "{outcome}");

    // Nor is one that a later version wrote, whatever the policy.
    let text = arms.kept.join("main/changing/baseline.json");
    fs::write(&text, r#"{ "schema": 9, "needs_httpbench": "3.1.0" }"#).expect("written");
    let later = arms.run(&["page", "--baseline", "main", "--on-missing", "ignore"]);
    later.assert_code(96).assert_stderr(&["cargo-httpbench ≥ 3.1.0"]);
}

#[test]
fn comparing_with_one_baseline_and_saving_another_leaves_the_first_as_it_was() {
    let arms = Arms::with_main();
    arms.project.write("httpbench.toml", HUGE);
    let before = arms.bytes_of("main");
    let outcome = arms.judge(&["--baseline", "main", "--save-baseline", "feature"]);
    outcome.assert_code(0).assert_stderr(&["baseline `feature`"]);
    assert!(!verdicts(&outcome, "page").is_empty(), "it is measured because it is to be kept\n{outcome}");
    assert_eq!(arms.bytes_of("main"), before);
    assert_eq!(arms.bytes_of("feature").len(), before.len());

    // What others compare with is not replaced for a pull request, nor is anything measured for a folder that cannot be written.
    let refused = |httpbench: Httpbench<'_>, exit: i32, words: &[&str]| {
        let outcome = httpbench.args(SHORT).args(["page", "--save-baseline", "main"]).run();
        outcome.assert_code(exit).assert_stderr(words);
        assert!(lines(&outcome, "scenario").is_empty(), "it is refused before anything is measured\n{outcome}");
    };
    let pull_request = [("CI", "true"), ("GITHUB_ACTIONS", "true"), ("GITHUB_EVENT_NAME", "pull_request")];
    let in_ci = pull_request.iter().fold(arms.httpbench(), |run, (name, value)| run.env(name, value));
    refused(in_ci, 96, &["baseline `main` is not replaced", "allow-save-in-ci"]);
    let file = arms.project.root().join("Cargo.toml");
    refused(
        arms.httpbench().env("HTTPBENCH_BASELINE_DIR", file),
        110,
        &["baselines cannot be written", "baseline-dir"],
    );
    assert_eq!(arms.bytes_of("main"), before);
}

#[test]
fn revision_that_does_not_compile_is_told_in_cargos_words() {
    let arms = Arms::of("changing");
    arms.project.edit("src/main.rs", "from_millis(0)", "from_fortnights(0)").init_repository();
    arms.project.edit("src/main.rs", "from_fortnights(0)", "from_millis(0)");
    let words = ["does not build", "from_fortnights", "error[E0599]"];
    assert_follows_policy(&arms, &["--against", "HEAD"], &words);
}

#[test]
fn tolerance_on_a_quantile_that_the_plan_does_not_support_is_96_with_a_duration() {
    let arms = Arms::with_main();
    arms.project.write("httpbench.toml", "[tolerance]\np99 = \"20%\"\n");
    let outcome = arms.run(&["page", "--baseline", "main", "--force-aa"]);
    outcome.assert_code(96).assert_stderr(&["`page`: p99 rests on", "duration = \"", "100 exchanges"]);
    assert!(lines(&outcome, "verdict").is_empty(), "{outcome}");
}

#[test]
fn failures_in_the_baseline_alone_are_inconclusive_and_in_both_arms_invalid() {
    let arms = Arms::of("changing");
    arms.project.edit("src/main.rs", "= 200", "= 500").init_repository();
    arms.project.edit("src/main.rs", "= 500", "= 200");
    let mended = arms.run(&["index", "--against", "HEAD"]);
    mended.assert_code(0).assert_stderr(&["exchanges failed in the baseline"]);
    assert_all(&mended, "index", "inconclusive", "baseline-fails");
    arms.run(&["index", "--against", "HEAD", "--on-inconclusive", "fail"]).assert_code(108);

    // In the candidate alone they exceed its limit, in both too; a limit that accepts them leaves nothing to compare.
    let both = arms.run(&["--ignored", "missing", "--against", "HEAD"]);
    both.assert_code(100).assert_stderr(&["exceeded a limit", "exchanges failed in both arms"]);
    assert_all(&both, "missing", "invalid", "both-fail");
    arms.project.write("httpbench.toml", "[limit]\nerrors = \"100%\"\n");
    let accepted = arms.run(&["--ignored", "missing", "--against", "HEAD"]);
    accepted.assert_code(107);
}

#[test]
fn ctrl_c_in_a_comparison_leaves_no_process_and_no_worktree() {
    let arms = Arms::repository();
    arms.slow_down();
    let before = arms.checkout();
    let mark = arms.project.beside("mark");
    // Both servers are up and under load when one of them has answered so often.
    let save = ["--save-baseline", "half"];
    let run = arms.httpbench().args(["page", "--against", "HEAD", "--duration", "600s", "--warm-up", "0s"]).args(save);
    let mut run = run.env("MARK", &mark).env("MARK_AFTER", "200").start();
    run.wait_for_file(&mark);
    run.signal_group(Signal::SIGINT);
    run.wait().assert_code(130);
    assert!(!arms.kept.join("half/changing").exists(), "half a baseline was saved");
    assert_eq!(arms.checkout(), before);
    assert_eq!(before[2].lines().count(), 1, "{before:?}");
}
