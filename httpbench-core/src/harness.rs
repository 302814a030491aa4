//! `main()` of a bench binary: serves the command, or, without it, does what test runners ask.
//!
//! With [`CONTROL_VARIABLE`] in the environment the command has started us: `serve` answers it over the control channel.
//! Else `arguments` reads what cargo or a test runner says and `standalone` does it. Neither starts a server. This
//! folder is the only part of the crate that prints, and the only one that ends the process.

mod arguments;
mod serve;
mod standalone;

use std::env;
use std::hint::black_box;
use std::process;

use crate::protocol::{CONTROL_VARIABLE, MARKER};

/// How a bench binary ends when it could not do what it was asked: the code by which Rust's own test harness fails.
const FAILED: i32 = 101;

/// The whole `main` of a bench target.
///
/// ```no_run
/// use httpbench_core::prelude::*;
///
/// #[http_bench]
/// fn index() -> Request {
///     Request::get("/")
/// }
///
/// fn main() {
///     httpbench_core::main()
/// }
/// ```
///
/// Started by `cargo httpbench` it drives the load. Started by anything else it never opens a connection: `--list` lists
/// the scenarios, and no arguments, which is what `cargo test --all-targets` gives, calls each scenario once and passes if
/// all of them render a request that can be sent. `--help` tells the rest.
///
/// Does not return before the work is done, and ends the process itself where something failed.
pub fn main() {
    // The command looks for these bytes before it runs an executable; without a use the linker would drop them.
    black_box(MARKER);
    let code = match env::var_os(CONTROL_VARIABLE) {
        Some(descriptor) => serve::serve(&descriptor),
        None => standalone::run(env::args_os().skip(1)),
    };
    if code != 0 {
        process::exit(code);
    }
}
