//! What the clients of the to-do list do all day. Run it with `cargo httpbench -p todo-axum`.
//!
//! Nothing is configured: the server reads `PORT`, and keeps its database in `HTTPBENCH_DIR`, which is a new folder for
//! every start. So every measurement begins with the same seeded to-do items.

use httpbench_core::prelude::*;

/// The first page of the list: 20 rows and their count.
#[http_bench]
fn list() -> Request {
    Request::get("/todos?limit=20&offset=0").check(Check::status(200).body_contains("\"total\":"))
}

/// One item by its key: the cheapest query that there is.
#[http_bench]
fn one() -> Request {
    Request::get("/todos/42").check(Check::status(200).body_contains("\"id\":42,"))
}

/// A word in titles and notes: no index helps, SQLite reads every row.
#[http_bench]
fn search() -> Request {
    Request::get("/todos/search?q=invoice").check(Check::status(200).body_contains("invoice"))
}

/// A new item: one transaction in the write-ahead log. The table grows while it is measured.
#[http_bench]
fn create() -> Request {
    Request::post("/todos")
        .header("content-type", "application/json")
        .body(r#"{"title":"Water the office plants","notes":"The fern needs more than the others.","priority":"low"}"#)
        .check(Check::status(201).body_contains("Water the office plants"))
}

/// What a load balancer asks: the server without the database.
#[http_bench]
fn health() -> Request {
    Request::get("/health").check(Check::status(200).body_contains("ok"))
}

fn main() {
    httpbench_core::main()
}
