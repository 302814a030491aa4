use httpbench_core::prelude::*;

#[http_bench]
async fn flow() -> Request {
    Request::get("/")
}

#[http_bench]
unsafe fn unsafe_function() -> Request {
    Request::get("/")
}

#[http_bench]
extern "C" fn extern_function() -> Request {
    Request::get("/")
}

#[http_bench]
fn generic<T>() -> Request {
    Request::get("/")
}

#[http_bench]
fn const_generic<const N: usize>() -> Request {
    Request::get("/")
}

#[http_bench]
fn lifetime<'a>() -> Request {
    Request::get("/")
}

#[http_bench(args = [1])]
fn implicitly_generic(n: impl Into<u64>) -> Request {
    Request::get(format!("/{}", n.into()))
}

#[http_bench]
fn bounded() -> Request
where
    u8: Copy,
{
    Request::get("/")
}

#[http_bench]
fn without_return_type() {
    Request::get("/");
}

#[http_bench(args = [(1, 2)])]
fn two_parameters(left: u8, right: u8) -> Request {
    Request::get(format!("/{left}/{right}"))
}

fn main() {}
