//! What came of a run, and the questions that tests ask about it.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::Value;

/// A run that has ended.
#[derive(Debug)]
pub struct Outcome {
    pub(crate) command: String,
    pub(crate) status: ExitStatus,
    /// Everything on standard output.
    pub stdout: String,
    /// Everything on standard error.
    pub stderr: String,
    /// From the start to the end of the process.
    pub elapsed: Duration,
    pub(crate) left: Vec<String>,
}

impl Outcome {
    /// The exit code; `None` after a signal.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The signal that ended the process.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Panics unless this is the exit code. In any case nothing may be left of the run: no process, no temporary file.
    #[track_caller]
    pub fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code(), Some(code), "wrong exit code\n{self}");
        self.assert_nothing_left()
    }

    /// Panics if a process or a temporary file is left of the run.
    #[track_caller]
    pub fn assert_nothing_left(&self) -> &Self {
        assert!(self.left.is_empty(), "left behind: {:#?}\n{self}", self.left);
        self
    }

    /// Panics unless every text is on standard error.
    #[track_caller]
    pub fn assert_stderr(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(self.stderr.contains(text), "standard error lacks {text:?}\n{self}");
        }
        self
    }

    /// Panics unless at least one of the texts is on standard error.
    #[track_caller]
    pub fn assert_stderr_any(&self, texts: &[&str]) -> &Self {
        assert!(texts.iter().any(|text| self.stderr.contains(text)), "standard error lacks all of {texts:?}\n{self}");
        self
    }

    /// Panics unless every text is on standard output.
    #[track_caller]
    pub fn assert_stdout(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(self.stdout.contains(text), "standard output lacks {text:?}\n{self}");
        }
        self
    }

    /// Panics if one of the texts is on either stream.
    #[track_caller]
    pub fn assert_silent_about(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(!self.stdout.contains(text) && !self.stderr.contains(text), "nobody should say {text:?}\n{self}");
        }
        self
    }

    /// Standard output as JSON lines. Panics unless each is an object with `reason` and `schema`.
    #[track_caller]
    #[must_use]
    pub fn json_lines(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        for line in self.stdout.lines() {
            match serde_json::from_str::<Value>(line) {
                Ok(value) if value["reason"].is_string() && !value["schema"].is_null() => lines.push(value),
                Ok(value) => panic!("no `reason` or no `schema` in {value}\n{self}"),
                Err(error) => panic!("{error} in {line:?}\n{self}"),
            }
        }
        lines
    }

    /// The names of `NAME: benchmark` lines. Panics if standard output has any other line.
    #[track_caller]
    #[must_use]
    pub fn listed(&self) -> Vec<&str> {
        let name = |line| match str::strip_suffix(line, ": benchmark") {
            Some(name) => name,
            None => panic!("{line:?} is no line of a list\n{self}"),
        };
        self.stdout.lines().map(name).collect()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "$ {}", self.command)?;
        writeln!(out, "{} after {:.1?}", self.status, self.elapsed)?;
        writeln!(out, "---- standard output\n{}", shortened(&self.stdout))?;
        write!(out, "---- standard error\n{}", shortened(&self.stderr))
    }
}

/// A failed test must not print 100 MB.
fn shortened(text: &str) -> String {
    const KEPT: usize = 6000;
    if text.len() <= 2 * KEPT {
        return text.to_owned();
    }
    let (head, tail) = (text.floor_char_boundary(KEPT), text.ceil_char_boundary(text.len() - KEPT));
    format!("{}\n[… {} bytes …]\n{}", &text[..head], tail - head, &text[tail..])
}
