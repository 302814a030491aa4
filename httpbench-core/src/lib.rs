//! Scenarios for `cargo httpbench`, and the load engine that drives them.

pub mod engine;
pub mod model;
pub mod protocol;
pub mod scenario;

pub use scenario::Check;
