//! What the fuzz target and the property tests ask of the decoder, wrapped so that the engine's own types stay private.
//!
//! No part of the public interface: it changes with the engine.

use super::driver::raw::{Decoder, MAX_HEAD, RememberedHead};

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    body: Vec<u8>,
    taken: usize,
}

/// Decodes what a fuzzer made up: a byte of flags, a number of cuts, that many lengths, and then what the server sent.
///
/// # Panics
///
/// As [`decode`].
pub fn decode_input(input: &[u8]) {
    let [flags, cuts, rest @ ..] = input else { return };
    let (lengths, bytes) = rest.split_at(rest.len().min(usize::from(cuts % 32)));
    decode(bytes, flags & 1 == 1, lengths);
}

/// Decodes bytes whole, and cut into pieces of these lengths (in turn, each at least one byte), each with a memory that knows
/// nothing and with one that knows the last head.
///
/// # Panics
///
/// When the decoder breaks a promise: an answer depends on the cuts or on the memory, more is taken than there was, less
/// than there was although the answer is not complete, or more than a head is kept.
pub fn decode(bytes: &[u8], is_head: bool, lengths: &[u8]) {
    let mut memory = RememberedHead::default();
    let whole = answer(std::iter::once(bytes), is_head, &mut memory);
    let again = answer(std::iter::once(bytes), is_head, &mut memory);
    assert_eq!(whole, again, "the memory makes a difference");
    let cut = answer(pieces(bytes, lengths), is_head, &mut RememberedHead::default());
    assert_eq!(whole, cut, "the cuts make a difference");
    let cut = answer(pieces(bytes, lengths), is_head, &mut memory);
    assert_eq!(whole, cut, "cuts and memory make a difference");
}

fn pieces<'a>(bytes: &'a [u8], lengths: &[u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut lengths = lengths.iter().map(|length| usize::from(*length).max(1)).collect::<Vec<_>>().into_iter().cycle();
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (piece, left) = rest.split_at(rest.len().min(lengths.next().unwrap_or(usize::MAX)));
        rest = left;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The answer, once it is complete or its connection ended; `None` for one that is not HTTP or not all there.
fn answer<'a>(pieces: impl Iterator<Item = &'a [u8]>, is_head: bool, memory: &mut RememberedHead) -> Option<Answer> {
    let mut decoder = Decoder::default();
    decoder.begin(is_head);
    let (mut body, mut taken) = (Vec::new(), 0);
    for piece in pieces {
        if decoder.is_complete() {
            break;
        }
        let before = body.len();
        let fed = decoder.feed(piece, memory, |bytes| body.extend_from_slice(bytes)).ok()?;
        assert!(fed.taken <= piece.len(), "{} of {} bytes were taken", fed.taken, piece.len());
        assert!(fed.taken == piece.len() || decoder.is_complete(), "bytes of an unfinished answer were left");
        assert_eq!(fed.body, (body.len() - before) as u64, "bytes of the body are counted as they are kept");
        assert!(decoder.kept() <= 2 * MAX_HEAD && memory.kept() <= 2 * MAX_HEAD, "more than a head is kept");
        taken += fed.taken;
    }
    (decoder.is_complete() || decoder.ends_complete()).then(|| Answer { status: decoder.status(), body, taken })
}
