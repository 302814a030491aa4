//! The load engine: executes one round of one scenario and answers what it saw.
//!
//! One thread (`slices`) per engine core, each with a runtime, connections and recorders (`recorder`) of its own: nothing
//! is shared while a slice runs. `worker` is the loop of one connection, `crew` runs all of them, `driver` moves their
//! bytes, `follow` goes after redirects, `pacing` says when an exchange starts, `starts` which connection takes it (`sessions`
//! where a connection has a number of them), `gate` when no more do, `timer` wakes them. `watch` shows all this to others.
//! Judges no measurement and prints nothing. Invariant: started = good + check failures + errors by class + in flight.

mod carrier;
mod clock;
mod crew;
mod driver;
mod follow;
#[doc(hidden)]
pub mod fuzzing;
mod gate;
mod health;
#[doc(hidden)]
pub mod microbench;
mod observer;
mod pacing;
mod recorder;
mod round;
mod sessions;
mod setup;
mod slices;
mod starts;
mod timeout;
mod timer;
mod times;
mod trace;
mod watch;
mod worker;

pub use round::{run_round, run_watched};
pub use trace::trace;
pub use watch::{Progress, Watch};

use crate::model::Counts;

/// Why a plan could not be executed. What the server does wrong is never one: that is counted in the recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The plan contradicts itself.
    #[error("the plan is not executable: {0}")]
    Plan(String),
    /// The plan asks for what this build of the engine does not hold.
    #[error(
        "{what} is not built into this engine; give it the cargo feature `{feature}`: \
         `httpbench-core = {{ version = \"{}\", features = [\"{feature}\"] }}`",
        env!("CARGO_PKG_VERSION")
    )]
    Feature {
        /// What was asked for.
        what: &'static str,
        /// The feature of `httpbench-core` that brings it.
        feature: &'static str,
    },
    /// Certificates, keys or names of the plan's TLS settings cannot be used.
    #[error("the TLS settings cannot be used: {0}")]
    Tls(String),
    /// The operating system refused what the engine needs before the first exchange.
    #[error("the load engine could not be set up")]
    Setup(#[from] std::io::Error),
    /// The process may not have as many file descriptors as the connections need.
    #[error(
        "{connections} connections need {needed} file descriptors, and this process may have {hard}; raise the hard limit \
         (`ulimit -Hn`) or ask for fewer connections"
    )]
    Descriptors {
        /// Connections to all arms together.
        connections: u64,
        /// Descriptors needed.
        needed: u64,
        /// The hard limit.
        hard: u64,
    },
    /// A thread could not be bound to its core.
    #[error("an engine thread could not be bound to core {core}")]
    Core {
        /// The core's number.
        core: u32,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// An engine thread did not come to the end of a slice.
    #[error("an engine thread stopped in the middle of the round (a bug: please report it)")]
    ThreadLost,
    /// Exchanges were lost or counted twice.
    #[error("the exchanges of arm {arm} do not add up (a bug: please report it): {counts:?}")]
    Unbalanced {
        /// Index of the arm.
        arm: usize,
        /// Its counts.
        counts: Box<Counts>,
    },
}
