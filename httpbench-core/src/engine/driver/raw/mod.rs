//! HTTP/1.1 by our own codec on a TCP stream: the default, and the reason why the engine is not what is measured.
//!
//! [`connection`] moves bytes, [`decode`] finds the end of an answer, [`framing`] understands a head, [`chunked`] a body in
//! chunks. Requests come rendered, so nothing is encoded.
//!
//! Decisions beyond the RFC's letter:
//!
//! - Bytes that follow a complete answer, with no request outstanding, belong to nobody (RFC 9112, section 9.2): the
//!   answer counts, the connection is dropped, and the recording's number of connections shows it. Those that come later, when
//!   the next request is on its way, are taken for its answer's start: nothing in HTTP/1.1 tells them apart.
//! - An answer that is complete before its request was fully written counts as it is (RFC 9112, section 9.5: an early
//!   413); the connection is dropped, since the rest of the request was never sent.
//! - A body whose request says `Expect: 100-continue` waits for the server, but not for ever: see [`expect`].

mod chunked;
mod connection;
mod decode;
mod expect;
mod framing;
mod remembered;
mod stream;

pub(in crate::engine) use connection::{MAX_KEPT_BODY, RawDriver};
pub(in crate::engine) use decode::{Decoder, Ended, MAX_HEAD, ProtocolError};
pub(in crate::engine) use expect::ContinueDriver;
pub(in crate::engine) use framing::{Wanted, expects_continue, field};
pub(in crate::engine) use remembered::RememberedHead;
pub(in crate::engine) use stream::{Stream, Tap};
