//! How fast the smallest server answers. Run it with `cargo httpbench -p hello-hyper`.

use httpbench_core::prelude::*;

/// The only route there is, by a handler that does nothing.
#[http_bench]
fn hello() -> Request {
    Request::get("/").check(Check::status(200).body_contains("Hello, world!"))
}

fn main() {
    httpbench_core::main()
}
