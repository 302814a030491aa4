//! What is to be started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::exit_code::ExitCode;

/// A program to be started, and everything that it is given.
#[derive(Debug)]
pub struct Launch {
    /// What messages call it, such as `todo-axum`.
    pub name: String,
    /// The executable: a path, or a name that is looked for in the `PATH` of `env`.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working directory.
    pub current_dir: PathBuf,
    /// Its whole environment: nothing is inherited.
    pub env: BTreeMap<OsString, OsString>,
    /// Its standard input.
    pub stdin: Input,
    /// Its standard output.
    pub stdout: Output,
    /// Its standard error.
    pub stderr: Output,
    /// The cores that it may run on. Empty: all that the command may use.
    pub cores: Vec<u32>,
    /// What becomes of the ports that its listeners ask for.
    pub bind: Bind,
    /// A descriptor that it gets beside the standard ones.
    pub inherit: Option<InheritedDescriptor>,
    /// The exit code of the run if it cannot be started.
    pub exit: ExitCode,
}

/// A descriptor that stays open in the program.
#[derive(Debug)]
pub struct InheritedDescriptor {
    /// Closed on our side once the program runs.
    pub descriptor: OwnedFd,
    /// The environment variable that tells the program its number.
    pub variable: OsString,
}

/// Where standard input comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// Always at its end.
    #[default]
    Null,
    /// The command's own.
    Inherit,
}

/// Where standard output or error goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Nowhere.
    Null,
    /// Where the command's own goes.
    Inherit,
    /// Into the child's [`LogTail`](super::LogTail). If both do, their bytes stay in the order of their arrival.
    #[default]
    Log,
    /// Into a pipe for the caller to read: [`Child::take_stdout`](super::Child::take_stdout). It must be read, or the
    /// program blocks.
    Piped,
}

/// What becomes of the ports that a program and its whole tree ask for by `bind`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bind {
    /// The kernel decides, as ever.
    #[default]
    AsAsked,
    /// A stream socket that asks for a fixed port, on a loopback or wildcard address of either family, gets another one; `bind`
    /// succeeds, and only `getsockname` shows the difference. Everybody in the tree who asks for the same port gets the same
    /// one, so that workers share it (SO_REUSEPORT) or are refused (EADDRINUSE) as ever. All else is as asked: port 0, other
    /// addresses, datagrams, Unix sockets, and all connections that the program makes.
    ///
    /// A program that *connects* to its own fixed port finds nobody there, or somebody else. Programs in the tree that are
    /// setuid or have file capabilities run without them (`no_new_privs`), and cannot install a seccomp listener of their own.
    /// Sockets bound by io_uring are not seen. Where a container forbids pidfd_getfd (Docker's default does), the port is
    /// changed in the program's memory instead, where a program that reads its own address structure again sees it.
    Redirect {
        /// Where the first fixed port goes, if it is free. Others go to free ports, and so does this one if the program asks for
        /// it by itself when it is taken. 0: the first goes to any free port, too.
        port: u16,
    },
}

/// A fixed port that a program asked for, and the one that it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirected {
    /// What it asked for.
    pub from: u16,
    /// What it got. The same, if it asked for the port that was meant for it.
    pub to: u16,
}

impl Launch {
    /// A program with an empty environment and its output in the log.
    #[must_use]
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>, current_dir: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            args: Vec::new(),
            current_dir: current_dir.into(),
            env: BTreeMap::new(),
            stdin: Input::default(),
            stdout: Output::default(),
            stderr: Output::default(),
            cores: Vec::new(),
            bind: Bind::default(),
            inherit: None,
            exit: ExitCode::Unexpected,
        }
    }

    /// The command line as a shell would take it, for messages.
    #[must_use]
    pub fn command_line(&self) -> String {
        let program = self.program.as_os_str();
        let words: Vec<_> = std::iter::once(program)
            .chain(self.args.iter().map(|arg| &**arg))
            .map(|word| quoted(&word.to_string_lossy()))
            .collect();
        words.join(" ")
    }
}

/// One word of a command line, in single quotes where a shell would need them.
fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-_./:=,@%+{}[]".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_can_be_pasted_into_a_shell() {
        let mut launch = Launch::new("x", "/my servers/x", "/");
        launch.args = vec!["--listen".into(), "127.0.0.1:80".into(), "it's".into(), "".into()];
        assert_eq!(launch.command_line(), r"'/my servers/x' --listen 127.0.0.1:80 'it'\''s' ''");
    }
}
