//! What drives the reference server: our own executable as a bench binary, with a scenario of its own.

use std::path::PathBuf;

use httpbench_core::Check;
use httpbench_core::prelude::{Request, http_bench};

use super::executable;
use crate::bench::{Bench, BenchLaunch, SpawnBench, SupervisedBenches};
use crate::build::BenchExecutable;
use crate::environment::Environment;
use crate::error::Result;
use crate::interrupt::Interrupt;

/// The hidden first argument that makes this executable a bench binary.
pub(super) const ARGUMENT: &str = "--httpbench-reference-bench";

/// The answer of the reference server, and nothing else.
#[http_bench(name = "reference")]
fn reference() -> Request {
    Request::get("/").check(Check::status(200).body_contains("0123456789"))
}

/// The bench binary of the reference server; it is started by the first question.
///
/// # Errors
///
/// When our own executable cannot be told.
pub fn bench(interrupt: &Interrupt) -> Result<Bench> {
    let path = executable()?;
    let mut spawner = SupervisedBenches::new(interrupt.clone());
    let spawn = move |mut launch: BenchLaunch| {
        launch.args = vec![ARGUMENT.into()];
        spawner.spawn(launch)
    };
    let executable = BenchExecutable { name: "reference".to_owned(), path, linked: Default::default() };
    Ok(Bench::new(Box::new(spawn), executable, PathBuf::from("/"), Environment::default()))
}
