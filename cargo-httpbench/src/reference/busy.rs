//! A neighbour that competes for the cores a third of the time: what a shared machine is like, on purpose.
//!
//! A process of its own, because a round's evidence of disturbance counts our own processes out.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::Work;
use crate::error::Result;
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupt;
use crate::process::{Child, Launch, Output};

/// The hidden first argument that makes this executable the neighbour.
pub(super) const ARGUMENT: &str = "--httpbench-busy-neighbour";

/// It works so long and then rests twice as long: a third of the time.
const WORKING: Duration = Duration::from_secs(3);

/// Ends itself after this, should nobody end it.
const LIFE: Duration = Duration::from_secs(3_600);

/// A running neighbour; dropping it ends it.
#[derive(Debug)]
pub struct Busy(#[expect(dead_code, reason = "held for as long as it shall work")] Child);

/// Starts the neighbour.
///
/// # Errors
///
/// When our own executable cannot be started.
pub fn launch(interrupt: &Interrupt) -> Result<Busy> {
    let mut launch = Launch::new("busy neighbour", super::executable()?, Path::new("/"));
    launch.args = vec![ARGUMENT.into()];
    launch.stdout = Output::Null;
    launch.stderr = Output::Null;
    launch.exit = ExitCode::Unexpected;
    Child::spawn(launch, interrupt).map(Busy)
}

/// The whole life of the neighbour: one thread for each core.
pub(super) fn keep_busy() {
    let end = Instant::now() + LIFE;
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    while Instant::now() < end {
        let until = Instant::now() + WORKING;
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(move || {
                    while Instant::now() < until {
                        Work(100_000).run();
                    }
                });
            }
        });
        thread::sleep(WORKING * 2);
    }
}
