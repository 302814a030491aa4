//! From the flags of `load` to what they mean, and the contradictions that only several values together show.

use clap::CommandFactory;
use clap::error::ErrorKind;
use httpbench_core::model::{Late, Load, Nanos, Protocol, Reuse, Schedule};

use super::flags::Flags;
use super::load_flags::{ArrivalsFlag, LoadUrlFlags};
use crate::load::{LoadOptions, Period, RequestOptions, Route, TargetUrl, TlsOptions, Verification};

/// Connections where nobody says how many: as in a scenario.
const CONNECTIONS: u32 = 64;
/// For how long, where neither a time nor a count is given.
const DURATION: Nanos = Nanos::from_secs(10);
/// For an answer: as in a scenario.
const REQUEST_TIMEOUT: Nanos = Nanos::from_secs(10);
/// For a connection: beyond the second retransmission of a SYN (3 s), so that these are seen as what they are.
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(5);

/// # Errors
///
/// When the values contradict each other.
pub(super) fn options(flags: LoadUrlFlags) -> Result<LoadOptions, clap::Error> {
    let targets = flags.urls.iter().map(|text| target(text)).collect::<Result<Vec<_>, _>>()?;
    refuse_contradictions(&flags, &targets)
        .map_err(|text| Flags::command().error(ErrorKind::ArgumentConflict, text))?;
    let period = Period {
        requests: flags.requests,
        duration: match (flags.duration, flags.requests, flags.ramp) {
            (Some(duration), _, _) => Some(duration.into()),
            // A count alone would never be reached once nothing starts any more.
            (None, Some(_), Some(ramp)) if ramp.to == 0.0 => Some(ramp.over.into()),
            (None, Some(_), _) => None,
            (None, None, Some(ramp)) => Some(ramp.over.into()),
            (None, None, None) => Some(DURATION),
        },
        warm_up: flags.warm_up.map_or(Nanos::ZERO, Nanos::from),
    };
    let schedule = schedule(&flags);
    // A connection that no request is left for would only be opened and closed.
    let most = flags.requests.map_or(u32::MAX, |requests| u32::try_from(requests).unwrap_or(u32::MAX));
    let connections = flags.connections.unwrap_or(CONNECTIONS).min(most);
    let load = Load {
        connections,
        threads: flags.threads.unwrap_or(1).min(connections),
        schedule,
        late: if flags.drop_late { Late::Drop } else { Late::Send },
        reuse: if flags.no_keepalive { Reuse::Close } else { Reuse::Keep },
        depth: flags.streams.or(flags.pipeline).unwrap_or(1),
        redirects: flags.max_redirects.unwrap_or(0),
        cores: Vec::new(),
        request_timeout: flags.timeout.map_or(REQUEST_TIMEOUT, Nanos::from),
        connect_timeout: flags.connect_timeout.map_or(CONNECT_TIMEOUT, Nanos::from),
    };
    let protocol = match (flags.http1_0, flags.http2) {
        (true, _) => Protocol::Http10,
        (false, true) => Protocol::Http2,
        (false, false) => Protocol::Http11,
    };
    Ok(LoadOptions {
        request: RequestOptions {
            method: flags.method,
            headers: flags.headers,
            body: flags.body,
            check_status: flags.check_status,
        },
        route: match flags.unix_socket {
            Some(path) => Route::Unix(path),
            None => Route::Named(flags.connect_to),
        },
        tls: TlsOptions {
            verification: match (flags.insecure, flags.cacert) {
                (true, _) => Verification::Nothing,
                (false, Some(path)) => Verification::Roots(path),
                (false, None) => Verification::System,
            },
            identity: flags.cert.zip(flags.key),
        },
        targets,
        protocol,
        load,
        period,
    })
}

fn schedule(flags: &LoadUrlFlags) -> Schedule {
    match (flags.arrival_rate, flags.ramp, flags.connection_rate) {
        (Some(per_second), _, _) => match flags.arrivals {
            Some(ArrivalsFlag::Poisson) => {
                Schedule::Poisson { per_second, seed: flags.seed.unwrap_or_else(|| fastrand::u64(..)) }
            }
            Some(ArrivalsFlag::Constant) | None => Schedule::Constant { per_second },
        },
        (None, Some(ramp), _) => Schedule::Ramp { from: ramp.from, to: ramp.to, over: ramp.over.into() },
        (None, None, Some(per_second)) => Schedule::Sessions { per_second, calls: flags.calls.unwrap_or(1) },
        (None, None, None) => Schedule::Closed,
    }
}

/// Clap would repeat the whole URL in its message, and so would every log: credentials must not stand there.
fn target(text: &str) -> Result<TargetUrl, clap::Error> {
    let refused = |why: String| {
        let shown = match text.rsplit_once('@') {
            Some((_, host)) => format!("…@{host}"),
            None => text.to_owned(),
        };
        let says = format!("invalid value '{shown}' for '<URL>...': {why}");
        Flags::command().error(ErrorKind::ValueValidation, says)
    };
    text.parse().map_err(refused)
}

fn refuse_contradictions(flags: &LoadUrlFlags, targets: &[TargetUrl]) -> Result<(), String> {
    if flags.seed.is_some() && flags.arrivals == Some(ArrivalsFlag::Constant) {
        return Err(
            "`--seed` decides nothing in `--arrivals constant`: leave it out, or write `--arrivals poisson`".into()
        );
    }
    if let (Some(threads), Some(connections)) = (flags.threads, flags.connections)
        && threads > connections
    {
        return Err(format!(
            "`--threads {threads}` are more than `--connections {connections}`: a thread without a connection does nothing"
        ));
    }
    if targets.iter().any(TargetUrl::is_secured) {
        return Ok(());
    }
    let given =
        [("--insecure", flags.insecure), ("--cacert", flags.cacert.is_some()), ("--cert", flags.cert.is_some())];
    match given.into_iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(format!("`{name}` is about TLS, and no URL begins with `https://`")),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
