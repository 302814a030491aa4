//! The limit on file descriptors, in a process of its own: it cannot be raised again once it is lowered.

use std::net::TcpListener;

use httpbench_core::Check;
use httpbench_core::engine::{EngineError, run_round};
use httpbench_core::model::{ArmPlan, Load, Nanos, RoundPlan};
use httpbench_core::scenario::WireRequest;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{Backlog, listen};

#[test]
fn limit_is_raised_where_the_hard_one_allows_it_and_refused_with_the_number_otherwise() {
    // LG-66. The kernel accepts all connections into the listener's queue, so the server takes no descriptors here.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listen(&listener, Backlog::new(1_000).expect("a backlog")).expect("listening");
    let address = listener.local_addr().expect("an address");
    let plan = RoundPlan {
        scenario: "descriptors".to_owned(),
        arms: vec![ArmPlan::plain(address)],
        load: Load {
            connections: 200,
            threads: 1,
            cores: Vec::new(),
            request_timeout: Nanos::from_secs(5),
            connect_timeout: Nanos::from_secs(5),
            ..Load::default()
        },
        warm_up: Nanos::ZERO,
        slices: Vec::new(),
    };
    let bytes = b"GET / HTTP/1.1\r\nHost: peer\r\n\r\n".to_vec();
    let request = WireRequest { bytes, is_head: false, check: Check::default() };

    setrlimit(Resource::RLIMIT_NOFILE, 64, 1_024).expect("lowered");
    let recording = run_round(&plan, vec![request.clone()]).expect("raised");
    assert_eq!(recording.arms[0].connections, 200);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    assert!((200..1_024).contains(&soft) && hard == 1_024, "{soft} {hard}");

    setrlimit(Resource::RLIMIT_NOFILE, 64, 64).expect("lowered");
    let error = run_round(&plan, vec![request]).expect_err("refused");
    let EngineError::Descriptors { connections: 200, needed: 200.., hard: 64 } = error else { panic!("{error}") };
    assert!(error.to_string().contains("may have 64"), "{error}");
}
