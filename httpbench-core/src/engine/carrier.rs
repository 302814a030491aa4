//! What carries the exchanges of a plan: the choice among the [drivers](super::driver), made once, before any thread starts.
//!
//! Reads certificates and keys; opens nothing. Invariant: what no driver can do is refused here in words, and never ignored.

use super::EngineError;
#[cfg(feature = "tls")]
use super::driver::tls;
use crate::model::RoundPlan;

/// A driver with what it needs beyond a plan's arms.
pub(super) enum Carrier {
    /// HTTP/1, one exchange at a time on a connection.
    Raw,
    /// The same over TLS, with the settings of each arm.
    #[cfg(feature = "tls")]
    Secured(Vec<tls::Settings>),
}

impl Carrier {
    /// The one for a plan that has an arm at least.
    pub(super) fn of(plan: &RoundPlan) -> Result<Self, EngineError> {
        let wrong = |text: &str| Err(EngineError::Plan(text.to_owned()));
        let first = &plan.arms[0];
        let (protocol, secured) = (first.protocol, first.tls.is_some());
        if plan.arms.iter().any(|arm| arm.protocol != protocol || arm.tls.is_some() != secured) {
            return wrong("its arms are not reached in the same way: all by one protocol, all with TLS or all without");
        }
        if secured { Self::secured(plan) } else { Ok(Self::Raw) }
    }

    #[cfg(feature = "tls")]
    fn secured(plan: &RoundPlan) -> Result<Self, EngineError> {
        let settings = plan.arms.iter().filter_map(|arm| Some((arm.tls.as_ref()?, arm.protocol)));
        let settings: Result<Vec<_>, _> = settings.map(|(tls, protocol)| tls::Settings::new(tls, protocol)).collect();
        settings.map(Self::Secured).map_err(|error| EngineError::Tls(error.to_string()))
    }

    #[cfg(not(feature = "tls"))]
    fn secured(_plan: &RoundPlan) -> Result<Self, EngineError> {
        Err(EngineError::Feature { what: "TLS", feature: "tls" })
    }
}
