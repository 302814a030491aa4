//! Scenarios for `cargo httpbench`, and the load engine that drives them.
//!
//! A bench target of your server's package holds functions that return requests. `cargo httpbench` builds the server,
//! starts it, sends these requests for some seconds, and reports what came back.
//!
//! ```toml
//! [dev-dependencies]
//! httpbench-core = "0.1"
//!
//! [[bench]]
//! name = "http"
//! harness = false
//! ```
//!
//! ```
//! // benches/http.rs
//! use httpbench_core::prelude::*;
//!
//! /// The landing page, as fast as the server will go.
//! #[http_bench]
//! fn index() -> Request {
//!     Request::get("/")
//! }
//!
//! #[http_bench(connections = 64, tolerance(p90 = "5%"), limit(p99 = "20ms", errors = "0.1%"))]
//! fn search() -> Request {
//!     Request::get("/search?q=rust")
//!         .header("accept", "application/json")
//!         .check(Check::status(200).body_contains("hits"))
//! }
//!
//! #[http_bench(args = [1, 10, 100])] // scenarios page[1], page[10], page[100]
//! fn page(n: u32) -> Request {
//!     Request::get(format!("/page/{n}"))
//! }
//!
//! fn main() {
//!     httpbench_core::main()
//! }
//! ```
//!
//! # Map
//!
//! | for users | |
//! |---|---|
//! | [`http_bench`] | makes a function a scenario |
//! | [`Request`] | what a scenario sends |
//! | [`Check`] | what the answer must be |
//! | [`main()`] | the `main` of a bench target |
//!
//! | for the command and for readers of the code | |
//! |---|---|
//! | [`scenario`] | requests, checks, and the registry that the attribute fills |
//! | [`engine`] | sends the requests and times the answers |
//! | [`model`] | the data that both ends of the control channel share |
//! | [`protocol`] | the control channel between the command and a bench binary |

#[doc(hidden)]
pub mod __private;
pub mod engine;
mod harness;
pub mod model;
mod platform;
pub mod prelude;
pub mod protocol;
pub mod scenario;

pub use harness::main;
/// Makes a function a scenario.
///
/// The function is called once for each server and round, and its request is rendered then: nothing of it runs while the
/// load does. It stays an ordinary function, with its docs, visibility and other attributes.
///
/// ```
/// use httpbench_core::prelude::*;
///
/// #[http_bench]
/// fn index() -> Request {
///     Request::get("/")
/// }
///
/// /// One scenario for each value: `item[tea]` and `item[milk]`.
/// #[http_bench(args = ["tea", "milk"], connections = 8, limit(p99 = "20ms"))]
/// fn item(name: &str) -> Request {
///     Request::get(format!("/items/{name}"))
/// }
///
/// assert_eq!(item("tea").summary().target, "/items/tea");
/// ```
///
/// The scenario's name is `module::function`, without the bench target's own name, and `[argument]` where there are any.
///
/// # Options
///
/// | option | meaning |
/// |---|---|
/// | `name = "landing-page"` | the last part of the name, instead of the function's |
/// | `args = [1, 10, 100]` | any [`IntoIterator`] over the parameter's type, which is [`Clone`] and named by [`Display`](std::fmt::Display); evaluated once, at run time |
/// | `connections = 64` | connections that are open at once, at least 1 |
/// | `arrival_rate = 2000` | exchanges started per second, over all connections, whatever the server does: an open loop, whose times count from when each exchange should have started; without it each connection sends after its answer |
/// | `duration = "6s"` | loaded time, over all rounds |
/// | `warm_up = "300ms"` | loaded time before each round, which is not measured; `"0s"` for none |
/// | `tolerance(throughput = "3%", …)` | accepted relative changes of `throughput`, `cpu_per_request`, `p50`, `p90`, `p95`, `p99` |
/// | `limit(p99 = "20ms", …)` | absolute bounds, at most: durations for `p50`, `p90`, `p95`, `p99` and `cpu_per_request`, a percentage for `errors`, a size such as `"200MB"` for `peak_memory`; at least: `throughput = "1000/s"` |
/// | `ignore` | left out unless asked for; so does `#[ignore]` on the function |
/// | `crate = path` | where a facade exports this crate |
///
/// What is not said here is decided by `httpbench.toml`, the environment and the command line.
pub use httpbench_macros::http_bench;
pub use scenario::{Check, Request, RequestError};
