//! Where an answer ends.

use httpbench_core::Check;
use httpbench_core::model::ErrorClass;

use super::load::{arm, assert_all, assert_all_good, drive, get, plan, request, run, slice, traced};
use super::peer::{Peer, pause};

#[test]
fn answer_without_length_ends_with_its_connection() {
    // LG-01, LG-07
    for field in ["", "Transfer-Encoding: identity\r\n", "Transfer-Encoding: gzip\r\n"] {
        let peer = Peer::new(move |talk| {
            talk.read_request()?;
            talk.send(format!("HTTP/1.1 200 OK\r\n{field}\r\nhello"))
        });
        let recording = drive(&peer, &get());
        assert_all_good(&recording.counts);
        assert_eq!(peer.requests(), recording.counts.good);
        assert_eq!(recording.body_bytes, 5 * recording.counts.good);
        // The last connection may have been opened for an exchange that the end of the slice forestalled.
        assert_eq!(recording.connections, recording.counts.good);
        assert_eq!(recording.counts.redone, 0);
    }
}

#[test]
fn answers_that_have_no_body_need_no_wait_and_keep_the_connection() {
    // LG-02, LG-03
    for (method, head) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n"),
    ] {
        let peer = Peer::answering(head);
        let recording = drive(&peer, &request(format!("{method} / HTTP/1.1\r\nHost: peer\r\n\r\n")));
        assert_all_good(&recording.counts);
        assert_eq!((peer.connections(), recording.body_bytes), (1, 0), "{head:?}");
    }
}

#[test]
fn interim_answers_are_not_the_answer() {
    // LG-04
    let peer = Peer::answering(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    );
    let recording = drive(&peer, &get());
    assert_all_good(&recording.counts);
    assert_eq!((recording.statuses.success, recording.statuses.other), (recording.counts.good, 0));
    assert_eq!(peer.connections(), 1);
}

#[test]
fn first_byte_is_that_of_the_final_head() {
    // LG-04: an interim answer at once, the final one later, its body later still.
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            talk.send("HTTP/1.1 103 Early Hints\r\n\r\n")?;
            pause(60);
            talk.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")?;
            pause(60);
            talk.send("ok")?;
        }
        Ok(())
    });
    let recording = drive(&peer, &get());
    let (first_byte, service) =
        (recording.first_byte.min().expect("a time").0, recording.service.min().expect("a time").0);
    assert!(first_byte >= 55_000_000, "{first_byte}");
    assert!(service >= 110_000_000 && service >= first_byte, "{service} and {first_byte}");
}

#[test]
fn chunked_answer_is_understood_byte_by_byte() {
    // LG-05, LG-06
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA;e=\"v\"\r\n0123456789\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n";
    let peer = Peer::new(move |talk| {
        while talk.read_request()? {
            answer.as_bytes().chunks(1).try_for_each(|byte| talk.send(byte))?;
        }
        Ok(())
    });
    let recording = drive(&peer, &get());
    assert_all_good(&recording.counts);
    assert_eq!(recording.body_bytes, 10 * recording.counts.good);
    assert_eq!(recording.received_bytes, answer.len() as u64 * recording.counts.good);
    assert_eq!((peer.connections(), peer.requests()), (1, recording.counts.good));
}

#[test]
fn head_split_at_any_byte_is_the_same_head() {
    // LG-13, LG-14
    let answer = "HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 5\r\nServer: split\r\n\r\nhello";
    for cut in 1..answer.len() {
        let peer = Peer::new(move |talk| {
            talk.read_request()?;
            talk.send(&answer[..cut])?;
            pause(2);
            talk.send(&answer[cut..])?;
            talk.wait_for_close()
        });
        let trace = traced(&peer, &get());
        assert_eq!(trace.outcome.as_ref().map(|answer| answer.status), Ok(200), "cut at {cut}");
        assert_eq!((trace.sent, trace.received), (get().bytes, answer.as_bytes().to_vec()));
    }
}

#[test]
fn answers_that_break_the_rules_are_protocol_errors_counted_once() {
    // LG-09, LG-15, LG-20
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(64 * 1024));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(129));
    for (answer, text) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "two lengths, 1 and 2"),
        ("HELLO\n", "`HELLO\\n`"),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "switched protocols"),
        (&long, "longer than 64 KiB"),
        (&many, "more than 128 header fields"),
    ] {
        let peer = Peer::answering(answer);
        let recording = drive(&peer, &get());
        assert_all(&recording.counts, ErrorClass::Protocol);
        assert!(recording.counts.errors.examples[&ErrorClass::Protocol].contains(text), "{:?}", recording.counts);
        assert_eq!(peer.requests(), recording.counts.started);
        assert_eq!(recording.service.count(), 0);
    }
}

#[test]
fn endless_head_ends_at_the_limit() {
    // LG-15
    let peer = Peer::new(|talk| {
        talk.read_request()?;
        talk.send("HTTP/1.1 200 OK\r\n")?;
        loop {
            talk.send("X-Another: one\r\n".repeat(100))?;
        }
    });
    assert_all(&drive(&peer, &get()).counts, ErrorClass::Protocol);
}

#[test]
fn body_that_ends_too_early_is_truncated_and_has_no_service_time() {
    // LG-18
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789012345678901234567890123456789",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nContent-Le",
    ] {
        let peer = Peer::new(move |talk| {
            talk.read_request()?;
            talk.send(answer)
        });
        let recording = drive(&peer, &get());
        assert_all(&recording.counts, ErrorClass::Truncated);
        assert_eq!((recording.service.count(), recording.statuses.success), (0, 0));
    }
}

#[test]
fn large_body_is_counted_to_the_byte_and_not_kept() {
    // LG-17
    const LENGTH: usize = 100 * 1024 * 1024;
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            talk.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n"))?;
            let piece = vec![b'x'; 1024 * 1024];
            (0..LENGTH / piece.len()).try_for_each(|_| talk.send(&piece))?;
        }
        Ok(())
    });
    let before = peak_memory();
    let mut plan = plan(vec![arm(&peer)]);
    plan.slices = vec![slice(0, 60)];
    let recording = run(&plan, &get()).arms.remove(0);
    assert_all_good(&recording.counts);
    assert_eq!(recording.body_bytes, LENGTH as u64 * recording.counts.good);
    // Tests that run beside this one allocate too, but none of them tens of megabytes.
    assert!(peak_memory() - before < LENGTH / 2, "the body was kept");
}

/// Peak resident memory of this process in bytes.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
}

#[test]
fn compressed_body_is_counted_as_it_is_on_the_wire() {
    // LG-21
    let body = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n";
    let peer = Peer::answering([head.as_slice(), &body].concat());
    let recording = drive(&peer, &request("GET / HTTP/1.1\r\nHost: peer\r\nAccept-Encoding: gzip\r\n\r\n"));
    assert_all_good(&recording.counts);
    assert_eq!(recording.body_bytes, 20 * recording.counts.good);
    assert_eq!(recording.received_bytes, (head.len() as u64 + 20) * recording.counts.good);
}

#[test]
fn surplus_bytes_end_the_connection_and_are_never_the_next_answer() {
    let peer =
        Peer::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    let recording = drive(&peer, &get());
    assert_all_good(&recording.counts);
    assert_eq!(recording.statuses.server_error, 0);
    assert_eq!(peer.requests(), recording.counts.good);
    assert_eq!(recording.connections, recording.counts.good);
}

#[test]
fn body_is_checked_after_chunked_decoding() {
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n3 h\r\n3\r\nits\r\n0\r\n\r\n";
    let peer = Peer::answering(answer);
    let mut request = get();
    request.check = Check::status(200).body_contains("3 hits");
    assert_all_good(&drive(&peer, &request).counts);
    request.check = Check::status(200).body_contains("4 hits");
    let recording = drive(&peer, &request);
    assert_eq!(recording.counts.check_failures, recording.counts.started);
    assert_eq!(recording.counts.check_example.as_deref(), Some("the body (6 bytes) does not contain \"4 hits\""));
}

#[test]
fn check_of_a_body_beyond_8_mib_fails_and_says_so() {
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            let body = vec![b'x'; 8 * 1024 * 1024 + 1];
            talk.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()))?;
            talk.send(&body)?;
        }
        Ok(())
    });
    let mut request = get();
    request.check = Check::default().body_contains("x");
    let recording = drive(&peer, &request);
    assert_eq!(recording.counts.check_failures, recording.counts.started);
    assert!(recording.counts.check_example.as_deref().is_some_and(|text| text.contains("8 MiB")));
}
