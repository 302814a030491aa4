//! Slices that end after an exact number of starts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use httpbench_core::model::{ErrorClass, Load, Nanos, RoundPlan, Schedule, SliceRecording};

use super::load::{arm, assert_all_good, get, plan, run, slice};
use super::peer::{Peer, pause};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A slice of so many requests, for which there is a minute.
fn counted(peer: &Peer, requests: u64) -> RoundPlan {
    let mut plan = plan(vec![arm(peer)]);
    plan.slices = vec![slice(0, 60_000)];
    (plan.slices[0].requests, plan.slices[0].lead_in) = (Some(requests), Nanos::ZERO);
    plan
}

#[test]
fn exactly_as_many_requests_are_sent_as_asked_for_on_all_threads_together() {
    // LG-53
    for (requests, connections, threads, used) in
        [(10, 3, 2, 3), (1, 1, 1, 1), (7, 7, 3, 7), (1_000, 8, 3, 8), (2, 5, 1, 2), (3, 64, 4, 3), (1, 2, 2, 1)]
    {
        let peer = Peer::answering(OK);
        let mut plan = counted(&peer, requests);
        (plan.load.connections, plan.load.threads) = (connections, threads);
        let begun = Instant::now();
        let recording = run(&plan, &get());
        let counts = &recording.arms[0].counts;
        assert_all_good(counts);
        assert_eq!((counts.started, peer.requests()), (requests, requests));
        assert_eq!((recording.arms[0].connections, peer.connections()), (used, used), "of {connections}");
        assert_eq!((recording.slices[0].good, recording.slices[0].completed), (requests, requests));
        assert!(begun.elapsed() < Duration::from_secs(20), "it ends with the last answer");
    }
}

#[test]
fn throughput_of_a_counted_slice_is_that_until_its_last_answer() {
    // One exchange after the other, 20 ms each, and then one that is never answered.
    let peer = Peer::new(|talk| {
        for _ in 0..10 {
            talk.read_request()?;
            pause(20);
            talk.send(OK)?;
        }
        talk.wait_for_close()
    });
    let mut plan = counted(&peer, 11);
    plan.load.request_timeout = Nanos::from_millis(700);
    let recording = run(&plan, &get());
    assert_eq!(recording.arms[0].counts.errors.counts[&ErrorClass::RequestTimeout], 1);
    let SliceRecording { good, span, wall, .. } = recording.slices[0];
    assert_eq!(good, 10);
    let longest = Nanos::from_millis(600).min(wall - Nanos::from_millis(690));
    assert!((Nanos::from_millis(200)..longest).contains(&span), "{span:?} of {wall:?}");
}

#[test]
fn counted_slice_in_which_nothing_completes_lasts_until_its_last_error() {
    let peer = Peer::new(|talk| talk.read_request().map(drop));
    let recording = run(&counted(&peer, 5), &get());
    assert_eq!(recording.arms[0].counts.errors.counts[&ErrorClass::ClosedEarly], 5);
    let SliceRecording { good, completed, span, wall, .. } = recording.slices[0];
    assert_eq!((good, completed, span), (0, 0, wall));
}

#[test]
fn length_of_a_counted_slice_is_its_upper_bound() {
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            pause(30);
            talk.send(OK)?;
        }
        Ok(())
    });
    let mut plan = counted(&peer, 1_000_000);
    plan.slices[0].length = Nanos::from_millis(200);
    let recording = run(&plan, &get());
    assert_all_good(&recording.arms[0].counts);
    assert!((1..=7).contains(&recording.arms[0].counts.started), "{:?}", recording.arms[0].counts);
    assert_eq!(recording.slices[0].span, Nanos::from_millis(200));
}

#[test]
fn counted_slice_may_have_all_the_time_there_is() {
    for schedule in [Schedule::Closed, Schedule::Constant { per_second: 500.0 }] {
        let peer = Peer::answering(OK);
        let mut plan = counted(&peer, 20);
        (plan.load.schedule, plan.load.connections, plan.load.threads) = (schedule, 3, 2);
        plan.slices[0].length = Nanos(u64::MAX);
        let recording = run(&plan, &get());
        assert_all_good(&recording.arms[0].counts);
        assert_eq!((recording.slices[0].good, peer.requests()), (20, 20));
        assert!(recording.slices[0].span < Nanos::from_secs(20), "{:?}", recording.slices[0].span);
    }
}

#[test]
fn each_slice_has_a_number_of_its_own_and_the_warm_up_has_none() {
    let peer = Peer::answering(OK);
    let mut plan = counted(&peer, 5);
    plan.warm_up = Nanos::from_millis(50);
    (plan.load.connections, plan.load.threads) = (3, 2);
    plan.slices.push(plan.slices[0]);
    plan.slices[1].requests = Some(100);
    let recording = run(&plan, &get());
    assert_all_good(&recording.arms[0].counts);
    assert_eq!(recording.slices.iter().map(|slice| slice.good).collect::<Vec<_>>(), [5, 100]);
    assert_eq!(recording.arms[0].warm_up.started, peer.requests() - 105);
    assert_eq!(recording.arms[0].connections, 3);
}

#[test]
fn redone_and_failed_exchanges_are_part_of_the_number() {
    // Connections end silently after three answers; every fifth answer is wrong.
    static SERVED: AtomicU64 = AtomicU64::new(0);
    let peer = Peer::new(|talk| {
        for _ in 0..3 {
            if talk.read_request()? {
                let wrong = SERVED.fetch_add(1, Ordering::SeqCst).is_multiple_of(5);
                talk.send(if wrong { "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n" } else { OK })?;
            }
        }
        Ok(())
    });
    let mut plan = counted(&peer, 100);
    plan.load = Load { connections: 2, ..plan.load };
    let recording = run(&plan, &get());
    let counts = &recording.arms[0].counts;
    assert_eq!((counts.started, counts.good, counts.check_failures), (100, 80, 20), "{counts:?}");
    assert_eq!(peer.requests(), 100);
}
