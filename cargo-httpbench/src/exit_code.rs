//! The documented exit codes. Nothing else in this crate holds a number that a process exits with.

use std::process;

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    /// 0: done: nothing regressed, and no limit is exceeded.
    Success,
    /// 1: something that should not happen did.
    Unexpected,
    /// 2: the command line is wrong.
    Usage,
    /// 4: no scenario is selected.
    NothingSelected,
    /// 96: the configuration is wrong, or a baseline cannot be read.
    Configuration,
    /// 100: something regressed, or a limit is exceeded.
    Regression,
    /// 101: cargo could not build the server or the bench target.
    BuildFailed,
    /// 102: `cargo metadata` failed.
    MetadataFailed,
    /// 104: the bench binary could not list its scenarios.
    ListingFailed,
    /// 105: the server did not get ready, or died.
    ServerFailed,
    /// 107: the measurement is invalid.
    InvalidMeasurement,
    /// 108: inconclusive, or nothing to compare with, where the policy says that this fails.
    NothingCompared,
    /// 110: output could not be written.
    OutputFailed,
    /// 128 + n: ended by signal n, once everything is cleaned up.
    Signal(u8),
}

impl ExitCode {
    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Unexpected => 1,
            Self::Usage => 2,
            Self::NothingSelected => 4,
            Self::Configuration => 96,
            Self::Regression => 100,
            Self::BuildFailed => 101,
            Self::MetadataFailed => 102,
            Self::ListingFailed => 104,
            Self::ServerFailed => 105,
            Self::InvalidMeasurement => 107,
            Self::NothingCompared => 108,
            Self::OutputFailed => 110,
            Self::Signal(number) => 128 + number,
        }
    }
}

impl From<ExitCode> for process::ExitCode {
    fn from(exit: ExitCode) -> Self {
        Self::from(exit.code())
    }
}
