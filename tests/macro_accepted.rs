//! Everything that the attribute accepts, in one bench target. What `cargo test` starts of it renders all requests, and passes.
#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, unused_qualifications)]

use httpbench_core::prelude::*;

/// Documented.
#[http_bench]
#[must_use]
pub fn index() -> Request {
    Request::get("/")
}

#[http_bench(
    name = "everything",
    connections = 64,
    arrival_rate = 2000,
    duration = "6s",
    warm_up = "0s",
    tolerance(throughput = "3%", cpu_per_request = "3%", p50 = "3%", p90 = "5%", p95 = "5%", p99 = "10%"),
    limit(
        throughput = "1000/s",
        cpu_per_request = "50us",
        p50 = "1ms",
        p90 = "2ms",
        p95 = "5ms",
        p99 = "20ms",
        errors = "0.1%",
        peak_memory = "200MB",
    ),
    ignore,
    args = [(1, 2)].map(Pair),
)]
fn everything(Pair((first, second)): Pair) -> Request {
    Request::get(format!("/{first}/{second}"))
}

#[derive(Clone)]
struct Pair((u8, u8));

impl std::fmt::Display for Pair {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}-{}", self.0.0, self.0.1)
    }
}

#[http_bench(arrival_rate = 0.5)]
fn rarely() -> Request {
    Request::get("/")
}

#[http_bench(args = ["a", "b"])]
fn borrowed(name: &str) -> Request {
    Request::get(format!("/{name}"))
}

#[http_bench(args = (0..3).map(|n| n * 2))]
#[ignore = "slow"]
fn computed(n: u64) -> Request {
    Request::get(format!("/{n}"))
}

#[http_bench(crate = facade::engine)]
#[cfg_attr(debug_assertions, ignore)]
fn by_a_facade() -> Request {
    Request::get("/")
}

mod facade {
    pub(crate) use httpbench_core as engine;
}

mod r#type {
    // Neither `Option` nor `Some` means here what it means elsewhere.
    #[expect(dead_code, reason = "shadows")]
    enum Option {
        Some,
    }

    #[httpbench_core::http_bench(connections = 1)]
    fn r#match() -> httpbench_core::Request {
        httpbench_core::Request::get("/")
    }

    #[httpbench_core::http_bench]
    #[cfg(any())]
    fn compiled_out() -> Missing {}
}

macro_rules! scenario {
    ($name:ident, $duration:literal, $args:expr) => {
        #[http_bench(duration = $duration, args = $args)]
        fn $name(n: u8) -> Request {
            Request::get(format!("/{n}"))
        }
    };
}
scenario!(from_a_macro, "1s", vec![1, 2]);

fn main() {
    assert_eq!(index().summary().target, "/");
    httpbench_core::main();
}
