//! HTTP/2: by prior knowledge against scripted frames, over TLS and against hyper.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

use httpbench_core::Check;
use httpbench_core::engine::{EngineError, run_round, trace};
use httpbench_core::model::{
    ArmPlan, ArmRecording, ErrorClass, Nanos, Protocol, Reuse, RoundPlan, Schedule, TracePlan, Trust,
};
use httpbench_core::scenario::WireRequest;

use super::frames::{
    CANCEL, Event, INTERNAL_ERROR, NO_ERROR, REFUSED_STREAM, failed, frame, go_away, greet, head, next, ok, part,
    reset, trailers,
};
use super::load::{assert_all, assert_all_good, get, plan, post, request, run, slice};
use super::peer::{Peer, pause};
use super::secure_peer::{Authority, config, secured};

fn http2(arm: ArmPlan) -> ArmPlan {
    ArmPlan { protocol: Protocol::Http2, ..arm }
}

/// So many exchanges, whatever time they take.
fn exactly(arm: ArmPlan, depth: u32, requests: u64) -> RoundPlan {
    let mut plan = plan(vec![arm]);
    plan.load.depth = depth;
    plan.slices = vec![slice(0, 20_000)];
    plan.slices[0].requests = Some(requests);
    plan
}

fn drive(plan: &RoundPlan, request: &WireRequest) -> ArmRecording {
    run(plan, request).arms.remove(0)
}

fn scripted(peer: &Peer, depth: u32, requests: u64) -> ArmRecording {
    drive(&exactly(http2(ArmPlan::plain(peer.address)), depth, requests), &get())
}

/// hyper, for HTTP/1.1 and HTTP/2 by what the client sends first, with or without TLS. Stops with the test's process.
struct Hyper {
    address: SocketAddr,
    connections: Arc<AtomicU64>,
    requests: Arc<AtomicU64>,
}

impl Hyper {
    /// `/N` answers N bytes, with a status of 500 if they are none; the `Server` header tells how long the request's body was.
    fn new(tls: Option<ServerConfig>) -> Self {
        let (connections, requests) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let (connected, served) = (Arc::clone(&connections), Arc::clone(&requests));
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
                sender.send(listener.local_addr().expect("an address")).expect("somebody waits");
                let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
                loop {
                    let (stream, _) = listener.accept().await.expect("a connection");
                    connected.fetch_add(1, Ordering::SeqCst);
                    let (served, acceptor) = (Arc::clone(&served), acceptor.clone());
                    tokio::spawn(async move {
                        let service = service_fn(move |request| answer(request, Arc::clone(&served)));
                        let builder = auto::Builder::new(TokioExecutor::new());
                        match acceptor {
                            None => drop(builder.serve_connection(TokioIo::new(stream), service).await),
                            Some(acceptor) => {
                                let Ok(stream) = acceptor.accept(stream).await else { return };
                                drop(builder.serve_connection(TokioIo::new(stream), service).await);
                            }
                        }
                    });
                }
            });
        });
        Self { address: receiver.recv().expect("an address"), connections, requests }
    }

    fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn answer(
    request: hyper::Request<hyper::body::Incoming>,
    served: Arc<AtomicU64>,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let length: usize = request.uri().path().trim_start_matches('/').parse().unwrap_or(0);
    let is_head = request.method() == hyper::Method::HEAD;
    let body = request.into_body().collect().await.map_or(0, |body| body.to_bytes().len());
    served.fetch_add(1, Ordering::SeqCst);
    let status = if length == 0 { 500 } else { 200 };
    let response = hyper::Response::builder().status(status).header("server", format!("read {body}"));
    // On HTTP/2 hyper leaves that to its user.
    let (response, body) = match is_head {
        true => (response.header("content-length", length), Vec::new()),
        false => (response, vec![b'a'; length]),
    };
    Ok(response.body(Full::new(Bytes::from(body))).expect("a response"))
}

fn path(path: &str) -> WireRequest {
    request(format!("GET {path} HTTP/1.1\r\nHost: peer\r\n\r\n"))
}

#[test]
fn four_connections_of_sixteen_streams_make_exactly_as_many_exchanges_as_asked_for() {
    let server = Hyper::new(None);
    let mut plan = exactly(http2(ArmPlan::plain(server.address)), 16, 1_001);
    plan.load.connections = 4;
    plan.load.threads = 2;
    let recording = drive(&plan, &path("/100"));
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.started, server.requests()), (1_001, 1_001));
    assert_eq!((recording.connections, server.connections()), (4, 4));
    assert_eq!((recording.connect.count(), recording.tls.count()), (4, 0));
    assert_eq!((recording.body_bytes, recording.counts.redone), (100_100, 0));
    assert_eq!(recording.statuses.success, 1_001);
    let first = recording.first_answer.expect("an answer");
    assert_eq!((first.status, first.body_bytes, first.server.as_deref()), (200, 100, Some("read 0")));
}

#[test]
fn streams_are_outstanding_together_and_bytes_are_those_on_the_wire() {
    let received = Arc::new(AtomicU64::new(0));
    let sent = Arc::clone(&received);
    // Answers only when all eight are there.
    let peer = Peer::new(move |talk| {
        greet(talk, None)?;
        loop {
            let mut answers = Vec::new();
            for _ in 0..8 {
                match next(talk)? {
                    Event::Request(stream) => answers.extend(ok(stream)),
                    _ => return Ok(()),
                }
            }
            sent.fetch_add(answers.len() as u64, Ordering::SeqCst);
            talk.send(answers)?;
        }
    });
    let recording = scripted(&peer, 8, 80);
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.good, recording.connections, recording.body_bytes), (80, 1, 160));
    // Besides the answers: our settings, and the acknowledgement of the client's, nine bytes each.
    assert_eq!(recording.received_bytes, received.load(Ordering::SeqCst) + 18);
    // Each request is a frame, its head compressed.
    assert!(recording.sent_bytes > 80 * 10 && recording.sent_bytes < 80 * get().bytes.len() as u64);
}

#[test]
fn streams_above_the_last_one_of_a_goaway_are_redone_and_none_is_lost() {
    // LG-34
    for (depth, code) in [(1, NO_ERROR), (16, NO_ERROR), (100, NO_ERROR), (16, INTERNAL_ERROR)] {
        let answered = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&answered);
        let peer = Peer::new(move |talk| {
            greet(talk, None)?;
            for number in 1..=10 {
                let Event::Request(stream) = next(talk)? else { return Ok(()) };
                if number == 10 {
                    talk.send(go_away(stream, code))?;
                }
                count.fetch_add(1, Ordering::SeqCst);
                talk.send(ok(stream))?;
            }
            while next(talk)? != Event::End {}
            Ok(())
        });
        let recording = scripted(&peer, depth, 100);
        assert_all_good(&recording.counts);
        assert_eq!((recording.counts.good, answered.load(Ordering::SeqCst)), (100, 100), "depth {depth}");
        assert!(recording.connections >= 10, "{} at depth {depth}", recording.connections);
        assert_eq!(recording.connections, peer.connections());
        assert!(depth == 1 || recording.counts.redone > 0);
    }
}

#[test]
fn refused_streams_are_redone_and_counted() {
    let refused = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&refused);
    let peer = Peer::new(move |talk| {
        greet(talk, None)?;
        let mut number = 0;
        while let Event::Request(stream) = next(talk)? {
            number += 1;
            let answer = if number % 5 == 0 { reset(stream, REFUSED_STREAM) } else { ok(stream) };
            count.fetch_add(u64::from(number % 5 == 0), Ordering::SeqCst);
            talk.send(answer)?;
        }
        Ok(())
    });
    let recording = scripted(&peer, 4, 100);
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.good, recording.counts.redone), (100, refused.load(Ordering::SeqCst)));
    assert_eq!(recording.connections, 1);
}

#[test]
fn server_that_refuses_every_stream_is_asked_a_bounded_number_of_times() {
    let peer = Peer::new(|talk| {
        greet(talk, None)?;
        while let Event::Request(stream) = next(talk)? {
            talk.send(reset(stream, REFUSED_STREAM))?;
        }
        Ok(())
    });
    let counts = scripted(&peer, 4, 20).counts;
    assert_all(&counts, ErrorClass::Reset);
    assert_eq!((counts.started, counts.redone), (20, 20 * 4));
    assert!(counts.errors.examples[&ErrorClass::Reset].contains("REFUSED_STREAM"), "{counts:?}");
}

#[test]
fn stream_that_is_reset_is_an_error_and_the_others_go_on() {
    let peer = Peer::new(|talk| {
        greet(talk, None)?;
        let mut number = 0;
        while let Event::Request(stream) = next(talk)? {
            number += 1;
            let answer = match number % 4 {
                0 => reset(stream, INTERNAL_ERROR),
                1 => [head(stream), part(stream, b"hel"), reset(stream, CANCEL)].concat(),
                2 => failed(stream),
                _ => ok(stream),
            };
            talk.send(answer)?;
        }
        Ok(())
    });
    let recording = scripted(&peer, 4, 100);
    let counts = &recording.counts;
    assert_eq!((counts.good, counts.check_failures, counts.errors.total()), (25, 25, 50), "{counts:?}");
    assert_eq!(counts.errors.counts[&ErrorClass::Reset], 50);
    assert_eq!((counts.redone, counts.check_example.as_deref()), (0, Some("status 500")));
    assert_eq!((recording.connections, recording.statuses.success, recording.statuses.server_error), (1, 25, 25));
}

#[test]
fn connection_that_ends_cuts_off_what_was_being_answered_and_redoes_the_rest() {
    let peer = Peer::new(|talk| {
        greet(talk, None)?;
        for _ in 0..3 {
            let Event::Request(stream) = next(talk)? else { return Ok(()) };
            talk.send(ok(stream))?;
        }
        let Event::Request(stream) = next(talk)? else { return Ok(()) };
        talk.send([head(stream), part(stream, b"hel")].concat())?;
        pause(10);
        Ok(())
    });
    let recording = scripted(&peer, 1, 40);
    let counts = &recording.counts;
    assert_eq!((counts.good, counts.errors.total(), counts.started), (30, 10, 40), "{counts:?}");
    assert_eq!(counts.errors.counts[&ErrorClass::Truncated], 10);
    assert_eq!(recording.connections, 10);
    // LG-25: nothing came on a fresh connection.
    let peer = Peer::new(|talk| {
        greet(talk, None)?;
        next(talk).map(drop)
    });
    let counts = scripted(&peer, 1, 10).counts;
    assert_eq!((counts.errors.total(), counts.redone), (10, 0), "{counts:?}");
    assert!(counts.errors.counts.keys().all(|class| matches!(class, ErrorClass::ClosedEarly | ErrorClass::Reset)));
}

#[test]
fn servers_limit_of_streams_is_waited_for_and_never_exceeded() {
    let peer = Peer::new(|talk| {
        greet(talk, Some(2))?;
        loop {
            let (Event::Request(first), Event::Request(second)) = (next(talk)?, next(talk)?) else { return Ok(()) };
            // Nothing more may come before one of these is answered.
            let open = BTreeSet::from([first, second]);
            assert_eq!(open.len(), 2);
            let early = talk.stream.set_read_timeout(Some(std::time::Duration::from_millis(3)));
            early?;
            let next_event = next(talk);
            talk.stream.set_read_timeout(Some(std::time::Duration::from_secs(20)))?;
            if next_event.is_ok() {
                // A third stream: the engine shall hear of it.
                return Ok(());
            }
            talk.send([ok(first), ok(second)].concat())?;
        }
    });
    let recording = scripted(&peer, 8, 40);
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.good, recording.connections, recording.counts.redone), (40, 1, 0));
}

#[test]
fn trailers_and_interim_answers_are_left_out() {
    let peer = Peer::new(|talk| {
        greet(talk, None)?;
        while let Event::Request(stream) = next(talk)? {
            // `:status: 103`, not indexed.
            let early = frame(1, 4, stream, b"\x08\x03103");
            talk.send([early, head(stream), part(stream, b"ok"), trailers(stream)].concat())?;
        }
        Ok(())
    });
    let recording = scripted(&peer, 4, 40);
    assert_all_good(&recording.counts);
    assert_eq!((recording.statuses.success, recording.body_bytes, recording.connections), (40, 80, 1));
}

#[test]
fn first_byte_is_that_of_the_head_and_the_body_may_take_its_time() {
    let peer = Peer::new(|talk| {
        greet(talk, None)?;
        while let Event::Request(stream) = next(talk)? {
            talk.send(head(stream))?;
            pause(60);
            talk.send(frame(0, 1, stream, b"ok"))?;
        }
        Ok(())
    });
    let recording = scripted(&peer, 1, 3);
    assert_all_good(&recording.counts);
    assert!(recording.service.min().expect("a time") >= Nanos::from_millis(60));
    assert!(recording.first_byte.min().expect("a time") < Nanos::from_millis(60));
}

#[test]
fn exchange_that_times_out_resets_its_stream_and_leaves_the_connection_to_the_others() {
    let resets = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&resets);
    let peer = Peer::new(move |talk| {
        greet(talk, None)?;
        let mut number = 0;
        loop {
            match next(talk)? {
                Event::Request(stream) => {
                    number += 1;
                    if number % 10 != 0 {
                        talk.send(ok(stream))?;
                    }
                }
                Event::Reset(_, code) => {
                    assert_eq!(code, CANCEL);
                    seen.fetch_add(1, Ordering::SeqCst);
                }
                Event::End => return Ok(()),
            }
        }
    });
    let mut plan = exactly(http2(ArmPlan::plain(peer.address)), 4, 50);
    plan.load.request_timeout = Nanos::from_millis(80);
    let recording = drive(&plan, &get());
    let counts = &recording.counts;
    assert_eq!((counts.good, counts.errors.total()), (45, 5), "{counts:?}");
    assert_eq!((counts.errors.counts[&ErrorClass::RequestTimeout], recording.connections), (5, 1));
    assert!(resets.load(Ordering::SeqCst) >= 1);
}

#[test]
fn what_is_not_http_2_is_told_as_such() {
    let old = Peer::answering("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    let recording = scripted(&old, 2, 6);
    assert_all(&recording.counts, ErrorClass::Protocol);
    let text = &recording.counts.errors.examples[&ErrorClass::Protocol];
    assert!(text.starts_with("HTTP/2 failed: the server does not answer in it"), "{text}");
    assert_eq!((recording.connections, recording.counts.started), (0, 6));
    let closing = Peer::new(|talk| talk.stream.shutdown(std::net::Shutdown::Write).and(talk.wait_for_close()));
    let recording = scripted(&closing, 2, 6);
    assert_all(&recording.counts, ErrorClass::Protocol);
    let text = &recording.counts.errors.examples[&ErrorClass::Protocol];
    assert!(text.contains("before it sent its settings"), "{text}");
    let silent = Peer::new(|talk| talk.wait_for_close());
    let mut plan = exactly(http2(ArmPlan::plain(silent.address)), 2, 4);
    plan.load.connect_timeout = Nanos::from_millis(50);
    assert_all(&drive(&plan, &get()).counts, ErrorClass::ConnectTimeout);
}

#[test]
fn broken_frames_are_protocol_errors() {
    let peer = Peer::new(|talk| {
        greet(talk, None)?;
        while let Event::Request(stream) = next(talk)? {
            // Data on a stream that was never opened.
            talk.send(part(stream + 100, b"x"))?;
        }
        Ok(())
    });
    let counts = scripted(&peer, 1, 5).counts;
    assert_all(&counts, ErrorClass::Protocol);
    assert!(counts.errors.examples[&ErrorClass::Protocol].starts_with("HTTP/2 failed"), "{counts:?}");
}

#[test]
fn alpn_chooses_http_2_over_tls_and_handshakes_are_timed() {
    let authority = Authority::new("One");
    let identity = authority.server("bench.test", |_| {});
    let server = Hyper::new(Some(config(&identity, &["h2", "http/1.1"])));
    let mut plan = exactly(http2(secured(server.address, "bench.test", authority.trust())), 8, 100);
    plan.load.connections = 2;
    let recording = drive(&plan, &path("/10"));
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.good, server.requests()), (100, 100));
    assert_eq!((recording.connections, recording.tls.count(), server.connections()), (2, 2, 2));
    // The same server by HTTP/1.1.
    let recording = drive(&exactly(secured(server.address, "bench.test", authority.trust()), 1, 10), &path("/10"));
    assert_all_good(&recording.counts);
}

#[test]
fn server_that_does_not_choose_http_2_is_an_error_that_says_so() {
    let authority = Authority::new("One");
    let identity = authority.server("bench.test", |_| {});
    let silent = Hyper::new(Some(config(&identity, &[])));
    let counts = drive(&exactly(http2(secured(silent.address, "bench.test", Trust::Anybody)), 2, 4), &get()).counts;
    assert_all(&counts, ErrorClass::Protocol);
    let text = &counts.errors.examples[&ErrorClass::Protocol];
    assert!(text.contains("did not choose it by ALPN: offered `h2`, chosen nothing"), "{text}");
    let old = Hyper::new(Some(config(&identity, &["http/1.1"])));
    let counts = drive(&exactly(http2(secured(old.address, "bench.test", Trust::Anybody)), 2, 4), &get()).counts;
    assert_all(&counts, ErrorClass::Tls);
    assert!(counts.errors.examples[&ErrorClass::Tls].contains("ALPN"), "{counts:?}");
    // A certificate that is not believed is refused here as on HTTP/1.1.
    let other = Hyper::new(Some(config(&identity, &["h2"])));
    let counts = drive(&exactly(http2(secured(other.address, "other.test", authority.trust())), 2, 4), &get()).counts;
    assert!(counts.errors.examples[&ErrorClass::Tls].contains("is not for `other.test`"), "{counts:?}");
}

#[test]
fn client_certificate_that_is_demanded_and_missing_is_told_in_words() {
    let authority = Authority::new("One");
    let identity = authority.server("bench.test", |_| {});
    let demanding = super::secure_peer::config_of(&identity, &["h2"], rustls::ALL_VERSIONS, Some(&authority));
    let server = Hyper::new(Some(demanding));
    let mut arm = http2(secured(server.address, "bench.test", authority.trust()));
    let counts = drive(&exactly(arm.clone(), 2, 4), &get()).counts;
    assert_all(&counts, ErrorClass::Tls);
    assert!(counts.errors.examples[&ErrorClass::Tls].contains("demands a client certificate"), "{counts:?}");
    arm.tls.as_mut().expect("TLS").identity = Some(authority.client());
    assert_all_good(&drive(&exactly(arm, 2, 4), &path("/1")).counts);
}

#[test]
fn both_protocols_agree_on_the_same_server() {
    let server = Hyper::new(None);
    let mut head = request("HEAD /100 HTTP/1.1\r\nHost: peer\r\n\r\n");
    let mut wrong = path("/100");
    head.check = Check::status(200);
    wrong.check = Check::default().body_contains("b");
    let mut right = path("/3");
    right.check = Check::default().body_contains("aaa");
    for request in [path("/1"), path("/70000"), path("/0"), head, wrong, right, post(&[b'x'; 300_000])] {
        let plain = ArmPlan::plain(server.address);
        let drive = |arm, depth| {
            let recording = drive(&exactly(arm, depth, 24), &request);
            let counts = &recording.counts;
            let first =
                recording.first_answer.unwrap_or_else(|| panic!("{counts:?} for {}", request.bytes.escape_ascii()));
            (recording.counts, recording.statuses, recording.body_bytes, first)
        };
        let one = drive(plain.clone(), 1);
        assert_eq!(one.0.started, 24);
        assert_eq!(one, drive(http2(plain.clone()), 1), "HTTP/2");
        assert_eq!(one, drive(http2(plain.clone()), 8), "HTTP/2 with 8 streams");
        assert_eq!(one, drive(plain, 4), "HTTP/1.1 pipelined");
    }
}

#[test]
fn large_bodies_are_counted_and_dropped() {
    // LG-17
    let server = Hyper::new(None);
    let before = resident();
    let recording = drive(&exactly(http2(ArmPlan::plain(server.address)), 1, 4), &path("/30000000"));
    assert_all_good(&recording.counts);
    assert_eq!(recording.body_bytes, 4 * 30_000_000);
    assert!(recording.received_bytes > recording.body_bytes);
    // The server, in the same process, holds one body at a time.
    if let (Some(before), Some(after)) = (before, resident()) {
        assert!(after < before + 90_000_000, "{before} then {after}");
    }
}

/// Bytes of memory that this process has ever had at once.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib * 1_024)
}

#[test]
fn connection_can_be_opened_for_each_exchange() {
    // LG-27
    let server = Hyper::new(None);
    let mut plan = exactly(http2(ArmPlan::plain(server.address)), 1, 20);
    plan.load.reuse = Reuse::Close;
    let recording = drive(&plan, &path("/1"));
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.good, recording.connections, server.connections()), (20, 20, 20));
}

#[test]
fn open_loop_and_several_slices_go_on_over_the_same_connections() {
    let server = Hyper::new(None);
    let mut plan = plan(vec![http2(ArmPlan::plain(server.address))]);
    plan.load.depth = 4;
    plan.load.connections = 2;
    plan.warm_up = Nanos::from_millis(20);
    plan.load.schedule = Schedule::Constant { per_second: 1_000.0 };
    plan.slices = vec![slice(0, 100), slice(0, 100)];
    let recording = drive(&plan, &path("/1"));
    assert_all_good(&recording.counts);
    assert_eq!((recording.counts.started, recording.connections, server.connections()), (200, 2, 2));
}

#[test]
fn request_that_http_2_cannot_carry_and_trace_are_refused_with_a_reason() {
    let arm = http2(ArmPlan::plain(([127, 0, 0, 1], 9).into()));
    let nameless = request("GET / HTTP/1.1\r\n\r\n");
    let error = run_round(&plan(vec![arm.clone()]), vec![nameless]).expect_err("refused");
    assert!(matches!(&error, EngineError::Plan(text) if text.contains("`Host`")), "{error}");
    let plan = TracePlan { scenario: "case".to_owned(), arm, timeout: Nanos::from_secs(1) };
    let text = trace(&plan, &get()).expect_err("refused").to_string();
    assert!(text.contains("byte by byte"), "{text}");
}
