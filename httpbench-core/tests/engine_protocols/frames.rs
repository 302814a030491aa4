//! A scripted server's side of HTTP/2, frame by frame (RFC 9113, sections 4 and 6), so that a test says exactly what is
//! sent. Heads are never decoded: what counts here is which streams there are.

use std::io::{self, Read};

use super::peer::Talk;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It sent a whole request.
    Request(u32),
    /// It reset a stream.
    Reset(u32, u32),
    End,
}

/// Bytes of a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// `:status: 200` and a body of two bytes.
pub(crate) fn ok(stream: u32) -> Vec<u8> {
    [frame(HEADERS, END_HEADERS, stream, &[0x88]), frame(DATA, END_STREAM, stream, b"ok")].concat()
}

/// `:status: 200`, and the body is still to come.
pub(crate) fn head(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &[0x88])
}

/// `:status: 500`, and no body.
pub(crate) fn failed(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &[0x8e])
}

/// A piece of a body, and `:status: 200` as a trailer's place is taken by an empty end.
pub(crate) fn part(stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, 0, stream, bytes)
}

/// Trailers: the field `x-a: b`, not indexed.
pub(crate) fn trailers(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x00\x03x-a\x01b")
}

pub(crate) fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub(crate) fn go_away(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

/// The client's preface, and our settings: the most streams at once, if any.
pub(crate) fn greet(talk: &mut Talk, most: Option<u32>) -> io::Result<()> {
    let mut preface = [0; 24];
    talk.stream.read_exact(&mut preface)?;
    assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    let settings = most.map_or(Vec::new(), |most| [&[0, 3][..], &most.to_be_bytes()].concat());
    talk.send(frame(SETTINGS, 0, 0, &settings))
}

/// Reads frames until something happens to a stream; answers what a connection needs on the way.
pub(crate) fn next(talk: &mut Talk) -> io::Result<Event> {
    loop {
        let mut header = [0; 9];
        match talk.stream.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Event::End),
            read => read?,
        }
        let [a, b, c, kind, flags, w, x, y, z] = header;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        talk.stream.read_exact(&mut payload)?;
        let stream = u32::from_be_bytes([w, x, y, z]);
        match kind {
            HEADERS | DATA if flags & END_STREAM != 0 => return Ok(Event::Request(stream)),
            RST_STREAM => {
                let code = payload.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
                return Ok(Event::Reset(stream, u32::from_be_bytes(code)));
            }
            SETTINGS if flags & ACK == 0 => talk.send(frame(SETTINGS, ACK, 0, &[]))?,
            PING if flags & ACK == 0 => talk.send(frame(PING, ACK, 0, &payload))?,
            _ => {}
        }
    }
}
