//! A request as it goes over the wire.

use super::Check;
use crate::model::{ArmPlan, Load, Protocol, Reuse};

/// How a request is put on the wire, beyond what it says itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireOptions {
    /// The version in the request line. A request that goes over HTTP/2 is rendered as one of HTTP/1.1, which its driver
    /// translates.
    ///
    /// With HTTP/1.0 nothing is added: the connection is kept only where a request of yours says `Connection: keep-alive`
    /// and the server agrees.
    pub version: Protocol,
    /// [`Reuse::Close`] adds `Connection: close`, unless the request says it already.
    pub reuse: Reuse,
}

impl WireOptions {
    /// Those of an arm under a load.
    #[must_use]
    pub fn of(arm: &ArmPlan, load: &Load) -> Self {
        Self { version: arm.protocol, reuse: load.reuse }
    }
}

/// A rendered request: its bytes are sent as they are, as often as the plan says.
#[derive(Clone, Debug)]
pub struct WireRequest {
    /// Request line, header section and body.
    pub bytes: Vec<u8>,
    /// Whether the method is HEAD, whose answer has no body whatever its header section says (RFC 9110, section 9.3.2).
    pub is_head: bool,
    /// What the answer must be.
    pub check: Check,
}
