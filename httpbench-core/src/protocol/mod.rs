//! What the command and a bench binary say to each other: one definition for both ends.
//!
//! The command hands the bench binary one end of a socket pair and names its file descriptor in [`CONTROL_VARIABLE`]. Both
//! sides open with a [`Hello`]; then the command asks, one request at a time, and the bench binary answers. Each message is
//! one line of JSON. Standard output is not used: scenarios are user code and may print.

mod channel;
mod hello;
mod messages;

pub(crate) use channel::send;
pub use channel::{Channel, ChannelError};
pub use hello::{Hello, Mismatch, PROTOCOL_VERSION};
pub use messages::{Answer, Ask, RunFailure};

/// The environment variable that holds the file descriptor of the bench binary's end.
pub const CONTROL_VARIABLE: &str = "HTTPBENCH_CONTROL_FD";

/// Bytes that every executable holds which calls [`crate::main`], so that the command never runs a foreign bench target.
pub const MARKER: &[u8] = b"\0httpbench bench target, control protocol 1\0";
