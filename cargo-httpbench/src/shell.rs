//! The only module that writes to standard output and standard error.
//!
//! Standard output carries the answer: the report, a list, or JSON lines. Everything else goes to standard error. Nothing
//! is drawn while a slice of a round is measured, because nobody calls this module then; `load` has one live line.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anstyle::Style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::cargo::{Color, Verbosity};
use crate::cli::{MessageFormat, OutputOptions};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::report::{json, render_details, render_failure};
use crate::style::{self, paint};
use crate::warning::Warning;

/// The schema version that every JSON line carries. Raised with every change that an older reader would misread.
pub const SCHEMA: u32 = 1;

/// The terminal, or what stands in for it.
#[derive(Debug)]
pub struct Shell {
    verbosity: Verbosity,
    format: MessageFormat,
    progress: Option<ProgressBar>,
    reader: Reader,
    warned: Vec<Warning>,
}

/// Whether somebody still reads standard output.
#[derive(Debug, PartialEq, Eq)]
enum Reader {
    Listening,
    Gone,
}

impl Shell {
    /// A shell that speaks as the command line says.
    #[must_use]
    pub fn new(options: OutputOptions) -> Self {
        match options.color {
            Color::Auto => {}
            Color::Always => anstream::ColorChoice::Always.write_global(),
            Color::Never => anstream::ColorChoice::Never.write_global(),
        }
        Self {
            verbosity: options.verbosity,
            format: options.format,
            progress: None,
            reader: Reader::Listening,
            warned: Vec::new(),
        }
    }

    /// What standard output carries.
    #[must_use]
    pub fn format(&self) -> MessageFormat {
        self.format
    }

    /// Columns to lay a report out for: of the stream that the report goes to, 100 where that is no terminal.
    #[must_use]
    pub fn width(&self) -> usize {
        let size = match self.format {
            MessageFormat::Human => terminal_size::terminal_size_of(io::stdout()),
            MessageFormat::Json => terminal_size::terminal_size_of(io::stderr()),
        };
        size.map_or(100, |(terminal_size::Width(columns), _)| usize::from(columns))
    }

    /// Says what is being done: a right-aligned verb and its object.
    pub fn status(&mut self, verb: &str, object: &str) {
        if self.verbosity != Verbosity::Quiet {
            self.say(&format!("{role}{verb:>12}{role:#} {object}", role = style::STATUS));
        }
    }

    /// Says what only `-v` wants to know.
    pub fn verbose(&mut self, text: &str) {
        if self.verbosity == Verbosity::Verbose {
            self.say(&paint(style::QUIET, text));
        }
    }

    /// Says what one reads in a log and does not need on a terminal, where the progress line tells it.
    pub fn milestone(&mut self, verb: &str, object: &str) {
        if !io::stderr().is_terminal() {
            self.status(verb, object);
        }
    }

    /// Passes on what another program wrote.
    pub fn echo(&mut self, text: &str) {
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Says what deserves a look, though the run goes on; as a JSON line, too. The same is said once.
    ///
    /// # Errors
    ///
    /// As [`Shell::answer`].
    pub fn warning(&mut self, warning: &Warning) -> Result<()> {
        // The workspace's configuration is read once for each of its packages.
        if self.warned.contains(warning) {
            return Ok(());
        }
        self.warned.push(warning.clone());
        self.labelled(style::WARNING, "warning", &warning.to_string());
        self.object("warning", &json::warning_object(warning))
    }

    /// What was warned of so far.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warned
    }

    /// Says what failed: what happened, why, facts to look at, and what to do next; as a JSON line, too.
    ///
    /// # Errors
    ///
    /// As [`Shell::answer`].
    pub fn failure(&mut self, error: &Error) -> Result<()> {
        self.say_lines(&render_failure(error));
        self.object("error", &json::error_object(error))
    }

    /// Says what stands behind an error: its causes, and the facts to look at.
    pub fn explain_details(&mut self, error: &Error) {
        self.say_lines(&render_details(error));
    }

    fn say_lines(&mut self, text: &str) {
        text.lines().for_each(|line| self.say(line));
    }

    /// Writes a part of the answer for a person: to standard output, or to standard error where that carries JSON.
    ///
    /// # Errors
    ///
    /// When it cannot be written (exit code 110). A reader that has gone is not an error: it had enough.
    pub fn answer(&mut self, text: &str) -> Result<()> {
        match self.format {
            MessageFormat::Human => self.write_out(text),
            MessageFormat::Json => {
                if self.verbosity != Verbosity::Quiet {
                    self.say(text.trim_end_matches('\n'));
                }
                Ok(())
            }
        }
    }

    /// Writes a JSON line with its `reason` and `schema`, where standard output carries JSON.
    ///
    /// # Errors
    ///
    /// As [`Shell::answer`].
    pub fn object<T: Serialize>(&mut self, reason: &str, of: &T) -> Result<()> {
        #[derive(Serialize)]
        struct Line<'a, T> {
            reason: &'a str,
            schema: u32,
            #[serde(flatten)]
            of: &'a T,
        }
        if self.format == MessageFormat::Human {
            return Ok(());
        }
        let mut text = serde_json::to_string(&Line { reason, schema: SCHEMA, of })
            .map_err(|cause| Error::unexpected(format!("a `{reason}` object cannot be written as JSON"), cause))?;
        text.push('\n');
        self.write_out(&text)
    }

    /// Shows that `done` of `total` steps are over and how long the rest will take. Draws on a terminal only.
    pub fn progress(&mut self, done: u64, total: u64, left: Duration, step: &str) {
        if self.verbosity == Verbosity::Quiet || !io::stderr().is_terminal() {
            return;
        }
        let bar = self.progress.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            let template = "{prefix:>12.green.bold} [{bar:25}] {pos}/{len} {wide_msg}";
            bar.set_style(
                ProgressStyle::with_template(template)
                    .unwrap_or_else(|_| ProgressStyle::default_bar())
                    .progress_chars("=> "),
            );
            bar.set_prefix("Measuring");
            bar
        });
        bar.set_length(total);
        bar.set_position(done);
        bar.set_message(format!("{step}, {} left", seconds(left)));
        bar.tick();
    }

    /// Shows how far a load has come, from 0 to 1, and how it goes. Draws on a terminal only, one line, as often as it is
    /// called: the load goes on meanwhile, so that should be twice a second at most.
    pub fn live(&mut self, verb: &'static str, share: f64, text: &str) {
        /// Of the whole bar.
        const STEPS: u64 = 1_000;
        if self.verbosity == Verbosity::Quiet || !io::stderr().is_terminal() {
            return;
        }
        let bar = self.progress.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{prefix:>12.green.bold} [{bar:25}] {wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_bar())
                    .progress_chars("=> "),
            );
            bar.set_prefix(verb);
            bar
        });
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share from 0 to 1")]
        bar.set_position((share * 1_000.0) as u64);
        bar.set_message(text.to_owned());
        bar.tick();
    }

    /// Says what one reads in a log with `-v`, where no progress line tells it.
    pub fn verbose_milestone(&mut self, verb: &str, object: &str) {
        if self.is_verbose() {
            self.milestone(verb, object);
        }
    }

    /// Whether `-v` was given.
    #[must_use]
    pub fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    /// Takes the progress line away.
    pub fn end_progress(&mut self) {
        if let Some(bar) = self.progress.take() {
            bar.finish_and_clear();
        }
    }

    fn labelled(&mut self, role: Style, label: &str, text: &str) {
        self.say(&format!("{role}{label}{role:#}: {text}"));
    }

    /// A line on standard error, above the progress line if there is one. Nobody listening there is no reason to stop.
    fn say(&mut self, line: &str) {
        let write = || {
            let _ = writeln!(anstream::stderr(), "{line}");
        };
        match &self.progress {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn write_out(&mut self, text: &str) -> Result<()> {
        if self.reader == Reader::Gone {
            return Ok(());
        }
        let write = || {
            let mut out = anstream::stdout();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        };
        let written = match &self.progress {
            Some(bar) => bar.suspend(write),
            None => write(),
        };
        match written {
            Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => {
                self.reader = Reader::Gone;
                Ok(())
            }
            written => written.map_err(|cause| {
                Error::new(ExitCode::OutputFailed, "standard output could not be written")
                    .caused_by(cause)
                    .help("check the space and the permissions where it is redirected to")
            }),
        }
    }
}

/// A rough time left: `50 s`, `3 min`.
fn seconds(left: Duration) -> String {
    match left.as_secs() {
        long if long >= 120 => format!("{} min", long.div_ceil(60)),
        short => format!("{short} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_told_in_seconds_and_then_in_minutes() {
        assert_eq!(
            [0, 59, 119, 120, 150].map(|left| seconds(Duration::from_secs(left))),
            ["0 s", "59 s", "119 s", "2 min", "3 min"]
        );
    }
}
