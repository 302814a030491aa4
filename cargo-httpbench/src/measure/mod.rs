//! Rounds: fresh server processes, every scenario warmed up and then driven through its slices.
//!
//! The round is the replicate. Scenarios that only read share a round's server, in an order that is shuffled anew; those
//! that write run last, each with a server and a state folder of its own. The slices themselves run in the engine, which is
//! handed a whole round of a scenario at once; nothing here runs in between.

mod campaign;
mod cores;
mod disturbance;
mod measured;
mod plan;
mod progress;
#[cfg(test)]
pub(crate) mod sample;
mod servers;
mod subject;
mod turn;

pub use campaign::{Campaign, Stage};
pub use cores::Cores;
pub use disturbance::Disturbance;
pub use measured::{MeasuredPackage, MeasuredRound, MeasuredScenario, Pilot, values, values_of};
pub use plan::SliceScheme;
pub use progress::{Progress, Schedule};
pub use subject::{BASELINE, CANDIDATE, Rounds, Selected, Subject};
pub use turn::Turn;
