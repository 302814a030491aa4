//! The greeting: who speaks which version of the protocol.

use serde::{Deserialize, Serialize};

/// The version of the protocol that this crate speaks. Raised with every change that an older reader would misread.
pub const PROTOCOL_VERSION: u32 = 1;

/// The first message of either side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL_VERSION`] of the sender.
    pub protocol: u32,
    /// The sender's package.
    pub package: String,
    /// That package's version.
    pub version: String,
    /// Whether the sender was built without optimisation.
    pub debug_build: bool,
}

/// The two sides speak different versions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} {} speaks control protocol {}, and {} {} speaks {}",
    ours.package, ours.version, ours.protocol, theirs.package, theirs.version, theirs.protocol
)]
pub struct Mismatch {
    /// What we said.
    pub ours: Hello,
    /// What the other side said.
    pub theirs: Hello,
}

impl Hello {
    /// Our own greeting, for the package that is being compiled into `package` at `version`.
    #[must_use]
    pub fn new(package: &str, version: &str) -> Self {
        Self {
            protocol: PROTOCOL_VERSION,
            package: package.to_owned(),
            version: version.to_owned(),
            debug_build: cfg!(debug_assertions),
        }
    }

    /// The greeting of a bench binary: in this crate's own name, which is linked into it.
    pub(crate) fn ours() -> Self {
        Self::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    /// Compares our greeting with the other side's.
    ///
    /// # Errors
    ///
    /// When the protocol versions differ.
    pub fn meet(&self, theirs: &Self) -> Result<(), Mismatch> {
        if self.protocol == theirs.protocol {
            Ok(())
        } else {
            Err(Mismatch { ours: self.clone(), theirs: theirs.clone() })
        }
    }
}
