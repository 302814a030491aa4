//! Our end of the control channel: starts a bench binary, asks it for its scenarios, and lets it measure.
//!
//! A bench binary is user code. What it prints is kept for the case that it dies and never reaches our standard output; while an
//! answer is awaited the caller is called back, so that a dead server or a signal ends the wait. Which rounds are run and what
//! their numbers mean is not decided here.

mod binary;
mod lasting;
#[cfg(test)]
mod plain;
mod select;
mod spawn;
mod supervised;

pub use binary::BenchBinary;
pub use lasting::Bench;
#[cfg(test)]
pub(crate) use plain::PlainSpawner;
pub use select::{Ignored, Matching, Selection, find_one};
pub use spawn::{BenchLaunch, BenchProcess, SpawnBench};
pub use supervised::SupervisedBenches;
