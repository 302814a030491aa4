use httpbench_core::prelude::*;

#[http_bench(conections = 64)]
fn mistyped() -> Request {
    Request::get("/")
}

#[http_bench(users = 32)]
fn unknown() -> Request {
    Request::get("/")
}

#[http_bench(connections = 1, connections = 2)]
fn twice() -> Request {
    Request::get("/")
}

#[http_bench(warm-up = "1s")]
fn hyphen() -> Request {
    Request::get("/")
}

#[http_bench(connections, duration =, ignore = true, "6s", limit = "20ms", tolerance())]
fn all_errors_of_one_attribute_are_told() -> Request {
    Request::get("/")
}

#[http_bench(connections = 1 duration = "6s")]
fn comma_forgotten() -> Request {
    Request::get("/")
}

#[http_bench(crate = "httpbench_core")]
fn quoted_path() -> Request {
    Request::get("/")
}

fn main() {}
