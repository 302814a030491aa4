//! HTTP/1.1 with several requests outstanding on a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use httpbench_core::Check;
use httpbench_core::engine::{EngineError, run_round};
use httpbench_core::model::{ArmRecording, ErrorClass, Nanos, Protocol, Reuse, RoundPlan, Schedule};
use httpbench_core::scenario::WireRequest;

use super::load::{arm, assert_all, assert_all_good, get, plan, post, request, run, slice};
use super::peer::{Peer, pause};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn deep(peer: &Peer, depth: u32) -> RoundPlan {
    let mut plan = plan(vec![arm(peer)]);
    plan.load.depth = depth;
    plan
}

/// So many exchanges, whatever time they take.
fn exactly(peer: &Peer, depth: u32, requests: u64) -> RoundPlan {
    let mut plan = deep(peer, depth);
    plan.slices = vec![slice(0, 20_000)];
    plan.slices[0].requests = Some(requests);
    plan
}

fn drive(plan: &RoundPlan, request: &WireRequest) -> ArmRecording {
    run(plan, request).arms.remove(0)
}

#[test]
fn as_many_requests_as_asked_for_are_outstanding_and_their_answers_come_in_order() {
    // The server answers only when all of them are there, byte by byte the same as without pipelining.
    let peer = Peer::new(|talk| {
        loop {
            for _ in 0..8 {
                if !talk.read_request()? {
                    return Ok(());
                }
            }
            talk.send(OK.repeat(8))?;
        }
    });
    let recording = drive(&exactly(&peer, 8, 80), &get());
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.good, peer.requests(), peer.connections()), (80, 80, 1));
    assert_eq!((recording.connections, recording.counts.redone), (1, 0));
    assert_eq!(peer.last_request(), get().bytes);
    assert_eq!(recording.sent_bytes, 80 * get().bytes.len() as u64);
    assert_eq!((recording.received_bytes, recording.body_bytes), (80 * OK.len() as u64, 160));
    let first = recording.first_answer.expect("an answer");
    assert_eq!((first.status, first.body_bytes), (200, 2));
}

#[test]
fn answers_split_at_every_byte_belong_to_their_requests() {
    let answers: Vec<_> = (0..4)
        .map(|number| {
            format!("HTTP/1.1 20{number} OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nno{number}\r\n0\r\n\r\n")
        })
        .collect();
    let all = answers.concat();
    let cut = Arc::new(AtomicU64::new(1));
    let (at, text) = (Arc::clone(&cut), all.clone());
    let peer = Peer::new(move |talk| {
        loop {
            for _ in 0..4 {
                if !talk.read_request()? {
                    return Ok(());
                }
            }
            let at = at.fetch_add(1, Ordering::SeqCst) as usize % text.len();
            talk.send(&text[..at])?;
            pause(1);
            talk.send(&text[at..])?;
        }
    });
    let rounds = all.len() as u64;
    let mut request = get();
    request.check = Check::default().body_contains("no");
    let recording = drive(&exactly(&peer, 4, 4 * rounds), &request);
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.good, recording.connections), (4 * rounds, 1));
    assert_eq!(recording.body_bytes, 3 * 4 * rounds);
}

#[test]
fn checks_see_the_body_of_their_own_answer() {
    // Every second answer is wrong.
    let peer = Peer::new(|talk| {
        let mut number = 0;
        while talk.read_request()? {
            number += 1;
            talk.send(if number % 2 == 0 { OK } else { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno" })?;
        }
        Ok(())
    });
    let mut request = get();
    request.check = Check::default().body_contains("ok");
    let recording = drive(&exactly(&peer, 16, 100), &request);
    assert_eq!((recording.counts.good, recording.counts.check_failures, recording.connections), (50, 50, 1));
}

#[test]
fn requests_left_unanswered_when_the_server_closes_are_sent_on_another_connection() {
    // LG-22, LG-23: silently, and with an announcement in the last answer.
    let close = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    for (last, depth) in [(OK, 4), (close, 4), (OK, 16), (close, 16)] {
        let peer = Peer::new(move |talk| {
            for number in 0..10 {
                if !talk.read_request()? {
                    return Ok(());
                }
                talk.send(if number == 9 { last } else { OK })?;
            }
            Ok(())
        });
        let recording = drive(&exactly(&peer, depth, 100), &get());
        assert_all_good(&recording.counts);
        assert_eq!(recording.counts.good, 100);
        assert!(recording.connections >= 10, "{}", recording.connections);
        assert_eq!(recording.connections, peer.connections());
        assert!(recording.counts.redone >= 10, "{:?}", recording.counts);
        assert_eq!(recording.body_bytes, 200);
    }
}

#[test]
fn one_answer_a_connection_loses_no_exchange_at_any_depth() {
    let peer = Peer::answering("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    let recording = drive(&exactly(&peer, 8, 50), &get());
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.good, recording.connections), (50, 50));
}

#[test]
fn answer_that_is_cut_off_is_an_error_and_those_behind_it_are_redone() {
    let peer = Peer::new(|talk| {
        for _ in 0..3 {
            talk.read_request()?;
            talk.send(OK)?;
        }
        talk.read_request()?;
        talk.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello")
    });
    let recording = drive(&exactly(&peer, 4, 40), &get());
    let counts = &recording.counts;
    // The kernel says "reset" where requests were left unread.
    assert!(counts.errors.counts.keys().all(|class| matches!(class, ErrorClass::Truncated | ErrorClass::Reset)));
    assert_eq!((counts.started, counts.good + counts.errors.total()), (40, 40), "{counts:?}");
    // Three good ones for each that is cut off, but for the last connection.
    assert!(counts.good >= 3 * (counts.errors.total() - 1), "{counts:?}");
    assert!(counts.redone > 0);
}

#[test]
fn fresh_connection_that_is_closed_without_a_byte_fails_all_that_were_sent_on_it() {
    // LG-25
    let peer = Peer::new(|talk| talk.read_request().map(drop));
    let recording = drive(&exactly(&peer, 4, 40), &get());
    let counts = &recording.counts;
    assert_eq!((counts.started, counts.errors.total(), counts.redone), (40, 40, 0), "{counts:?}");
    // The kernel says "reset" where requests were left unread.
    assert!(counts.errors.counts.keys().all(|class| matches!(class, ErrorClass::ClosedEarly | ErrorClass::Reset)));
}

#[test]
fn garbage_fails_the_answer_that_it_stands_for() {
    let peer = Peer::new(|talk| {
        talk.read_request()?;
        talk.send(OK)?;
        talk.send("HELLO\n")?;
        talk.wait_for_close()
    });
    let recording = drive(&exactly(&peer, 2, 20), &get());
    let counts = &recording.counts;
    assert_eq!((counts.started, counts.good + counts.errors.total()), (20, 20), "{counts:?}");
    assert_eq!(counts.errors.counts.keys().collect::<Vec<_>>(), [&ErrorClass::Protocol], "{counts:?}");
}

#[test]
fn silent_server_times_out_every_exchange_once() {
    // LG-35
    let peer = Peer::new(|talk| talk.wait_for_close());
    let mut plan = deep(&peer, 4);
    plan.load.request_timeout = Nanos::from_millis(100);
    plan.slices = vec![slice(0, 350)];
    let counts = drive(&plan, &get()).counts;
    assert_all(&counts, ErrorClass::RequestTimeout);
    assert_eq!(counts.started, 16, "{counts:?}");
}

#[test]
fn stalled_answer_times_out_and_those_behind_it_may_still_be_answered() {
    // Of each connection's answers the third never comes.
    let peer = Peer::new(|talk| {
        for _ in 0..2 {
            talk.read_request()?;
            talk.send(OK)?;
        }
        talk.wait_for_close()
    });
    let mut plan = exactly(&peer, 4, 20);
    plan.load.request_timeout = Nanos::from_millis(100);
    let counts = drive(&plan, &get()).counts;
    assert_eq!((counts.started, counts.good + counts.errors.total()), (20, 20), "{counts:?}");
    assert_eq!(counts.errors.counts.keys().collect::<Vec<_>>(), [&ErrorClass::RequestTimeout], "{counts:?}");
    assert!(counts.good > 0, "{counts:?}");
}

#[test]
fn head_and_bodiless_answers_do_not_shift_those_that_follow() {
    // LG-02, LG-03
    let head = request("HEAD / HTTP/1.1\r\nHost: peer\r\n\r\n");
    for (request, answer) in [
        (head, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
        (get(), "HTTP/1.1 204 No Content\r\n\r\n"),
        (get(), "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n"),
    ] {
        let recording = drive(&exactly(&Peer::answering(answer), 8, 64), &request);
        assert_all_good(&recording.counts);
        assert_eq!((recording.connections, recording.body_bytes), (1, 0));
    }
}

#[test]
fn bodies_of_requests_follow_one_another_whole() {
    let peer = Peer::answering(OK);
    let request = post(&[b'b'; 300_000]);
    let recording = drive(&exactly(&peer, 4, 40), &request);
    assert_all_good(&recording.counts);
    assert_eq!((peer.requests(), peer.connections()), (40, 1));
    assert!(peer.last_request() == request.bytes);
    assert_eq!(recording.sent_bytes, 40 * request.bytes.len() as u64);
}

#[test]
fn threads_connections_and_depth_multiply_and_the_count_is_exact() {
    // LG-53
    let peer = Peer::answering(OK);
    let mut plan = exactly(&peer, 5, 1_003);
    plan.load.connections = 3;
    plan.load.threads = 2;
    let recording = drive(&plan, &get());
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.started, peer.requests()), (1_003, 1_003));
    assert_eq!((recording.connections, peer.connections()), (3, 3));
}

#[test]
fn open_loop_has_as_many_places_as_exchanges_may_be_outstanding() {
    let peer = Peer::answering(OK);
    let mut plan = deep(&peer, 4);
    plan.load.schedule = Schedule::Constant { per_second: 1_000.0 };
    plan.warm_up = Nanos::from_millis(20);
    plan.slices = vec![slice(0, 100), slice(0, 100)];
    let recording = drive(&plan, &get());
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.started, recording.connections), (200, 1));
}

#[test]
fn nobody_listening_is_refused_for_every_place() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let mut plan = plan(vec![httpbench_core::model::ArmPlan::plain(free)]);
    plan.load.depth = 4;
    let recording = drive(&plan, &get());
    assert_all(&recording.counts, ErrorClass::Refused);
    assert_eq!(recording.connections, 0);
}

#[test]
fn depth_that_the_protocol_does_not_have_is_refused() {
    let peer = Peer::answering(OK);
    let refused = |change: &dyn Fn(&mut RoundPlan)| {
        let mut plan = deep(&peer, 2);
        change(&mut plan);
        let error = run_round(&plan, vec![get()]).expect_err("refused");
        assert!(matches!(error, EngineError::Plan(_)), "{error}");
        error.to_string()
    };
    assert!(refused(&|plan| plan.load.depth = 0).contains("no exchange"));
    assert!(refused(&|plan| plan.load.reuse = Reuse::Close).contains("closed after one exchange"));
    assert!(refused(&|plan| plan.arms[0].protocol = Protocol::Http10).contains("no pipelining"));
}

#[cfg(not(any(feature = "tls", feature = "http2")))]
#[test]
fn what_is_not_built_in_is_refused_with_the_name_of_its_feature() {
    use httpbench_core::model::{Tls, Trust};
    let peer = Peer::answering(OK);
    for depth in [1, 2] {
        let mut plan = deep(&peer, depth);
        plan.arms[0].tls = Some(Tls { server_name: "peer".to_owned(), trust: Trust::Anybody, identity: None });
        let text = run_round(&plan, vec![get()]).expect_err("refused").to_string();
        assert!(text.contains("TLS") && text.contains("features = [\"tls\"]"), "{text}");
        plan.arms[0].protocol = Protocol::Http2;
        let text = run_round(&plan, vec![get()]).expect_err("refused").to_string();
        assert!(text.contains("HTTP/2") && text.contains("features = [\"http2\"]"), "{text}");
    }
}
