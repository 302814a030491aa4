//! What a user writes: requests, what their answers must be, and the registry that the attribute fills.
//!
//! Nothing here touches a socket. The engine takes a [`WireRequest`] and asks its [`Check`].

mod caught;
mod check;
pub(crate) mod registry;
mod request;
mod wire;

pub(crate) use caught::caught;
pub use check::Check;
pub use request::{Request, RequestError};
pub use wire::{WireOptions, WireRequest};
