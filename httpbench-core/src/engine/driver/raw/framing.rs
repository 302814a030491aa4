//! From a header section to the framing of its body (RFC 9112, section 6.3), and whether the connection stays usable.
//!
//! Parses bytes that are there already; the [decoder](super::decode) collects them and follows the framing.
//! Invariant: equal bytes of a head, for the same kind of request, always give an equal [`Head`].

use std::mem::MaybeUninit;
use std::ops::Range;

use super::decode::ProtocolError;

/// The most header fields of one answer. Real servers send a dozen or two.
pub(super) const MAX_HEADERS: usize = 128;

/// What a head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The status code, 100 to 999.
    pub(super) status: u16,
    /// How the end of the body is found.
    pub(super) framing: Framing,
    /// Whether another exchange may follow on the connection.
    pub(super) reuse: Reuse,
}

/// How the end of an answer's body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes. An answer without a body has none.
    Length(u64),
    /// Chunks.
    Chunked,
    /// The end of the connection.
    UntilClose,
}

/// Whether a connection may carry another exchange, as an answer's head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Reuse {
    /// It may: the answer is of HTTP/1.1 and says nothing else.
    Keep,
    /// It may: the answer says `keep-alive`.
    KeepAlive,
    /// It must be closed after this answer.
    Close,
}

/// What must be true of an answer for its connection to be used again, as the request makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Wanted {
    /// Nothing in it may forbid that: the rule of HTTP/1.1.
    Persistent,
    /// It must say `keep-alive`. To a server, a request of HTTP/1.0 is one of a client that closes, even where the server
    /// itself answers in HTTP/1.1 (RFC 9112, section 9.3).
    KeepAlive,
    /// No answer will do.
    Closed,
}

impl Wanted {
    /// What a request asks for by its version and its `Connection` field.
    pub(in crate::engine) fn by(request: &[u8]) -> Self {
        let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut fields);
        match parsed.parse(request) {
            Ok(_) if lists(parsed.headers, "connection", b"close") => Self::Closed,
            Ok(_) if parsed.version == Some(0) => Self::KeepAlive,
            _ => Self::Persistent,
        }
    }

    /// Whether the connection may be used again after such an answer.
    #[inline]
    pub(in crate::engine) fn allows(self, reuse: Reuse) -> bool {
        match self {
            Self::Persistent => reuse != Reuse::Close,
            Self::KeepAlive => reuse == Reuse::KeepAlive,
            Self::Closed => false,
        }
    }
}

/// What is known of a head that begins with the given bytes.
pub(super) enum Parsed {
    /// Its end has not come.
    Partial,
    /// It ends after so many bytes.
    Complete(usize, Head),
}

/// Parses a head, and adds to `free` where the values stand that mean nothing to the [`Head`], up to their lines' ends, in
/// their order.
pub(super) fn parse_head(bytes: &[u8], is_head: bool, free: &mut Vec<Range<usize>>) -> Result<Parsed, ProtocolError> {
    // Not filled with empty fields first: that would take as long as parsing a usual head.
    let mut fields = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    match parser.parse_response_with_uninit_headers(&mut response, bytes, &mut fields) {
        Ok(httparse::Status::Partial) => Ok(Parsed::Partial),
        Ok(httparse::Status::Complete(length)) => {
            let said = said_by(bytes, response.headers, free)?;
            let status = response.code.unwrap_or_default();
            Ok(Parsed::Complete(length, said.head(status, response.version == Some(0), is_head)))
        }
        Err(httparse::Error::TooManyHeaders) => Err(ProtocolError::TooManyHeaders),
        Err(error) => Err(ProtocolError::not_http(error, bytes)),
    }
}

/// The value of the first field called `name` in a head, as text.
pub(in crate::engine) fn field(head: &[u8], name: &str) -> Option<String> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut fields);
    response.parse(head).ok()?;
    let field = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
    Some(String::from_utf8_lossy(field.value).into_owned())
}

/// Where the body of a request begins that has one and waits with it for `100 Continue`.
pub(in crate::engine) fn expects_continue(request: &[u8]) -> Option<usize> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut fields);
    let Ok(httparse::Status::Complete(head)) = parsed.parse(request) else { return None };
    let waits = parsed.version == Some(1)
        && parsed.headers.iter().any(|field| {
            field.name.eq_ignore_ascii_case("expect")
                && list(field.value).any(|item| item.eq_ignore_ascii_case(b"100-continue"))
        });
    (waits && head < request.len()).then_some(head)
}

/// What the fields say that bear on framing.
#[derive(Default)]
struct Said {
    close: bool,
    keep_alive: bool,
    length: Option<u64>,
    codings: Option<Framing>,
}

/// Looks at each field once: most mean nothing here, as the length of their names shows.
fn said_by(head: &[u8], fields: &[httparse::Header<'_>], free: &mut Vec<Range<usize>>) -> Result<Said, ProtocolError> {
    let mut said = Said::default();
    for field in fields {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        match field.name.len() {
            10 if is("connection") => {
                said.close |= list(field.value).any(|item| item.eq_ignore_ascii_case(b"close"));
                said.keep_alive |= list(field.value).any(|item| item.eq_ignore_ascii_case(b"keep-alive"));
            }
            14 if is("content-length") => said.add_length(field.value)?,
            17 if is("transfer-encoding") => said.add_codings(field.value)?,
            // An empty value may stand anywhere, even outside the head.
            _ if field.value.is_empty() => {}
            _ => {
                let start = field.value.as_ptr().addr() - head.as_ptr().addr();
                let end = start + field.value.len();
                let blanks = head[end..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
                free.push(start..end + blanks);
            }
        }
    }
    Ok(said)
}

impl Said {
    /// `Content-Length`, which may come several times if the values are equal: `5, 5` is 5 (RFC 9112, section 6.3, item 5).
    fn add_length(&mut self, value: &[u8]) -> Result<(), ProtocolError> {
        for item in list(value) {
            let value = decimal(item).ok_or_else(|| ProtocolError::ContentLength(excerpt(item)))?;
            match self.length {
                Some(first) if first != value => return Err(ProtocolError::ContentLengthsDiffer(first, value)),
                _ => self.length = Some(value),
            }
        }
        Ok(())
    }

    /// The framing that `Transfer-Encoding` gives: chunks if that is the last coding, else all bytes until the end.
    fn add_codings(&mut self, value: &[u8]) -> Result<(), ProtocolError> {
        for item in list(value) {
            let name = item.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            let chunked = name.eq_ignore_ascii_case(b"chunked");
            if chunked && self.codings == Some(Framing::Chunked) {
                return Err(ProtocolError::ChunkedTwice);
            }
            self.codings = Some(if chunked { Framing::Chunked } else { Framing::UntilClose });
        }
        Ok(())
    }

    /// The head that says this; `old`: by HTTP/1.0.
    fn head(&self, status: u16, old: bool, is_head: bool) -> Head {
        let mut reuse = match (self.close, self.keep_alive) {
            (true, _) => Reuse::Close,
            (false, true) => Reuse::KeepAlive,
            (false, false) if old => Reuse::Close,
            (false, false) => Reuse::Keep,
        };
        let framing = if is_head || matches!(status, 100..=199 | 204 | 304) {
            Framing::Length(0)
        } else {
            match (self.codings, self.length) {
                (Some(framing), length) => {
                    // Both fields, or chunks from HTTP/1.0, are the marks of request smuggling or a confused proxy: the
                    // answer is read, the connection is not used again (RFC 9112, sections 6.1 and 6.3).
                    if length.is_some() || old {
                        reuse = Reuse::Close;
                    }
                    framing
                }
                (None, Some(length)) => Framing::Length(length),
                (None, None) => Framing::UntilClose,
            }
        };
        if framing == Framing::UntilClose {
            reuse = Reuse::Close;
        }
        Head { status, framing, reuse }
    }
}

/// The items of a field's value: a field may come several times and hold a list (RFC 9110, section 5.3).
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

fn lists(fields: &[httparse::Header<'_>], name: &str, token: &[u8]) -> bool {
    let mut named = fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
    named.any(|field| list(field.value).any(|item| item.eq_ignore_ascii_case(token)))
}

fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, byte| {
        byte.is_ascii_digit().then(|| value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))).flatten()
    })
}

/// The start of what was received, readable in a message.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(40)];
    format!("`{}`{}", start.escape_ascii(), if start.len() < bytes.len() { " …" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Head, ProtocolError> {
        match parse_head(text.as_bytes(), false, &mut Vec::new())? {
            Parsed::Complete(length, head) => {
                assert_eq!(length, text.len());
                Ok(head)
            }
            Parsed::Partial => panic!("{text:?} is a whole head"),
        }
    }

    fn framing(fields: &str) -> Framing {
        head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).expect("a sound head").framing
    }

    fn reuse(version: &str, fields: &str) -> Reuse {
        head(&format!("HTTP/{version} 200 OK\r\n{fields}\r\n")).expect("a sound head").reuse
    }

    #[test]
    fn length_comes_in_any_case_and_as_a_list_of_equal_values() {
        assert_eq!(framing("CONTENT-LENGTH: 5\r\n"), Framing::Length(5));
        assert_eq!(framing("content-length: 5, 5\r\n"), Framing::Length(5));
        assert_eq!(framing("Content-Length: 5\r\nContent-Length: 5\r\n"), Framing::Length(5));
    }

    #[test]
    fn lengths_that_differ_or_are_no_numbers_are_protocol_errors() {
        for field in ["5\r\nContent-Length: 6", "5, 6", "-1", "0x5", "", "5,", "99999999999999999999", "+5"] {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {field}\r\n\r\n");
            assert!(head(&text).is_err(), "{field:?}");
        }
    }

    #[test]
    fn transfer_encoding_wins_over_length_and_ends_the_connection() {
        let both = head("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: gzip, CHUNKED\r\n\r\n");
        assert_eq!(both, Ok(Head { status: 200, framing: Framing::Chunked, reuse: Reuse::Close }));
    }

    #[test]
    fn transfer_encoding_without_chunked_last_lasts_until_the_connection_ends() {
        for value in ["identity", "gzip", "chunked, gzip", ""] {
            assert_eq!(framing(&format!("Transfer-Encoding: {value}\r\n")), Framing::UntilClose, "{value:?}");
        }
        assert!(head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n").is_err());
    }

    #[test]
    fn no_length_lasts_until_the_connection_ends() {
        assert_eq!(framing(""), Framing::UntilClose);
        assert_eq!(reuse("1.1", "Connection: keep-alive\r\n"), Reuse::Close);
    }

    #[test]
    fn some_statuses_and_head_have_no_body_whatever_they_say() {
        for status in [204, 304] {
            let text = format!("HTTP/1.1 {status} X\r\nContent-Length: 7\r\n\r\n");
            let expected = Head { status, framing: Framing::Length(0), reuse: Reuse::Keep };
            assert_eq!(head(&text), Ok(expected));
        }
        let text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(matches!(
            parse_head(text, true, &mut Vec::new()),
            Ok(Parsed::Complete(_, Head { framing: Framing::Length(0), .. }))
        ));
    }

    #[test]
    fn close_is_one_token_of_a_list_in_any_case() {
        let length = "Content-Length: 0\r\n";
        assert_eq!(reuse("1.1", length), Reuse::Keep);
        assert_eq!(reuse("1.1", &format!("{length}connection: CLOSE\r\n")), Reuse::Close);
        assert_eq!(reuse("1.1", &format!("{length}Connection: foo, close\r\n")), Reuse::Close);
        assert_eq!(reuse("1.1", &format!("{length}Connection: closed\r\n")), Reuse::Keep);
    }

    #[test]
    fn http_1_0_keeps_the_connection_only_if_it_says_so() {
        let length = "Content-Length: 0\r\n";
        assert_eq!(reuse("1.0", length), Reuse::Close);
        assert_eq!(reuse("1.0", &format!("{length}Connection: Keep-Alive\r\n")), Reuse::KeepAlive);
    }

    #[test]
    fn request_decides_what_its_answer_must_say_for_the_connection_to_be_kept() {
        let close = Wanted::by(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: TE, Close\r\n\r\n");
        assert_eq!([Reuse::Keep, Reuse::KeepAlive, Reuse::Close].map(|reuse| close.allows(reuse)), [false; 3]);
        let plain = Wanted::by(b"GET /?connection=close HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!([Reuse::Keep, Reuse::KeepAlive, Reuse::Close].map(|reuse| plain.allows(reuse)), [true, true, false]);
        let old = Wanted::by(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!([Reuse::Keep, Reuse::KeepAlive, Reuse::Close].map(|reuse| old.allows(reuse)), [false, true, false]);
    }

    #[test]
    fn only_a_body_whose_request_expects_100_waits() {
        let head = "POST / HTTP/1.1\r\nexpect: 100-Continue\r\nContent-Length: 4\r\n\r\n";
        assert_eq!(expects_continue(format!("{head}body").as_bytes()), Some(head.len()));
        assert_eq!(expects_continue(format!("{head}\r\n\r\n").as_bytes()), Some(head.len()));
        assert_eq!(expects_continue(head.as_bytes()), None);
        assert_eq!(expects_continue(b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"), None);
        assert_eq!(expects_continue(format!("{head}body").replace("1.1", "1.0").as_bytes()), None);
    }

    #[test]
    fn too_many_fields_are_refused_by_the_limit() {
        let text = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
        assert_eq!(head(&text), Err(ProtocolError::TooManyHeaders));
        assert!(head(&format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS))).is_ok());
    }
}
