//! Rounds: fresh server processes, every scenario warmed up and then driven through its slices.
//!
//! The round is the replicate. Arms run side by side; where they insist on the same port and it cannot be redirected, one at a time.
//! Scenarios that only read share a round's server, in an order that is shuffled anew; those
//! that write run last, each with a server and a state folder of its own. The slices themselves run in the engine, which is
//! handed a whole round of a scenario at once; nothing here runs in between.

mod campaign;
mod cores;
mod disturbance;
mod measured;
mod one_at_a_time;
mod plan;
mod progress;
mod reference;
#[cfg(test)]
pub(crate) mod sample;
mod servers;
mod subject;
mod turn;

pub use campaign::{Campaign, Stage};
pub use cores::{Cores, cpu_quota, usable_cores};
pub use disturbance::Disturbance;
pub use measured::{MeasuredPackage, MeasuredRound, MeasuredScenario, Pilot, values, values_of};
pub use one_at_a_time::ONE_AT_A_TIME_COST;
pub use plan::SliceScheme;
pub use progress::{Forecast, Progress};
pub use subject::{Arms, BASELINE, CANDIDATE, Rounds, Selected, Subject};
pub use turn::Turn;
