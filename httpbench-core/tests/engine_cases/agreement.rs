//! The same scripted answers, sent to the engine and to hyper's client: both must see the same status and the same body.

use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;

use super::load::{drive, request};
use super::peer::Peer;

/// Requests' methods, and answers that end with their connection where they do not say their length.
const ANSWERS: &[(&str, &str)] = &[
    ("GET", "HTTP/1.1 200 OK\r\n\r\nhello"),                           // LG-01
    ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),       // LG-02
    ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),                        // LG-03
    ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n"), // LG-03
    (
        "GET",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ), // LG-04
    ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA;e=\"v\"\r\n0123456789\r\n0\r\n\r\n"), // LG-05
    ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n"), // LG-06
    ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nhello"), // LG-07
    ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello"),     // LG-07
    ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), // LG-09
    ("GET", "HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 5\r\nconnection: CLOSE\r\n\r\nhello"), // LG-14
    ("GET", "HTTP/1.1 200 OK\r\nConnection: foo, close\r\nContent-Length: 5\r\n\r\nhello"), // LG-14
    ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789012345678901234567890123456789"), // LG-18
    ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"), // LG-18
    ("GET", "HELLO\n"),                                                     // LG-20
    ("GET", "HTTP/1.0 200 OK\r\n\r\nhello"),
    ("GET", "HTTP/1.0 404 Not Found\r\nContent-Length: 2\r\n\r\nno"),
    ("GET", "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"),
    ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello"),
];

/// Sends an answer to each request, then closes.
fn peer(answer: &'static str) -> Peer {
    Peer::new(move |talk| {
        talk.read_request()?;
        talk.send(answer)
    })
}

/// Status and length of the body; `None`: an error of whatever kind.
type Seen = Option<(u16, u64)>;

fn by_the_engine(method: &str, answer: &'static str) -> Seen {
    let peer = peer(answer);
    let recording = drive(&peer, &request(format!("{method} / HTTP/1.1\r\nHost: peer\r\n\r\n")));
    let completed = recording.counts.good + recording.counts.check_failures;
    assert!(completed == 0 || completed == recording.counts.started, "always the same: {:?}", recording.counts);
    let first = recording.first_answer?;
    assert_eq!(recording.body_bytes, first.body_bytes * completed);
    Some((first.status, first.body_bytes))
}

async fn by_hyper(method: &str, answer: &'static str) -> Seen {
    let peer = peer(answer);
    let stream = tokio::net::TcpStream::connect(peer.address).await.expect("it listens");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    let request = hyper::Request::builder().method(method).uri("/").header("host", "peer");
    let exchange = async move {
        let response = sender.send_request(request.body(Empty::<&[u8]>::new()).ok()?).await.ok()?;
        let status = response.status().as_u16();
        Some((status, response.into_body().collect().await.ok()?.to_bytes().len() as u64))
    };
    tokio::join!(exchange, async { connection.await.ok() }).0
}

#[tokio::test]
async fn hyper_sees_the_same_statuses_and_bodies() {
    for (method, answer) in ANSWERS {
        // The engine blocks; it has threads of its own.
        let ours = std::thread::spawn(move || by_the_engine(method, answer)).join().expect("no panic");
        assert_eq!(by_hyper(method, answer).await, ours, "{answer:?}");
    }
}
