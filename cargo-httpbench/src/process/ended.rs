//! How a program ended, in data and in words.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use serde::{Deserialize, Serialize};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// It returned a status of its own.
    Exited {
        /// 0 for success.
        code: i32,
    },
    /// A signal ended it.
    Killed {
        /// Its number.
        signal: i32,
        /// Whether the kernel wrote a core file.
        core_dumped: bool,
    },
    /// Its supervisor died before it could tell.
    Unknown,
}

impl Ended {
    /// Whether it exited with status 0.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Exited { code: 0 })
    }

    /// What `waitpid` tells. `None` while the process goes on.
    pub(crate) fn from_wait(status: WaitStatus) -> Option<Self> {
        match status {
            WaitStatus::Exited(_, code) => Some(Self::Exited { code }),
            WaitStatus::Signaled(_, signal, core_dumped) => Some(Self::Killed { signal: signal as i32, core_dumped }),
            _ => None,
        }
    }
}

impl From<Ended> for ExitStatus {
    /// As `waitpid` encodes it. Of what is not known, nothing is claimed but that it was no success.
    fn from(ended: Ended) -> Self {
        Self::from_raw(match ended {
            Ended::Exited { code } => (code & 0xff) << 8,
            Ended::Killed { signal, core_dumped } => signal | if core_dumped { 0x80 } else { 0 },
            Ended::Unknown => Signal::SIGKILL as i32,
        })
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exited { code } => write!(out, "exited with status {code}"),
            Self::Killed { signal, core_dumped } => {
                write!(out, "was killed by signal {signal}")?;
                if let Ok(name) = Signal::try_from(signal) {
                    write!(out, " ({})", name.as_str())?;
                }
                if core_dumped { out.write_str(", core dumped") } else { Ok(()) }
            }
            Self::Unknown => out.write_str("ended together with its supervisor"),
        }
    }
}

/// How a process tree was brought to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Everything ended within the grace after SIGTERM, or had ended before.
    Politely,
    /// What was left after the grace was killed.
    Killed {
        /// The grace that it was given.
        after: Duration,
    },
    /// Even SIGKILL did not end these processes within ten seconds: they hang in the kernel, or belong to somebody else.
    Left {
        /// Their ids.
        pids: Vec<u32>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_told_in_words() {
        assert_eq!(Ended::Exited { code: 3 }.to_string(), "exited with status 3");
        assert_eq!(Ended::Killed { signal: 9, core_dumped: false }.to_string(), "was killed by signal 9 (SIGKILL)");
        assert_eq!(
            Ended::Killed { signal: 11, core_dumped: true }.to_string(),
            "was killed by signal 11 (SIGSEGV), core dumped"
        );
        assert_eq!(Ended::Killed { signal: 40, core_dumped: false }.to_string(), "was killed by signal 40");
    }

    #[test]
    fn only_status_zero_is_success() {
        assert!(Ended::Exited { code: 0 }.is_success());
        assert!(!Ended::Exited { code: 1 }.is_success());
        assert!(!Ended::Unknown.is_success());
    }
}
