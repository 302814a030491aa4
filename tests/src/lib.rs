//! The kit of the tests that drive the real `cargo httpbench` over fixture projects.
//!
//! [`Project::copy`] gives a test its own copy of a project in `tests/fixtures`; [`Project::httpbench`] runs the command in
//! it with a deadline; [`Outcome`] and [`Run`] tell what came of it, and what was left behind. Nothing here knows what the
//! command should answer: that is in the tests.
//!
//! Runs take turns, also between test processes: on two cores, a measurement beside another one is a different measurement.

mod command;
mod outcome;
mod platform;
mod processes;
mod project;
mod quiet;
mod turns;
mod workspace;

pub use command::{Httpbench, Run};
pub use outcome::Outcome;
pub use processes::{Process, processes_of};
pub use project::{Folder, Project};
pub use quiet::wait_until_quiet;
pub use workspace::{cargo, executable, fixtures_target, host, run_folders};

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// What makes a run as short as it can be and still measure something.
pub const SHORT: [&str; 7] = ["--quick", "--rounds", "1", "--duration", "300ms", "--warm-up", "20ms"];

/// Asks until the answer is yes, every 10 ms.
///
/// Panics with `what` when the deadline has passed.
pub fn wait_until(what: &str, deadline: Duration, mut answer: impl FnMut() -> bool) {
    let end = Instant::now() + deadline;
    while !answer() {
        assert!(Instant::now() < end, "after {deadline:?} still waiting for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a file is there and not empty, and reads it.
pub fn wait_for_file(path: &Path, deadline: Duration) -> String {
    let mut text = String::new();
    wait_until(&format!("{}", path.display()), deadline, || {
        text = std::fs::read_to_string(path).unwrap_or_default();
        !text.is_empty()
    });
    text
}
