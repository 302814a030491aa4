//! How the command fails: what happened, why, what to do next, and the exit code.

use std::error::Error as StdError;
use std::fmt;

use crate::exit_code::ExitCode;

/// A failure that ends the run, or one package's or scenario's part of it.
///
/// Every part is a text for the user. [`crate::shell`] lays them out.
#[derive(Debug)]
pub struct Error {
    /// The code to exit with.
    pub exit: ExitCode,
    /// What happened: a lower-case fragment without a full stop, names in backticks.
    pub what: String,
    /// Why, as far as another library knows.
    pub cause: Option<Box<dyn StdError + Send + Sync>>,
    /// Facts to look at: the last lines of a log, a list of candidates. Shown as they are.
    pub details: Vec<Details>,
    /// What to do next, as a sentence without its full stop.
    pub help: Option<String>,
}

/// A titled block of lines.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Details {
    /// Such as ``last 20 lines of `todo-axum` ``.
    pub title: String,
    /// Shown as they are, one by one.
    pub lines: Vec<String>,
}

impl Error {
    /// A failure with nothing but its code and what happened.
    #[must_use]
    pub fn new(exit: ExitCode, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), cause: None, details: Vec::new(), help: None }
    }

    /// Something that should not happen: exit code 1, and the user is asked for a report.
    #[must_use]
    pub fn unexpected(what: impl Into<String>, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(ExitCode::Unexpected, what).caused_by(cause)
    }

    /// Adds the error underneath, with its own sources.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a titled block of lines.
    #[must_use]
    pub fn details(mut self, title: impl Into<String>, lines: impl IntoIterator<Item = String>) -> Self {
        self.details.push(Details { title: title.into(), lines: lines.into_iter().collect() });
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.what)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as &(dyn StdError + 'static))
    }
}

/// The result of anything that can end the run.
pub type Result<T, E = Error> = std::result::Result<T, E>;
