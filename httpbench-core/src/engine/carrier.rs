//! What carries the exchanges of a plan: the choice among the [drivers](super::driver), made once, before any thread starts.
//!
//! Reads certificates and keys; opens nothing. Invariant: what no driver can do is refused here in words, and never ignored.

use super::EngineError;
#[cfg(feature = "tls")]
use super::driver::tls;
use crate::model::{ArmPlan, Endpoint, RoundPlan};

/// See the [module](self). Static from here on.
pub(super) struct Carrier {
    pub(super) transport: Transport,
    pub(super) way: Way,
}

/// By what sockets the servers are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Unix,
}

/// How exchanges go over them.
pub(super) enum Way {
    /// HTTP/1, one exchange at a time on a connection.
    Raw,
    /// The same over TLS, with the settings of each arm.
    #[cfg(feature = "tls")]
    Secured(Vec<tls::Settings>),
}

impl Carrier {
    /// For all arms of a plan, of which there is one at least: times of different kinds are not comparable, and one loop
    /// drives them all.
    pub(super) fn of(plan: &RoundPlan) -> Result<Self, EngineError> {
        let wrong = |text: &str| Err(EngineError::Plan(text.to_owned()));
        let transport = transport(&plan.arms[0]);
        if plan.arms.iter().any(|arm| self::transport(arm) != transport) {
            return wrong("some arms listen on TCP, others on Unix domain sockets");
        }
        let (protocol, secured) = (plan.arms[0].protocol, plan.arms[0].tls.is_some());
        if plan.arms.iter().any(|arm| arm.protocol != protocol || arm.tls.is_some() != secured) {
            return wrong("its arms do not speak alike: all need the same version of HTTP, and TLS all or none");
        }
        let way = if secured { Way::secured(&plan.arms)? } else { Way::Raw };
        Ok(Self { transport, way })
    }

    /// For one exchange that is kept byte for byte.
    pub(super) fn of_one(arm: &ArmPlan) -> Result<Self, EngineError> {
        let way = if arm.tls.is_some() { Way::secured(std::slice::from_ref(arm))? } else { Way::Raw };
        Ok(Self { transport: transport(arm), way })
    }
}

fn transport(arm: &ArmPlan) -> Transport {
    match arm.endpoint {
        Endpoint::Tcp(_) => Transport::Tcp,
        Endpoint::Unix(_) => Transport::Unix,
    }
}

impl Way {
    #[cfg(feature = "tls")]
    fn secured(arms: &[ArmPlan]) -> Result<Self, EngineError> {
        let settings = arms.iter().filter_map(|arm| Some(tls::Settings::new(arm.tls.as_ref()?, arm.protocol)));
        let settings: Result<Vec<_>, _> = settings.collect();
        settings.map(Self::Secured).map_err(|error| EngineError::Tls(error.to_string()))
    }

    #[cfg(not(feature = "tls"))]
    fn secured(_arms: &[ArmPlan]) -> Result<Self, EngineError> {
        Err(EngineError::Feature { what: "TLS", feature: "tls" })
    }
}
