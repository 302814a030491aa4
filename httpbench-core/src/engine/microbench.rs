//! What `benches/engine.rs` measures, wrapped so that the engine's own types stay private.
//!
//! No part of the public interface: it changes with the engine.

use super::driver::raw::{Decoder, RememberedHead};
use super::pacing::{Arrivals, Origin, Pace, Part, Window};
use super::recorder::{Completed, Recorder};
use super::starts::{Late, Scheduled};
use crate::model::{Nanos, Schedule};

/// The decoder with the memory of one connection.
#[derive(Debug, Default)]
pub struct Codec {
    decoder: Decoder,
    memory: RememberedHead,
}

impl Codec {
    /// Decodes one whole answer to a GET, and gives its status and the bytes of its body.
    ///
    /// # Panics
    ///
    /// When it is not one.
    pub fn decode(&mut self, answer: &[u8]) -> (u16, u64) {
        self.decoder.begin(false);
        let fed = self.decoder.feed(answer, &mut self.memory, |_| {}).expect("a sound answer");
        assert!(self.decoder.is_complete(), "a whole answer");
        (self.decoder.status(), fed.body)
    }
}

/// A recorder.
#[derive(Debug, Default)]
pub struct Record(Recorder);

impl Record {
    /// Records one good exchange of a closed loop that took `service`, in one read or with a first byte after half of it.
    pub fn closed(&mut self, service: Nanos, in_parts: bool) {
        self.0.started(());
        self.0.good((), completed(service, in_parts));
    }

    /// Records one good exchange of an open loop that took `service` and began at once.
    pub fn open(&mut self, service: Nanos) {
        let start = Scheduled { intended: Nanos::ZERO, taken: Nanos(1), late: Late::Engine };
        self.0.started(start);
        self.0.good(start, completed(service, false));
    }
}

fn completed(service: Nanos, in_parts: bool) -> Completed {
    Completed { sent: Nanos::ZERO, first_byte: in_parts.then_some(service / 2), ended: service, status: 200 }
}

/// One thread's part of an endless schedule.
#[derive(Debug)]
pub struct Pacer(Window);

impl Pacer {
    /// # Panics
    ///
    /// When it is a closed loop, which has no schedule.
    #[must_use]
    pub fn new(schedule: Schedule) -> Self {
        let arrivals = Arrivals::of(schedule).expect("an open loop");
        let part = Part { thread: 0, threads: 1 };
        Self(Window::new(arrivals, Origin::of(&arrivals), Nanos(u64::MAX), None, part))
    }

    /// Takes the next start when it is due, and answers when that is.
    pub fn take(&mut self) -> Nanos {
        let due = match self.0.pace(Nanos::ZERO) {
            Pace::SendNow { intended } => intended,
            Pace::Wait { until } => until,
            Pace::Stop => Nanos::ZERO,
        };
        self.0.take();
        due
    }
}
