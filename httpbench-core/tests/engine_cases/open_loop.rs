//! The open loop: exchanges start on a schedule, whatever the server does, and are timed from when they should have.
//!
//! Counts are exact. Times have wide margins for a busy machine, always on the side that a wrong engine misses by far.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use httpbench_core::engine::{EngineError, run_round};
use httpbench_core::model::{ArmPlan, ErrorClass, Late, Nanos, RoundPlan, Schedule, SliceRecording};

use super::load::{arm, assert_all, assert_all_good, get, plan, run, slice};
use super::peer::{Peer, Talk, pause};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// One slice at so many starts per second.
fn open_loop(arm: ArmPlan, per_second: f64, milliseconds: u64) -> RoundPlan {
    let mut plan = plan(vec![arm]);
    plan.load.schedule = Schedule::Constant { per_second };
    plan.slices = vec![slice(0, milliseconds)];
    plan
}

/// When requests came, from the first one on.
#[derive(Clone, Default)]
struct Arrivals(Arc<Mutex<Vec<Instant>>>);

impl Arrivals {
    /// Answers at once.
    fn peer(&self) -> Peer {
        let arrivals = self.clone();
        Peer::new(move |talk| {
            while talk.read_request()? {
                arrivals.0.lock().expect("not poisoned").push(Instant::now());
                talk.send(OK)?;
            }
            Ok(())
        })
    }

    fn after_the_first(&self) -> Vec<Duration> {
        let mut times = self.0.lock().expect("not poisoned").clone();
        times.sort();
        times.iter().map(|time| *time - times[0]).collect()
    }
}

/// Answers after a millisecond, but only after a second if that request came a second or more after the first one and no
/// other was answered so late.
fn stalling() -> Peer {
    let (first, stalled) = (Mutex::new(None), AtomicBool::new(false));
    Peer::new(move |talk: &mut Talk| {
        while talk.read_request()? {
            let begun = *first.lock().expect("not poisoned").get_or_insert_with(Instant::now);
            let stalls = begun.elapsed() >= Duration::from_secs(1) && !stalled.swap(true, Ordering::SeqCst);
            pause(if stalls { 1_000 } else { 1 });
            talk.send(OK)?;
        }
        Ok(())
    })
}

#[test]
fn a_stall_is_in_the_response_times_of_all_who_should_have_been_sent_in_it() {
    // LG-43, LG-52 (catching up in a burst)
    let peer = stalling();
    let mut plan = open_loop(arm(&peer), 100.0, 3_000);
    plan.load.request_timeout = Nanos::from_secs(5);
    let recording = run(&plan, &get());
    let arm = &recording.arms[0];
    assert_all_good(&arm.counts);
    assert_eq!((arm.counts.started, peer.requests(), arm.connections), (300, 300, 1));
    let response = |q| arm.response.quantile(q).expect("samples");
    let millis = Nanos::from_millis;
    assert!((millis(1)..millis(200)).contains(&response(0.5)), "{:?}", response(0.5));
    assert!((millis(550)..millis(850)).contains(&response(0.9)), "{:?}", response(0.9));
    assert!((millis(1_000)..millis(1_250)).contains(&response(1.0)), "{:?}", response(1.0));
    // The service times hold one slow exchange: the last but one is an ordinary one.
    assert!(arm.service.max().expect("samples") >= millis(1_000));
    assert!(arm.service.quantile(299.0 / 300.0).expect("samples") < millis(500));
    assert!((70..=220).contains(&arm.queued.count()), "{} waited for the connection", arm.queued.count());
    // It caught up long before the slice's end.
    assert_eq!((recording.slices[0].scheduled, recording.slices[0].begun), (300, 300));
}

#[test]
fn starts_that_a_stall_makes_late_are_dropped_and_counted_where_the_plan_says_so() {
    // LG-52 (no catching up)
    let peer = stalling();
    let mut plan = open_loop(arm(&peer), 100.0, 3_000);
    plan.load.request_timeout = Nanos::from_secs(5);
    plan.load.late = Late::Drop;
    let recording = run(&plan, &get());
    let (arm, slice) = (&recording.arms[0], &recording.slices[0]);
    assert_all_good(&arm.counts);
    assert_eq!((arm.counts.started, peer.requests()), (300 - arm.dropped, 300 - arm.dropped));
    assert!((70..=160).contains(&arm.dropped), "{} of about 99 starts in the stall were dropped", arm.dropped);
    assert_eq!((slice.scheduled, slice.begun), (300, 300 - arm.dropped));
    // The one that stalled, and hardly any other, was slow: no burst followed.
    assert!(arm.response.max().expect("samples") >= Nanos::from_millis(1_000));
    let response = arm.response.quantile(0.95).expect("samples");
    assert!(response < Nanos::from_millis(300), "{response:?}");
}

#[test]
fn starts_are_evenly_spaced_and_exactly_as_many_as_asked_for() {
    // LG-46
    let arrivals = Arrivals::default();
    let peer = arrivals.peer();
    let mut plan = open_loop(arm(&peer), 1_000.0, 2_000);
    (plan.load.connections, plan.load.threads) = (8, 2);
    let recording = run(&plan, &get());
    assert_all_good(&recording.arms[0].counts);
    assert_eq!((recording.arms[0].counts.started, peer.requests()), (2_000, 2_000));
    // What the schedule says of 100 ms windows is exact in the unit tests; here a stall of this machine may push requests
    // from one into the next, but a burst each second, or a slow start, would miss these bounds by far.
    let times = arrivals.after_the_first();
    let mut windows = [0_u32; 20];
    for time in &times {
        windows[usize::try_from(time.as_millis() / 100).expect("small").min(19)] += 1;
    }
    let right = windows.iter().filter(|count| (99..=101).contains(*count)).count();
    assert!(right >= 10 && windows.iter().all(|count| *count <= 300), "{windows:?}");
}

#[test]
fn one_a_second_is_three_in_three_seconds_on_any_number_of_connections_and_threads() {
    // LG-47: the first at once, the others a second apart. The fourth would be due at the end, and so is not.
    let arrivals = Arrivals::default();
    let peer = arrivals.peer();
    let mut plan = open_loop(arm(&peer), 1.0, 3_000);
    (plan.load.connections, plan.load.threads) = (10, 4);
    let begun = Instant::now();
    let recording = run(&plan, &get());
    assert_all_good(&recording.arms[0].counts);
    assert_eq!((recording.arms[0].counts.started, peer.requests(), peer.connections()), (3, 3, 10));
    let times = arrivals.after_the_first();
    for (time, second) in times.iter().zip(0..) {
        assert!(time.abs_diff(Duration::from_secs(second)) < Duration::from_millis(300), "{times:?}");
    }
    assert!(recording.slices[0].wall >= Nanos::from_secs(3), "the slice is as long as asked for");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn arrival_rate_is_that_of_all_connections_and_threads_together() {
    // LG-51
    for (connections, threads) in [(10, 1), (10, 3)] {
        let peer = Peer::answering(OK);
        let mut plan = open_loop(arm(&peer), 100.0, 500);
        (plan.load.connections, plan.load.threads) = (connections, threads);
        plan.warm_up = Nanos::from_millis(200);
        let recording = run(&plan, &get());
        assert_all_good(&recording.arms[0].counts);
        assert_eq!((recording.arms[0].warm_up.good, recording.arms[0].counts.good), (20, 50));
        assert_eq!(peer.requests(), 70);
    }
}

#[test]
fn slices_share_one_schedule_so_that_their_ends_change_nothing() {
    // 30 a second in slices of 50 ms of two arms: 1.5 to a slice.
    let (baseline, candidate) = (Peer::answering(OK), Peer::answering(OK));
    let mut plan = open_loop(arm(&baseline), 30.0, 50);
    plan.arms.push(arm(&candidate));
    plan.slices = [0, 1, 1, 0, 0, 1, 1, 0].map(|arm| slice(arm, 50)).to_vec();
    let recording = run(&plan, &get());
    for arm in 0..2 {
        let of_arm = |slice: &&SliceRecording| slice.arm == arm;
        let scheduled: Vec<_> = recording.slices.iter().filter(of_arm).map(|slice| slice.scheduled).collect();
        assert_eq!(scheduled, [2, 1, 2, 1]);
    }
    assert_eq!((baseline.requests(), candidate.requests()), (6, 6));
}

#[test]
fn arrival_rate_beyond_what_the_connections_allow_is_not_reached_and_loses_nothing() {
    // LG-48: two connections and 100 ms an exchange are 20 a second.
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            pause(100);
            talk.send(OK)?;
        }
        Ok(())
    });
    let mut plan = open_loop(arm(&peer), 100.0, 500);
    plan.load.connections = 2;
    let recording = run(&plan, &get());
    let (arm, slice) = (&recording.arms[0], &recording.slices[0]);
    assert_all_good(&arm.counts);
    assert_eq!((arm.counts.started, slice.scheduled, peer.requests()), (50, 50, 50));
    assert!((3..=10).contains(&slice.begun), "{} of 50 began in the half second", slice.begun);
    // The wait grows linearly, to the nearly 2 s that the last of 50 waits: its quantiles are proportional.
    let wait = |q| arm.queued.quantile(q).expect("samples").as_secs_f64();
    assert!((1.8..6.0).contains(&wait(1.0)), "{}", wait(1.0));
    assert!((0.4..0.6).contains(&(wait(0.5) / wait(1.0))), "{} of {}", wait(0.5), wait(1.0));
    assert!(arm.queued.count() >= 45, "{} of 50 found both connections busy", arm.queued.count());
    assert!(arm.response.max() >= arm.queued.max());
}

#[test]
fn what_was_due_but_never_sent_is_an_error_at_the_end_of_the_drain() {
    let peer = Peer::new(|talk| {
        talk.read_request()?;
        talk.wait_for_close()
    });
    let mut plan = open_loop(arm(&peer), 1_000.0, 100);
    plan.load.connections = 3;
    plan.load.request_timeout = Nanos::from_millis(250);
    let recording = run(&plan, &get());
    let arm = &recording.arms[0];
    assert_eq!(arm.counts.started, 100);
    assert_all(&arm.counts, ErrorClass::RequestTimeout);
    // Three at once, three more that are cut at the end of the drain: the others never reach the server.
    assert!((3..=6).contains(&peer.requests()), "{}", peer.requests());
    let (first, last) = (arm.error.min().expect("errors"), arm.error.max().expect("errors"));
    assert!(first >= Nanos::from_millis(249) && last < Nanos::from_secs(3), "{first:?} {last:?}");
    assert!((Nanos::from_millis(350)..Nanos::from_secs(3)).contains(&recording.slices[0].wall));
}

#[test]
fn server_that_restarts_is_tried_at_every_start_and_recovers() {
    // LG-41: 100 a second for 2 s, down from 0.5 to 1.0 s.
    let (address, server) = restarting(Duration::from_millis(500), Duration::from_millis(1_000));
    let mut plan = open_loop(ArmPlan::plain(address), 100.0, 2_000);
    plan.load.connections = 2;
    let recording = run(&plan, &get());
    let answered = server.join().expect("the server ends");
    let counts = &recording.arms[0].counts;
    assert_eq!(counts.started, 200);
    assert!((120..=170).contains(&counts.good) && counts.good <= answered, "{counts:?}");
    assert!((30..=80).contains(&counts.errors.counts[&ErrorClass::Refused]), "{counts:?}");
}

/// A server that goes away after `down` and is back after `up`, counted from its first connection; it ends with its
/// clients and tells how many requests it answered.
fn restarting(down: Duration, up: Duration) -> (SocketAddr, thread::JoinHandle<u64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let server = thread::spawn(move || {
        let (first, _) = listener.accept().expect("a connection");
        let begun = Instant::now();
        let mut answered = serve(listener, vec![first], begun + down);
        thread::sleep(up.saturating_sub(begun.elapsed()));
        let listener = TcpListener::bind(address).expect("the same port");
        answered += serve(listener, Vec::new(), begun + up + Duration::from_millis(1_300));
        answered
    });
    (address, server)
}

/// Answers on all connections until `end`, then closes everything.
fn serve(listener: TcpListener, mut streams: Vec<TcpStream>, end: Instant) -> u64 {
    listener.set_nonblocking(true).expect("a socket option");
    let mut answered = 0;
    let mut request = [0; 4096];
    while Instant::now() < end {
        if let Ok((stream, _)) = listener.accept() {
            streams.push(stream);
        }
        for stream in &mut streams {
            stream.set_nonblocking(true).expect("a socket option");
            if stream.read(&mut request).is_ok_and(|length| length > 0) {
                answered += u64::from(stream.write_all(OK.as_bytes()).is_ok());
            }
        }
        thread::sleep(Duration::from_micros(200));
    }
    answered
}

#[test]
fn engine_tells_its_own_lateness_from_waits_for_a_connection() {
    let peer = Peer::answering(OK);
    let mut plan = open_loop(arm(&peer), 500.0, 400);
    plan.load.connections = 16;
    let recording = run(&plan, &get());
    let arm = &recording.arms[0];
    assert_all_good(&arm.counts);
    assert_eq!((arm.counts.started, arm.connections), (200, 16));
    assert!(arm.lateness.count() >= 190, "a connection was free for nearly all: {}", arm.queued.count());
    assert!(arm.response.max() >= arm.service.max());
}

#[test]
fn arrival_rates_that_no_schedule_can_have_are_refused() {
    let peer = Peer::answering(OK);
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e8] {
        for schedule in [
            Schedule::Constant { per_second: wrong },
            Schedule::Poisson { per_second: wrong, seed: 1 },
            Schedule::Ramp { from: wrong, to: 0.0, over: Nanos::from_secs(1) },
            Schedule::Ramp { from: 0.0, to: wrong, over: Nanos::from_secs(1) },
            Schedule::Sessions { per_second: wrong, calls: 1 },
        ] {
            let mut plan = open_loop(arm(&peer), 1.0, 100);
            plan.load.schedule = schedule;
            let error = run_round(&plan, vec![get()]).expect_err("refused");
            assert!(matches!(error, EngineError::Plan(_)), "{error}");
        }
    }
}
