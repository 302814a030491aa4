//! Where servers are reached: IPv6 and Unix domain sockets.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;

use httpbench_core::Request;
use httpbench_core::engine::{EngineError, run_round, trace};
use httpbench_core::model::{ArmPlan, Endpoint, ErrorClass, Nanos, TracePlan};

use super::load::{arm, assert_all, assert_all_good, drive, get, plan, run};
use super::peer::Peer;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A path of this process's own, short enough for a socket's address.
fn socket_path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("httpbench-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

fn on_socket(path: &std::path::Path) -> ArmPlan {
    let anywhere = ([127, 0, 0, 1], 80).into();
    ArmPlan { endpoint: Endpoint::Unix(path.to_owned()), host: "localhost".to_owned(), ..ArmPlan::plain(anywhere) }
}

#[test]
fn ipv6_address_is_connected_to_and_named_in_brackets() {
    // LG-70
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        eprintln!("skipped: this machine has no IPv6 loopback");
        return;
    };
    let peer = Peer::at(listener, |talk| {
        while talk.read_request()? {
            talk.send(OK)?;
        }
        Ok(())
    });
    let arm = arm(&peer);
    let host = format!("[::1]:{}", peer.address.port());
    assert_eq!(arm.host, host);
    let request = Request::get("/").render(&arm.host).expect("renders");
    let recording = drive(&peer, &request);
    assert_all_good(&recording.counts);
    assert_eq!(peer.last_request(), request.bytes);
    assert!(request.bytes.starts_with(format!("GET / HTTP/1.1\r\nHost: {host}\r\n").as_bytes()));
}

#[test]
fn unix_domain_socket_carries_exchanges_like_any_other_stream() {
    let path = socket_path("life");
    let listener = UnixListener::bind(&path).expect("a socket");
    let expected = get().bytes;
    // Each connection is closed silently after ten answers, as in LG-22.
    let server = thread::spawn(move || {
        let (mut connections, mut requests) = (0_u64, 0_u64);
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            connections += 1;
            let mut request = vec![0; expected.len()];
            for _ in 0..10 {
                if stream.read_exact(&mut request).is_err() {
                    return (connections, requests);
                }
                assert_eq!(request, expected);
                requests += 1;
                stream.write_all(OK.as_bytes()).expect("sent");
            }
        }
        (connections, requests)
    });
    let recording = run(&plan(vec![on_socket(&path)]), &get()).arms.remove(0);
    assert_all_good(&recording.counts);
    assert_eq!(recording.body_bytes, 2 * recording.counts.good);
    // Ends the server's last wait, if the engine's own end has not.
    drop(std::os::unix::net::UnixStream::connect(&path));
    let (connections, requests) = server.join().expect("the server does not panic");
    assert_eq!(requests, recording.counts.good);
    assert!((recording.connections..=recording.connections + 1).contains(&connections), "{connections}");
    std::fs::remove_file(path).expect("it is there");
}

#[test]
fn unix_domain_socket_without_a_listener_is_refused() {
    let path = socket_path("nobody");
    drop(UnixListener::bind(&path).expect("a socket"));
    assert_all(&run(&plan(vec![on_socket(&path)]), &get()).arms[0].counts, ErrorClass::Refused);
    std::fs::remove_file(path).expect("it is there");
}

#[test]
fn trace_goes_over_a_unix_domain_socket_too() {
    let path = socket_path("trace");
    let listener = UnixListener::bind(&path).expect("a socket");
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.read_exact(&mut vec![0; get().bytes.len()]).expect("a request");
        stream.write_all(OK.as_bytes()).expect("sent");
    });
    let plan = TracePlan { scenario: "case".to_owned(), arm: on_socket(&path), timeout: Nanos::from_secs(10) };
    let trace = trace(&plan, &get()).expect("a trace");
    server.join().expect("the server does not panic");
    assert_eq!((trace.sent, trace.received), (get().bytes, OK.as_bytes().to_vec()));
    std::fs::remove_file(path).expect("it is there");
}

#[test]
fn arms_on_different_kinds_of_sockets_are_refused() {
    let peer = Peer::answering(OK);
    let plan = plan(vec![arm(&peer), on_socket(&socket_path("mixed"))]);
    let error = run_round(&plan, vec![get(), get()]).expect_err("refused");
    assert!(matches!(error, EngineError::Plan(_)), "{error}");
}
