//! Everything that the command starts while it runs: under a supervisor, so that nothing outlives the run.
//!
//! A [`Supervisor`] is our own executable, run once more. It is the subreaper of what it launches; when the command ends,
//! however it ends, the supervisor kills every descendant. A [`Child`] is one program that it launched. What a program is
//! for (cargo, a server, a bench binary) is its caller's affair.
//!
//! Blocking code. Waits end early, with an error, once a signal has come (see [`crate::interrupt`]).

mod capture;
mod child;
mod ended;
mod launch;
mod log;
mod orphans;
pub(crate) mod platform;
mod probe;
#[cfg_attr(not(target_os = "linux"), path = "redirect/elsewhere.rs")]
mod redirect;
pub(crate) mod supervision;
pub mod supervisor;
pub(crate) mod tree;
pub(crate) mod wait;
mod wire;

pub use capture::{Captured, run_to_end};
pub use child::Child;
pub use ended::{Ended, Stopped};
pub use launch::{Bind, InheritedDescriptor, Input, Launch, Output, Redirected};
pub use log::LogTail;
pub use orphans::adopt_orphans;
pub use probe::{Available, redirect_available};
pub(crate) use supervision::own_executable;
pub use supervision::{Supervisor, use_executable};
pub use wait::Woken;
