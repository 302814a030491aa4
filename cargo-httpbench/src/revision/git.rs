//! How git is called: supervised, without hooks, and on the repository that is meant.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::process::{Ended, Launch, Output, run_to_end};

/// How long git may take to end after a signal: it removes what it had begun.
const GRACE: Duration = Duration::from_secs(2);

/// Variables that make git work on another repository, index or set of objects. Git sets them for its hooks and aliases,
/// which people start us from. They are those of `git rev-parse --local-env-vars`, without the ones that only carry
/// configuration: `safe.directory` comes that way in containers.
const REDIRECTING: [&str; 18] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Hooks are the user's own workflow, no part of the revision. The others would leave processes behind.
const SETTINGS: [&str; 4] = ["core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false"];

/// Git, for every call of a run. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Git {
    environment: Environment,
    interrupt: Interrupt,
}

/// What one call said.
#[derive(Clone, Debug)]
pub(super) struct GitOutput {
    /// How it ended.
    pub(super) ended: Ended,
    /// Its standard output.
    pub(super) stdout: Vec<u8>,
    /// Its standard error, line by line.
    pub(super) words: Vec<String>,
    /// The command as a shell would take it.
    pub(super) command_line: String,
}

impl Git {
    /// The git of the user's environment. Calls end early, with an error, once `interrupt` is set.
    #[must_use]
    pub fn new(own: &Environment, interrupt: &Interrupt) -> Self {
        let mut environment = without_redirection(own);
        // Its words are told apart, and quoted in messages that are English too.
        environment.set("LC_ALL", "C");
        environment.remove("LANGUAGE");
        // Nobody is asked for a password: no terminal belongs to a supervised child.
        environment.set("GIT_TERMINAL_PROMPT", "0");
        Self { environment, interrupt: interrupt.clone() }
    }

    /// Runs git in `folder`. A call that fails is an output.
    ///
    /// # Errors
    ///
    /// When there is no git, or a signal came.
    pub(super) fn call<S: AsRef<OsStr>>(&self, folder: &Path, args: impl IntoIterator<Item = S>) -> Result<GitOutput> {
        let mut launch = Launch::new("git", "git", folder);
        launch.args.push("--no-optional-locks".into());
        launch.args.extend(SETTINGS.iter().flat_map(|setting| ["-c".into(), OsString::from(setting)]));
        launch.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        launch.env = self.environment.clone().into();
        launch.stdout = Output::Piped;
        launch.stderr = Output::Piped;
        launch.exit = ExitCode::Configuration;
        let command_line = launch.command_line();
        let captured = run_to_end(launch, GRACE, &self.interrupt).map_err(|error| match error.exit {
            ExitCode::Configuration => error.help("install git, or put it on the `PATH`: `--against` needs it"),
            _ => error,
        })?;
        let words = String::from_utf8_lossy(&captured.stderr).lines().map(str::to_owned).collect();
        Ok(GitOutput { ended: captured.ended, stdout: captured.stdout, words, command_line })
    }
}

impl GitOutput {
    /// Its only line, if it succeeded and wrote one.
    pub(super) fn line(&self) -> Option<OsString> {
        let line = self.stdout.strip_suffix(b"\n").unwrap_or(&self.stdout);
        (self.ended.is_success() && !line.is_empty()).then(|| OsString::from_vec(line.to_owned()))
    }

    /// Its only line as text. Object names and references are.
    pub(super) fn text(&self) -> Option<String> {
        self.line().map(|line| line.to_string_lossy().into_owned())
    }

    /// The paths of a list that `-z` ends with zeros.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let parts = self.stdout.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        parts.map(|part| PathBuf::from(OsString::from_vec(part.to_owned()))).collect()
    }

    /// An error with git's own words.
    pub(super) fn error(&self, exit: ExitCode, what: impl Into<String>) -> Error {
        Error::new(exit, what)
            .details("git's own words", self.words.iter().cloned())
            .details("the call", [format!("{} ({})", self.command_line, self.ended)])
    }
}

/// An environment in which git finds the repository that it stands in.
pub(super) fn without_redirection(own: &Environment) -> Environment {
    let mut environment = own.clone();
    for name in REDIRECTING {
        environment.remove(name);
    }
    environment
}
