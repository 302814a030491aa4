//! This machine's limits, met in mid-run: each case in a process of its own that has little of what it needs.
//!
//! The test of the name runs this executable again under the limit, for the one case that looks at [`INSIDE`]; outside, those
//! cases have nothing to do. Where a limit cannot be had (no namespaces for this user), the case says so and is skipped.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use httpbench_core::Request;
use httpbench_core::engine::run_round;
use httpbench_core::model::{ArmPlan, ArmRecording, ErrorClass, Load, Nanos, Reuse, RoundPlan, SlicePlan};
use httpbench_core::scenario::WireOptions;

/// Set for the process that runs under the limit: the server's address, or nothing if it has to be in the same process.
const INSIDE: &str = "HTTPBENCH_TEST_INSIDE";

/// Runs one case of this executable by a shell command that sets its limit first; `None`: that was refused.
fn inside(case: &str, limit: &str, server: &str) -> Option<()> {
    let this = std::env::current_exe().expect("a path");
    let script = format!("{limit} || exit 42; exec \"$0\" --exact {case} --nocapture --test-threads 1");
    let mut command = Command::new("unshare");
    command.args(["-rn", "sh", "-c", &script]).arg(this).env(INSIDE, server);
    if !server.is_empty() {
        // The server is outside, so there is no namespace to be had.
        command = Command::new("sh");
        command.args(["-c", &script]).arg(std::env::current_exe().expect("a path")).env(INSIDE, server);
    }
    let output = command.output().ok()?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(42) || text.contains("unshare: ") {
        eprintln!("skipped: {text}");
        return None;
    }
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    Some(())
}

/// Answers every request on every connection, and keeps them open.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            std::thread::spawn(move || {
                let mut request = [0; 4_096];
                while stream.read(&mut request).is_ok_and(|length| length > 0) {
                    if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn run(server: SocketAddr, connections: u32, reuse: Reuse, length: u64, requests: Option<u64>) -> ArmRecording {
    let arm = ArmPlan::plain(server);
    let load = Load {
        connections,
        reuse,
        request_timeout: Nanos::from_secs(5),
        connect_timeout: Nanos::from_secs(5),
        ..Load::default()
    };
    let request = Request::get("/").render_as(&arm.host, WireOptions::of(&arm, &load)).expect("renders");
    let slice = SlicePlan { arm: 0, length: Nanos::from_millis(length), lead_in: Nanos::ZERO, requests };
    let plan =
        RoundPlan { scenario: "limits".to_owned(), arms: vec![arm], load, warm_up: Nanos::ZERO, slices: vec![slice] };
    let recording = run_round(&plan, vec![request]).expect("an executable plan").arms.remove(0);
    assert!(recording.counts.balances(), "{:?}", recording.counts);
    recording
}

#[test]
fn descriptors_that_run_out_in_mid_run_are_no_error_of_the_server() {
    // LG-67
    inside("inside_few_descriptors", "ulimit -n 96", &server().to_string());
}

#[test]
fn inside_few_descriptors() {
    let Ok(server) = std::env::var(INSIDE) else { return };
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // After some good exchanges, takes every descriptor that there is, and that the engine closes.
            std::thread::sleep(Duration::from_millis(100));
            let mut taken = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                taken.extend(File::open("/dev/null"));
            }
        });
        let recording = run(server.parse().expect("an address"), 2, Reuse::Close, 500, None);
        ended.store(true, Ordering::Relaxed);
        let counts = &recording.counts;
        assert!(counts.good > 0, "{counts:?}");
        assert!(counts.errors.counts[&ErrorClass::NoDescriptors] > 0, "{counts:?}");
        assert_eq!(counts.errors.counts.len(), 1, "{counts:?}");
        // Attempts that fail at once are bounded by the waits between them.
        assert!(counts.errors.total() < 200, "{counts:?}");
        assert!(counts.errors.examples[&ErrorClass::NoDescriptors].contains("os error 24"), "{counts:?}");
    });
}

/// Loopback in a network namespace, with a hundred local ports.
const FEW_PORTS: &str = "{ ip link set lo up && echo '20000 20099' > /proc/sys/net/ipv4/ip_local_port_range; }";

#[test]
fn thousand_connections_one_after_the_other_need_no_hundred_local_ports() {
    // LG-68: closing with RST leaves none of them waiting.
    inside("inside_few_ports_in_turn", FEW_PORTS, "");
}

#[test]
fn inside_few_ports_in_turn() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let recording = run(server(), 4, Reuse::Close, 60_000, Some(1_000));
    assert_eq!((recording.counts.good, recording.counts.started), (1_000, 1_000), "{:?}", recording.counts);
    assert_eq!(recording.connections, 1_000);
}

#[test]
fn local_ports_that_run_out_are_no_error_of_the_server() {
    // LG-68: more connections at once than there are ports.
    inside("inside_few_ports_at_once", FEW_PORTS, "");
}

#[test]
fn inside_few_ports_at_once() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let recording = run(server(), 150, Reuse::Keep, 200, None);
    let counts = &recording.counts;
    assert!(counts.good > 0, "{counts:?}");
    assert!(counts.errors.counts[&ErrorClass::NoLocalPort] >= 50, "{counts:?}");
    // The listener has one of the hundred.
    assert_eq!((counts.errors.counts.len(), recording.connections), (1, 99), "{counts:?}");
}
