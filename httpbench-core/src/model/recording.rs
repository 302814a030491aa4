//! What the engine answers after a round.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Counts, Histogram, Nanos, StatusClasses};

/// One round of one scenario, as the engine saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// By the index of [`RoundPlan::arms`](super::RoundPlan::arms).
    pub arms: Vec<ArmRecording>,
    /// In the order of [`RoundPlan::slices`](super::RoundPlan::slices).
    pub slices: Vec<SliceRecording>,
    /// What the engine itself used.
    pub engine: EngineUsage,
}

impl Recording {
    /// The starts of one arm's slices in an open loop; `None` in a closed one.
    #[must_use]
    pub fn arrivals(&self, arm: usize) -> Option<Arrivals> {
        let slices = || self.slices.iter().filter(|slice| slice.arm == arm);
        let scheduled = slices().map(|slice| slice.scheduled).sum();
        (scheduled > 0).then(|| Arrivals { scheduled, begun: slices().map(|slice| slice.begun).sum() })
    }
}

/// How many starts of a schedule were asked for, and how many of them really began while it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrivals {
    /// The sum of [`SliceRecording::scheduled`].
    pub scheduled: u64,
    /// The sum of [`SliceRecording::begun`].
    pub begun: u64,
}

impl Arrivals {
    /// The share of the asked arrival rate that was reached, from 0 to 1; `None` without starts.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
    pub fn reached(self) -> Option<f64> {
        (self.scheduled > 0).then(|| self.begun as f64 / self.scheduled as f64)
    }
}

impl std::ops::AddAssign for Arrivals {
    fn add_assign(&mut self, other: Self) {
        self.scheduled += other.scheduled;
        self.begun += other.begun;
    }
}

/// All slices of one arm together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArmRecording {
    /// Exchanges of the slices.
    pub counts: Counts,
    /// Exchanges of the warm-up, which are in no other number here.
    pub warm_up: Counts,
    /// Service times of good exchanges: actual send to last byte.
    pub service: Histogram,
    /// Response times of good exchanges: intended start to last byte. Empty in a closed loop.
    #[serde(default)]
    pub response: Histogram,
    /// How late the engine was: intended start to the moment at which a connection went about the exchange, of those starts
    /// for which a connection was free. Of a session, its first exchange alone. Empty in a closed loop.
    #[serde(default)]
    pub lateness: Histogram,
    /// The same of those starts for which no connection was free, because all were waiting for answers: the wait in the
    /// queue. Together with `lateness` every start of an open loop, once.
    #[serde(default)]
    pub queued: Histogram,
    /// Actual send to first byte of the final answer's head, of good exchanges.
    pub first_byte: Histogram,
    /// Times that connections took to be established, without TLS, warm-up included.
    pub connect: Histogram,
    /// Times that TLS handshakes took, warm-up included. Each is a whole one: no session is resumed.
    #[serde(default)]
    pub tls: Histogram,
    /// Service times of check failures.
    pub check_failure: Histogram,
    /// Times until errors, request timeouts included: from the send or the attempt to connect, in an open loop from the
    /// intended start.
    pub error: Histogram,
    /// Connections established, warm-up included: not the streams or pipelined exchanges on them.
    pub connections: u64,
    /// Starts of an open loop that were left out because they came too late, see [`Late::Drop`](super::Late::Drop), or
    /// because the round was stopped before a connection was free for them. They are not among those started. Where the
    /// schedule is one of sessions, each stands for a whole one.
    #[serde(default)]
    pub dropped: u64,
    /// How long sessions lasted, from the moment at which their connection was asked for to the end of their last exchange.
    /// Only of those whose exchanges were all answered; empty where there are no sessions.
    #[serde(default)]
    pub session: Histogram,
    /// Redirects that were followed within exchanges.
    #[serde(default)]
    pub redirected: u64,
    /// Statuses of completed exchanges.
    pub statuses: StatusClasses,
    /// Exact statuses of check failures: how often each came.
    #[serde(default)]
    pub failed_statuses: BTreeMap<u16, u64>,
    /// Bytes of requests written: over TLS and HTTP/2 all bytes on the wire, handshakes and frames included.
    pub sent_bytes: u64,
    /// Bytes of answers read, heads and framing included: over TLS and HTTP/2 all bytes on the wire.
    pub received_bytes: u64,
    /// Bytes of answers' bodies, after chunked decoding, as they were on the wire otherwise.
    pub body_bytes: u64,
    /// Status, body length and `Server` header of the first completed answer.
    pub first_answer: Option<FirstAnswer>,
}

impl ArmRecording {
    /// Adds everything of another recording, as if both had been one.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        self.warm_up.merge(&other.warm_up);
        for (into, from) in [
            (&mut self.service, &other.service),
            (&mut self.response, &other.response),
            (&mut self.lateness, &other.lateness),
            (&mut self.queued, &other.queued),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.connect, &other.connect),
            (&mut self.tls, &other.tls),
            (&mut self.check_failure, &other.check_failure),
            (&mut self.error, &other.error),
        ] {
            into.merge(from);
        }
        for (status, count) in &other.failed_statuses {
            *self.failed_statuses.entry(*status).or_default() += count;
        }
        self.connections += other.connections;
        self.dropped += other.dropped;
        self.redirected += other.redirected;
        self.statuses += other.statuses;
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.body_bytes += other.body_bytes;
        if self.first_answer.is_none() {
            self.first_answer.clone_from(&other.first_answer);
        }
    }
}

/// What was really answered, so that a report can show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstAnswer {
    /// The final status.
    pub status: u16,
    /// Bytes of its body.
    pub body_bytes: u64,
    /// Its `Server` header.
    pub server: Option<String>,
}

/// One slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceRecording {
    /// Which arm was loaded.
    pub arm: usize,
    /// Good exchanges that ended after the lead-in and within the slice's length.
    pub good: u64,
    /// From the end of the lead-in to the slice's end: what `good` is divided by. A slice that was ended by its number of
    /// starts or by a stop from outside ends, in this regard, when its last exchange completes, or with its drain if none
    /// does; so nothing is left of one that was stopped in its lead-in.
    #[serde(rename = "span_ns")]
    pub span: Nanos,
    /// All exchanges that completed in the slice, lead-in and drain included: what CPU time is divided by.
    pub completed: u64,
    /// Starts that were due in the slice, each of which was sent, became an error, or was dropped. Where the schedule is one
    /// of sessions, these are sessions. 0 in a closed loop.
    #[serde(default)]
    pub scheduled: u64,
    /// Those of them that began before the slice's end; the others had to wait for a free connection beyond it, or were
    /// dropped. Where these are fewer, the arrival rate was not reached.
    #[serde(default)]
    pub begun: u64,
    /// From the first send to the end of the drain.
    #[serde(rename = "wall_ns")]
    pub wall: Nanos,
    /// CPU time that each arm's process tree used from the first send to the end of the drain; `None` where it is not sampled.
    #[serde(rename = "cpu_ns")]
    pub cpu: Vec<Option<Nanos>>,
    /// CPU time of the engine's threads over the same time.
    #[serde(rename = "engine_cpu_ns")]
    pub engine_cpu: Nanos,
}

/// What the engine itself used in the slices of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineUsage {
    /// CPU time of the engine's threads.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
    /// Time that passed, times nothing: compare with `cpu / threads`.
    #[serde(rename = "wall_ns")]
    pub wall: Nanos,
    /// Threads that drove the load.
    pub threads: u32,
}

/// One exchange, as it went over the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Every byte sent.
    pub sent: Vec<u8>,
    /// Every byte received, interim answers and framing included, up to a bound of 1 MiB.
    pub received: Vec<u8>,
    /// Bytes received beyond that bound.
    pub omitted_bytes: u64,
    /// The final status and the service time, or why the exchange broke or failed its check.
    pub outcome: Result<TracedAnswer, String>,
}

/// The end of a traced exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedAnswer {
    /// The final status.
    pub status: u16,
    /// Actual send to last byte.
    #[serde(rename = "service_ns")]
    pub service: Nanos,
}
