//! How exchanges ended, and the identity that their counts keep.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Why an exchange broke. The classes tell the server's faults from this machine's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorClass {
    /// Nobody listens at the address.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The connection ended before the first byte of the answer.
    ClosedEarly,
    /// The connection ended within the answer.
    Truncated,
    /// TLS could not be established, or broke: a certificate that is not believed, nothing in common, no TLS at all.
    Tls,
    /// The answer is not HTTP, or breaks its framing rules.
    Protocol,
    /// No connection within the connect timeout.
    ConnectTimeout,
    /// No whole answer within the request timeout.
    RequestTimeout,
    /// This process has no file descriptor left (`EMFILE`).
    NoDescriptors,
    /// This machine has no local port left (`EADDRNOTAVAIL`).
    NoLocalPort,
    /// This machine's file table is full (`ENFILE`).
    FileTableFull,
    /// Anything else; the example tells what.
    Other,
}

impl ErrorClass {
    /// The name in reports and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::ClosedEarly => "closed-early",
            Self::Truncated => "truncated",
            Self::Tls => "tls",
            Self::Protocol => "protocol",
            Self::ConnectTimeout => "connect-timeout",
            Self::RequestTimeout => "request-timeout",
            Self::NoDescriptors => "no-descriptors",
            Self::NoLocalPort => "no-local-port",
            Self::FileTableFull => "file-table-full",
            Self::Other => "other",
        }
    }

    /// Whether this machine, not the server, is at fault.
    #[must_use]
    pub const fn is_ours(self) -> bool {
        matches!(self, Self::NoDescriptors | Self::NoLocalPort | Self::FileTableFull)
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// Errors by class, with one example each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// How many exchanges ended in this class.
    pub counts: BTreeMap<ErrorClass, u64>,
    /// The first one's own words.
    pub examples: BTreeMap<ErrorClass, String>,
}

impl Errors {
    /// Counts one more, and keeps its text if it is the first of its class.
    pub fn add(&mut self, class: ErrorClass, text: impl FnOnce() -> String) {
        self.add_many(class, 1, text);
    }

    /// Counts so many more of the same text.
    pub fn add_many(&mut self, class: ErrorClass, count: u64, text: impl FnOnce() -> String) {
        *self.counts.entry(class).or_default() += count;
        self.examples.entry(class).or_insert_with(text);
    }

    /// All classes together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Adds another worker's or round's errors; the examples of `self` stay.
    pub fn merge(&mut self, other: &Self) {
        for (class, count) in &other.counts {
            *self.counts.entry(*class).or_default() += count;
        }
        for (class, example) in &other.examples {
            self.examples.entry(*class).or_insert_with(|| example.clone());
        }
    }
}

/// How many exchanges started, and how they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Exchanges started. A redo after a stale connection does not count again.
    pub started: u64,
    /// Completed with the right answer.
    pub good: u64,
    /// Completed with a wrong one.
    pub check_failures: u64,
    /// The first wrong answer, in words.
    pub check_example: Option<String>,
    /// Broken.
    pub errors: Errors,
    /// Neither completed nor broken when the engine stopped.
    pub in_flight: u64,
    /// Sent once more because the server had closed the idle connection.
    pub redone: u64,
}

impl Counts {
    /// Whether started = good + check failures + errors by class + in flight.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.started == self.good + self.failed() + self.in_flight
    }

    /// Check failures and errors together.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.check_failures + self.errors.total()
    }

    /// Adds another worker's or round's counts.
    pub fn merge(&mut self, other: &Self) {
        self.started += other.started;
        self.good += other.good;
        self.check_failures += other.check_failures;
        if self.check_example.is_none() {
            self.check_example.clone_from(&other.check_example);
        }
        self.errors.merge(&other.errors);
        self.in_flight += other.in_flight;
        self.redone += other.redone;
    }
}

/// Completed exchanges by the first digit of their final status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusClasses {
    /// 200–299.
    #[serde(rename = "2xx")]
    pub success: u64,
    /// 300–399.
    #[serde(rename = "3xx")]
    pub redirection: u64,
    /// 400–499.
    #[serde(rename = "4xx")]
    pub client_error: u64,
    /// 500–599.
    #[serde(rename = "5xx")]
    pub server_error: u64,
    /// Anything else that three digits can say.
    pub other: u64,
}

impl StatusClasses {
    /// Counts one final status.
    pub fn add(&mut self, status: u16) {
        *match status / 100 {
            2 => &mut self.success,
            3 => &mut self.redirection,
            4 => &mut self.client_error,
            5 => &mut self.server_error,
            _ => &mut self.other,
        } += 1;
    }
}

impl AddAssign for StatusClasses {
    fn add_assign(&mut self, other: Self) {
        self.success += other.success;
        self.redirection += other.redirection;
        self.client_error += other.client_error;
        self.server_error += other.server_error;
        self.other += other.other;
    }
}
