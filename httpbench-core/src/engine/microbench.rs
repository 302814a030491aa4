//! What `benches/engine.rs` measures, wrapped so that the engine's own types stay private.
//!
//! No part of the public interface: it changes with the engine.

use super::driver::raw::{Decoder, RememberedHead};
use super::recorder::{Completed, Recorder};
use crate::model::Nanos;

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
pub struct Times(Recorder);

impl Times {
    /// Records one good exchange that took `service`.
    pub fn record(&mut self, service: Nanos) {
        self.0.started(());
        self.0.good((), Completed { sent: Nanos::ZERO, first_byte: None, ended: service, status: 200 });
    }
}
