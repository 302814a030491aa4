//! One exchange on a connection of its own, with every byte of it kept: to look at, not to measure.

use std::future::poll_fn;
use std::thread;

use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::time::timeout;

use super::EngineError;
use super::carrier::{Security, Transport, transport};
use super::clock::Clock;
use super::driver::raw::{ContinueDriver, RawDriver, Stream, Tap};
#[cfg(feature = "tls")]
use super::driver::tls::{self, TlsStream};
use super::driver::{Connection, Driver, Failure};
use super::worker::judge_answer;
use crate::model::{Protocol, Reuse, Trace, TracePlan, TracedAnswer};
use crate::scenario::WireRequest;

/// Performs one exchange and keeps every byte of it, up to 1 MiB of the answer.
///
/// # Errors
///
/// When the operating system refuses what the engine needs. A broken exchange is told in [`Trace::outcome`].
pub fn trace(plan: &TracePlan, request: &WireRequest) -> Result<Trace, EngineError> {
    if plan.arm.protocol == Protocol::Http2 {
        let text = "an exchange over HTTP/2 cannot be shown byte by byte, since its heads are compressed; trace it over HTTP/1.1";
        return Err(EngineError::Plan(text.to_owned()));
    }
    let security = Security::of(std::slice::from_ref(&plan.arm))?;
    // A thread of its own, so that the caller may itself be a task of a runtime.
    thread::scope(|scope| {
        let body = move || -> Result<Trace, EngineError> {
            let runtime =
                Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())?;
            Ok(runtime.block_on(choose(plan, request, security)))
        };
        match thread::Builder::new().name("httpbench-trace".to_owned()).spawn_scoped(scope, body)?.join() {
            Ok(traced) => traced,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

async fn choose(plan: &TracePlan, request: &WireRequest, security: Security) -> Trace {
    let endpoint = plan.arm.endpoint.clone();
    match (security, transport(&plan.arm)) {
        (Security::None, Transport::Tcp) => exchange::<TcpStream>(plan, request, endpoint).await,
        (Security::None, Transport::Unix) => exchange::<UnixStream>(plan, request, endpoint).await,
        #[cfg(feature = "tls")]
        (Security::Tls(mut settings), transport) => {
            let target = tls::Target { transport: endpoint, settings: settings.remove(0), clock: Clock::new() };
            match transport {
                Transport::Tcp => exchange::<TlsStream<TcpStream>>(plan, request, target).await,
                Transport::Unix => exchange::<TlsStream<UnixStream>>(plan, request, target).await,
            }
        }
    }
}

async fn exchange<S: Stream>(plan: &TracePlan, request: &WireRequest, target: S::Target) -> Trace {
    let clock = Clock::new();
    let limit = plan.timeout.as_duration();
    let broken = |failure: Failure| Trace {
        sent: Vec::new(),
        received: Vec::new(),
        omitted_bytes: 0,
        outcome: Err(failure.to_string()),
    };
    let raw = RawDriver::<Tap<S>>::new(target, request, Reuse::Keep, clock);
    let driver = ContinueDriver::new(raw, plan.timeout);
    let mut connection = match timeout(limit, driver.connect()).await {
        Ok(Ok(opened)) => opened.connection,
        Ok(Err(error)) => return broken(Failure::to_connect(error)),
        Err(_) => return broken(Failure::ConnectTimeout(limit)),
    };
    let sent = clock.now();
    connection.begin(request);
    let exchange = poll_fn(|cx| connection.poll_exchange(cx, request));
    let outcome = match timeout(limit, exchange).await {
        Ok(Ok(answer)) => {
            let service = clock.now() - sent;
            judge_answer(request, answer.status, connection.body())
                .map(|()| TracedAnswer { status: answer.status, service })
        }
        Ok(Err(failure)) => Err(failure.to_string()),
        Err(_) => Err(Failure::RequestTimeout(limit).to_string()),
    };
    let tap = connection.into_stream();
    Trace { sent: tap.sent, received: tap.received, omitted_bytes: tap.omitted, outcome }
}
