//! The decoder against every split of whole answers, against random bytes, and against hyper's client.

use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::connection::MAX_KEPT_BODY;
use super::*;

/// What an answer came to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    status: u16,
    body: Vec<u8>,
    taken: usize,
    reuse: Reuse,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Get,
    Head,
}

/// Decodes the pieces, then the end of the connection. `None`: truncated.
fn decode<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    method: Method,
    memory: &mut RememberedHead,
) -> Result<Option<Outcome>, ProtocolError> {
    let mut decoder = Decoder::default();
    decoder.begin(method == Method::Head);
    let (mut body, mut taken, mut counted) = (Vec::new(), 0, 0);
    for piece in pieces {
        if decoder.is_complete() {
            break;
        }
        let fed = decoder.feed(piece, memory, |bytes| body.extend_from_slice(bytes))?;
        assert!(fed.taken == piece.len() || decoder.is_complete(), "only a complete answer leaves bytes");
        taken += fed.taken;
        counted += fed.body;
    }
    assert_eq!(counted, body.len() as u64);
    if !decoder.is_complete() && decoder.end() == Ended::Truncated {
        return Ok(None);
    }
    Ok(Some(Outcome { status: decoder.status(), body, taken, reuse: decoder.reuse() }))
}

fn whole(answer: &[u8], method: Method) -> Result<Option<Outcome>, ProtocolError> {
    decode([answer], method, &mut RememberedHead::default())
}

/// Answers with the body that they have.
const ANSWERS: &[(&str, &str)] = &[
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"),
    ("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", "hello"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""),
    ("HTTP/1.1 200\r\nCONTENT-LENGTH:5\r\nconnection: CLOSE\r\n\r\nhello", "hello"),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA;x=\"y\"\r\n0123456789\r\n1\r\n!\r\n0\r\n\r\n",
        "0123456789!",
    ),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n", "abc"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc"),
    (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "ok",
    ),
    ("HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nuntil the end", "until the end"),
    ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"),
    ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", "ok"),
    ("HTTP/1.1 204 No Content\r\n\r\n", ""),
    ("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", ""),
    ("HTTP/1.1 404 Not Found\r\nContent-Length: 2, 2\r\n\r\nno", "no"),
];

#[test]
fn every_answer_is_the_same_however_it_is_cut_in_two_or_into_bytes() {
    for (answer, body) in ANSWERS {
        let bytes = answer.as_bytes();
        let expected = whole(bytes, Method::Get);
        let outcome = expected.clone().expect("sound").expect("complete");
        assert_eq!((outcome.body.as_slice(), outcome.taken), (body.as_bytes(), bytes.len()), "{answer:?}");
        for cut in 0..=bytes.len() {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(
                decode([left, right], Method::Get, &mut RememberedHead::default()),
                expected,
                "{answer:?} at {cut}"
            );
        }
        assert_eq!(
            decode(bytes.chunks(1), Method::Get, &mut RememberedHead::default()),
            expected,
            "{answer:?} by bytes"
        );
    }
}

#[test]
fn remembered_head_gives_what_parsing_it_would() {
    for (answer, _) in ANSWERS {
        let mut memory = RememberedHead::default();
        let first = decode([answer.as_bytes()], Method::Get, &mut memory);
        for cut in 0..answer.len() {
            let (left, right) = answer.as_bytes().split_at(cut);
            assert_eq!(decode([left, right], Method::Get, &mut memory), first, "{answer:?} at {cut}");
        }
    }
}

#[test]
fn remembered_head_of_a_get_is_not_taken_for_that_of_a_head() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
    let mut memory = RememberedHead::default();
    assert_eq!(decode([answer.as_slice()], Method::Get, &mut memory), Ok(None));
    let outcome = decode([answer.as_slice()], Method::Head, &mut memory).expect("sound").expect("complete");
    assert_eq!((outcome.body.len(), outcome.reuse), (0, Reuse::Keep));
    assert_eq!(decode([answer.as_slice()], Method::Get, &mut memory), Ok(None));
}

#[test]
fn head_that_only_begins_like_the_remembered_one_is_parsed() {
    let mut memory = RememberedHead::default();
    let first = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
    let second = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
    assert_eq!(decode([first.as_slice()], Method::Get, &mut memory).expect("sound").expect("complete").body, b"a");
    assert_eq!(
        decode([second.as_slice()], Method::Get, &mut memory).expect("sound").expect("complete").body,
        b"0123456789"
    );
}

#[test]
fn garbage_is_a_protocol_error_before_any_blank_line() {
    for garbage in
        ["HELLO\n", "HTTP/2 200 OK\r\n", "HTTP/1.1 abc\r\n", "\r\nHTTP/1.1 200 OK\r\n\r\n", "\0", "SSH-2.0-x\r\n"]
    {
        for piece in [1, garbage.len()] {
            let decoded = decode(garbage.as_bytes().chunks(piece), Method::Get, &mut RememberedHead::default());
            assert!(matches!(decoded, Err(ProtocolError::NotHttp { .. })), "{garbage:?}: {decoded:?}");
        }
    }
    let error = whole(b"HELLO\n", Method::Get).expect_err("garbage");
    assert!(error.to_string().contains("HELLO\\n"), "{error}");
}

#[test]
fn switch_of_protocols_that_nobody_asked_for_is_a_protocol_error() {
    let answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
    assert_eq!(whole(answer, Method::Get), Err(ProtocolError::SwitchedProtocols));
}

#[test]
fn head_of_64_kib_is_read_and_one_byte_more_is_refused() {
    let head = |length: usize| {
        let (start, end) = ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ", "\r\n\r\n");
        format!("{start}{}{end}", "x".repeat(length - start.len() - end.len()))
    };
    for piece in [1_000, MAX_HEAD * 2] {
        let feed = |head: String| decode(head.as_bytes().chunks(piece), Method::Get, &mut RememberedHead::default());
        assert_eq!(feed(head(MAX_HEAD)).expect("sound").expect("complete").status, 200);
        assert_eq!(feed(head(MAX_HEAD + 1)), Err(ProtocolError::HeadTooLong));
    }
}

#[test]
fn endless_head_keeps_no_more_than_its_limit() {
    let mut decoder = Decoder::default();
    decoder.begin(false);
    let mut memory = RememberedHead::default();
    let mut fed = decoder.feed(b"HTTP/1.1 200 OK\r\nX: ", &mut memory, |_| {});
    for _ in 0..100 {
        if fed.is_err() {
            break;
        }
        fed = decoder.feed(&[b'x'; 10_000], &mut memory, |_| {});
        assert!(decoder.head.capacity() <= 2 * MAX_HEAD);
    }
    assert_eq!(fed, Err(ProtocolError::HeadTooLong));
}

#[test]
fn large_body_leaves_nothing_in_the_decoder() {
    let mut decoder = Decoder::default();
    decoder.begin(false);
    let (mut memory, mut body) = (RememberedHead::default(), 0);
    let length = 100 * 1024 * 1024_u64;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    decoder.feed(head.as_bytes(), &mut memory, |_| {}).expect("sound");
    let piece = vec![b'x'; 64 * 1024];
    while !decoder.is_complete() {
        body += decoder.feed(&piece, &mut memory, |_| {}).expect("sound").body;
    }
    assert_eq!(body, length);
    assert!(decoder.head.capacity() + memory.bytes().len() < 1_024);
    assert_eq!(MAX_KEPT_BODY, 8 * 1024 * 1024);
}

/// Reads one answer with hyper's client from a connection that ends after it. `None`: hyper refuses it.
async fn by_hyper(answer: &[u8], method: &str) -> Option<(u16, Vec<u8>)> {
    let (near, mut far) = tokio::io::duplex(1 << 20);
    let bytes = answer.to_vec();
    let server = async move {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(far.read_u8().await.ok()?);
        }
        far.write_all(&bytes).await.ok()
    };
    let client = async {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(near)).await.ok()?;
        let request = hyper::Request::builder().method(method).uri("/").header("host", "peer");
        let exchange = async move {
            let request = request.body(http_body_util::Empty::<&[u8]>::new()).ok()?;
            let response = sender.send_request(request).await.ok()?;
            let status = response.status().as_u16();
            Some((status, response.into_body().collect().await.ok()?.to_bytes().to_vec()))
        };
        tokio::join!(exchange, async { connection.await.ok() }).0
    };
    tokio::join!(server, client).1
}

#[tokio::test]
async fn hyper_agrees_on_status_and_body_of_every_answer() {
    for (answer, _) in ANSWERS {
        let ours = whole(answer.as_bytes(), Method::Get).expect("sound").expect("complete");
        let theirs = by_hyper(answer.as_bytes(), "GET").await;
        assert_eq!(theirs, Some((ours.status, ours.body)), "{answer:?}");
    }
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    let ours = whole(head, Method::Head).expect("sound").expect("complete");
    assert_eq!(by_hyper(head, "HEAD").await, Some((ours.status, ours.body)));
}

#[tokio::test]
async fn hyper_refuses_what_we_refuse() {
    for answer in [
        "HELLO\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhell",
        "HTTP/1.1 200 OK\r\nContent-Le",
    ] {
        assert!(!matches!(whole(answer.as_bytes(), Method::Get), Ok(Some(_))), "{answer:?}");
        assert_eq!(by_hyper(answer.as_bytes(), "GET").await, None, "{answer:?}");
    }
}

fn any_answer() -> impl Strategy<Value = (Vec<u8>, u16, Vec<u8>)> {
    let interim =
        prop::sample::select(vec!["", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 X\r\nLink: </x>\r\n\r\n"]);
    let parts = prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..5);
    let framing = 0..3_u8;
    (interim, prop::sample::select(vec![200_u16, 201, 404, 500, 999]), parts, framing, "[a-z \t]{0,12}").prop_map(
        |(interim, status, parts, framing, value)| {
            let body = parts.concat();
            let mut bytes = format!("{interim}HTTP/1.1 {status} Some Reason\r\nX-Value: {value}\r\n").into_bytes();
            match framing {
                0 => bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes()),
                1 => bytes.extend_from_slice(b"\r\n"),
                _ => bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n"),
            }
            if framing < 2 {
                bytes.extend_from_slice(&body);
            } else {
                for part in &parts {
                    bytes.extend_from_slice(format!("{:X};e={value}\r\n", part.len()).as_bytes());
                    bytes.extend_from_slice(part);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(format!("0\r\nX-Trailer: {value}\r\n\r\n").as_bytes());
            }
            (bytes, status, body)
        },
    )
}

fn cut<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect()
}

/// A head and one that was made from it by other bytes here and there, mostly in values.
fn like_heads() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let field = prop::sample::select(vec![
        "Content-Length: 3",
        "content-length:3, 3",
        "Connection: close",
        "Connection: keep-alive",
        "Transfer-Encoding: chunked",
        "Date: Thu, 01 Jan 1970 00:00:00 GMT",
        "X-Request-Id:  0123456789abcdef ",
        "X-Empty:",
        "Content-Lengt0: 3",
    ]);
    let byte = prop_oneof![
        3 => b' '..=b'~',
        1 => any::<u8>(),
        1 => prop::sample::select(b"\r\n:,\t 037".to_vec()),
    ];
    let change = (any::<prop::sample::Index>(), 0..4_usize, prop::collection::vec(byte, 0..4));
    let changes = prop::collection::vec(change, 0..4);
    (prop::sample::select(vec!["1.1", "1.0"]), prop::collection::vec(field, 0..5), changes).prop_map(
        |(version, fields, changes)| {
            let lines: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
            let head = format!("HTTP/{version} 200 OK\r\n{lines}\r\n3\r\nabc\r\n0\r\n\r\n").into_bytes();
            let mut other = head.clone();
            for (at, length, bytes) in changes {
                let at = at.index(other.len());
                other.splice(at..other.len().min(at + length), bytes);
            }
            (head, other)
        },
    )
}

proptest! {
    #[test]
    fn head_that_is_like_the_remembered_one_means_what_parsing_it_says(heads in prop::collection::vec(like_heads(), 1..3)) {
        let mut memory = RememberedHead::default();
        for answer in heads.iter().flat_map(|(head, other)| [head, other, head, other]) {
            let remembering = decode([answer.as_slice()], Method::Get, &mut memory);
            prop_assert_eq!(remembering, whole(answer, Method::Get));
        }
    }

    #[test]
    fn any_cuts_of_any_answer_give_its_status_and_body(
        (bytes, status, body) in any_answer(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut memory = RememberedHead::default();
        for _ in 0..2 {
            let outcome = decode(cut(&bytes, &cuts), Method::Get, &mut memory).expect("sound").expect("complete");
            prop_assert_eq!((outcome.status, &outcome.body, outcome.taken), (status, &body, bytes.len()));
        }
    }

    #[test]
    fn bytes_of_any_kind_and_length_are_decoded_within_bounds_and_alike(
        start in prop::sample::select(vec![
            &b""[..], b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.0 301 \r\nContent-Length: 7\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
        ]),
        unit in prop::collection::vec(any::<u8>(), 0..24),
        repeated in 0..6_000_usize,
        end in prop::sample::select(vec![&b""[..], b"\r\n\r\n", b"\r\n0\r\n\r\n"]),
        is_head in any::<bool>(),
        lengths in prop::collection::vec(any::<u8>(), 0..6),
    ) {
        crate::engine::fuzzing::decode(&[start, &unit.repeat(repeated), end].concat(), is_head, &lengths);
    }

    #[test]
    fn random_bytes_after_a_sound_start_never_panic_and_cuts_make_no_difference(
        start in prop::sample::select(vec![
            "", "HTTP/1.1 ", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: ",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 100 X\r\n\r\n",
        ]),
        noise in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"\r\n0;: 1f".to_vec())], 0..60),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let bytes = [start.as_bytes(), &noise].concat();
        let one = whole(&bytes, Method::Get);
        let many = decode(cut(&bytes, &cuts), Method::Get, &mut RememberedHead::default());
        // Whether bad bytes are told before the end of the connection depends on the cuts; an answer does not.
        prop_assert_eq!(one.ok().flatten(), many.ok().flatten());
    }
}
