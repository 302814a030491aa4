//! Rounds that another thread watches, and ends early.

use std::thread;
use std::time::{Duration, Instant};

use httpbench_core::engine::{Progress, Watch, run_watched};
use httpbench_core::model::{ErrorClass, Nanos, Recording, RoundPlan, Schedule};

use super::load::{arm, assert_all, assert_all_good, checked, get, plan, slice};
use super::peer::{Peer, pause};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Runs the plan until it ends or is stopped after so many milliseconds.
fn stopped_after(milliseconds: u64, plan: &RoundPlan, watch: &Watch) -> Recording {
    let stopper = {
        let watch = watch.clone();
        thread::spawn(move || {
            pause(milliseconds);
            watch.stop();
        })
    };
    let recording = run_watched(plan, vec![get(); plan.arms.len()], watch).expect("an executable plan");
    stopper.join().expect("it does not panic");
    checked(plan, recording)
}

#[test]
fn round_that_is_stopped_ends_early_and_its_counts_still_balance() {
    // LG-42
    for schedule in [
        Schedule::Closed,
        Schedule::Constant { per_second: 500.0 },
        Schedule::Constant { per_second: 0.5 },
        Schedule::Sessions { per_second: 20.0, calls: 1_000_000 },
    ] {
        let peer = Peer::answering(OK);
        let mut plan = plan(vec![arm(&peer)]);
        (plan.load.connections, plan.load.threads, plan.load.schedule) = (4, 2, schedule);
        plan.slices = vec![slice(0, 60_000), slice(0, 60_000)];
        plan.slices[0].lead_in = Nanos::ZERO;
        let (watch, begun) = (Watch::new(), Instant::now());
        let recording = stopped_after(200, &plan, &watch);
        assert!(begun.elapsed() < Duration::from_secs(20), "{schedule:?} ends after {:?}", begun.elapsed());
        assert_all_good(&recording.arms[0].counts);
        assert_eq!(recording.arms[0].counts.good, peer.requests());
        let [first, second] = recording.slices.as_slice() else { panic!("two slices") };
        assert_eq!(first.good, recording.arms[0].counts.good, "all of them are in the span: {first:?}");
        assert!(first.span <= first.wall, "{first:?}");
        assert_eq!((second.good, second.completed, second.scheduled), (0, 0, 0), "it never began");
        let counts = &recording.arms[0].counts;
        let Progress { started, completed, failed, elapsed } = watch.progress();
        assert_eq!((started, completed, failed), (counts.started, counts.good, 0));
        assert!(elapsed > Nanos::ZERO && elapsed < Nanos::from_secs(20), "{elapsed:?}");
    }
}

#[test]
fn exchange_that_is_outstanding_at_the_stop_is_an_error_after_the_request_timeout() {
    let peer = Peer::new(|talk| {
        talk.read_request()?;
        talk.wait_for_close()
    });
    let mut plan = plan(vec![arm(&peer)]);
    plan.load.connections = 3;
    plan.load.request_timeout = Nanos::from_millis(600);
    plan.slices = vec![slice(0, 60_000)];
    let recording = stopped_after(100, &plan, &Watch::new());
    assert_all(&recording.arms[0].counts, ErrorClass::RequestTimeout);
    assert_eq!((recording.arms[0].counts.started, peer.requests()), (3, 3));
}

#[test]
fn starts_that_still_wait_for_a_connection_at_the_stop_are_dropped_and_counted() {
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            pause(100);
            talk.send(OK)?;
        }
        Ok(())
    });
    let mut plan = plan(vec![arm(&peer)]);
    plan.load.schedule = Schedule::Constant { per_second: 200.0 };
    plan.slices = vec![slice(0, 60_000)];
    let recording = stopped_after(500, &plan, &Watch::new());
    let (arm, slice) = (&recording.arms[0], &recording.slices[0]);
    assert_all_good(&arm.counts);
    assert_eq!(arm.counts.started, peer.requests());
    // About 100 were due, and 5 could be sent.
    assert!(arm.dropped >= 60 && arm.dropped > arm.counts.started, "{} of {}", arm.dropped, slice.scheduled);
    assert_eq!(slice.begun, arm.counts.started);
}

#[test]
fn round_that_was_stopped_before_it_began_starts_nothing() {
    let peer = Peer::answering(OK);
    let watch = Watch::new();
    watch.stop();
    let mut plan = plan(vec![arm(&peer)]);
    plan.warm_up = Nanos::from_secs(60);
    plan.slices = vec![slice(0, 60_000)];
    let recording = run_watched(&plan, vec![get()], &watch).expect("an executable plan");
    assert_eq!((recording.arms[0].warm_up.started, recording.arms[0].counts.started, peer.requests()), (0, 0, 0));
}

#[test]
fn progress_grows_while_the_round_runs_and_leaves_the_warm_up_out() {
    let peer = Peer::answering(OK);
    let mut plan = plan(vec![arm(&peer)]);
    plan.warm_up = Nanos::from_millis(250);
    plan.load.schedule = Schedule::Constant { per_second: 100.0 };
    plan.slices = vec![slice(0, 600)];
    let watch = Watch::new();
    let round = {
        let watch = watch.clone();
        thread::spawn(move || run_watched(&plan, vec![get()], &watch).expect("an executable plan"))
    };
    let mut seen = vec![watch.progress()];
    while !round.is_finished() {
        let next = watch.progress();
        let last = seen.last().expect("the first one");
        assert!(next.started >= last.started && next.elapsed >= last.elapsed, "{next:?} after {last:?}");
        if next.started != last.started {
            seen.push(next);
        }
        pause(5);
    }
    let recording = round.join().expect("it does not panic");
    assert_eq!((recording.arms[0].warm_up.good, recording.arms[0].counts.good), (25, 60));
    assert!(seen.len() >= 4, "it is published again and again: {seen:?}");
    assert_eq!(watch.progress().started, 60);
    // The same watch sees the next round from its beginning.
    let mut plan = super::load::plan(vec![arm(&peer)]);
    plan.slices.clear();
    run_watched(&plan, vec![get()], &watch).expect("an executable plan");
    assert_eq!(watch.progress().started, 0);
}
