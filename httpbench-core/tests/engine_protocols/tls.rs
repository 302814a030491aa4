//! HTTP/1.1 over TLS.

use std::io::Read;
use std::net::SocketAddr;

use httpbench_core::engine::{EngineError, run_round, trace};
use httpbench_core::model::{ArmPlan, ArmRecording, ErrorClass, Identity, Nanos, TracePlan, Trust};

use super::load::{assert_all, assert_all_good, get, plan, post, run, slice};
use super::peer::{Peer, pause};
use super::secure_peer::{Authority, SecurePeer, config, config_of, secured};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const NAME: &str = "bench.test";

/// Runs the default plan on one arm.
fn drive(arm: ArmPlan) -> ArmRecording {
    run(&plan(vec![arm]), &get()).arms.remove(0)
}

fn example(recording: &ArmRecording) -> &str {
    assert_all(&recording.counts, ErrorClass::Tls);
    &recording.counts.errors.examples[&ErrorClass::Tls]
}

#[test]
fn server_of_a_trusted_authority_is_believed_and_its_handshakes_are_timed_apart() {
    let authority = Authority::new("One");
    let peer = SecurePeer::answering(config(&authority.server(NAME, |_| {}), &["http/1.1"]), OK);
    let mut plan = plan(vec![secured(peer.address, NAME, authority.trust())]);
    plan.load.connections = 3;
    let recording = run(&plan, &get()).arms.remove(0);
    assert_all_good(&recording.counts);
    assert_eq!((recording.connections, peer.connections()), (3, 3));
    assert_eq!((recording.connect.count(), recording.tls.count()), (3, 3));
    assert!(recording.tls.min() > Some(Nanos::ZERO), "{:?}", recording.tls.min());
    assert_eq!(peer.requests(), recording.counts.good);
    assert_eq!(recording.body_bytes, 2 * recording.counts.good);
    // On the wire each request and answer is a record, and the handshakes came before.
    assert!(recording.sent_bytes > get().bytes.len() as u64 * recording.counts.good + 3 * 200);
    assert!(recording.received_bytes > OK.len() as u64 * recording.counts.good + 3 * 500);
    assert_eq!(peer.protocols(), vec![Some("http/1.1".to_owned()); 3]);
    assert_eq!(peer.names(), vec![Some(NAME.to_owned()); 3]);
}

#[test]
fn tls_1_2_and_a_server_without_alpn_will_do() {
    let authority = Authority::new("One");
    let config = config_of(&authority.server(NAME, |_| {}), &[], &[&rustls::version::TLS12], None);
    let peer = SecurePeer::answering(config, OK);
    let recording = drive(secured(peer.address, NAME, authority.trust()));
    assert_all_good(&recording.counts);
    assert_eq!(peer.protocols(), vec![None]);
}

#[test]
fn address_in_a_certificate_is_verified_and_never_sent_as_a_name() {
    let authority = Authority::new("One");
    let peer = SecurePeer::answering(config(&authority.server("127.0.0.1", |_| {}), &[]), OK);
    assert_all_good(&drive(secured(peer.address, "127.0.0.1", authority.trust())).counts);
    assert_eq!(peer.names(), vec![None]);
}

#[test]
fn server_of_an_unknown_authority_is_refused_unless_anybody_is_believed() {
    let (authority, other) = (Authority::new("One"), Authority::new("Another"));
    let peer = SecurePeer::answering(config(&authority.server(NAME, |_| {}), &[]), OK);
    let recording = drive(secured(peer.address, NAME, other.trust()));
    assert_eq!(example(&recording), "TLS failed: the server's certificate is signed by nobody who is trusted");
    assert_eq!((recording.connections, recording.tls.count(), peer.requests()), (0, 0, 0));
    // By default it is this machine that says who is trusted.
    let plan = plan(vec![secured(peer.address, NAME, Trust::default())]);
    match run_round(&plan, vec![get()]) {
        Ok(recording) => assert!(example(&recording.arms[0]).contains("nobody who is trusted")),
        Err(error) => assert!(error.to_string().contains("trusts no certificate authority"), "{error}"),
    }
    let namesake = drive(secured(peer.address, NAME, Authority::new("One").trust()));
    assert!(example(&namesake).contains("only the name is that of a trusted authority"), "{}", example(&namesake));
    assert_all_good(&drive(secured(peer.address, "another.test", Trust::Anybody)).counts);
}

#[test]
fn certificate_for_another_name_is_refused_with_both_names() {
    let authority = Authority::new("One");
    let peer = SecurePeer::answering(config(&authority.server(NAME, |_| {}), &[]), OK);
    let recording = drive(secured(peer.address, "another.test", authority.trust()));
    let text = example(&recording);
    assert!(text.contains("is not for `another.test`, but for") && text.contains(NAME), "{text}");
}

#[test]
fn certificates_out_of_their_time_are_refused() {
    let authority = Authority::new("One");
    let old = authority.server(NAME, |params| params.not_after = rcgen::date_time_ymd(2001, 1, 1));
    let new = authority.server(NAME, |params| params.not_before = rcgen::date_time_ymd(2900, 1, 1));
    for (identity, text) in [(old, "has expired"), (new, "is not valid yet")] {
        let peer = SecurePeer::answering(config(&identity, &[]), OK);
        let recording = drive(secured(peer.address, NAME, authority.trust()));
        assert!(example(&recording).ends_with(text), "{}", example(&recording));
    }
}

#[test]
fn client_certificate_is_shown_where_it_is_demanded() {
    let authority = Authority::new("One");
    for versions in [&[&rustls::version::TLS13], &[&rustls::version::TLS12]] {
        let config = config_of(&authority.server(NAME, |_| {}), &[], versions, Some(&authority));
        let peer = SecurePeer::answering(config, OK);
        let mut arm = secured(peer.address, NAME, authority.trust());
        let text = drive(arm.clone());
        assert!(example(&text).contains("demands a client certificate"), "{}", example(&text));
        arm.tls.as_mut().expect("TLS").identity = Some(authority.client());
        assert_all_good(&drive(arm.clone()).counts);
        arm.tls.as_mut().expect("TLS").identity = Some(Authority::new("Another").client());
        assert!(example(&drive(arm)).contains("client certificate"));
    }
}

#[test]
fn server_without_tls_is_told_as_such() {
    let garbage = Peer::new(|talk| {
        talk.send("HTTP/1.1 400 Bad Request\r\n\r\n")?;
        talk.wait_for_close()
    });
    let recording = drive(secured(garbage.address, NAME, Trust::Anybody));
    assert_eq!(example(&recording), "TLS failed: what the server sends is not TLS");
    let silent = Peer::new(|talk| {
        // Something of the handshake's first message, so that closing is no reset.
        pause(20);
        talk.stream.read(&mut [0; 4_096]).map(drop)
    });
    let recording = drive(secured(silent.address, NAME, Trust::Anybody));
    assert_eq!(example(&recording), "TLS failed: the server closed the connection within its handshake");
}

#[test]
fn handshake_that_does_not_end_is_a_connect_timeout() {
    let peer = Peer::new(|talk| talk.wait_for_close());
    let mut plan = plan(vec![secured(peer.address, NAME, Trust::Anybody)]);
    plan.load.connect_timeout = Nanos::from_millis(100);
    assert_all(&run(&plan, &get()).arms[0].counts, ErrorClass::ConnectTimeout);
}

#[test]
fn session_tickets_and_new_keys_on_an_idle_connection_are_no_reason_to_replace_it() {
    let authority = Authority::new("One");
    let peer = SecurePeer::new(config(&authority.server(NAME, |_| {}), &[]), |talk| {
        // Tickets came with the handshake; these come while the connection is idle.
        pause(20);
        talk.refresh_keys()?;
        while talk.read_request()? {
            talk.send(OK)?;
            talk.refresh_keys()?;
        }
        Ok(())
    });
    let other = Peer::answering(OK);
    let mut plan = plan(vec![secured(peer.address, NAME, authority.trust())]);
    plan.load.connections = 4;
    plan.slices = vec![slice(0, 30), slice(0, 30), slice(0, 30), slice(0, 30)];
    plan.warm_up = Nanos::from_millis(30);
    let recording = run(&plan, &get()).arms.remove(0);
    assert_all_good(&recording.counts);
    assert_eq!((recording.connections, peer.connections(), recording.counts.redone), (4, 4, 0));
    drop(other);
}

#[test]
fn connection_that_the_server_ended_while_idle_is_opened_again_before_the_next_slice() {
    let authority = Authority::new("One");
    let peer = SecurePeer::new(config(&authority.server(NAME, |_| {}), &[]), |talk| {
        talk.read_request()?;
        talk.send(OK)?;
        talk.close_notify()
    });
    let recording = drive(secured(peer.address, NAME, authority.trust()));
    assert_all_good(&recording.counts);
    assert_eq!(peer.requests(), recording.counts.good);
    // The end had come with the answer, or was met by the next request, which was then sent once more.
    assert!(recording.connections >= recording.counts.good);
}

#[test]
fn end_without_close_notify_truncates_only_what_lasts_until_the_end() {
    let authority = Authority::new("One");
    let identity = authority.server(NAME, |_| {});
    let peer = |answer: &'static str, notify: bool| {
        SecurePeer::new(config(&identity, &[]), move |talk| {
            talk.read_request()?;
            talk.send(answer)?;
            if notify { talk.close_notify() } else { Ok(()) }
        })
    };
    let drive = |peer: &SecurePeer| drive(secured(peer.address, NAME, authority.trust())).counts;
    let until_close = "HTTP/1.1 200 OK\r\n\r\nhello";
    assert_all_good(&drive(&peer(until_close, true)));
    assert_all(&drive(&peer(until_close, false)), ErrorClass::Truncated);
    assert_all_good(&drive(&peer(OK, false)));
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello";
    assert_all(&drive(&peer(short, true)), ErrorClass::Truncated);
    assert_all(&drive(&peer("", false)), ErrorClass::ClosedEarly);
}

#[test]
fn large_bodies_go_both_ways_whole() {
    let authority = Authority::new("One");
    let answer = [b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n".as_slice(), &vec![b'a'; 5_000_000]].concat();
    let peer = SecurePeer::answering(config(&authority.server(NAME, |_| {}), &[]), answer);
    let request = post(&vec![b'b'; 4 * 1024 * 1024]);
    let recording = run(&plan(vec![secured(peer.address, NAME, authority.trust())]), &request).arms.remove(0);
    assert_all_good(&recording.counts);
    assert_eq!((peer.connections(), peer.requests()), (1, recording.counts.good));
    assert_eq!(recording.body_bytes, 5_000_000 * recording.counts.good);
    let sent = request.bytes.len() as u64 * recording.counts.good;
    assert!((sent..sent + sent / 50).contains(&recording.sent_bytes), "{} for {sent}", recording.sent_bytes);
}

#[test]
fn traced_exchange_shows_what_is_within_tls() {
    let authority = Authority::new("One");
    let peer = SecurePeer::answering(config(&authority.server(NAME, |_| {}), &[]), OK);
    let arm = secured(peer.address, NAME, authority.trust());
    let plan = TracePlan { scenario: "case".to_owned(), arm, timeout: Nanos::from_secs(10) };
    let traced = trace(&plan, &get()).expect("a trace");
    assert_eq!((traced.sent, traced.received), (get().bytes, OK.as_bytes().to_vec()));
    assert_eq!(traced.outcome.expect("good").status, 200);
}

#[test]
fn settings_that_cannot_be_used_are_refused_before_anything_is_sent() {
    let authority = Authority::new("One");
    let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
    let refused = |arm: ArmPlan| {
        let error = run_round(&plan(vec![arm]), vec![get()]).expect_err("refused");
        assert!(matches!(error, EngineError::Tls(_)), "{error}");
        error.to_string()
    };
    let text = refused(secured(nobody, "no name", authority.trust()));
    assert!(text.contains("\"no name\" is neither"), "{text}");
    let text = refused(secured(nobody, NAME, Trust::Roots { pem: "nonsense".to_owned() }));
    assert!(text.contains("the trusted roots hold no certificate"), "{text}");
    let mut arm = secured(nobody, NAME, authority.trust());
    let (one, two) = (authority.client(), authority.client());
    let mixed = Identity { certificates: one.certificates.clone(), key: two.key };
    arm.tls.as_mut().expect("TLS").identity = Some(mixed);
    let text = refused(arm.clone());
    assert!(text.contains("client certificate and its key"), "{text}");
    arm.tls.as_mut().expect("TLS").identity = Some(Identity { certificates: one.certificates, key: String::new() });
    let text = refused(arm);
    assert!(text.contains("client certificate's key cannot be read"), "{text}");
}
