//! Redirects: left alone by default, followed within one exchange if the plan asks for it.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use httpbench_core::model::{ArmRecording, ErrorClass, Nanos, Reuse};
use httpbench_core::scenario::WireRequest;
use httpbench_core::{Check, Request};

use super::load::{arm, assert_all, assert_all_good, drive, get, plan, run};
use super::peer::{Peer, Talk, pause};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Drives the peer with a plan that follows so many redirects.
fn follow(peer: &Peer, request: &WireRequest, most: u32) -> ArmRecording {
    let mut plan = plan(vec![arm(peer)]);
    plan.load.redirects = most;
    run(&plan, request).arms.remove(0)
}

fn found(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 4\r\n\r\ngone")
}

/// Answers by the request's target.
fn routed(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Peer {
    Peer::new(move |talk| {
        while talk.read_request()? {
            let target = talk.target();
            talk.send(answer(&target))?;
        }
        Ok(())
    })
}

/// The one example of a check failure, where every exchange is one.
fn objection(recording: &ArmRecording) -> &str {
    let counts = &recording.counts;
    assert!(counts.started > 0 && counts.check_failures == counts.started, "{counts:?}");
    counts.check_example.as_deref().expect("an example")
}

#[test]
fn redirect_is_an_answer_like_others_unless_it_is_to_be_followed() {
    // LG-78
    let peer = Peer::answering(found("http://127.0.0.1:1/elsewhere"));
    let recording = drive(&peer, &get());
    assert_all_good(&recording.counts);
    assert_eq!((recording.statuses.redirection, recording.redirected), (recording.counts.good, 0));
    assert_eq!(peer.requests(), recording.counts.started);
}

#[test]
fn redirects_of_the_same_origin_are_one_exchange_on_one_connection() {
    // LG-78
    let peer = routed(|target| match target {
        "/" => found("/a/b"),
        "/a/b" => found("../c?d#e"),
        "/c?d" => OK.to_owned(),
        other => panic!("{other}"),
    });
    let recording = follow(&peer, &get(), 2);
    assert_all_good(&recording.counts);
    let good = recording.counts.good;
    assert_eq!((recording.redirected, peer.requests(), peer.connections()), (2 * good, 3 * good, 1));
    assert_eq!((recording.statuses.success, recording.statuses.redirection), (good, 0));
    assert_eq!(recording.body_bytes, (4 + 4 + 2) * good);
    assert_eq!(recording.connections, 1);
    assert_eq!(recording.first_answer.expect("an answer").body_bytes, 2);
}

#[test]
fn each_connection_follows_its_own_redirect_however_the_answers_interleave() {
    // The head of a redirect comes, then others get their answers, then its body.
    let given = AtomicU64::new(0);
    let peer = Peer::new(move |talk| {
        let mut own = String::new();
        while talk.read_request()? {
            let target = talk.target();
            if target == "/" {
                own = format!("/{}", given.fetch_add(1, Ordering::SeqCst) % 1_000);
                let answer = found(&own);
                talk.send(&answer[..answer.len() - 4])?;
                pause(2);
                talk.send("gone")?;
            } else if target == own {
                talk.send(OK)?;
            } else {
                talk.send("HTTP/1.1 500 Not yours\r\nContent-Length: 0\r\n\r\n")?;
            }
        }
        Ok(())
    });
    let mut plan = plan(vec![arm(&peer)]);
    (plan.load.redirects, plan.load.connections) = (1, 8);
    let recording = run(&plan, &get()).arms.remove(0);
    assert_all_good(&recording.counts);
    assert_eq!((recording.redirected, peer.connections()), (recording.counts.good, 8));
}

#[test]
fn time_of_an_exchange_is_that_of_the_whole_chain_and_its_first_byte_that_of_the_final_head() {
    // LG-78
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            pause(30);
            let target = talk.target();
            talk.send(if target == "/" { found("/a") } else { OK.to_owned() })?;
        }
        Ok(())
    });
    let recording = follow(&peer, &get(), 1);
    assert_all_good(&recording.counts);
    assert!(recording.service.min().expect("a time") >= Nanos::from_millis(60));
    assert!(recording.first_byte.min().expect("a time") >= Nanos::from_millis(60));
}

#[test]
fn other_origin_gets_no_credentials_and_a_connection_of_its_own() {
    // LG-78
    let other = Peer::answering(OK);
    let (location, authority) = (format!("http://{}/x", other.address), other.address.to_string());
    let peer = Peer::answering(found(&location));
    let request =
        Request::get("/").header("Authorization", "Bearer secret").header("Cookie", "id=1").header("X-A", "1");
    let request = request.render(&peer.address.to_string()).expect("renders");
    let recording = follow(&peer, &request, 5);
    assert_all_good(&recording.counts);
    let good = recording.counts.good;
    assert_eq!((recording.redirected, peer.requests(), other.requests()), (good, good, good));
    assert_eq!((peer.connections(), other.connections(), recording.connections), (1, 1, 2));
    assert_eq!(peer.last_request(), request.bytes, "they are sent to their own origin");
    let there = String::from_utf8(other.last_request()).expect("ASCII");
    assert!(there.starts_with(&format!("GET /x HTTP/1.1\r\nHost: {authority}\r\n")), "{there}");
    assert!(there.contains("X-A: 1\r\n") && !there.contains("secret") && !there.contains("id=1"), "{there}");
    let (sent, received) = (request.bytes.len() + there.len(), found(&location).len() + OK.len());
    assert_eq!((recording.sent_bytes, recording.received_bytes), (sent as u64 * good, received as u64 * good));
}

#[test]
fn chain_that_returns_to_its_origin_brings_no_credentials_back() {
    // LG-78: home → other → home, where the two servers know each other's address.
    let home = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = home.local_addr().expect("an address");
    let other = Peer::answering(found(&format!("http://{address}/back")));
    let away = found(&format!("http://{}/", other.address));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let peer = Peer::at(home, move |talk| {
        while talk.read_request()? {
            kept.lock().expect("not poisoned").push(talk.last_request());
            let is_back = talk.target() == "/back";
            talk.send(if is_back { OK.to_owned() } else { away.clone() })?;
        }
        Ok(())
    });
    let request = Request::get("/").header("Cookie", "id=1").render(&address.to_string()).expect("renders");
    let recording = follow(&peer, &request, 2);
    assert_all_good(&recording.counts);
    let good = recording.counts.good;
    assert_eq!((recording.redirected, peer.requests(), peer.connections()), (2 * good, 2 * good, 1));
    let seen = seen.lock().expect("not poisoned");
    let back = String::from_utf8_lossy(&seen[1]);
    assert!(
        back.starts_with(&format!("GET /back HTTP/1.1\r\nHost: {address}\r\n")) && !back.contains("id=1"),
        "{back}"
    );
}

#[test]
fn post_becomes_get_or_is_sent_again_with_its_body() {
    // LG-78
    for (status, method) in [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")] {
        let peer = routed(move |target| match target {
            "/" => format!("HTTP/1.1 {status} X\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n"),
            _ => OK.to_owned(),
        });
        let request = Request::post("/").body("body").render(&peer.address.to_string()).expect("renders");
        let recording = follow(&peer, &request, 1);
        assert_all_good(&recording.counts);
        let last = String::from_utf8(peer.last_request()).expect("ASCII");
        assert!(last.starts_with(&format!("{method} /next HTTP/1.1\r\n")), "{status}: {last}");
        assert_eq!(last.ends_with("\r\n\r\nbody"), method == "POST", "{status}: {last}");
        assert_eq!(last.contains("Content-Length"), method == "POST", "{status}: {last}");
    }
}

#[test]
fn redirects_that_cannot_be_followed_are_check_failures_that_say_why() {
    // LG-78
    for (location, text) in [
        (
            "https://127.0.0.1/x",
            "status 302, whose `Location: https://127.0.0.1/x` cannot be followed: another server is followed over plain HTTP only",
        ),
        ("http://[nonsense/", "its host is empty or no host's name"),
        ("gopher://x/", "it is neither `http` nor `https`"),
        ("http://u:p@127.0.0.1/", "it holds a user name or password"),
    ] {
        let peer = Peer::answering(found(location));
        let recording = follow(&peer, &get(), 5);
        assert!(objection(&recording).ends_with(text), "{:?}", recording.counts);
        assert_eq!((recording.redirected, recording.service.count()), (0, 0));
        // It was a whole answer: the connection goes on.
        assert_eq!((peer.connections(), peer.requests()), (1, recording.counts.started));
    }
}

#[test]
fn one_redirect_too_many_is_a_check_failure() {
    // LG-78
    let peer = Peer::answering(found("/again"));
    for (most, text) in [(1, "more than 1 redirect: "), (3, "more than 3 redirects: ")] {
        let recording = follow(&peer, &get(), most);
        assert_eq!(objection(&recording), format!("{text}the last one, status 302, leads to `/again`"));
        assert_eq!(recording.redirected, u64::from(most) * recording.counts.started);
        assert_eq!(recording.statuses.redirection, recording.counts.started);
    }
}

#[test]
fn other_3xx_are_answers_and_the_final_answer_is_the_one_that_is_checked() {
    for answer in ["HTTP/1.1 304 Not Modified\r\n\r\n", "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"] {
        let recording = follow(&Peer::answering(answer), &get(), 5);
        assert_all_good(&recording.counts);
        assert_eq!((recording.redirected, recording.statuses.redirection), (0, recording.counts.good));
    }
    let peer = routed(|target| if target == "/" { found("/a") } else { OK.to_owned() });
    let mut request = get();
    request.check = Check::status(200).body_contains("ok");
    assert_all_good(&follow(&peer, &request, 1).counts);
    request.check = Check::status(302);
    assert_eq!(objection(&follow(&peer, &request, 1)), "status 200, not 302");
}

#[test]
fn connections_that_redirects_end_are_replaced_within_the_exchange() {
    // The redirect says close; the final answer does not.
    let peer = routed(|target| match target {
        "/" => found("/a").replacen("\r\n", "\r\nConnection: close\r\n", 1),
        _ => OK.to_owned(),
    });
    let recording = follow(&peer, &get(), 1);
    assert_all_good(&recording.counts);
    let good = recording.counts.good;
    // The first exchange takes two connections; each further one begins on that of the one before.
    assert_eq!((recording.connections, peer.connections(), peer.requests()), (good + 1, good + 1, 2 * good));
    assert_eq!(recording.connect.count(), good + 1);
}

#[test]
fn hop_that_meets_a_connection_closed_silently_is_redone_on_a_new_one() {
    // Every connection ends after one answer without saying so.
    let peer = Peer::new(|talk| {
        talk.read_request()?;
        let target = talk.target();
        talk.send(if target == "/" { found("/a") } else { OK.to_owned() })
    });
    let recording = follow(&peer, &get(), 1);
    assert_all_good(&recording.counts);
    assert!(recording.counts.redone > 0);
    assert_eq!(peer.requests(), 2 * recording.counts.good);
    assert_eq!(recording.connections, peer.connections());
}

#[test]
fn without_keep_alive_every_hop_has_a_connection_of_its_own() {
    let peer = routed(|target| if target == "/" { found("/a") } else { OK.to_owned() });
    let mut plan = plan(vec![arm(&peer)]);
    (plan.load.redirects, plan.load.reuse) = (1, Reuse::Close);
    let recording = run(&plan, &get()).arms.remove(0);
    assert_all_good(&recording.counts);
    assert_eq!((recording.connections, peer.connections()), (2 * recording.counts.good, 2 * recording.counts.good));
}

#[test]
fn errors_behind_a_redirect_say_where_and_are_not_redone() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let silent = Peer::new(|talk| talk.read_request().map(drop));
    for (target, class) in [(free, ErrorClass::Refused), (silent.address, ErrorClass::ClosedEarly)] {
        let peer = Peer::answering(found(&format!("http://{target}/x")));
        let recording = follow(&peer, &get(), 1);
        assert_all(&recording.counts, class);
        let text = &recording.counts.errors.examples[&class];
        assert!(text.starts_with(&format!("after a redirect to http://{target}/x: ")), "{text}");
        assert_eq!((recording.counts.redone, peer.requests()), (0, recording.counts.started));
    }
}

#[test]
fn timeout_counts_over_the_whole_chain() {
    let peer = Peer::new(|talk: &mut Talk| {
        while talk.read_request()? {
            pause(40);
            talk.send(found("/again"))?;
        }
        Ok(())
    });
    let mut plan = plan(vec![arm(&peer)]);
    (plan.load.redirects, plan.load.request_timeout) = (1_000, Nanos::from_millis(150));
    assert_all(&run(&plan, &get()).arms[0].counts, ErrorClass::RequestTimeout);
}

#[test]
fn name_of_another_host_is_resolved() {
    let other = Peer::answering(OK);
    let peer = Peer::answering(found(&format!("http://localhost:{}/", other.address.port())));
    let recording = follow(&peer, &get(), 1);
    assert_all_good(&recording.counts);
    assert!(
        other
            .last_request()
            .starts_with(format!("GET / HTTP/1.1\r\nHost: localhost:{}\r\n", other.address.port()).as_bytes())
    );
    let peer = Peer::answering(found("http://no-such-host.invalid/"));
    let recording = follow(&peer, &get(), 1);
    assert_all(&recording.counts, ErrorClass::Other);
    let text = &recording.counts.errors.examples[&ErrorClass::Other];
    assert!(text.contains("`no-such-host.invalid` could not be resolved"), "{text}");
}
