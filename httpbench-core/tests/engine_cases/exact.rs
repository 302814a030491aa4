//! Cases whose numbers are known beforehand: so many exchanges, so many connections, so many bytes.

use httpbench_core::Request;
use httpbench_core::model::{ArmRecording, Nanos, Reuse};
use httpbench_core::scenario::{WireOptions, WireRequest};

use super::load::{arm, get, plan, post, request, run, slice};
use super::peer::Peer;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Exactly so many exchanges, all of them good, on so many connections at once.
fn good(peer: &Peer, request: &WireRequest, requests: u64, connections: u32, reuse: Reuse) -> ArmRecording {
    let mut plan = plan(vec![arm(peer)]);
    plan.slices = vec![slice(0, 60_000)];
    (plan.slices[0].requests, plan.slices[0].lead_in) = (Some(requests), Nanos::ZERO);
    (plan.load.connections, plan.load.reuse) = (connections, reuse);
    let recording = run(&plan, request).arms.remove(0);
    assert_eq!((recording.counts.started, recording.counts.good), (requests, requests), "{:?}", recording.counts);
    recording
}

#[test]
fn ten_answers_that_end_with_their_connections_take_ten_connections() {
    // LG-01
    let peer = Peer::new(|talk| {
        talk.read_request()?;
        talk.send("HTTP/1.1 200 OK\r\nServer: old\r\n\r\nhello")
    });
    let recording = good(&peer, &get(), 10, 1, Reuse::Keep);
    assert_eq!((peer.connections(), peer.requests(), recording.connections), (10, 10, 10));
    assert_eq!((recording.body_bytes, recording.counts.redone), (50, 0));
}

#[test]
fn ten_answers_without_a_body_take_one_connection() {
    // LG-02, LG-03
    for (method, answer) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n"),
    ] {
        let peer = Peer::answering(answer);
        let request = request(format!("{method} / HTTP/1.1\r\nHost: peer\r\n\r\n"));
        let recording = good(&peer, &request, 10, 1, Reuse::Keep);
        assert_eq!((peer.connections(), peer.requests(), recording.body_bytes), (1, 10, 0), "{answer:?}");
        assert_eq!(recording.received_bytes, 10 * answer.len() as u64);
    }
}

#[test]
fn a_hundred_exchanges_with_a_server_that_closes_after_each_tenth_take_ten_connections() {
    // LG-22, LG-26, LG-32: a server that has closed reads nothing, so each request arrives once and whole.
    for request in [get(), post(&[b'b'; 1024])] {
        let peer = Peer::new(|talk| {
            for _ in 0..10 {
                if talk.read_request()? {
                    talk.send(OK)?;
                }
            }
            Ok(())
        });
        let recording = good(&peer, &request, 100, 1, Reuse::Keep);
        assert_eq!((peer.connections(), recording.connections, peer.requests()), (10, 10, 100));
        assert!(recording.counts.redone <= 9 && recording.counts.errors.total() == 0, "{:?}", recording.counts);
        assert_eq!(peer.last_request(), request.bytes);
    }
}

#[test]
fn a_hundred_answers_that_say_close_take_a_hundred_connections() {
    // LG-23: connect times are recorded apart, one for each.
    let peer = Peer::answering("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    let recording = good(&peer, &get(), 100, 4, Reuse::Keep);
    assert_eq!((peer.connections(), recording.connections, recording.connect.count()), (100, 100, 100));
}

#[test]
fn twenty_exchanges_without_keep_alive_are_twenty_accepts() {
    // LG-27
    let peer = Peer::answering(OK);
    let options = WireOptions { reuse: Reuse::Close, ..WireOptions::default() };
    let request = Request::get("/").render_as("peer", options).expect("renders");
    let recording = good(&peer, &request, 20, 1, Reuse::Close);
    assert_eq!((peer.connections(), peer.requests(), recording.connections), (20, 20, 20));
    assert_eq!(peer.last_request(), request.bytes);
}
