//! Connections that carry one exchange each: keep-alive switched off, and HTTP/1.0.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use httpbench_core::Request;
use httpbench_core::model::{ArmRecording, Protocol, Reuse};
use httpbench_core::scenario::WireOptions;

use super::load::{arm, assert_all_good, drive, plan, run};
use super::peer::Peer;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Drives the peer with `GET /`, rendered and loaded as the options say.
fn drive_as(peer: &Peer, options: WireOptions) -> ArmRecording {
    let mut plan = plan(vec![arm(peer)]);
    plan.arms[0].protocol = options.version;
    plan.load.reuse = options.reuse;
    let options = WireOptions::of(&plan.arms[0], &plan.load);
    run(&plan, &Request::get("/").render_as(&plan.arms[0].host, options).expect("renders")).arms.remove(0)
}

/// Local addresses that wait for a minute after connections to `server`, or to whoever had its port number before.
fn waiting_addresses(server: SocketAddr) -> BTreeSet<String> {
    let remote = format!(":{:04X} 06", server.port());
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux");
    let waiting = table.lines().filter(|line| line.contains(&remote));
    waiting.filter_map(|line| line.split_whitespace().nth(1)).map(ToOwned::to_owned).collect()
}

#[test]
fn without_keep_alive_every_exchange_says_close_and_has_a_connection_of_its_own() {
    // LG-27: the server would keep the connections open.
    let peer = Peer::answering(OK);
    let others = waiting_addresses(peer.address);
    let recording = drive_as(&peer, WireOptions { reuse: Reuse::Close, ..WireOptions::default() });
    assert_all_good(&recording.counts);
    assert_eq!((peer.connections(), peer.requests()), (recording.counts.started, recording.counts.started));
    // LG-23: connect times are recorded apart, one for each.
    assert_eq!(
        (recording.connections, recording.connect.count()),
        (recording.counts.started, recording.counts.started)
    );
    assert!(peer.last_request().ends_with(b"\r\nConnection: close\r\n\r\n"));
    // LG-68: no local port is left waiting.
    assert!(waiting_addresses(peer.address).is_subset(&others));
}

#[test]
fn without_keep_alive_the_plan_holds_even_if_the_request_does_not_say_so() {
    // LG-27
    let peer = Peer::answering(OK);
    let mut plan = plan(vec![arm(&peer)]);
    plan.load.reuse = Reuse::Close;
    plan.load.connections = 4;
    let recording = run(&plan, &super::load::get()).arms.remove(0);
    assert_all_good(&recording.counts);
    assert_eq!((peer.connections(), recording.connections), (recording.counts.started, recording.counts.started));
}

#[test]
fn service_time_is_without_the_connect_time() {
    // LG-23, LG-27: a service time and a connect time fit into each exchange, one after the other.
    let peer = Peer::answering(OK);
    let recording = drive_as(&peer, WireOptions { reuse: Reuse::Close, ..WireOptions::default() });
    let both = recording.service.mean().expect("times").0 + recording.connect.mean().expect("times").0;
    // One connection, 100 ms, and what was under way at the end.
    let longest = recording.service.max().expect("a time").0 + recording.connect.max().expect("a time").0;
    assert!(both * recording.counts.good <= 100_000_000 + longest + recording.counts.good * 1_000, "{both}");
}

#[test]
fn http_1_0_closes_unless_the_answer_says_keep_alive() {
    // Answers of HTTP/1.0 and, as nginx does, of HTTP/1.1; with a length and up to the end of the connection.
    for answer in [
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\n\r\nok",
    ] {
        let peer = Peer::new(move |talk| {
            talk.read_request()?;
            talk.send(answer)
        });
        let recording = drive_as(&peer, WireOptions { version: Protocol::Http10, ..WireOptions::default() });
        assert_all_good(&recording.counts);
        assert_eq!((recording.counts.redone, recording.body_bytes), (0, 2 * recording.counts.good), "{answer:?}");
        assert_eq!(recording.connections, peer.connections());
        assert!(recording.connections >= recording.counts.good, "{answer:?}");
        let request = String::from_utf8(peer.last_request()).expect("ASCII");
        assert!(request.starts_with("GET / HTTP/1.0\r\nHost: 127.0.0.1:"), "{request}");
        assert!(!request.contains("Connection"), "{request}");
    }
}

#[test]
fn http_1_0_keeps_the_connection_that_both_sides_keep_alive() {
    let peer = Peer::answering("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok");
    let options = WireOptions { version: Protocol::Http10, ..WireOptions::default() };
    let request = Request::get("/").header("Connection", "keep-alive").render_as("peer", options).expect("renders");
    let recording = drive(&peer, &request);
    assert_all_good(&recording.counts);
    assert_eq!((peer.connections(), peer.requests()), (1, recording.counts.good));
}
