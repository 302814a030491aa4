//! All kinds of schedules on the wire: as many starts as they say, on any number of threads, in windows and by count.

use std::time::{Duration, Instant};

use httpbench_core::model::{ErrorClass, Late, Nanos, Recording, RoundPlan, Schedule};

use super::load::{arm, assert_all_good, get, plan, run, slice};
use super::peer::{Peer, pause};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Slices of so many milliseconds each, on six connections.
fn scheduled(peer: &Peer, schedule: Schedule, milliseconds: &[u64]) -> RoundPlan {
    let mut plan = plan(vec![arm(peer)]);
    (plan.load.schedule, plan.load.connections) = (schedule, 6);
    plan.slices = milliseconds.iter().map(|length| slice(0, *length)).collect();
    plan
}

fn counts(recording: &Recording) -> Vec<u64> {
    recording.slices.iter().map(|slice| slice.scheduled).collect()
}

#[test]
fn schedule_is_the_same_on_any_number_of_threads_and_goes_on_from_slice_to_slice() {
    // LG-50
    let peer = Peer::answering(OK);
    let second = Nanos::from_secs(1);
    for (schedule, expected) in [
        (Schedule::Constant { per_second: 600.0 }, Some(vec![45, 45, 30])),
        (Schedule::Poisson { per_second: 600.0, seed: 5 }, None),
        // Due after t seconds: 2000 t²/2, so 5.6, 22.5 and 40 by the ends of the slices, and the one at zero.
        (Schedule::Ramp { from: 0.0, to: 2_000.0, over: second }, Some(vec![6, 17, 17])),
        (Schedule::Ramp { from: 0.0, to: 1_000.0, over: Nanos::ZERO }, Some(vec![75, 75, 50])),
    ] {
        let mut seen = Vec::new();
        for threads in [1, 3] {
            let mut plan = scheduled(&peer, schedule, &[75, 75, 50]);
            plan.load.threads = threads;
            let recording = run(&plan, &get());
            assert_all_good(&recording.arms[0].counts);
            seen.push(counts(&recording));
        }
        assert_eq!(seen[0], seen[1], "{schedule:?}");
        match expected {
            Some(expected) => assert_eq!(seen[0], expected, "{schedule:?}"),
            // 120 on average, and 44 away from it are four standard deviations.
            None => assert!((76..=164).contains(&seen[0].iter().sum::<u64>()), "{seen:?}"),
        }
    }
}

#[test]
fn seed_decides_the_poisson_schedule() {
    let peer = Peer::answering(OK);
    let run_with = |seed| {
        let schedule = Schedule::Poisson { per_second: 400.0, seed };
        counts(&run(&scheduled(&peer, schedule, &[50, 50, 50, 50]), &get()))
    };
    let (first, again, other) = (run_with(1), run_with(1), run_with(2));
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn counted_slices_start_exactly_as_many_on_every_schedule() {
    // LG-53 in an open loop
    for schedule in [
        Schedule::Constant { per_second: 200.0 },
        Schedule::Poisson { per_second: 200.0, seed: 9 },
        Schedule::Ramp { from: 100.0, to: 1_000.0, over: Nanos::from_secs(1) },
    ] {
        for (threads, late) in [(1, Late::Send), (2, Late::Send), (3, Late::Drop)] {
            let peer = Peer::answering(OK);
            let mut plan = scheduled(&peer, schedule, &[60_000, 60_000]);
            (plan.load.threads, plan.load.connections, plan.load.late) = (threads, 3, late);
            (plan.slices[0].requests, plan.slices[1].requests) = (Some(10), Some(1));
            plan.slices.iter_mut().for_each(|slice| slice.lead_in = Nanos::ZERO);
            let begun = Instant::now();
            let recording = run(&plan, &get());
            assert!(begun.elapsed() < Duration::from_secs(20), "they end with their last start");
            assert_all_good(&recording.arms[0].counts);
            assert_eq!((counts(&recording), peer.requests()), (vec![10, 1], 11 - recording.arms[0].dropped));
            assert_eq!(recording.arms[0].connections, 3);
            let first = &recording.slices[0];
            assert!(first.span <= first.wall && first.span < Nanos::from_secs(20), "{first:?}");
        }
    }
}

#[test]
fn no_more_connections_are_opened_than_there_are_starts() {
    let peer = Peer::answering(OK);
    let mut plan = scheduled(&peer, Schedule::Constant { per_second: 100.0 }, &[60_000]);
    (plan.load.connections, plan.load.threads) = (50, 2);
    (plan.slices[0].requests, plan.slices[0].lead_in) = (Some(3), Nanos::ZERO);
    let recording = run(&plan, &get());
    assert_all_good(&recording.arms[0].counts);
    assert_eq!((recording.arms[0].counts.started, peer.requests(), peer.connections()), (3, 3, 3));
}

#[test]
fn ramp_down_to_zero_stops_sending_and_lasts_as_long_as_its_slice() {
    let peer = Peer::answering(OK);
    let schedule = Schedule::Ramp { from: 400.0, to: 0.0, over: Nanos::from_millis(200) };
    let recording = run(&scheduled(&peer, schedule, &[500]), &get());
    assert_all_good(&recording.arms[0].counts);
    // 40 of them, the last of which is due at the very end of the ramp: start 40, counted from 0.
    assert_eq!(counts(&recording), [41]);
    assert!(recording.slices[0].wall >= Nanos::from_millis(500));
}

#[test]
fn start_that_waits_for_a_connection_is_not_dropped_before_the_next_one_is_due() {
    // One connection, and 30 ms for an answer: at 20 a second nothing is ever late.
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            pause(30);
            talk.send(OK)?;
        }
        Ok(())
    });
    let mut plan = scheduled(&peer, Schedule::Constant { per_second: 20.0 }, &[500]);
    (plan.load.connections, plan.load.late) = (1, Late::Drop);
    let recording = run(&plan, &get());
    assert!(recording.arms[0].dropped <= 3, "a machine that stalls may be late: {:?}", recording.arms[0].dropped);
    // At 100 a second two of three are, and what is sent never waits for longer than until the next one is due.
    plan.load.schedule = Schedule::Constant { per_second: 100.0 };
    let recording = run(&plan, &get());
    let arm = &recording.arms[0];
    assert_all_good(&arm.counts);
    assert_eq!(arm.counts.started + arm.dropped, 50);
    assert!((25..50).contains(&arm.dropped), "{}", arm.dropped);
    let waited = arm.queued.quantile(0.5).expect("most find the connection busy");
    assert!(waited < Nanos::from_millis(10), "{waited:?}");
}

#[test]
fn connections_that_cannot_be_opened_are_tried_at_every_start_of_a_schedule() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let mut plan = plan(vec![httpbench_core::model::ArmPlan::plain(free)]);
    plan.load.schedule = Schedule::Poisson { per_second: 200.0, seed: 2 };
    plan.slices = vec![slice(0, 200)];
    let recording = run(&plan, &get());
    let arm = &recording.arms[0];
    assert_eq!(arm.counts.errors.counts[&ErrorClass::Refused], arm.counts.started);
    assert_eq!((arm.counts.started, arm.response.quantile(0.5)), (recording.slices[0].scheduled, None));
}
