//! A request as it goes over the wire.

use super::Check;

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
