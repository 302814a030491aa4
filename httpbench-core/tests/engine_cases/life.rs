//! How connections live and die.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use httpbench_core::model::{ArmPlan, ErrorClass, Nanos};

use super::load::{arm, assert_all, assert_all_good, drive, get, plan, post, request, run, slice};
use super::peer::{Peer, pause};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn post_that_a_server_drops_after_reading_it_is_sent_once_more_and_no_oftener() {
    // LG-26: every second connection drops its second request; no fresh connection drops its first.
    let peer = Peer::new(|talk| {
        talk.read_request()?;
        talk.send(OK)?;
        talk.read_request()?;
        Ok(())
    });
    let recording = drive(&peer, &post(b"body"));
    assert_all_good(&recording.counts);
    assert!(recording.counts.redone > 0);
    assert_eq!(peer.requests(), recording.counts.started + recording.counts.redone);
}

#[test]
fn redone_exchange_counts_from_its_first_send() {
    let peer = Peer::new(|talk| {
        talk.read_request()?;
        talk.send(OK)?;
        talk.read_request()?;
        pause(80);
        Ok(())
    });
    let recording = drive(&peer, &get());
    assert_all_good(&recording.counts);
    assert!(recording.counts.redone >= 1);
    assert!(recording.service.max().expect("a time") >= Nanos::from_millis(80));
}

#[test]
fn request_that_says_close_is_never_followed_on_its_connection() {
    // LG-27
    let peer = Peer::answering(OK);
    let recording = drive(&peer, &request("GET / HTTP/1.1\r\nHost: peer\r\nConnection: close\r\n\r\n"));
    assert_all_good(&recording.counts);
    assert_eq!((peer.connections(), peer.requests()), (recording.connections, recording.counts.good));
    assert_eq!(recording.connections, recording.counts.good);
}

#[test]
fn fresh_connection_that_is_closed_without_a_byte_is_an_error_and_not_redone() {
    // LG-25
    let peer = Peer::new(|talk| talk.read_request().map(drop));
    let recording = drive(&peer, &get());
    assert_all(&recording.counts, ErrorClass::ClosedEarly);
    assert_eq!((recording.counts.redone, peer.requests()), (0, recording.counts.started));
}

#[test]
fn reset_within_an_answer_has_a_class_of_its_own() {
    let peer = Peer::new(|talk| {
        talk.read_request()?;
        talk.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello")?;
        pause(5);
        talk.reset()
    });
    assert_all(&drive(&peer, &get()).counts, ErrorClass::Reset);
}

#[test]
fn nobody_listening_is_refused_in_bounded_attempts() {
    // LG-29, LG-60
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let mut plan = plan(vec![ArmPlan::plain(free)]);
    plan.slices = vec![slice(0, 400)];
    let recording = run(&plan, &get());
    let arm = &recording.arms[0];
    assert_all(&arm.counts, ErrorClass::Refused);
    assert!(arm.counts.started <= 10, "{:?}", arm.counts);
    assert_eq!((arm.service.quantile(0.5), arm.service.mean(), arm.connections), (None, None, 0));
    assert_eq!((recording.slices[0].good, recording.slices[0].completed), (0, 0));
}

#[test]
fn server_that_ends_in_mid_run_is_told_by_the_classes_of_the_errors() {
    // LG-40: five answers, then neither the connection nor the listener is there.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut request = [0; 1_024];
        for _ in 0..5 {
            let _ = stream.read(&mut request).expect("a request");
            stream.write_all(OK.as_bytes()).expect("sent");
        }
    });
    let recording = run(&plan(vec![ArmPlan::plain(address)]), &get());
    server.join().expect("it ends");
    let counts = &recording.arms[0].counts;
    assert_eq!(counts.good, 5);
    assert!(counts.errors.counts[&ErrorClass::Refused] > 0, "{counts:?}");
    assert!(counts.errors.counts.keys().all(|class| matches!(class, ErrorClass::Refused | ErrorClass::Reset)));
}

#[test]
fn full_backlog_is_a_connect_timeout() {
    // LG-30: a listener that accepts nothing, with its queue filled.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).expect("a backlog")).expect("listening");
    let address = listener.local_addr().expect("an address");
    let waiting: Vec<_> =
        (0..4).map(|_| std::net::TcpStream::connect_timeout(&address, std::time::Duration::from_millis(100))).collect();
    let mut plan = plan(vec![ArmPlan::plain(address)]);
    plan.load.connect_timeout = Nanos::from_millis(100);
    assert_all(&run(&plan, &get()).arms[0].counts, ErrorClass::ConnectTimeout);
    drop(waiting);
}

#[test]
fn large_body_that_the_server_reads_slowly_is_sent_whole() {
    let peer = Peer::new(|talk| {
        // Long enough for the socket's buffers to fill.
        pause(20);
        while talk.read_request()? {
            talk.send(OK)?;
        }
        Ok(())
    });
    let request = post(&[b'b'; 10 * 1024 * 1024]);
    let recording = drive(&peer, &request);
    assert_all_good(&recording.counts);
    assert_eq!((peer.connections(), peer.requests()), (1, recording.counts.good));
    assert!(peer.last_request() == request.bytes, "the body arrived as it was");
    assert_eq!(recording.sent_bytes, request.bytes.len() as u64 * recording.counts.good);
}

#[test]
fn early_answer_to_a_large_body_is_heard() {
    // LG-31
    let peer = Peer::new(|talk| {
        talk.read_head()?;
        talk.send("HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    });
    let body = vec![b'b'; 10 * 1024 * 1024];
    let recording = drive(&peer, &post(&body));
    assert!(recording.statuses.client_error > 0, "{:?}", recording.counts);
    assert_eq!(recording.counts.check_failures, recording.counts.started, "{:?}", recording.counts);
    assert_eq!(recording.counts.check_example.as_deref(), Some("status 413"));
}

#[test]
fn early_answer_is_heard_from_a_server_that_reads_no_more_but_stays() {
    // LG-31: it closes its reading side only, and the connection when the engine has.
    let peer = Peer::new(|talk| {
        talk.read_head()?;
        talk.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")?;
        talk.read_no_more()?;
        pause(30);
        Ok(())
    });
    let recording = drive(&peer, &post(&vec![b'b'; 10 * 1024 * 1024]));
    assert_eq!(recording.counts.check_failures, recording.counts.started, "{:?}", recording.counts);
    // What is left of the body is never sent on a connection that goes on.
    assert_eq!(peer.connections(), recording.connections);
    assert!(recording.connections >= recording.counts.started);
}

#[test]
fn backlog_that_fills_at_the_start_costs_no_connection() {
    // LG-71
    let peer = Peer::answering(OK);
    let mut plan = plan(vec![arm(&peer)]);
    plan.load.connections = 200;
    plan.load.threads = 2;
    let recording = run(&plan, &get()).arms.remove(0);
    assert_all_good(&recording.counts);
    assert_eq!((recording.connections, peer.connections()), (200, 200));
}

#[test]
fn connections_that_ended_while_idle_are_open_again_before_the_slice_starts() {
    // Used connections of the first arm end as soon as the second one is loaded.
    let other_is_loaded = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&other_is_loaded);
    let idle = Peer::new(move |talk| {
        let mut answered = 0;
        loop {
            match talk.read_request_within(10) {
                Ok(true) => {
                    seen.store(false, Ordering::SeqCst);
                    talk.send(OK)?;
                    answered += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if answered > 0 && seen.load(Ordering::SeqCst) {
                        return Ok(());
                    }
                }
                ended => return ended.map(drop),
            }
        }
    });
    let steady = Peer::new(move |talk| {
        while talk.read_request()? {
            other_is_loaded.store(true, Ordering::SeqCst);
            talk.send(OK)?;
        }
        Ok(())
    });
    let mut plan = plan(vec![arm(&idle), arm(&steady)]);
    plan.load.connections = 4;
    plan.slices = vec![slice(0, 50), slice(1, 300), slice(0, 50), slice(1, 300), slice(0, 50)];
    let recording = run(&plan, &get());
    assert_all_good(&recording.arms[0].counts);
    assert_eq!(recording.arms[0].counts.redone, 0);
    assert_eq!(recording.arms[0].counts.good, idle.requests());
    assert_eq!((recording.arms[0].connections, recording.arms[1].connections), (12, 4));
}
