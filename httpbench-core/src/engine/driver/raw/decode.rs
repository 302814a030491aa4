//! From bytes to answers: the decoder that a connection feeds with whatever the socket gave.
//!
//! A head like the last one is not parsed again: see [remembered](super::remembered).
//!
//! Reads no socket and no clock. Invariants: where the pieces are cut makes no difference; nothing of a body is kept; at
//! most 64 KiB of a head are.

use super::chunked::{Chunked, Step};
use super::framing::{Framing, Head, MAX_HEADERS, Parsed, Reuse, excerpt, parse_head};
use super::remembered::RememberedHead;

/// The longest head, status line included.
pub(in crate::engine) const MAX_HEAD: usize = 64 * 1024;

/// Where the status begins: after `HTTP/1.1 `.
const STATUS_AT: usize = 9;

/// An answer that is not HTTP/1.1, or breaks its framing rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::engine) enum ProtocolError {
    #[error("the answer is not HTTP/1.1 ({reason}): it begins with {start}")]
    NotHttp { reason: String, start: String },
    #[error("the answer's head is longer than {} KiB", MAX_HEAD / 1024)]
    HeadTooLong,
    #[error("the answer has more than {MAX_HEADERS} header fields")]
    TooManyHeaders,
    #[error("the answer has two lengths, {0} and {1}")]
    ContentLengthsDiffer(u64, u64),
    #[error("the answer's `Content-Length` is {0}, which is not a number of bytes")]
    ContentLength(String),
    #[error("the answer's `Transfer-Encoding` names `chunked` twice")]
    ChunkedTwice,
    #[error("the answer has the byte `{}` {place}, where none can be", byte.escape_ascii())]
    Chunk { place: &'static str, byte: u8 },
    #[error("the size of a chunk is beyond 64 bits")]
    ChunkSize,
    #[error("a chunk's extension or the trailer section is longer than 64 KiB")]
    ChunkLine,
    #[error("the server switched protocols, which was not asked for")]
    SwitchedProtocols,
}

impl ProtocolError {
    pub(super) fn not_http(reason: impl ToString, bytes: &[u8]) -> Self {
        Self::NotHttp { reason: reason.to_string(), start: excerpt(bytes) }
    }
}

/// How far the decoder is with one answer.
#[derive(Debug)]
pub(in crate::engine) struct Decoder {
    state: State,
    /// The head so far, where it came in more than one piece.
    head: Vec<u8>,
    status: u16,
    reuse: Reuse,
    is_head: bool,
    /// Whether `100` came; left as it is by a new request, since only those who wait for it ask.
    continues: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    Done,
}

/// What one piece held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Fed {
    /// Bytes of the piece that belong to this answer. Less than the piece only if the answer is complete.
    pub(in crate::engine) taken: usize,
    /// Bytes among them that are body.
    pub(in crate::engine) body: u64,
}

/// What the end of the connection means to the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Ended {
    /// It completes it.
    Complete,
    /// Something is missing.
    Truncated,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { state: State::Done, head: Vec::new(), status: 0, reuse: Reuse::Keep, is_head: false, continues: false }
    }
}

impl Decoder {
    /// Gets ready for the answer to a new request.
    #[inline]
    pub(in crate::engine) fn begin(&mut self, is_head: bool) {
        self.state = State::Head;
        self.head.clear();
        self.is_head = is_head;
    }

    /// Whether the answer is complete.
    #[inline]
    pub(in crate::engine) fn is_complete(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the final head has begun, as soon as its first status digit tells it from an interim one.
    pub(in crate::engine) fn is_in_final_head(&self) -> bool {
        self.state != State::Head || self.head.get(STATUS_AT).is_some_and(|digit| *digit != b'1')
    }

    /// The final status, once the head has been read.
    #[inline]
    pub(in crate::engine) fn status(&self) -> u16 {
        self.status
    }

    /// Whether the answer leaves the connection usable, once the head has been read.
    #[inline]
    pub(in crate::engine) fn reuse(&self) -> Reuse {
        self.reuse
    }

    /// Whether an interim answer said `100 Continue` since this was asked last.
    pub(super) fn was_told_to_continue(&mut self) -> bool {
        std::mem::take(&mut self.continues)
    }

    /// Takes the next bytes from the connection, and hands those of the body to `keep`.
    #[inline]
    pub(in crate::engine) fn feed(
        &mut self,
        piece: &[u8],
        memory: &mut RememberedHead,
        mut keep: impl FnMut(&[u8]),
    ) -> Result<Fed, ProtocolError> {
        let mut taken = 0;
        if self.state == State::Head {
            let known = if self.head.is_empty() { memory.recall(piece, self.is_head) } else { None };
            taken = match known {
                Some((length, head)) => {
                    let body = &piece[length..];
                    // Mostly the whole answer came in one piece.
                    if head.framing == Framing::Length(body.len() as u64) {
                        self.status = head.status;
                        self.reuse = head.reuse;
                        self.state = State::Done;
                        keep(body);
                        return Ok(Fed { taken: piece.len(), body: body.len() as u64 });
                    }
                    self.enter(head);
                    length
                }
                None => self.collect_head(piece, memory)?,
            };
        }
        self.feed_body(piece, taken, &mut keep)
    }

    fn feed_body(
        &mut self,
        piece: &[u8],
        mut taken: usize,
        keep: &mut impl FnMut(&[u8]),
    ) -> Result<Fed, ProtocolError> {
        let mut body = 0;
        while taken < piece.len() {
            let rest = &piece[taken..];
            let (length, is_body) = match &mut self.state {
                State::Head | State::Done => break,
                State::UntilClose => (rest.len(), true),
                State::Length(left) => {
                    let length = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= length as u64;
                    if *left == 0 {
                        self.state = State::Done;
                    }
                    (length, true)
                }
                State::Chunked(machine) => {
                    let step = machine.step(rest)?;
                    if *machine == Chunked::Done {
                        self.state = State::Done;
                    }
                    match step {
                        Step::Framing(length) => (length, false),
                        Step::Body(length) => (length, true),
                    }
                }
            };
            if is_body {
                keep(&rest[..length]);
                body += length as u64;
            }
            taken += length;
        }
        Ok(Fed { taken, body })
    }

    /// Bytes of memory that are kept for a head.
    pub(in crate::engine) fn kept(&self) -> usize {
        self.head.capacity()
    }

    /// Whether the end of the connection now would complete the answer.
    pub(in crate::engine) fn ends_complete(&mut self) -> bool {
        self.end() == Ended::Complete
    }

    /// The connection ended.
    pub(in crate::engine) fn end(&mut self) -> Ended {
        if self.state == State::UntilClose {
            self.state = State::Done;
            Ended::Complete
        } else {
            Ended::Truncated
        }
    }

    fn enter(&mut self, head: Head) {
        self.status = head.status;
        self.reuse = head.reuse;
        self.state = match head.framing {
            Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(Chunked::START),
            Framing::UntilClose => State::UntilClose,
        };
    }

    /// Takes bytes of the head until it ends, and answers how many of `piece` belonged to it, interim heads included.
    #[cold]
    fn collect_head(&mut self, piece: &[u8], memory: &mut RememberedHead) -> Result<usize, ProtocolError> {
        let mut taken = 0;
        while self.state == State::Head && taken < piece.len() {
            let rest = &piece[taken..];
            if self.head.is_empty() {
                // Mostly a head comes whole: then it is parsed where it is.
                check_start(rest)?;
                let whole = &rest[..rest.len().min(MAX_HEAD)];
                if let Parsed::Complete(length, head) = parse_head(whole, self.is_head, memory.values())? {
                    taken += length;
                    self.finish_head(&rest[..length], head, memory)?;
                    continue;
                }
            }
            // Only what can still be the head is copied, so that a body that follows is never kept.
            let before = self.head.len();
            let room = MAX_HEAD - before;
            self.head.extend_from_slice(&rest[..rest.len().min(room)]);
            check_start(&self.head)?;
            let Some(end) = head_end(&self.head, before) else {
                if self.head.len() == MAX_HEAD {
                    return Err(ProtocolError::HeadTooLong);
                }
                check_status_line(&self.head, before)?;
                return Ok(piece.len());
            };
            self.head.truncate(end);
            match parse_head(&self.head, self.is_head, memory.values())? {
                Parsed::Complete(length, head) if length == end => {
                    taken += end - before;
                    let collected = std::mem::take(&mut self.head);
                    self.finish_head(&collected, head, memory)?;
                }
                // The blank line that was found is not what httparse takes for one: not HTTP either way.
                _ => return Err(ProtocolError::not_http("its head has no end", &self.head)),
            }
        }
        Ok(taken)
    }

    fn finish_head(&mut self, bytes: &[u8], head: Head, memory: &mut RememberedHead) -> Result<(), ProtocolError> {
        match head.status {
            101 => return Err(ProtocolError::SwitchedProtocols),
            100 => self.continues = true,
            102..=199 => {}
            _ => {
                memory.keep(bytes, head, self.is_head);
                self.enter(head);
            }
        }
        Ok(())
    }
}

/// Where the head ends: after the first blank line. Bytes before `seen` were searched already.
fn head_end(head: &[u8], seen: usize) -> Option<usize> {
    // A line may end with a bare LF (RFC 9112, section 2.2).
    let from = seen.saturating_sub(3);
    let mut ends = head[from..].iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| from + at + 1);
    ends.find(|end| head[..*end].ends_with(b"\n\r\n") || head[..*end].ends_with(b"\n\n"))
}

/// Whether this can be, or still become, the head of an answer: garbage is told at once and not by a timeout.
///
/// Empty lines before the status line are refused: an answer's end is known, so nothing can be between two answers.
fn check_start(head: &[u8]) -> Result<(), ProtocolError> {
    let known = b"HTTP/1.";
    let length = head.len().min(known.len());
    if head[..length] == known[..length] { Ok(()) } else { Err(ProtocolError::not_http("no status line", head)) }
}

/// Parses the status line once, when its end comes; the header fields are parsed when theirs does.
fn check_status_line(head: &[u8], seen: usize) -> Result<(), ProtocolError> {
    let line_ends_now = head[seen..].contains(&b'\n') && !head[..seen].contains(&b'\n');
    if line_ends_now { parse_head(head, false, &mut Vec::new()).map(|_| ()) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
