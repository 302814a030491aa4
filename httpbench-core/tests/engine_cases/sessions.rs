//! Sessions: connections opened on a schedule, each with a number of calls.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use httpbench_core::model::{ArmPlan, ArmRecording, ErrorClass, Late, Nanos, RoundPlan, Schedule};

use super::load::{arm, assert_all, assert_all_good, get, plan, run, slice};
use super::peer::{Peer, Talk, pause};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LAST: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";

/// One slice of sessions, of which eight may be open at once.
fn sessions(arm: ArmPlan, per_second: f64, calls: u64, milliseconds: u64) -> RoundPlan {
    let mut plan = plan(vec![arm]);
    (plan.load.schedule, plan.load.connections) = (Schedule::Sessions { per_second, calls }, 8);
    plan.slices = vec![slice(0, milliseconds)];
    plan
}

/// What the peers of these tests saw of each connection.
#[derive(Clone, Default)]
struct Seen {
    open: Arc<AtomicU64>,
    most_open: Arc<AtomicU64>,
}

impl Seen {
    /// Answers each request after so many milliseconds; connections must end after exactly as many as `calls`.
    fn peer(&self, calls: u64, milliseconds: u64) -> (Peer, Arc<AtomicU64>) {
        let (seen, wrong) = (self.clone(), Arc::<AtomicU64>::default());
        let told = Arc::clone(&wrong);
        let script = move |talk: &mut Talk| {
            let open = seen.open.fetch_add(1, Ordering::SeqCst) + 1;
            seen.most_open.fetch_max(open, Ordering::SeqCst);
            let mut answered = 0;
            while talk.read_request().unwrap_or(false) {
                pause(milliseconds);
                if answered + 1 == calls {
                    // Before the answer, after which the next session may come.
                    seen.open.fetch_sub(1, Ordering::SeqCst);
                }
                talk.send(OK)?;
                answered += 1;
            }
            told.fetch_add(u64::from(answered != calls), Ordering::SeqCst);
            Ok(())
        };
        (Peer::new(script), wrong)
    }
}

fn responses(arm: &ArmRecording) -> u64 {
    arm.response.count()
}

#[test]
fn each_session_is_one_connection_with_its_calls_which_is_then_closed() {
    for threads in [1, 3] {
        let (peer, wrong) = Seen::default().peer(5, 0);
        let mut plan = sessions(arm(&peer), 100.0, 5, 300);
        plan.load.threads = threads;
        let recording = run(&plan, &get());
        let (arm, slice) = (&recording.arms[0], &recording.slices[0]);
        assert_all_good(&arm.counts);
        assert_eq!((arm.counts.started, peer.requests(), responses(arm)), (150, 150, 150));
        assert_eq!((arm.connections, peer.connections(), arm.connect.count()), (30, 30, 30));
        assert_eq!((slice.scheduled, slice.begun, arm.lateness.count() + arm.queued.count()), (30, 30, 30));
        assert_eq!(arm.session.count(), 30);
        assert!(arm.session.max() >= arm.service.max(), "a session lasts longer than any of its calls");
        pause(50);
        assert_eq!(wrong.load(Ordering::SeqCst), 0, "no connection had more or fewer calls, or was left open");
    }
}

#[test]
fn sessions_that_find_no_free_connection_wait_and_their_intended_starts_stand() {
    // Two at once, 5 × 20 ms each: 20 a second. 50 a second are asked for.
    let seen = Seen::default();
    let (peer, wrong) = seen.peer(5, 20);
    let mut plan = sessions(arm(&peer), 50.0, 5, 400);
    plan.load.connections = 2;
    let recording = run(&plan, &get());
    let (arm, slice) = (&recording.arms[0], &recording.slices[0]);
    assert_all_good(&arm.counts);
    assert_eq!((arm.counts.started, arm.connections, slice.scheduled), (100, 20, 20));
    assert!(slice.begun <= 10, "{} of 20 sessions began in time", slice.begun);
    assert!(seen.most_open.load(Ordering::SeqCst) <= 2, "no more than two at once");
    assert_eq!(wrong.load(Ordering::SeqCst), 0);
    // Session k is due after k × 20 ms and can begin after k/2 × 100 ms: the last one waits for half a second.
    let waited = arm.queued.max().expect("most wait");
    assert!(waited >= Nanos::from_millis(500), "{waited:?}");
    // The first call alone has the wait in its response time.
    assert!(arm.response.max().expect("samples") >= waited);
    assert!(arm.response.quantile(0.5).expect("samples") < Nanos::from_millis(200));
    assert!(arm.service.max().expect("samples") < Nanos::from_millis(400));
}

#[test]
fn late_sessions_are_dropped_whole_where_the_plan_says_so() {
    let (peer, _) = Seen::default().peer(4, 20);
    let mut plan = sessions(arm(&peer), 50.0, 4, 500);
    (plan.load.connections, plan.load.late) = (1, Late::Drop);
    let recording = run(&plan, &get());
    let (arm, slice) = (&recording.arms[0], &recording.slices[0]);
    assert_all_good(&arm.counts);
    assert_eq!(slice.scheduled, 25);
    assert!((15..25).contains(&arm.dropped), "80 ms each, and 20 ms apart: {}", arm.dropped);
    assert_eq!((arm.counts.started, arm.connections), ((25 - arm.dropped) * 4, 25 - arm.dropped));
}

#[test]
fn counted_sessions_make_exactly_as_many_calls() {
    for (requests, expected) in [(10, 4), (3, 1), (1, 1), (12, 4)] {
        for threads in [1, 2] {
            let peer = Peer::answering(OK);
            let mut plan = sessions(arm(&peer), 500.0, 3, 60_000);
            plan.load.threads = threads;
            (plan.slices[0].requests, plan.slices[0].lead_in) = (Some(requests), Nanos::ZERO);
            let recording = run(&plan, &get());
            let arm = &recording.arms[0];
            assert_all_good(&arm.counts);
            assert_eq!((arm.counts.started, peer.requests()), (requests, requests));
            assert_eq!((arm.connections, peer.connections(), arm.session.count()), (expected, expected, expected));
            assert!(recording.slices[0].span < Nanos::from_secs(20));
        }
    }
}

#[test]
fn calls_that_the_server_leaves_no_connection_for_are_errors_of_their_session() {
    // Five calls are asked for. The server ends each connection after the second answer: politely, silently, or in the
    // middle of the third exchange.
    let scripts: [fn(&mut Talk) -> std::io::Result<()>; 3] = [
        |talk| {
            talk.read_request()?;
            talk.send(OK)?;
            talk.read_request()?;
            talk.send(LAST)
        },
        |talk| {
            for _ in 0..2 {
                talk.read_request()?;
                talk.send(OK)?;
            }
            Ok(())
        },
        |talk| {
            for _ in 0..2 {
                talk.read_request()?;
                talk.send(OK)?;
            }
            talk.read_request().map(drop)
        },
    ];
    for (script, made) in scripts.into_iter().zip([2, 3, 3]) {
        let peer = Peer::new(script);
        let recording = run(&sessions(arm(&peer), 50.0, 5, 200), &get());
        let arm = &recording.arms[0];
        assert_eq!((arm.counts.started, arm.counts.good), (50, 20), "{:?}", arm.counts);
        let counts = &arm.counts.errors.counts;
        let early = counts.get(&ErrorClass::ClosedEarly).copied().unwrap_or_default();
        // A silent end may also be met as a reset.
        let reset = counts.get(&ErrorClass::Reset).copied().unwrap_or_default();
        assert_eq!(early + reset, 30, "{:?}", arm.counts);
        assert_eq!((arm.counts.redone, arm.connections, peer.connections()), (0, 10, 10), "nothing is sent elsewhere");
        assert_eq!(arm.session.count(), 0, "none ran to its end");
        if made == 2 {
            let text = &arm.counts.errors.examples[&ErrorClass::ClosedEarly];
            assert_eq!(text, "never sent: the connection of its session ended after 2 of 5 calls");
        }
    }
}

#[test]
fn session_that_times_out_or_is_refused_accounts_for_all_its_calls() {
    let peer = Peer::new(|talk| {
        talk.read_request()?;
        talk.send(OK)?;
        talk.read_request()?;
        talk.wait_for_close()
    });
    let mut silent = sessions(arm(&peer), 20.0, 4, 200);
    silent.load.request_timeout = Nanos::from_millis(300);
    let recording = run(&silent, &get());
    let counts = &recording.arms[0].counts;
    assert_eq!((counts.started, counts.good), (16, 4), "{counts:?}");
    assert_eq!(counts.errors.counts[&ErrorClass::RequestTimeout], 12);

    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let recording = run(&sessions(ArmPlan::plain(free), 100.0, 1_000_000, 200), &get());
    assert_all(&recording.arms[0].counts, ErrorClass::Refused);
    assert_eq!((recording.arms[0].counts.started, recording.arms[0].connections), (20_000_000, 0));
}

#[test]
fn sessions_that_never_get_a_connection_are_errors_at_the_end_of_the_drain() {
    let peer = Peer::new(|talk| {
        talk.read_request()?;
        talk.wait_for_close()
    });
    let mut plan = sessions(arm(&peer), 100.0, 3, 100);
    (plan.load.connections, plan.load.request_timeout) = (1, Nanos::from_millis(250));
    let recording = run(&plan, &get());
    assert_all(&recording.arms[0].counts, ErrorClass::RequestTimeout);
    assert_eq!(recording.arms[0].counts.started, 30);
    assert!(peer.requests() <= 2, "{}", peer.requests());
}

#[test]
fn slices_and_warm_up_open_the_connections_of_their_own_sessions() {
    let peer = Peer::answering(OK);
    let mut plan = sessions(arm(&peer), 100.0, 2, 100);
    plan.warm_up = Nanos::from_millis(50);
    plan.slices = vec![slice(0, 55), slice(0, 55)];
    let recording = run(&plan, &get());
    assert_eq!((recording.arms[0].warm_up.good, recording.arms[0].counts.good), (10, 22));
    assert_eq!((recording.arms[0].connections, peer.connections()), (16, 16));
    assert_eq!(recording.slices.iter().map(|slice| slice.scheduled).collect::<Vec<_>>(), [6, 5]);
}
