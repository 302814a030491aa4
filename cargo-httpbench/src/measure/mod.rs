//! Rounds: fresh server processes, every scenario warmed up and then driven through its slices.
//!
//! The round is the replicate. Scenarios that only read share a round's server, in an order that is shuffled anew; those
//! that write run last, each with a server and a state folder of its own. The slices themselves run in the engine, which is
//! handed a whole round of a scenario at once; nothing here runs in between.

mod cores;
mod measured;
mod plan;
mod progress;
mod round;
#[cfg(test)]
pub(crate) mod sample;
mod turn;

pub use cores::{Cores, cpu_quota, usable_cores};
pub use measured::{MeasuredPackage, MeasuredRound, MeasuredScenario, values};
pub use plan::SliceScheme;
pub use progress::{Progress, Schedule};
pub use round::{Rounds, Selected, Subject, measure};
pub use turn::Turn;
