//! What a user writes: requests, what their answers must be, and the registry that the attribute fills.
//!
//! Nothing here touches a socket. The engine takes a [`WireRequest`] and asks its [`Check`].

mod check;
mod wire;

pub use check::Check;
pub use wire::WireRequest;
