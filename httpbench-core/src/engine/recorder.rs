//! Counts and times of one arm on one thread, in one phase of the round: nothing shared, no lock.
//!
//! Is told how exchanges end, decides nothing. What errors and check failures need is allocated when the first one comes.
//! Invariant: an exchange is counted once when it starts and once when it ends.

use super::driver::{Failure, Traffic};
use crate::model::{ArmRecording, Counts, FirstAnswer, Histogram, Nanos, StatusClasses};

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Recorder {
    counts: Counts,
    /// Service times of good answers that came in one read, which are first-byte times as well: recorded once.
    at_once: Histogram,
    /// The other good answers.
    in_parts: Option<Box<InParts>>,
    connect: Option<Box<Histogram>>,
    check_failure: Option<Box<Histogram>>,
    error: Option<Box<Histogram>>,
    connections: u64,
    statuses: StatusClasses,
    traffic: Traffic,
    first_answer: Option<FirstAnswer>,
    tally: Tally,
}

#[derive(Debug, Default)]
struct InParts {
    service: Histogram,
    first_byte: Histogram,
}

/// What one slice counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Good exchanges that end at or after this time …
    from: Nanos,
    /// … and before this one are counted in `good`.
    to: Nanos,
    /// Good exchanges in that span.
    pub(super) good: u64,
    /// Exchanges that completed, at whatever time.
    pub(super) completed: u64,
}

/// A completed exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completed {
    /// The actual send.
    pub(super) sent: Nanos,
    /// The first byte of the final head; `None` where it came with the last byte of the answer.
    pub(super) first_byte: Option<Nanos>,
    /// The last byte of the answer.
    pub(super) ended: Nanos,
    /// The final status.
    pub(super) status: u16,
}

impl Recorder {
    /// Begins a slice whose throughput is counted in the span given.
    pub(super) fn begin_slice(&mut self, from: Nanos, to: Nanos) {
        self.tally = Tally { from, to, good: 0, completed: 0 };
    }

    /// What the slice counted so far.
    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// An exchange started.
    #[inline]
    pub(super) fn started(&mut self) {
        self.counts.started += 1;
    }

    /// It ended with the right answer.
    #[inline]
    pub(super) fn good(&mut self, end: Completed) {
        self.counts.good += 1;
        self.statuses.add(end.status);
        match end.first_byte {
            None => self.at_once.record(end.ended - end.sent),
            Some(first_byte) => {
                let parts = self.in_parts.get_or_insert_default();
                parts.service.record(end.ended - end.sent);
                parts.first_byte.record(first_byte - end.sent);
            }
        }
        self.tally.completed += 1;
        self.tally.good += u64::from(end.ended >= self.tally.from && end.ended < self.tally.to);
    }

    /// It ended with a wrong one. The text is asked for only if it is the first.
    #[cold]
    pub(super) fn check_failure(&mut self, end: Completed, text: impl FnOnce() -> String) {
        self.counts.check_failures += 1;
        if self.counts.check_example.is_none() {
            self.counts.check_example = Some(text());
        }
        self.statuses.add(end.status);
        self.check_failure.get_or_insert_default().record(end.ended - end.sent);
        self.tally.completed += 1;
    }

    /// It broke.
    #[cold]
    pub(super) fn error(&mut self, failure: &Failure, after: Nanos) {
        self.counts.errors.add(failure.class(), || failure.to_string());
        self.error.get_or_insert_default().record(after);
    }

    /// It was sent once more on a new connection.
    #[cold]
    pub(super) fn redone(&mut self) {
        self.counts.redone += 1;
    }

    /// A connection was established.
    pub(super) fn connected(&mut self, time: Nanos) {
        self.connections += 1;
        self.connect.get_or_insert_default().record(time);
    }

    /// Bytes went over the wire.
    pub(super) fn traffic(&mut self, traffic: Traffic) {
        self.traffic.sent += traffic.sent;
        self.traffic.received += traffic.received;
        self.traffic.body += traffic.body;
    }

    /// Whether [`Recorder::first_answer`] is still wanted.
    #[inline]
    pub(super) fn wants_first_answer(&self) -> bool {
        self.first_answer.is_none()
    }

    /// Keeps what the first completed answer was.
    #[cold]
    pub(super) fn first_answer(&mut self, answer: FirstAnswer) {
        self.first_answer = Some(answer);
    }


    /// Adds this recorder of a warm-up to an arm's recording: its exchanges apart, its connections with all others.
    pub(super) fn add_as_warm_up(&self, arm: &mut ArmRecording) {
        arm.warm_up.merge(&self.counts);
        self.add_connections(arm);
    }

    /// Adds this recorder of slices to an arm's recording.
    pub(super) fn add_as_slices(&self, arm: &mut ArmRecording) {
        arm.counts.merge(&self.counts);
        arm.service.merge(&self.at_once);
        arm.first_byte.merge(&self.at_once);
        if let Some(parts) = &self.in_parts {
            arm.service.merge(&parts.service);
            arm.first_byte.merge(&parts.first_byte);
        }
        for (into, from) in [(&mut arm.check_failure, &self.check_failure), (&mut arm.error, &self.error)] {
            if let Some(from) = from {
                into.merge(from);
            }
        }
        arm.statuses += self.statuses;
        arm.sent_bytes += self.traffic.sent;
        arm.received_bytes += self.traffic.received;
        arm.body_bytes += self.traffic.body;
        if arm.first_answer.is_none() {
            arm.first_answer.clone_from(&self.first_answer);
        }
        self.add_connections(arm);
    }

    fn add_connections(&self, arm: &mut ArmRecording) {
        arm.connections += self.connections;
        if let Some(connect) = &self.connect {
            arm.connect.merge(connect);
        }
    }
}
