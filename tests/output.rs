//! What is written, where, and how it looks when nobody is watching.

use std::fs::File;
use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use httpbench_tests::{Outcome, Project};
use nix::pty::{OpenptyResult, Winsize, openpty};

const ESCAPE: char = '\u{1b}';

fn index(project: &Project, arguments: &[&str]) -> Outcome {
    let outcome = project.httpbench().short().arg("index").args(arguments).run();
    outcome.assert_code(0);
    outcome
}

#[test]
fn report_is_on_standard_output_and_progress_is_not() {
    let project = Project::copy("plain");
    let outcome = index(&project, &[]);
    outcome.assert_stdout(&["index", "/s"]);
    let twice = outcome.stdout.lines().find(|line| line.len() > 30 && outcome.stderr.contains(line));
    assert_eq!(twice, None, "the report is on standard error too\n{outcome}");
}

#[test]
fn piped_output_has_no_escapes_and_no_carriage_returns() {
    let project = Project::copy("plain");
    let outcome = index(&project, &[]);
    for stream in [&outcome.stdout, &outcome.stderr] {
        assert!(!stream.contains([ESCAPE, '\r']), "{outcome}");
    }
}

#[test]
fn colour_is_there_when_it_is_asked_for() {
    let project = Project::copy("plain");
    let outcome = index(&project, &["--color", "always"]);
    assert!(outcome.stdout.contains(ESCAPE), "{outcome}");
}

#[test]
fn flag_for_colour_wins_over_no_color_and_no_color_wins_over_the_terminal() {
    let project = Project::copy("plain");
    let run = |arguments: &[&str]| project.httpbench().short().arg("index").args(arguments).env("NO_COLOR", "1").run();
    assert!(!run(&[]).stdout.contains(ESCAPE));
    assert!(run(&["--color", "always"]).stdout.contains(ESCAPE));
    assert!(!run(&["--color", "never"]).stdout.contains(ESCAPE));
}

#[test]
fn piped_progress_is_a_line_for_each_scenario() {
    let project = Project::copy("plain");
    let outcome = project.httpbench().short().args(["index", "slow"]).run();
    outcome.assert_code(0);
    for name in ["index", "slow"] {
        let lines = outcome.stderr.lines().filter(|line| line.contains(name)).count();
        assert_eq!(lines, 1, "progress lines of {name}\n{outcome}");
    }
}

#[test]
fn nothing_is_drawn_on_a_terminal_while_slices_are_measured() {
    // BG-67
    let project = Project::copy("plain");
    project.httpbench().arg("--no-run").run().assert_code(0); // Cargo's silence while it compiles would look alike.
    let size = Winsize { ws_row: 25, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let OpenptyResult { master, slave } = openpty(&size, None).expect("a terminal");
    let reader = thread::spawn(move || {
        let (mut master, mut buffer, mut text) = (File::from(master), [0; 4096], Vec::new());
        let (mut last, mut silences) = (Instant::now(), Vec::new());
        // At the end of a terminal that nobody holds any more, Linux answers EIO.
        while let Some(count) = master.read(&mut buffer).ok().filter(|count| *count > 0) {
            silences.push(last.elapsed());
            last = Instant::now();
            text.extend_from_slice(&buffer[..count]);
        }
        (String::from_utf8_lossy(&text).into_owned(), silences)
    });
    let two_rounds = ["index", "--quick", "--rounds", "2", "--duration", "4s", "--warm-up", "20ms"];
    project.httpbench().args(two_rounds).on_terminal(File::from(slave)).run().assert_code(0);
    let (text, silences) = reader.join().expect("it reads");
    assert!(text.contains("index") && text.contains(ESCAPE), "{text}");
    // A round of 2 s is one silence.
    let rounds = silences.iter().filter(|silence| **silence >= Duration::from_millis(1900)).count();
    assert_eq!(rounds, 2, "{silences:?}\n{text}");
}

#[test]
fn json_is_alone_on_standard_output_and_every_line_says_what_it_is() {
    let project = Project::copy("plain");
    let run = project.httpbench().short().args(["index", "page", "--message-format", "json"]);
    let outcome = run.env("CHATTY", "1").env("SPAM_STDOUT_MB", "1").run();
    outcome.assert_code(0);
    let lines = outcome.json_lines(); // Parses every line, and asserts `reason` and `schema`.
    assert!(!lines.is_empty(), "{outcome}");
    assert!(lines.iter().any(|line| line.to_string().contains("index")), "{outcome}");
    let last = lines.last().expect("a line");
    assert!(last["load_average_at_start"].is_number() && last["load_average_at_end"].is_number(), "{last}");
    assert!(!outcome.stderr.is_empty(), "human text belongs on standard error\n{outcome}");
    outcome.assert_silent_about(&["spam spam", "printed by the bench target"]);
}

#[test]
fn json_holds_numbers_for_every_scenario_and_no_nan() {
    let project = Project::copy("plain");
    let outcome = project.httpbench().short().args(["index", "slow", "--message-format", "json"]).run();
    outcome.assert_code(0);
    let lines = outcome.json_lines();
    for name in ["index", "slow"] {
        let text: String = lines.iter().map(ToString::to_string).filter(|line| line.contains(name)).collect();
        assert!(text.contains("throughput") && text.contains("p99"), "{name}: {text}\n{outcome}");
    }
}

#[test]
fn json_of_a_failed_run_is_still_json_and_the_words_are_on_standard_error() {
    let project = Project::copy("plain");
    let run = project.httpbench().short().args(["index", "--message-format", "json"]);
    let outcome = run.env("DIE_AT_START", "1").run();
    outcome.assert_code(105).assert_stderr(&["no licence for the flux capacitor"]);
    _ = outcome.json_lines();
}

#[test]
fn json_names_the_metric_the_unit_and_the_bound_of_a_limit_that_was_exceeded() {
    let project = Project::copy("plain");
    let outcome = project.httpbench().short().args(["--ignored", "too_ambitious", "--message-format", "json"]).run();
    outcome.assert_code(100);
    let lines = outcome.json_lines();
    let text: String = lines.iter().map(ToString::to_string).collect();
    for word in ["throughput", "per-second", "higher-is-better", "1000000000"] {
        assert!(text.contains(word), "the JSON lacks {word:?}\n{outcome}");
    }
}

#[test]
fn no_samples_are_null_and_words_not_numbers() {
    let project = Project::copy("plain");
    let json = project.httpbench().short().args(["--ignored", "missing", "--message-format", "json"]).run();
    json.assert_code(100);
    _ = json.json_lines();
    json.assert_silent_about(&["NaN", "inf,"]);
    let human = project.httpbench().short().args(["--ignored", "missing"]).run();
    human.assert_code(100).assert_stdout(&["no samples"]).assert_silent_about(&["NaN"]);
}

#[test]
fn reader_that_goes_away_is_no_panic_and_the_server_is_stopped() {
    let project = Project::copy("plain");
    for format in ["json", "human"] {
        let mut run = project.httpbench().short().args(["index", "page", "--message-format", format]).start();
        run.close_stdout();
        let outcome = run.wait();
        outcome.assert_silent_about(&["panicked", "RUST_BACKTRACE"]).assert_nothing_left();
        assert!(matches!(outcome.code(), Some(0 | 110)), "{outcome}");
    }
}

#[test]
fn report_that_cannot_be_written_is_110() {
    let project = Project::copy("plain");
    for format in ["json", "human"] {
        let run = project.httpbench().short().args(["index", "--message-format", format]);
        run.stdout_to("/dev/full").run().assert_code(110).assert_stderr(&["standard output"]);
    }
}

#[test]
fn report_in_a_file_is_plain() {
    let project = Project::copy("plain");
    let path = project.beside("report.txt");
    project.httpbench().short().arg("index").stdout_to(&path).run().assert_code(0);
    let report = std::fs::read_to_string(path).unwrap();
    assert!(report.contains("index") && !report.contains([ESCAPE, '\r']), "{report}");
}

#[test]
fn quiet_leaves_the_report_alone_on_the_stage() {
    let project = Project::copy("plain");
    let outcome = index(&project, &["-q"]);
    outcome.assert_stdout(&["index"]);
    assert_eq!(outcome.stderr, "");
}
