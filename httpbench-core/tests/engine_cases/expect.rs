//! `Expect: 100-continue`: when the body is sent, and when it is not.

use httpbench_core::model::{ErrorClass, Nanos};
use httpbench_core::scenario::WireRequest;

use super::load::{arm, assert_all, assert_all_good, drive, plan, request, run, slice, traced};
use super::peer::{Peer, pause};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn post() -> WireRequest {
    request("POST / HTTP/1.1\r\nHost: peer\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody")
}

#[test]
fn body_follows_once_the_server_says_100() {
    // LG-33 (a): the server sees that the body does not come before it has said so.
    let peer = Peer::new(|talk| {
        loop {
            talk.read_head()?;
            assert!(talk.is_silent_for(5)?, "the body came before `100`");
            talk.send("HTTP/1.1 100 Continue\r\n\r\n")?;
            assert_eq!(talk.read_exactly(4)?, b"body");
            talk.send(OK)?;
        }
    });
    let recording = drive(&peer, &post());
    assert_all_good(&recording.counts);
    assert_eq!((peer.connections(), recording.connections), (1, 1));
    assert_eq!(recording.sent_bytes, post().bytes.len() as u64 * recording.counts.good);
    assert!(recording.service.max().expect("a time") < Nanos::from_millis(900), "nobody waited for a second");
}

#[test]
fn final_answer_before_the_body_counts_and_the_body_is_never_sent() {
    // LG-33 (b): the connection, which still owes the body, is dropped.
    let peer = Peer::new(|talk| {
        talk.read_head()?;
        talk.send(OK)?;
        assert!(talk.is_silent_for(1_000)?, "the body came although nobody wanted it");
        Ok(())
    });
    let recording = drive(&peer, &post());
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.redone, recording.connections), (0, peer.connections()));
    assert_eq!(recording.connections, recording.counts.good);
    let head = post().bytes.len() as u64 - 4;
    assert_eq!(recording.sent_bytes, head * recording.counts.good);
}

#[test]
fn refusal_of_the_expectation_is_the_answer() {
    let peer = Peer::new(|talk| {
        talk.read_head()?;
        talk.send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")?;
        talk.wait_for_close()
    });
    let recording = drive(&peer, &post());
    assert_eq!(recording.counts.check_failures, recording.counts.started);
    assert_eq!(recording.counts.check_example.as_deref(), Some("status 417"));
}

#[test]
fn body_is_sent_after_a_second_to_a_server_that_never_says_100() {
    // LG-33 (c): the server waits for 300 ms, says nothing, and then for the body.
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            talk.send(OK)?;
        }
        Ok(())
    });
    let recording = drive(&peer, &post());
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.good, peer.requests()), (1, 1));
    assert_eq!(peer.last_request(), post().bytes);
    let waited = recording.service.min().expect("a time");
    assert!(waited >= Nanos::from_millis(995), "{waited:?}");
}

#[test]
fn wait_is_half_of_a_short_request_timeout_so_that_it_is_none() {
    // LG-33 (c), with the timeout of 1 s that the cases have.
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            pause(20);
            talk.send(OK)?;
        }
        Ok(())
    });
    let mut plan = plan(vec![arm(&peer)]);
    plan.load.request_timeout = Nanos::from_millis(400);
    let recording = run(&plan, &post()).arms.remove(0);
    assert_all_good(&recording.counts);
    let waited = recording.service.min().expect("a time");
    assert!((195..390).contains(&(waited.0 / 1_000_000)), "{waited:?}");
}

#[test]
fn exchange_that_is_redone_waits_again_and_late_100_is_not_the_next_one() {
    // The server ends each connection after one answer, whose `100` comes with it, too late.
    let peer = Peer::new(|talk| {
        for _ in 0..2 {
            talk.read_head()?;
            assert!(talk.is_silent_for(5)?, "the body came before `100`");
            talk.send("HTTP/1.1 100 Continue\r\n\r\n")?;
            assert_eq!(talk.read_exactly(4)?, b"body");
            talk.send(format!("HTTP/1.1 100 Continue\r\n\r\n{OK}"))?;
        }
        Ok(())
    });
    let mut plan = plan(vec![arm(&peer)]);
    plan.slices = vec![slice(0, 200)];
    let recording = run(&plan, &post()).arms.remove(0);
    assert_all_good(&recording.counts);
    assert!(recording.connections > 1 && recording.counts.good > recording.connections, "{recording:?}");
}

#[test]
fn expectation_of_http_1_0_and_without_a_body_is_no_reason_to_wait() {
    for bytes in [
        "POST / HTTP/1.0\r\nExpect: 100-continue\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nbody",
        "POST / HTTP/1.1\r\nHost: peer\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
    ] {
        let peer = Peer::answering("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n");
        let recording = drive(&peer, &request(bytes));
        assert_all_good(&recording.counts);
        assert!(recording.service.max().expect("a time") < Nanos::from_millis(900));
        assert_eq!(peer.last_request(), bytes.as_bytes());
    }
}

#[test]
fn server_that_ends_instead_of_saying_100_has_closed_early() {
    let peer = Peer::new(|talk| talk.read_head());
    assert_all(&drive(&peer, &post()).counts, ErrorClass::ClosedEarly);
}

#[test]
fn trace_shows_the_wait_in_the_order_of_its_bytes() {
    let peer = Peer::new(|talk| {
        talk.read_head()?;
        talk.send("HTTP/1.1 100 Continue\r\n\r\n")?;
        talk.read_exactly(4)?;
        talk.send(OK)?;
        talk.wait_for_close()
    });
    let trace = traced(&peer, &post());
    assert_eq!(trace.outcome.map(|answer| answer.status), Ok(200));
    assert_eq!((trace.sent, trace.received), (post().bytes, format!("HTTP/1.1 100 Continue\r\n\r\n{OK}").into_bytes()));
}
