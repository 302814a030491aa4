//! What a bench binary does without the command: list its scenarios, or render them once and tell whether that works.
//!
//! Starts no server and opens no socket. The texts follow Rust's own test harness, which the tools around it read; its
//! semantics too: a filter that meets nothing passes, because `cargo test --all-targets -- --exact NAME` gives every
//! target the name of one target's test.

use std::ffi::OsString;
use std::io::{self, Write};

use super::FAILED;
use super::arguments::{Action, Arguments, Ignored, USAGE};
use crate::protocol::Hello;
use crate::scenario::WireOptions;
use crate::scenario::registry::{Registry, Scenario};

/// Does what the arguments say. Answers with the exit code.
pub(super) fn run(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    let arguments = match Arguments::read(arguments) {
        Ok(arguments) => arguments,
        Err(why) => {
            eprintln!("error: {why}\n\n{USAGE}");
            return FAILED;
        }
    };
    let registry = match Registry::collect() {
        Ok(registry) => registry,
        Err(error) => {
            eprintln!("error: {error}");
            return FAILED;
        }
    };
    let mut out = io::stdout().lock();
    match act(&arguments, &registry, &mut out).and_then(|code| out.flush().map(|()| code)) {
        Ok(code) => code,
        // `--list | head -1` has got what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            eprintln!("error: standard output could not be written: {error}");
            FAILED
        }
    }
}

fn act(arguments: &Arguments, registry: &Registry, out: &mut impl Write) -> io::Result<i32> {
    match arguments.action {
        Action::Help => write!(out, "{USAGE}{}", unoptimised()).map(|()| 0),
        Action::Explain => explain(registry, out).map(|()| 0),
        Action::List => list(arguments, registry, out).map(|()| 0),
        Action::Render => render(arguments, registry, out),
    }
}

fn explain(registry: &Registry, out: &mut impl Write) -> io::Result<()> {
    let count = counted(registry.iter().count());
    writeln!(out, "This bench target holds {count} of HTTP load. Measure with:\n\n    cargo httpbench\n")?;
    writeln!(out, "which builds the server, starts it, and drives it. If cargo does not know that command:\n")?;
    writeln!(out, "    cargo install cargo-httpbench")?;
    write!(out, "{}", unoptimised())
}

/// A sentence for a build whose own speed would spoil every number.
fn unoptimised() -> &'static str {
    if Hello::ours().debug_build {
        "\nThis executable was built without optimisation. `cargo httpbench` builds its own with the release profile.\n"
    } else {
        ""
    }
}

fn list(arguments: &Arguments, registry: &Registry, out: &mut impl Write) -> io::Result<()> {
    for scenario in registry.iter().filter(|scenario| arguments.selects(&scenario.name)) {
        if arguments.ignored != Ignored::Only || scenario.options.ignore {
            writeln!(out, "{}: benchmark", scenario.name)?;
        }
    }
    Ok(())
}

/// Scenarios by what became of them.
#[derive(Default)]
struct Tally {
    passed: usize,
    ignored: usize,
    filtered: usize,
    failures: Vec<Failure>,
}

struct Failure {
    name: String,
    why: String,
}

fn render(arguments: &Arguments, registry: &Registry, out: &mut impl Write) -> io::Result<i32> {
    let selected: Vec<&Scenario> = registry
        .iter()
        .filter(|scenario| arguments.selects(&scenario.name))
        .filter(|scenario| arguments.ignored != Ignored::Only || scenario.options.ignore)
        .collect();
    let mut tally = Tally { filtered: registry.iter().count() - selected.len(), ..Tally::default() };
    writeln!(out, "\nrunning {}, each called once without a server", counted(selected.len()))?;
    for scenario in selected {
        let word = if scenario.options.ignore && arguments.ignored == Ignored::Unsaid {
            tally.ignored += 1;
            "ignored"
        } else {
            match scenario.render("localhost", WireOptions::default()) {
                Ok(_) => {
                    tally.passed += 1;
                    "ok"
                }
                Err(error) => {
                    tally.failures.push(Failure { name: scenario.name.clone(), why: error.to_string() });
                    "FAILED"
                }
            }
        };
        writeln!(out, "scenario {} ... {word}", scenario.name)?;
    }
    close(&tally, out)?;
    Ok(if tally.failures.is_empty() { 0 } else { FAILED })
}

fn close(tally: &Tally, out: &mut impl Write) -> io::Result<()> {
    if !tally.failures.is_empty() {
        writeln!(out, "\nfailures:\n")?;
        for failure in &tally.failures {
            writeln!(out, "---- {} ----\n{}\n", failure.name, failure.why)?;
        }
    }
    let result = if tally.failures.is_empty() { "ok" } else { "FAILED" };
    writeln!(
        out,
        "\ntest result: {result}. {} passed; {} failed; {} ignored; 0 measured; {} filtered out\n",
        tally.passed,
        tally.failures.len(),
        tally.ignored,
        tally.filtered
    )
}

fn counted(scenarios: usize) -> String {
    format!("{scenarios} {}", if scenarios == 1 { "scenario" } else { "scenarios" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Request;
    use crate::scenario::registry::{Calls, Entry, StaticOptions};

    fn entry(name: &'static str, function: fn() -> Request, ignore: bool) -> Entry {
        let options = StaticOptions {
            connections: None,
            arrival_rate: None,
            duration_ns: None,
            warm_up_ns: None,
            tolerance: &[],
            limit: &[],
            ignore,
        };
        Entry { module: "http", name, doc: "", file: "http.rs", line: 1, options, calls: Calls::Once(function) }
    }

    /// What is printed for a command line, and the exit code, over one good scenario, one ignored and one broken.
    fn printed(line: &str) -> (String, i32) {
        let entries = [
            entry("good", || Request::get("/"), false),
            entry("slow", || Request::get("/slow"), true),
            entry("broken", || Request::get("no-slash"), false),
        ];
        let registry = Registry::of(&entries).unwrap_or_else(|error| panic!("{error}"));
        let arguments = Arguments::read(line.split_whitespace().map(OsString::from)).expect("understood");
        let mut out = Vec::new();
        let code = act(&arguments, &registry, &mut out).expect("printed");
        (String::from_utf8(out).expect("a text"), code)
    }

    #[test]
    fn list_holds_ignored_scenarios_too_and_with_ignored_only_them() {
        assert_eq!(printed("--list").0, "broken: benchmark\ngood: benchmark\nslow: benchmark\n");
        assert_eq!(printed("--list --format terse --ignored"), ("slow: benchmark\n".to_owned(), 0));
        assert_eq!(printed("--list --skip o"), (String::new(), 0));
    }

    #[test]
    fn scenario_that_renders_nothing_sendable_fails_the_run_with_its_reason() {
        let (text, code) = printed("");
        let expected = "
running 3 scenarios, each called once without a server
scenario broken ... FAILED
scenario good ... ok
scenario slow ... ignored

failures:

---- broken ----
the scenario's request cannot be sent: the target \"no-slash\" does not begin with `/`: write \"/no-slash\"


test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out

";
        assert_eq!((text.as_str(), code), (expected, FAILED));
    }

    #[test]
    fn one_scenario_by_its_whole_name_is_rendered_alone() {
        let (text, code) = printed("good --exact --nocapture");
        assert!(
            text.ends_with("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out\n\n"),
            "{text}"
        );
        assert_eq!(code, 0);
        assert!(printed("slow --exact --ignored").0.contains("scenario slow ... ok"));
        assert!(printed("slow --exact").0.contains("scenario slow ... ignored"));
    }

    #[test]
    fn name_of_another_target_s_test_passes_with_nothing_done() {
        let (text, code) = printed("some::unit_test --exact");
        assert!(text.contains("ok. 0 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out"), "{text}");
        assert_eq!(code, 0);
    }

    #[test]
    fn cargo_bench_is_told_how_to_measure() {
        let (text, code) = printed("--bench");
        assert!(text.contains("holds 3 scenarios") && text.contains("    cargo httpbench\n"), "{text}");
        assert_eq!(text.contains("without optimisation"), cfg!(debug_assertions));
        assert_eq!(code, 0);
    }
}
