//! The chunked transfer coding (RFC 9112, section 7.1), as a machine that is fed pieces of any size.
//!
//! Counts nothing and keeps nothing: it tells which bytes of a piece are body. Invariant: where the pieces are cut makes
//! no difference.

use super::decode::ProtocolError;

/// The most bytes that sizes with extensions, or trailers, may take in a row: no peer makes the machine run on for ever.
const MAX_LINE: usize = 64 * 1024;

/// Where in the coding the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunked {
    /// In the hexadecimal size; whether a digit has come.
    Size { size: u64, digits: Digits },
    /// After the size, up to the line's end; so many bytes of it have come.
    Extension { size: u64, length: usize },
    /// Between the CR and the LF of a size line.
    SizeLf { size: u64 },
    /// In the data; so many bytes are left.
    Data(u64),
    /// Before the CR after the data.
    DataCr,
    /// Before the LF after the data.
    DataLf,
    /// At the start of a trailer line, or of the empty line that ends the body.
    TrailerStart { length: usize },
    /// In a trailer line.
    Trailer { length: usize },
    /// Between the CR and the LF of a trailer line.
    TrailerLf { length: usize },
    /// Between the CR and the LF of the last line.
    LastLf,
    /// The body is complete.
    Done,
}

/// Whether a size has any digit yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Digits {
    /// None: the line must not end here.
    None,
    /// At least one.
    Some,
}

/// What the machine made of the start of a piece.
pub(super) enum Step {
    /// So many bytes were framing.
    Framing(usize),
    /// So many bytes are body.
    Body(usize),
}

impl Chunked {
    /// Before the first chunk.
    pub(super) const START: Self = Self::Size { size: 0, digits: Digits::None };

    /// Takes the start of `piece`, which is not empty. Not to be called once [`Chunked::Done`].
    pub(super) fn step(&mut self, piece: &[u8]) -> Result<Step, ProtocolError> {
        if let Self::Data(left) = *self {
            let length = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let left = left - length as u64;
            *self = if left == 0 { Self::DataCr } else { Self::Data(left) };
            return Ok(Step::Body(length));
        }
        let mut taken = 0;
        for byte in piece {
            *self = self.after(*byte)?;
            taken += 1;
            if matches!(self, Self::Data(_) | Self::Done) {
                break;
            }
        }
        Ok(Step::Framing(taken))
    }

    fn after(self, byte: u8) -> Result<Self, ProtocolError> {
        let wrong = || Err(ProtocolError::Chunk { place: self.place(), byte });
        Ok(match (self, byte) {
            (Self::Size { size, digits }, _) => match (char::from(byte).to_digit(16), byte, digits) {
                (Some(digit), ..) => match size.checked_mul(16) {
                    Some(size) => Self::Size { size: size + u64::from(digit), digits: Digits::Some },
                    None => return Err(ProtocolError::ChunkSize),
                },
                (None, b'\r', Digits::Some) => Self::SizeLf { size },
                (None, b';' | b' ' | b'\t', Digits::Some) => Self::Extension { size, length: 0 },
                _ => return wrong(),
            },
            (Self::Extension { size, .. }, b'\r') => Self::SizeLf { size },
            (Self::Extension { .. } | Self::Trailer { .. } | Self::TrailerStart { .. }, b'\n') => return wrong(),
            (Self::Extension { length: MAX_LINE.., .. }, _) => return Err(ProtocolError::ChunkLine),
            (Self::Extension { size, length }, _) => Self::Extension { size, length: length + 1 },
            (Self::SizeLf { size: 0 }, b'\n') => Self::TrailerStart { length: 0 },
            (Self::SizeLf { size }, b'\n') => Self::Data(size),
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::START,
            (Self::TrailerStart { .. }, b'\r') => Self::LastLf,
            (Self::Trailer { length }, b'\r') => Self::TrailerLf { length },
            (Self::TrailerStart { length: MAX_LINE.. } | Self::Trailer { length: MAX_LINE.. }, _) => {
                return Err(ProtocolError::ChunkLine);
            }
            (Self::TrailerStart { length } | Self::Trailer { length }, _) => Self::Trailer { length: length + 1 },
            (Self::TrailerLf { length }, b'\n') => Self::TrailerStart { length },
            (Self::LastLf, b'\n') => Self::Done,
            _ => return wrong(),
        })
    }

    fn place(self) -> &'static str {
        match self {
            Self::Size { .. } | Self::Extension { .. } | Self::SizeLf { .. } => "in a chunk's size line",
            Self::Data(_) | Self::DataCr | Self::DataLf => "after a chunk's data",
            _ => "in the trailer section",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &[u8], piece: usize) -> Result<(Vec<u8>, usize), ProtocolError> {
        let (mut machine, mut body, mut taken) = (Chunked::START, Vec::new(), 0);
        while taken < text.len() && machine != Chunked::Done {
            let end = text.len().min(taken + piece);
            match machine.step(&text[taken..end])? {
                Step::Framing(length) => taken += length,
                Step::Body(length) => {
                    body.extend_from_slice(&text[taken..taken + length]);
                    taken += length;
                }
            }
        }
        assert_eq!(machine, Chunked::Done, "after {taken} bytes");
        Ok((body, taken))
    }

    #[test]
    fn extensions_upper_case_sizes_and_trailers_are_framing() {
        let text = b"A;name=\"v\"\r\n0123456789\r\n01 \r\nx\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\nHTTP";
        for piece in 1..=text.len() {
            let (body, taken) = decode(text, piece).expect("sound");
            assert_eq!((body.as_slice(), taken), (b"0123456789x".as_slice(), text.len() - 4), "pieces of {piece}");
        }
    }

    #[test]
    fn broken_chunks_are_protocol_errors() {
        for text in
            [&b"\r\n"[..], b"g\r\n", b";x\r\n", b"1\nx", b"1\r\nxy\r\n", b"1\r\nx\rz", b"0\r\nA: b\n", b"-1\r\n"]
        {
            assert!(decode(text, 3).is_err(), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn size_beyond_64_bits_is_refused_and_not_wrapped() {
        assert_eq!(decode(b"10000000000000000\r\n", 4), Err(ProtocolError::ChunkSize));
    }

    #[test]
    fn endless_trailers_and_extensions_end_at_the_limit() {
        let extension = [b"1;".as_slice(), &vec![b'x'; MAX_LINE + 1]].concat();
        assert_eq!(decode(&extension, 1_000), Err(ProtocolError::ChunkLine));
        let trailers = [b"0\r\n".as_slice(), &b"a: b\r\n".repeat(MAX_LINE)].concat();
        assert_eq!(decode(&trailers, 1_000), Err(ProtocolError::ChunkLine));
    }
}
