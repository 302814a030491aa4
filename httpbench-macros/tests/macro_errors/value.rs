use httpbench_core::prelude::*;

const MANY: u32 = 64;

#[http_bench(connections = 0)]
fn no_connections() -> Request {
    Request::get("/")
}

#[http_bench(connections = "64")]
fn quoted() -> Request {
    Request::get("/")
}

#[http_bench(connections = MANY)]
fn computed() -> Request {
    Request::get("/")
}

#[http_bench(connections = 4294967296)]
fn too_many() -> Request {
    Request::get("/")
}

#[http_bench(arrival_rate = 0)]
fn no_arrivals() -> Request {
    Request::get("/")
}

#[http_bench(arrival_rate = -0.5)]
fn negative_arrivals() -> Request {
    Request::get("/")
}

#[http_bench(arrival_rate = "2000/s")]
fn quoted_arrivals() -> Request {
    Request::get("/")
}

#[http_bench(arrival_rate = f64::NAN)]
fn computed_arrivals() -> Request {
    Request::get("/")
}

#[http_bench(arrival_rate = 1e400)]
fn endless_arrivals() -> Request {
    Request::get("/")
}

#[http_bench(duration = "6 parsecs")]
fn wrong_unit() -> Request {
    Request::get("/")
}

#[http_bench(duration = 6)]
fn number() -> Request {
    Request::get("/")
}

#[http_bench(duration = "0s")]
fn nothing() -> Request {
    Request::get("/")
}

#[http_bench(warm_up = "soon")]
fn no_number() -> Request {
    Request::get("/")
}

#[http_bench(name = "")]
fn empty_name() -> Request {
    Request::get("/")
}

#[http_bench(name = "two\nlines")]
fn two_lines() -> Request {
    Request::get("/")
}

fn main() {}
