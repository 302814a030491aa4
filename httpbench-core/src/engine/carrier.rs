//! What carries the exchanges of a plan: the choice among the [drivers](super::driver), made once, before any thread starts.
//!
//! Reads certificates and keys; opens nothing. Invariant: what no driver can do is refused here in words, and never ignored.

#[cfg(feature = "http2")]
use std::sync::Arc;

#[cfg(feature = "http2")]
use http::uri::Scheme;

use super::EngineError;
use super::clock::Clock;
#[cfg(feature = "http2")]
use super::driver::http2_request::Template;
use super::driver::route::Route;
#[cfg(feature = "tls")]
use super::driver::tls;
use crate::model::{ArmPlan, Endpoint, Protocol, Reuse, RoundPlan};
use crate::scenario::WireRequest;

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
    Raw(Security),
    /// HTTP/1.1, several exchanges at a time on a connection, by the route to each arm.
    Pipelined(Vec<Route>),
    /// HTTP/2, by the route to each arm.
    #[cfg(feature = "http2")]
    Http2(Vec<Translated>),
}

/// The route to an arm, and the request that goes there.
#[cfg(feature = "http2")]
pub(super) struct Translated {
    pub(super) route: Route,
    pub(super) request: Arc<Template>,
}

/// Whether they are secured.
pub(super) enum Security {
    /// They are not.
    None,
    /// By TLS, with the settings of each arm.
    #[cfg(feature = "tls")]
    Tls(Vec<tls::Settings>),
}

impl Carrier {
    /// For all arms of a plan, of which there is one at least: times of different kinds are not comparable, and one loop
    /// drives them all.
    pub(super) fn of(plan: &RoundPlan, requests: &[WireRequest]) -> Result<Self, EngineError> {
        let wrong = |text: &str| Err(EngineError::Plan(text.to_owned()));
        let first = &plan.arms[0];
        let transport = transport(first);
        if plan.arms.iter().any(|arm| self::transport(arm) != transport) {
            return wrong("some arms listen on TCP, others on Unix domain sockets");
        }
        if plan.arms.iter().any(|arm| arm.protocol != first.protocol || arm.tls.is_some() != first.tls.is_some()) {
            return wrong("its arms do not speak alike: all need the same version of HTTP, and TLS all or none");
        }
        let (load, protocol) = (&plan.load, first.protocol);
        if load.depth == 0 {
            return wrong("with a depth of 0 no exchange can be outstanding");
        }
        if load.depth > 1 && load.reuse == Reuse::Close {
            return wrong("a connection that is closed after one exchange cannot have several outstanding");
        }
        if load.depth > 1 && protocol == Protocol::Http10 {
            return wrong("HTTP/1.0 has no pipelining: only one exchange can be outstanding on a connection");
        }
        if load.redirects > 0 && (load.depth > 1 || protocol == Protocol::Http2) {
            return wrong("redirects are followed over HTTP/1 only, with one exchange at a time on a connection");
        }
        let way = match (protocol, load.depth) {
            (Protocol::Http2, _) => Way::http2(&plan.arms, requests)?,
            (_, 2..) => Way::Pipelined(routes(&plan.arms)?),
            _ => Way::Raw(Security::of(&plan.arms)?),
        };
        Ok(Self { transport, way })
    }
}

/// By what sockets a server is reached.
pub(super) fn transport(arm: &ArmPlan) -> Transport {
    match arm.endpoint {
        Endpoint::Tcp(_) => Transport::Tcp,
        Endpoint::Unix(_) => Transport::Unix,
    }
}

impl Security {
    /// As all of the arms, of which there is one at least, want it alike.
    pub(super) fn of(arms: &[ArmPlan]) -> Result<Self, EngineError> {
        if arms[0].tls.is_some() { Self::tls(arms) } else { Ok(Self::None) }
    }

    #[cfg(feature = "tls")]
    fn tls(arms: &[ArmPlan]) -> Result<Self, EngineError> {
        arms.iter().filter_map(|arm| settings(arm).transpose()).collect::<Result<_, _>>().map(Self::Tls)
    }

    #[cfg(not(feature = "tls"))]
    fn tls(_arms: &[ArmPlan]) -> Result<Self, EngineError> {
        Err(NO_TLS)
    }
}

impl Way {
    #[cfg(feature = "http2")]
    fn http2(arms: &[ArmPlan], requests: &[WireRequest]) -> Result<Self, EngineError> {
        let translated = arms.iter().zip(requests).map(|(arm, request)| {
            let scheme = if arm.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
            let request =
                Template::new(&request.bytes, scheme).map_err(|error| EngineError::Plan(error.to_string()))?;
            Ok(Translated { route: route(arm)?, request: Arc::new(request) })
        });
        translated.collect::<Result<_, _>>().map(Self::Http2)
    }

    #[cfg(not(feature = "http2"))]
    fn http2(_arms: &[ArmPlan], _requests: &[WireRequest]) -> Result<Self, EngineError> {
        Err(EngineError::Feature { what: "HTTP/2", feature: "http2" })
    }
}

fn routes(arms: &[ArmPlan]) -> Result<Vec<Route>, EngineError> {
    arms.iter().map(route).collect()
}

#[cfg(feature = "tls")]
fn route(arm: &ArmPlan) -> Result<Route, EngineError> {
    Ok(Route { endpoint: arm.endpoint.clone(), clock: Clock::new(), tls: settings(arm)? })
}

#[cfg(not(feature = "tls"))]
fn route(arm: &ArmPlan) -> Result<Route, EngineError> {
    if arm.tls.is_some() {
        return Err(NO_TLS);
    }
    Ok(Route { endpoint: arm.endpoint.clone(), clock: Clock::new() })
}

#[cfg(not(feature = "tls"))]
const NO_TLS: EngineError = EngineError::Feature { what: "TLS", feature: "tls" };

#[cfg(feature = "tls")]
fn settings(arm: &ArmPlan) -> Result<Option<tls::Settings>, EngineError> {
    let settings = arm.tls.as_ref().map(|tls| tls::Settings::new(tls, arm.protocol));
    settings.transpose().map_err(|error| EngineError::Tls(error.to_string()))
}
