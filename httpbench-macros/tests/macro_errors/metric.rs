use httpbench_core::prelude::*;

#[http_bench(tolerance(errors = "1%"))]
fn tolerance_on_errors() -> Request {
    Request::get("/")
}

#[http_bench(limit(p98 = "20ms"))]
fn mistyped_metric() -> Request {
    Request::get("/")
}

#[http_bench(tolerance(cpu-per-request = "3%"))]
fn hyphens() -> Request {
    Request::get("/")
}

#[http_bench(limit(p99 = "20ms", p99 = "30ms"))]
fn limit_twice() -> Request {
    Request::get("/")
}

#[http_bench(limit(p99 = "20%", throughput = "1000", errors = "101%", peak_memory = "200", cpu_per_request = "0s"))]
fn wrong_units() -> Request {
    Request::get("/")
}

#[http_bench(tolerance(p50 = "3", p90 = 3, p95 = "-1%", p99))]
fn wrong_percentages() -> Request {
    Request::get("/")
}

fn main() {}
