use httpbench_core::prelude::*;

#[http_bench]
struct NotAFunction;

#[http_bench]
mod module {}

#[http_bench]
impl NotAFunction {}

#[http_bench]
const CONSTANT: u8 = 1;

struct Server;

impl Server {
    #[http_bench]
    fn method(&self) -> Request {
        Request::get("/")
    }
}

trait Scenarios {
    #[http_bench]
    fn without_body() -> Request;
}

fn main() {}
