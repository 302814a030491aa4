use httpbench_core::prelude::*;

#[http_bench(args = [1, 2])]
fn args_without_parameter() -> Request {
    Request::get("/")
}

#[http_bench]
fn parameter_without_args(n: u32) -> Request {
    Request::get(format!("/{n}"))
}

fn main() {}
