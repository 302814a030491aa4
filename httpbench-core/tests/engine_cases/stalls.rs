//! Servers that take their time, or never answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use httpbench_core::model::{ErrorClass, Nanos};

use super::load::{arm, assert_all, assert_all_good, drive, get, plan, run, slice};
use super::peer::{Peer, pause};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn silent() -> Peer {
    Peer::new(|talk| {
        talk.read_request()?;
        talk.wait_for_close()
    })
}

#[test]
fn silent_server_is_a_request_timeout_again_and_again() {
    // LG-35, LG-12
    let peer = silent();
    let mut plan = plan(vec![arm(&peer)]);
    plan.load.connections = 4;
    plan.load.request_timeout = Nanos::from_millis(100);
    plan.slices = vec![slice(0, 350)];
    let recording = run(&plan, &get()).arms.remove(0);
    assert_all(&recording.counts, ErrorClass::RequestTimeout);
    // Each of four connections starts at 0, 100, 200, 300 ms, or later on a busy machine.
    assert!((4..=16).contains(&recording.counts.started), "{:?}", recording.counts);
    assert!(recording.error.min().expect("a time") >= Nanos::from_millis(99));
    assert_eq!(recording.service.count(), 0);
}

#[test]
fn answer_without_end_is_a_request_timeout() {
    // LG-12
    let peer = Peer::new(|talk| {
        talk.read_request()?;
        talk.send("HTTP/1.1 200 OK\r\n\r\nhello")?;
        talk.wait_for_close()
    });
    let mut plan = plan(vec![arm(&peer)]);
    plan.load.request_timeout = Nanos::from_millis(100);
    assert_all(&run(&plan, &get()).arms[0].counts, ErrorClass::RequestTimeout);
}

#[test]
fn slice_ends_with_the_request_timeout_and_loses_nothing() {
    // LG-39
    let peer = silent();
    let mut plan = plan(vec![arm(&peer)]);
    plan.load.connections = 4;
    plan.load.request_timeout = Nanos::from_millis(500);
    let begun = Instant::now();
    let recording = run(&plan, &get());
    let counts = &recording.arms[0].counts;
    assert_all(counts, ErrorClass::RequestTimeout);
    assert_eq!((counts.started, counts.in_flight), (4, 0));
    assert!(recording.slices[0].wall >= Nanos::from_millis(499));
    assert!(begun.elapsed() < Duration::from_secs(10), "it ends");
}

#[test]
fn timeout_counts_from_the_send_and_not_from_the_last_byte() {
    // LG-37
    let peer = Peer::new(|talk| {
        talk.read_request()?;
        talk.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")?;
        for _ in 0..100 {
            pause(20);
            talk.send("x")?;
        }
        Ok(())
    });
    let mut plan = plan(vec![arm(&peer)]);
    plan.load.request_timeout = Nanos::from_millis(200);
    plan.slices = vec![slice(0, 50)];
    let recording = run(&plan, &get()).arms.remove(0);
    assert_eq!(recording.counts.started, 1);
    assert_all(&recording.counts, ErrorClass::RequestTimeout);
}

#[test]
fn timeout_still_works_after_many_quick_exchanges() {
    // The timer is armed once and re-armed only when it fires early: it must outlive the exchanges in between.
    let peer = Peer::new(|talk| {
        let begun = Instant::now();
        while talk.read_request()? {
            if begun.elapsed() > Duration::from_millis(250) {
                return talk.wait_for_close();
            }
            talk.send(OK)?;
        }
        Ok(())
    });
    let mut plan = plan(vec![arm(&peer)]);
    plan.load.request_timeout = Nanos::from_millis(100);
    plan.slices = vec![slice(0, 100), slice(0, 100), slice(0, 200)];
    let recording = run(&plan, &get()).arms.remove(0);
    assert!(recording.counts.good > 0);
    assert!(recording.counts.errors.counts[&ErrorClass::RequestTimeout] >= 1, "{:?}", recording.counts);
    let longest = recording.error.max().expect("a time");
    assert!(longest >= Nanos::from_millis(99), "{longest:?}");
}

#[test]
fn one_stall_is_one_slow_exchange() {
    // LG-44
    static SERVED: AtomicU64 = AtomicU64::new(0);
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            if SERVED.fetch_add(1, Ordering::SeqCst) == 5 {
                pause(400);
            }
            talk.send(OK)?;
        }
        Ok(())
    });
    let mut plan = plan(vec![arm(&peer)]);
    plan.slices = vec![slice(0, 600)];
    let recording = run(&plan, &get()).arms.remove(0);
    assert_all_good(&recording.counts);
    assert_eq!(recording.counts.good, SERVED.load(Ordering::SeqCst));
    assert!(recording.service.max().expect("a time") >= Nanos::from_millis(399));
    // No other one is like it: nothing was made up for those that a schedule would have sent meanwhile.
    let others = (recording.counts.good - 1) as f64 / recording.counts.good as f64;
    assert!(recording.service.quantile(others).expect("a time") < Nanos::from_millis(300));
}

#[test]
fn exchange_that_is_longer_than_the_slice_counts_but_not_as_throughput() {
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            pause(150);
            talk.send(OK)?;
        }
        Ok(())
    });
    let mut plan = plan(vec![arm(&peer)]);
    plan.slices = vec![slice(0, 50), slice(0, 50)];
    let recording = run(&plan, &get());
    assert_eq!(recording.arms[0].counts.good, 2);
    assert_eq!(
        recording.slices.iter().map(|slice| (slice.good, slice.completed)).collect::<Vec<_>>(),
        [(0, 1), (0, 1)]
    );
}

#[test]
fn quick_answers_have_a_median_above_zero() {
    // LG-64
    let recording = drive(&Peer::answering(OK), &get());
    assert!(recording.service.quantile(0.5).expect("a time") > Nanos(1_000));
}

#[test]
fn connections_are_busy_throughout_a_closed_loop() {
    // LG-62, Little's law: the sum of all service times fills the connections' time.
    let peer = Peer::new(|talk| {
        while talk.read_request()? {
            pause(10);
            talk.send(OK)?;
        }
        Ok(())
    });
    let mut plan = plan(vec![arm(&peer)]);
    plan.load.connections = 8;
    plan.slices = vec![slice(0, 400)];
    let recording = run(&plan, &get());
    let service = &recording.arms[0].service;
    let busy = service.mean().expect("a time").as_secs_f64() * service.count() as f64;
    let in_flight = busy / recording.slices[0].wall.as_secs_f64();
    assert!((6.8..=8.01).contains(&in_flight), "{in_flight} exchanges in flight on 8 connections");
}
