//! An error, for a person: what happened, why, facts to look at, and what to do next.
//!
//! Lays out only; [`crate::shell`] prints it. Every part but the first is left out where the error has none.

use std::error::Error as _;
use std::fmt::Write;

use crate::error::Error;
use crate::exit_code::ExitCode;
use crate::style::{self, paint};

/// What is asked for where nobody knows anything better.
const REPORT: &str = "this is a bug in cargo-httpbench: please report it with the command line and the text above";

/// The whole error, in lines that end with a line end.
#[must_use]
pub fn render_failure(error: &Error) -> String {
    let mut text = format!("{}: {}\n", paint(style::ERROR, "error"), error.what);
    text.push_str(&render_details(error));
    let help = match error.exit {
        ExitCode::Unexpected => Some(error.help.as_deref().unwrap_or(REPORT)),
        _ => error.help.as_deref(),
    };
    if let Some(help) = help {
        let _ = writeln!(text, "\n{}: {help}", paint(style::HELP, "help"));
    }
    text
}

/// What stands behind an error: its causes, and the facts to look at.
#[must_use]
pub fn render_details(error: &Error) -> String {
    let mut text = String::new();
    let mut cause = error.source();
    if cause.is_some() {
        text.push_str("\nCaused by:\n");
    }
    let mut before = String::new();
    while let Some(reason) = cause {
        let told = reason.to_string();
        // Some libraries' errors repeat in their own text what stands underneath.
        if !before.ends_with(&told) {
            for line in told.lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
        before = told;
        cause = reason.source();
    }
    for details in &error.details {
        let _ = writeln!(text, "\n{}:", details.title);
        for line in &details.lines {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}
