//! Rounds of several arms, slices and threads; what is refused before the start; the trace.

use std::sync::atomic::{AtomicU64, Ordering};

use httpbench_core::Check;
use httpbench_core::engine::{EngineError, run_round};
use httpbench_core::model::{Late, Nanos, Reuse, RoundPlan, Schedule};

use super::load::{arm, assert_all_good, get, plan, request, run, slice, traced};
use super::peer::Peer;

const OK: &str = "HTTP/1.1 200 OK\r\nServer: one\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn each_arm_counts_what_its_own_server_saw() {
    let (baseline, candidate) = (Peer::answering(OK), Peer::answering(OK));
    let mut plan = plan(vec![arm(&baseline), arm(&candidate)]);
    plan.load.connections = 5;
    plan.load.threads = 2;
    plan.warm_up = Nanos::from_millis(30);
    plan.slices = [0, 1, 1, 0].map(|arm| slice(arm, 50)).to_vec();
    let recording = run(&plan, &get());
    for (arm, peer) in recording.arms.iter().zip([&baseline, &candidate]) {
        assert_all_good(&arm.counts);
        assert_all_good(&arm.warm_up);
        assert_eq!(arm.counts.good + arm.warm_up.good, peer.requests());
        assert_eq!((arm.connections, peer.connections()), (5, 5));
        assert_eq!(arm.sent_bytes, get().bytes.len() as u64 * arm.counts.good);
        assert_eq!(arm.received_bytes, OK.len() as u64 * arm.counts.good);
        let first = arm.first_answer.as_ref().expect("an answer");
        assert_eq!((first.status, first.body_bytes, first.server.as_deref()), (200, 2, Some("one")));
    }
    assert_eq!(recording.slices.iter().map(|slice| slice.arm).collect::<Vec<_>>(), [0, 1, 1, 0]);
    for slice in &recording.slices {
        assert_eq!((slice.span, slice.cpu.as_slice()), (Nanos::from_millis(45), [None, None].as_slice()));
        assert!(slice.good > 0 && slice.good <= slice.completed);
        assert!(slice.wall >= Nanos::from_millis(50) && slice.engine_cpu > Nanos::ZERO);
    }
    assert_eq!(recording.engine.threads, 2);
    assert_eq!(recording.engine.wall, recording.slices.iter().map(|slice| slice.wall).sum());
    assert_eq!(recording.engine.cpu, recording.slices.iter().map(|slice| slice.engine_cpu).sum());
}

#[test]
#[cfg(target_os = "linux")]
fn cpu_time_of_every_arm_is_sampled_in_every_slice() {
    let peer = Peer::answering(OK);
    let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
    let mut plan = plan(vec![arm(&peer), arm(&peer)]);
    // This process stands for the supervisor, and the shell for the server; the other arm is not sampled.
    plan.arms[1].root_pid = Some(std::process::id());
    plan.slices = vec![slice(0, 100), slice(1, 100)];
    let recording = run(&plan, &get());
    busy.kill().expect("killed");
    busy.wait().expect("ended");
    for slice in &recording.slices {
        assert_eq!(slice.cpu.len(), 2);
        assert_eq!(slice.cpu[0], None);
        assert!(slice.cpu[1].is_some_and(|cpu| cpu > Nanos::ZERO), "{slice:?}");
    }
}

#[test]
fn connections_are_split_among_threads_and_threads_never_exceed_them() {
    // LG-53
    for (connections, threads, used) in [(3, 2, 2), (1, 4, 1), (7, 3, 3)] {
        let peer = Peer::answering(OK);
        let mut plan = plan(vec![arm(&peer)]);
        (plan.load.connections, plan.load.threads) = (connections, threads);
        plan.load.cores = vec![0];
        let recording = run(&plan, &get());
        assert_all_good(&recording.arms[0].counts);
        assert_eq!((peer.connections(), recording.engine.threads), (u64::from(connections), used));
    }
}

#[test]
fn wrong_answers_are_neither_good_nor_in_the_service_times() {
    // LG-55
    static SERVED: AtomicU64 = AtomicU64::new(0);
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            let wrong = SERVED.fetch_add(1, Ordering::SeqCst) % 2 == 1;
            talk.send(if wrong { "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n" } else { OK })?;
        }
        Ok(())
    });
    let mut plan = plan(vec![arm(&peer)]);
    plan.slices = vec![slice(0, 60_000)];
    plan.slices[0].requests = Some(100);
    let recording = run(&plan, &get());
    let arm = &recording.arms[0];
    assert_eq!((arm.counts.started, arm.counts.good, arm.counts.check_failures), (100, 50, 50));
    assert_eq!(arm.counts.check_example.as_deref(), Some("status 500"));
    assert_eq!((arm.statuses.success, arm.statuses.server_error), (50, 50));
    assert_eq!((arm.service.count(), arm.check_failure.count()), (50, 50));
    assert_eq!((recording.slices[0].completed, peer.requests()), (100, 100));
    assert!(recording.slices[0].good <= 50);
}

#[test]
fn answers_of_varying_length_are_good_where_no_length_is_asked_for() {
    // LG-59
    static SERVED: AtomicU64 = AtomicU64::new(0);
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            let body = "x".repeat(SERVED.fetch_add(1, Ordering::SeqCst) as usize * 100);
            talk.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))?;
        }
        Ok(())
    });
    let mut plan = plan(vec![arm(&peer)]);
    plan.slices = vec![slice(0, 60_000)];
    plan.slices[0].requests = Some(50);
    let recording = run(&plan, &get());
    assert_all_good(&recording.arms[0].counts);
    // 0 + 100 + … + 4,900.
    assert_eq!((recording.arms[0].counts.good, recording.arms[0].body_bytes), (50, 122_500));
}

#[test]
fn request_goes_over_the_wire_byte_by_byte_as_rendered() {
    // LG-73, LG-74, LG-76, LG-77
    let rendered = "POST /?x=1 HTTP/1.1\r\nHost: h:1\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 0\r\n\r\n";
    let peer = Peer::answering(OK);
    assert_all_good(&run(&plan(vec![arm(&peer)]), &request(rendered)).arms[0].counts);
    assert_eq!(peer.last_request(), rendered.as_bytes());
}

#[test]
fn without_slices_and_warm_up_connections_are_only_opened() {
    let peer = Peer::answering(OK);
    let mut plan = plan(vec![arm(&peer)]);
    plan.load.connections = 3;
    plan.slices.clear();
    let recording = run(&plan, &get());
    assert_eq!((recording.arms[0].connections, recording.arms[0].counts.started, peer.requests()), (3, 0, 0));
}

#[test]
fn plans_that_contradict_themselves_are_refused() {
    let peer = Peer::answering(OK);
    let good = plan(vec![arm(&peer)]);
    let wrong: &[fn(&mut RoundPlan)] = &[
        |plan| plan.arms.clear(),
        |plan| plan.load.connections = 0,
        |plan| plan.load.threads = 0,
        |plan| plan.load.request_timeout = Nanos::ZERO,
        |plan| plan.slices[0].arm = 1,
        |plan| plan.slices[0].requests = Some(0),
        |plan| plan.load.late = Late::Drop,
        |plan| plan.load.schedule = Schedule::Sessions { per_second: 1.0, calls: 0 },
        |plan| {
            (plan.load.schedule, plan.load.depth) = (Schedule::Sessions { per_second: 1.0, calls: 2 }, 2);
        },
        |plan| {
            (plan.load.schedule, plan.load.reuse) = (Schedule::Sessions { per_second: 1.0, calls: 2 }, Reuse::Close);
        },
        |plan| plan.slices[0].lead_in = plan.slices[0].length,
    ];
    for change in wrong {
        let mut plan = good.clone();
        change(&mut plan);
        let error = run_round(&plan, vec![get()]).expect_err("refused");
        assert!(matches!(error, EngineError::Plan(_)), "{error}");
    }
    let mut plan = good;
    plan.load.cores = vec![100_000];
    assert!(matches!(run_round(&plan, vec![get()]), Err(EngineError::Core { core: 100_000, .. })));
    assert_eq!(peer.requests(), 0);
}

#[test]
fn trace_keeps_every_byte_and_judges_the_answer() {
    let answer =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let peer = Peer::answering(answer);
    let mut request = get();
    request.check = Check::status(200).body_contains("ok");
    let trace = traced(&peer, &request);
    assert_eq!((trace.sent.as_slice(), trace.received.as_slice()), (get().bytes.as_slice(), answer.as_bytes()));
    assert_eq!(trace.omitted_bytes, 0);
    assert_eq!(trace.outcome.map(|answer| answer.status), Ok(200));
    request.check = Check::status(404);
    assert_eq!(traced(&peer, &request).outcome, Err("status 200, not 404".to_owned()));
}

#[test]
fn trace_of_a_large_answer_is_bounded_and_counts_the_rest() {
    const LENGTH: usize = 3 * 1024 * 1024;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
    let total = head.len() + LENGTH;
    let peer = Peer::answering([head.into_bytes(), vec![b'x'; LENGTH]].concat());
    let trace = traced(&peer, &get());
    assert_eq!(trace.received.len() as u64 + trace.omitted_bytes, total as u64);
    assert_eq!(trace.received.len(), 1024 * 1024);
    assert!(trace.outcome.is_ok());
}

#[test]
fn trace_of_a_broken_exchange_shows_the_bytes_that_came() {
    let peer = Peer::answering("SSH-2.0-OpenSSH\r\n");
    let trace = traced(&peer, &get());
    assert_eq!(trace.received, b"SSH-2.0-OpenSSH\r\n");
    assert_eq!(trace.sent, get().bytes);
    let text = trace.outcome.expect_err("not HTTP");
    assert!(text.contains("SSH-2.0-OpenSSH"), "{text}");
}
