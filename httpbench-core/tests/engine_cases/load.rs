//! Plans in short, and what must hold for every recording.

use httpbench_core::Check;
use httpbench_core::engine::run_round;
use httpbench_core::model::{
    ArmPlan, ArmRecording, Counts, ErrorClass, Load, Nanos, Recording, RoundPlan, SlicePlan, Trace, TracePlan,
};
use httpbench_core::scenario::WireRequest;

use super::peer::Peer;

pub(crate) fn get() -> WireRequest {
    request("GET / HTTP/1.1\r\nHost: peer\r\n\r\n")
}

pub(crate) fn request(bytes: impl Into<Vec<u8>>) -> WireRequest {
    let bytes = bytes.into();
    let is_head = bytes.starts_with(b"HEAD ");
    WireRequest { bytes, is_head, check: Check::default() }
}

pub(crate) fn post(body: &[u8]) -> WireRequest {
    let head = format!("POST / HTTP/1.1\r\nHost: peer\r\nContent-Length: {}\r\n\r\n", body.len());
    request([head.as_bytes(), body].concat())
}

pub(crate) fn arm(peer: &Peer) -> ArmPlan {
    ArmPlan::plain(peer.address)
}

/// One slice of 100 ms on one arm with one connection; the request timeout is long.
pub(crate) fn plan(arms: Vec<ArmPlan>) -> RoundPlan {
    RoundPlan {
        scenario: "case".to_owned(),
        arms,
        load: Load {
            connections: 1,
            threads: 1,
            cores: Vec::new(),
            request_timeout: Nanos::from_secs(20),
            connect_timeout: Nanos::from_secs(5),
            ..Load::default()
        },
        warm_up: Nanos::ZERO,
        slices: vec![slice(0, 100)],
    }
}

pub(crate) fn slice(arm: usize, milliseconds: u64) -> SlicePlan {
    SlicePlan {
        arm,
        length: Nanos::from_millis(milliseconds),
        lead_in: Nanos::from_millis(milliseconds / 10),
        requests: None,
    }
}

/// Runs the plan with the same request for every arm, and checks what always holds.
pub(crate) fn run(plan: &RoundPlan, request: &WireRequest) -> Recording {
    checked(plan, run_round(plan, vec![request.clone(); plan.arms.len()]).expect("an executable plan"))
}

/// What holds for every recording of the plan.
pub(crate) fn checked(plan: &RoundPlan, recording: Recording) -> Recording {
    assert_eq!((recording.arms.len(), recording.slices.len()), (plan.arms.len(), plan.slices.len()));
    for (index, arm) in recording.arms.iter().enumerate() {
        assert!(arm.counts.balances() && arm.warm_up.balances(), "{arm:?}");
        assert_eq!((arm.counts.in_flight, arm.warm_up.in_flight), (0, 0));
        assert_eq!(arm.service.count(), arm.counts.good);
        assert_eq!(arm.first_byte.count(), arm.counts.good);
        let (scheduled, begun) =
            (of_arm(&recording, index, |slice| slice.scheduled), of_arm(&recording, index, |slice| slice.begun));
        if plan.load.schedule.is_open() {
            assert_eq!(arm.response.count(), arm.counts.good);
            assert!(begun + arm.dropped <= scheduled);
            match plan.load.schedule.calls() {
                None => assert_eq!(scheduled, arm.counts.started + arm.dropped),
                Some(calls) => assert!(arm.counts.started <= (scheduled - arm.dropped) * calls),
            }
        } else {
            assert_eq!((scheduled, begun, arm.dropped, arm.response.count()), (0, 0, 0, 0));
        }
        assert_eq!(arm.lateness.count() + arm.queued.count() + arm.dropped, scheduled);
        assert_eq!(arm.check_failure.count(), arm.counts.check_failures);
        assert_eq!(arm.error.count(), arm.counts.errors.total());
        assert_eq!(arm.connect.count(), arm.connections);
        let completed: u64 = of_arm(&recording, index, |slice| slice.completed);
        assert_eq!(completed, arm.counts.good + arm.counts.check_failures);
        assert!(of_arm(&recording, index, |slice| slice.good) <= arm.counts.good);
    }
    recording
}

fn of_arm(recording: &Recording, arm: usize, value: impl Fn(&httpbench_core::model::SliceRecording) -> u64) -> u64 {
    recording.slices.iter().filter(|slice| slice.arm == arm).map(value).sum()
}

/// Runs the default plan on one peer.
pub(crate) fn drive(peer: &Peer, request: &WireRequest) -> ArmRecording {
    run(&plan(vec![arm(peer)]), request).arms.remove(0)
}

/// Only good exchanges, and at least one.
pub(crate) fn assert_all_good(counts: &Counts) {
    assert!(counts.good > 0 && counts.good == counts.started, "{counts:?}");
}

/// Only errors of one class, and at least one.
pub(crate) fn assert_all(counts: &Counts, class: ErrorClass) {
    assert!(counts.started > 0, "{counts:?}");
    assert_eq!(counts.errors.counts.get(&class), Some(&counts.started), "{counts:?}");
    assert!(!counts.errors.examples[&class].is_empty());
}

pub(crate) fn traced(peer: &Peer, request: &WireRequest) -> Trace {
    let plan = TracePlan { scenario: "case".to_owned(), arm: arm(peer), timeout: Nanos::from_secs(10) };
    httpbench_core::engine::trace(&plan, request).expect("a trace")
}
