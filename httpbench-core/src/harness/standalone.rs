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
            match scenario.render(["localhost"]) {
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
