//! How much load a round puts on its arms, and by what schedule.

use serde::{Deserialize, Serialize};

use super::Nanos;

/// How an arm is loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Connections to each arm, shared exactly among the threads. At least 1.
    pub connections: u32,
    /// Engine threads, at least 1; never more than connections.
    pub threads: u32,
    /// When exchanges start.
    #[serde(default)]
    pub schedule: Schedule,
    /// What becomes of starts that come too late to be in time.
    #[serde(default)]
    pub late: Late,
    /// What becomes of a connection after an exchange.
    #[serde(default)]
    pub reuse: Reuse,
    /// Exchanges that may be outstanding on one connection: HTTP/1.1 pipelining, HTTP/2 streams. At least 1. Where an HTTP/2
    /// server allows fewer streams at once, an exchange waits for one, and that is part of its service time; so is the wait
    /// for the answers before its own in a pipeline.
    #[serde(default = "one")]
    pub depth: u32,
    /// How many redirects of one exchange are followed; 0 counts a redirect as the answer.
    #[serde(default)]
    pub redirects: u32,
    /// The cores that engine threads are bound to, one after the other; empty leaves them unbound.
    pub cores: Vec<u32>,
    /// From the send of a request to the last byte of its answer. In an open loop also the most that a slice's end is
    /// overrun by: what has not been answered, or not even been sent, by then is an error at that time.
    #[serde(rename = "request_timeout_ns")]
    pub request_timeout: Nanos,
    /// For a connection to be established.
    #[serde(rename = "connect_timeout_ns")]
    pub connect_timeout: Nanos,
}

/// One thread, one connection, a closed loop, and timeouts of 30 s for an exchange and 5 s for a connection.
impl Default for Load {
    fn default() -> Self {
        Self {
            connections: 1,
            threads: 1,
            schedule: Schedule::Closed,
            late: Late::Send,
            reuse: Reuse::Keep,
            depth: 1,
            redirects: 0,
            cores: Vec::new(),
            request_timeout: Nanos::from_secs(30),
            connect_timeout: Nanos::from_secs(5),
        }
    }
}

fn one() -> u32 {
    1
}

/// When exchanges start. Rates are per second, over all connections and threads together, above 0 and at most 10 million.
///
/// Schedules run in an arm's loaded time, the warm-up's apart: they stand still between its slices. A slice that its number
/// of starts ends leaves off where the next start would be due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Schedule {
    /// A closed loop: each connection sends after its answer.
    #[default]
    Closed,
    /// Start `k`, counted from 0, is due at `k / per_second`, whatever the server does. When no connection is free, its
    /// intended start stands, and it is sent as soon as one is.
    Constant {
        /// Starts per second.
        per_second: f64,
    },
    /// As `Constant`, with exponentially distributed gaps before each start, the first one too: the arrivals of many
    /// independent users. The same seed gives the same schedule, to every arm and on any number of threads.
    Poisson {
        /// Starts per second, on average.
        per_second: f64,
        /// What the gaps are drawn from.
        seed: u64,
    },
    /// As `Constant`, with an arrival rate that changes evenly from one value to another and then stays. One of the two may
    /// be 0; after a ramp down to 0 nothing starts any more.
    Ramp {
        /// Starts per second at the beginning.
        from: f64,
        /// Starts per second from the end of the ramp on.
        to: f64,
        /// How long the change takes, in loaded time.
        #[serde(rename = "over_ns")]
        over: Nanos,
    },
    /// Connections are opened on a constant schedule; each carries so many exchanges, one after the other, and is closed.
    /// [`Load::connections`] bounds how many sessions there are at once: further ones wait, and their intended starts stand.
    ///
    /// The first exchange of a session is intended for the session's own start, so that its response time holds the wait
    /// and the opening of the connection. The others are intended for the moment at which they could begin, the end of the
    /// exchange before: their response time is their service time, but for the engine's own doing in between.
    ///
    /// A session that the server ends early ends with its connection, and so does one whose connection cannot be opened or
    /// breaks: the exchanges that are left are not sent on another one, which would be one more than asked for. They count
    /// as started and as errors of the class that ended the session, `closed-early` where it ended between two of them.
    Sessions {
        /// Connections per second.
        per_second: f64,
        /// Exchanges on each, at least 1.
        calls: u64,
    },
}

impl Schedule {
    /// How many exchanges a session has; `None` where there are none.
    #[must_use]
    pub const fn calls(self) -> Option<u64> {
        if let Self::Sessions { calls, .. } = self { Some(calls) } else { None }
    }

    /// Whether exchanges start whatever the server does.
    #[must_use]
    pub const fn is_open(self) -> bool {
        !matches!(self, Self::Closed)
    }

    /// The arrival rate, where it is one and constant on average.
    #[must_use]
    pub const fn arrival_rate(self) -> Option<f64> {
        match self {
            Self::Constant { per_second } | Self::Poisson { per_second, .. } => Some(per_second),
            Self::Closed | Self::Ramp { .. } | Self::Sessions { .. } => None,
        }
    }
}

/// What becomes of starts of an open loop for which no connection was free when they were due.
///
/// A start that was late by the engine's own doing, while a connection was free, is always sent. Each thread's connections
/// serve its own starts: every T-th of the schedule, if there are T threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
    /// They are sent, as soon as a connection is free, one after the other without a gap (a burst), and their response times
    /// count from their intended starts.
    #[default]
    Send,
    /// A start is dropped and counted if the next one of its thread is due by the time a connection is free. So after a
    /// stall the last start that was due is sent, and the schedule goes on without a burst; no more than one start of a
    /// thread ever waits. The last start of a slice has no next one, and is always sent.
    ///
    /// What is dropped has no response time, so the response times leave out what a user would have waited: look at them
    /// together with the number dropped.
    Drop,
}

/// What becomes of a connection after an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reuse {
    /// It carries the next one, unless the server ends it.
    #[default]
    Keep,
    /// It is closed, and each exchange opens its own, none before it starts. The request says so as well
    /// (`Connection: close`, by [`WireOptions`](crate::scenario::WireOptions)).
    ///
    /// Service time counts from the send, so the connect time is in none: it is recorded apart. It is in the throughput,
    /// and in an open loop's response time, which counts from the intended start. Connections over TCP end with RST once
    /// their answer is complete, so that no local port waits in TIME_WAIT for a minute and is missing after some ten thousand.
    Close,
}
