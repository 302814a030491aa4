//! Counts and times of one arm on one thread, in one phase of the round: nothing shared, no lock.
//!
//! Is told how exchanges end, decides nothing. What errors and check failures need is allocated when the first one comes.
//! Invariant: an exchange is counted once when it starts and once when it ends.

use std::collections::BTreeMap;

use super::driver::{Failure, Hops, Opening, Traffic};
use super::starts::{Beginning, Late};
use super::times::Times;
use crate::model::{ArmRecording, Counts, FirstAnswer, Nanos, StatusClasses};

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Recorder {
    counts: Counts,
    /// Service times of good answers that came in one read, which are first-byte times as well: recorded once.
    at_once: Times,
    /// The other good answers.
    in_parts: Option<InParts>,
    connect: Option<Times>,
    tls: Option<Times>,
    check_failure: Option<Times>,
    error: Option<Times>,
    open_loop: Option<OpenLoop>,
    session: Option<Times>,
    dropped: u64,
    connections: u64,
    statuses: StatusClasses,
    failed_statuses: BTreeMap<u16, u64>,
    traffic: Traffic,
    redirected: u64,
    first_answer: Option<FirstAnswer>,
    tally: Tally,
}

#[derive(Debug, Default)]
struct InParts {
    service: Times,
    first_byte: Times,
}

/// What is recorded of exchanges that a schedule started.
#[derive(Debug, Default)]
struct OpenLoop {
    response: Times,
    lateness: Times,
    queued: Times,
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
    /// When the last of them ended; zero if none did.
    pub(super) last: Nanos,
    /// Starts of a schedule.
    pub(super) scheduled: u64,
    /// Those among them that began before `to`.
    pub(super) begun: u64,
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
        self.tally = Tally { from, to, ..Tally::default() };
    }

    /// How exchanges ended so far.
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What the slice counted so far.
    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// An exchange started, because it was its connection's turn or because a schedule said so.
    #[inline]
    pub(super) fn started(&mut self, beginning: impl Beginning) {
        self.counts.started += 1;
        if let Some(start) = beginning.scheduled() {
            let open_loop = self.open_loop.get_or_insert_default();
            let times = match start.late {
                Late::Engine => &mut open_loop.lateness,
                Late::Connections => &mut open_loop.queued,
                Late::Session => return,
            };
            times.record(start.taken - start.intended);
            self.tally.scheduled += 1;
            self.tally.begun += u64::from(start.taken < self.tally.to);
        }
    }

    /// It ended with the right answer.
    #[inline]
    pub(super) fn good(&mut self, beginning: impl Beginning, end: Completed) {
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
        if let Some(start) = beginning.scheduled() {
            self.open_loop.get_or_insert_default().response.record(end.ended - start.intended);
        }
        self.tally.completed += 1;
        self.tally.last = end.ended;
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
        *self.failed_statuses.entry(end.status).or_default() += 1;
        self.check_failure.get_or_insert_default().record(end.ended - end.sent);
        self.tally.completed += 1;
        self.tally.last = end.ended;
    }

    /// It broke.
    #[cold]
    pub(super) fn error(&mut self, failure: &Failure, after: Nanos) {
        self.counts.errors.add(failure.class(), || failure.to_string());
        self.error.get_or_insert_default().record(after);
    }

    /// So many exchanges could not even be sent when their session ended.
    #[cold]
    pub(super) fn lost(&mut self, exchanges: u64, failure: &Failure) {
        self.counts.started += exchanges;
        self.counts.errors.add_many(failure.class(), exchanges, || failure.to_string());
        self.error.get_or_insert_default().record_many(Nanos::ZERO, exchanges);
    }

    /// Starts of a schedule were left out.
    pub(super) fn dropped(&mut self, starts: u64) {
        self.dropped += starts;
        self.tally.scheduled += starts;
    }

    /// A session had all its calls answered.
    pub(super) fn session(&mut self, lasted: Nanos) {
        self.session.get_or_insert_default().record(lasted);
    }

    /// It was sent once more on a new connection.
    #[cold]
    pub(super) fn redone(&mut self) {
        self.counts.redone += 1;
    }

    /// A connection was established.
    pub(super) fn connected(&mut self, opening: Opening) {
        self.connections += 1;
        self.connect.get_or_insert_default().record(opening.connect);
        if let Some(tls) = opening.tls {
            self.tls.get_or_insert_default().record(tls);
        }
    }

    /// Bytes went over the wire.
    pub(super) fn traffic(&mut self, traffic: Traffic) {
        self.traffic += traffic;
    }

    /// Redirects were followed.
    #[cold]
    pub(super) fn hops(&mut self, hops: &Hops) {
        self.redirected += hops.redirected;
        self.counts.redone += hops.redone;
        hops.openings.iter().for_each(|opening| self.connected(*opening));
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
        self.at_once.add_to(&mut arm.service);
        self.at_once.add_to(&mut arm.first_byte);
        if let Some(parts) = &self.in_parts {
            parts.service.add_to(&mut arm.service);
            parts.first_byte.add_to(&mut arm.first_byte);
        }
        arm.dropped += self.dropped;
        for (into, from) in [
            (&mut arm.check_failure, &self.check_failure),
            (&mut arm.error, &self.error),
            (&mut arm.session, &self.session),
        ] {
            if let Some(from) = from {
                from.add_to(into);
            }
        }
        if let Some(open_loop) = &self.open_loop {
            open_loop.response.add_to(&mut arm.response);
            open_loop.lateness.add_to(&mut arm.lateness);
            open_loop.queued.add_to(&mut arm.queued);
        }
        arm.statuses += self.statuses;
        arm.redirected += self.redirected;
        for (status, count) in &self.failed_statuses {
            *arm.failed_statuses.entry(*status).or_default() += count;
        }
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
        for (into, from) in [(&mut arm.connect, &self.connect), (&mut arm.tls, &self.tls)] {
            if let Some(from) = from {
                from.add_to(into);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::starts::Scheduled;

    fn end(ended: u64) -> Completed {
        Completed { sent: Nanos(0), first_byte: None, ended: Nanos(ended), status: 200 }
    }

    #[test]
    fn tally_counts_good_ends_from_the_lead_in_up_to_the_end_of_the_slice() {
        let mut recorder = Recorder::default();
        recorder.begin_slice(Nanos(100), Nanos(200));
        [99, 100, 199, 200].into_iter().for_each(|ended| recorder.good((), end(ended)));
        recorder.check_failure(end(150), || "wrong".to_owned());
        assert_eq!((recorder.tally().good, recorder.tally().completed), (2, 5));
    }

    #[test]
    fn answers_in_one_read_and_in_parts_meet_in_the_recording() {
        let mut recorder = Recorder::default();
        recorder.good((), end(1_000));
        recorder.good((), Completed { first_byte: Some(Nanos(10)), ..end(2_000) });
        let mut arm = ArmRecording::default();
        recorder.add_as_slices(&mut arm);
        assert_eq!(
            (arm.service.count(), arm.service.min(), arm.service.max()),
            (2, Some(Nanos(1_000)), Some(Nanos(2_000)))
        );
        assert_eq!(
            (arm.first_byte.count(), arm.first_byte.min(), arm.first_byte.max()),
            (2, Some(Nanos(10)), Some(Nanos(1_000)))
        );
    }

    #[test]
    fn scheduled_start_is_recorded_with_its_reason_for_being_late() {
        let mut recorder = Recorder::default();
        recorder.begin_slice(Nanos(0), Nanos(200));
        let late = |late, intended, taken| Scheduled { intended: Nanos(intended), taken: Nanos(taken), late };
        let (first, second) = (late(Late::Engine, 100, 103), late(Late::Connections, 110, 200));
        recorder.started(first);
        recorder.good(first, Completed { sent: Nanos(103), ..end(150) });
        recorder.started(second);
        recorder.good(second, Completed { sent: Nanos(200), ..end(240) });
        assert_eq!((recorder.tally().scheduled, recorder.tally().begun), (2, 1));
        let mut arm = ArmRecording::default();
        recorder.add_as_slices(&mut arm);
        assert_eq!((arm.lateness.max(), arm.queued.max()), (Some(Nanos(3)), Some(Nanos(90))));
        assert_eq!((arm.lateness.count(), arm.queued.count()), (1, 1));
        assert_eq!((arm.service.min(), arm.service.max()), (Some(Nanos(40)), Some(Nanos(47))));
        assert_eq!((arm.response.min(), arm.response.max()), (Some(Nanos(50)), Some(Nanos(130))));
    }

    #[test]
    fn three_million_times_have_the_mean_and_quantiles_of_their_values_in_constant_memory() {
        // LG-57
        let mut recorder = Recorder::default();
        for exchange in 0..3_000_000_u64 {
            recorder.started(());
            let ended = if exchange % 1_000 == 999 { 1_000_000 } else { 100_000 };
            recorder.good((), end(ended));
        }
        assert!(recorder.in_parts.is_none() && recorder.error.is_none() && recorder.open_loop.is_none());
        let mut arm = ArmRecording::default();
        recorder.add_as_slices(&mut arm);
        assert_eq!((arm.counts.started, arm.counts.good, arm.service.count()), (3_000_000, 3_000_000, 3_000_000));
        let near = |time: Option<Nanos>, exact: u64| time.is_some_and(|time| time.0.abs_diff(exact) * 1_000 <= exact);
        // 999 of 100 µs and one of 1 ms.
        assert!(near(arm.service.mean(), 100_900), "{:?}", arm.service.mean());
        assert!(near(arm.service.quantile(0.999), 100_000) && near(arm.service.quantile(0.9991), 1_000_000));
    }

    #[test]
    fn warm_up_gives_the_recording_its_counts_and_connections_only() {
        let mut recorder = Recorder::default();
        recorder.started(());
        recorder.good((), end(1_000));
        recorder.connected(Opening { connect: Nanos(5), tls: Some(Nanos(7)) });
        let mut arm = ArmRecording::default();
        recorder.add_as_warm_up(&mut arm);
        assert_eq!((arm.warm_up.good, arm.connections), (1, 1));
        assert_eq!((arm.connect.count(), arm.connect.max()), (1, Some(Nanos(5))));
        assert_eq!((arm.tls.count(), arm.tls.max()), (1, Some(Nanos(7))));
        assert_eq!((arm.counts.good, arm.service.count(), arm.statuses.success), (0, 0, 0));
    }

    #[test]
    fn only_the_first_text_of_a_kind_is_made() {
        let mut recorder = Recorder::default();
        recorder.check_failure(end(1), || "first".to_owned());
        recorder.check_failure(end(1), || unreachable!("the first is there"));
        assert_eq!(recorder.counts.check_example.as_deref(), Some("first"));
    }
}
