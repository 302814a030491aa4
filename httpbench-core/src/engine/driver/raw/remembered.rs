//! Heads that need not be parsed again: those that equal the last one, or differ from it only in values without a meaning
//! to framing, such as a date or a request's number.
//!
//! Both are exact. A head ends with its blank line, so equal bytes parse equally; only a HEAD request gives the same bytes
//! another meaning, so it is remembered which of the two it was. And where printable bytes stand for those of a value that
//! [framing](super::framing) does not look at, up to the line's end, the parser is there in the same state: a value can
//! hold any of them.
//!
//! Invariant: what is recalled is what [`parse_head`](super::framing::parse_head) would have said.

use std::ops::Range;

use super::decode::MAX_HEAD;
use super::framing::Head;

/// The last final head, for all connections that send the same request.
#[derive(Debug, Default)]
pub(in crate::engine) struct RememberedHead {
    bytes: Vec<u8>,
    of: Option<(Head, bool)>,
    /// Where in it values stand that mean nothing to framing, up to their lines' ends, in their order.
    free: Vec<Range<usize>>,
    /// The same of the head that was parsed last.
    parsed: Vec<Range<usize>>,
}

impl RememberedHead {
    /// The head's bytes: those of the last final head of any answer.
    pub(in crate::engine) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of memory that are kept.
    pub(in crate::engine) fn kept(&self) -> usize {
        self.bytes.capacity()
    }

    /// What the head says that `piece` begins with, and how long it is, if that is known without parsing it.
    #[inline]
    pub(super) fn recall(&mut self, piece: &[u8], is_head: bool) -> Option<(usize, Head)> {
        let (head, of_head) = self.of?;
        let known = of_head == is_head && (piece.starts_with(&self.bytes) || self.takes(piece));
        known.then_some((self.bytes.len(), head))
    }

    /// Where parsing notes the values that mean nothing to framing.
    pub(super) fn values(&mut self) -> &mut Vec<Range<usize>> {
        self.parsed.clear();
        &mut self.parsed
    }

    /// Remembers a final head, whose values were noted last.
    pub(super) fn keep(&mut self, bytes: &[u8], head: Head, is_head: bool) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.of = Some((head, is_head));
        std::mem::swap(&mut self.free, &mut self.parsed);
    }

    /// Takes the head that `piece` begins with for the remembered one, if they differ in such values only.
    #[inline(never)]
    fn takes(&mut self, piece: &[u8]) -> bool {
        self.parsed.clear();
        let mut free = self.free.iter();
        // Up to here the two were compared.
        let (mut old, mut new) = (0, 0);
        while let Some(same) = first_difference(&self.bytes[old..], &piece[new..]) {
            let at = old + same;
            let value = loop {
                let Some(value) = free.next() else { return false };
                if at <= value.end {
                    break value;
                }
                self.parsed.push(value.start - old + new..value.end - old + new);
            };
            if at < value.start {
                return false;
            }
            let changed = &piece[new + same..];
            let length = changed.iter().position(|byte| !matches!(byte, b' '..=b'~')).unwrap_or(changed.len());
            let end = new + same + length;
            self.parsed.push(value.start - old + new..end);
            (old, new) = (value.end, end);
        }
        self.parsed.extend(free.map(|value| value.start - old + new..value.end - old + new));
        let length = self.bytes.len() - old + new;
        if length > piece.len().min(MAX_HEAD) {
            return false;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&piece[..length]);
        std::mem::swap(&mut self.free, &mut self.parsed);
        true
    }
}

/// Where two slices differ first, as far as the shorter goes.
fn first_difference(left: &[u8], right: &[u8]) -> Option<usize> {
    const WIDTH: usize = 16;
    let equal = left.chunks_exact(WIDTH).zip(right.chunks_exact(WIDTH)).take_while(|(left, right)| left == right);
    let start = equal.count() * WIDTH;
    let rest = left[start..].iter().zip(&right[start..]);
    rest.into_iter().position(|(left, right)| left != right).map(|at| start + at)
}

#[cfg(test)]
mod tests {
    use super::super::framing::{Parsed, parse_head};
    use super::*;

    fn remembering(head: &[u8]) -> RememberedHead {
        let mut memory = RememberedHead::default();
        let Ok(Parsed::Complete(length, parsed)) = parse_head(head, false, memory.values()) else {
            panic!("a whole head: {}", head.escape_ascii())
        };
        assert_eq!(length, head.len());
        memory.keep(head, parsed, false);
        memory
    }

    const HEAD: &[u8] =
        b"HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 23:00:01 GMT\r\nContent-Length: 5\r\nX-Id:  7a \r\n\r\n";

    fn with(from: &str, to: &str) -> Vec<u8> {
        let text = std::str::from_utf8(HEAD).expect("ASCII");
        assert!(text.contains(from));
        text.replace(from, to).into_bytes()
    }

    #[test]
    fn other_values_are_the_same_head() {
        let mut memory = remembering(HEAD);
        let (_, expected) = memory.recall(HEAD, false).expect("itself");
        for (from, to) in [
            ("01 GMT", "02 GMT"),
            ("7a", "7b"),
            ("7a", "  "),
            ("7a", ":,"),
            ("Mon, 30", "Tue, 01"),
            ("7a ", "7abcdef"),
            ("7a", "7"),
            ("7a ", ""),
            ("Mon, 30 Nov 2026 23:00:01 GMT", "now"),
            (" GMT\r\nContent-Length: 5\r\nX-Id:  7a", "\r\nContent-Length: 5\r\nX-Id:  99"),
        ] {
            let head = with(from, to);
            let answer = [head.as_slice(), b"hello"].concat();
            assert_eq!(memory.recall(&answer, false), Some((head.len(), expected)), "{from:?} to {to:?}");
            assert_eq!(memory.bytes(), head);
            assert_eq!(memory.recall(HEAD, false), Some((HEAD.len(), expected)), "{from:?} and back");
        }
        assert_eq!(memory.recall(HEAD, true), None, "a HEAD's");
    }

    #[test]
    fn other_names_and_meanings_are_another_head() {
        for (from, to) in [
            ("Length: 5", "Length: 6"),
            ("Length: 5", "Length: 55"),
            ("200", "201"),
            ("OK", "KO"),
            ("X-Id", "X-Ie"),
            ("X-Id:", "X-Id-"),
            ("7a", "7\n"),
            ("7a", "7\t"),
            ("7a", "7\0"),
            ("7a", "7\u{e4}"),
            ("7a \r", "7a\r\r"),
            ("7a", "7a\r\nContent-Length: 6"),
            ("Date:", "Dat::"),
            ("\r\n\r\n", "\r\n"),
            ("\r\n\r\n", "\n\r\n"),
        ] {
            let mut memory = remembering(HEAD);
            assert_eq!(memory.recall(&with(from, to), false), None, "{from:?} to {to:?}");
            assert_eq!(memory.bytes(), HEAD, "what was not taken left nothing behind");
        }
        for length in 0..HEAD.len() {
            assert_eq!(remembering(HEAD).recall(&HEAD[..length], false), None, "the first {length} bytes of it");
            assert_eq!(
                remembering(HEAD).recall(&with("Mon", "Tue")[..length], false),
                None,
                "the first {length} bytes"
            );
        }
    }

    #[test]
    fn head_that_grows_beyond_the_limit_is_another_one() {
        let long = |length: usize| with("7a", &"7".repeat(length - HEAD.len() + 2));
        assert!(remembering(HEAD).recall(&long(MAX_HEAD), false).is_some());
        assert!(remembering(HEAD).recall(&long(MAX_HEAD + 1), false).is_none());
    }
}
