//! From a process that has just started to an address that answers.
//!
//! What is reported is found, never assumed: the port is one that the server's own process tree listens on, connections to it
//! reach the server and nobody else, and it has answered an HTTP request there.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::address::{claim, targets};
use super::probe::{Answer, ask};
use super::sockets::{Listener, held_below, holder, listeners};
use super::{PortPolicy, failure};
use crate::config::Ready;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::interrupt::{Interrupt, Stopwatch};
use crate::process::Child;

/// How long the asked port may appear after another one has answered: servers open their metrics port first, say.
const SETTLE: Duration = Duration::from_millis(250);

/// How long one probe waits for its answer, before a new connection is tried.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same where one of several ports has to be found.
const SHORT_PATIENCE: Duration = Duration::from_millis(500);

/// The pause between two looks is a twentieth of the time so far, within these bounds: start-up time is reported.
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// How long after a stranger's socket was seen it is looked for again: our own workers are strangers while they fork.
const SECOND_LOOK: Duration = Duration::from_millis(50);

/// What waiting needs to know.
pub(super) struct Wait<'a> {
    pub(super) child: &'a Child,
    pub(super) stopwatch: Stopwatch<'a>,
    pub(super) asked_port: u16,
    pub(super) ports: PortPolicy,
    pub(super) ready: &'a Ready,
    pub(super) interrupt: &'a Interrupt,
}

/// A server that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Where to connect.
    pub(super) address: SocketAddr,
    /// From the start of its process to its first good answer.
    pub(super) startup: Duration,
}

/// What was seen of a server that is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    NoListener,
    Port { target: SocketAddr, path: String, answer: Answer, wanted: Option<u16> },
    NoPortAnswers(Vec<u16>),
}

impl fmt::Display for Seen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoListener => out.write_str("no process of the server has a listening TCP socket"),
            Self::NoPortAnswers(ports) => write!(out, "it listens on the ports {ports:?}, and none of them is ready"),
            Self::Port { target, path, answer, wanted } => match answer {
                Answer::Status { code, .. } => {
                    write!(out, "GET {path} on {target} answers {code}")?;
                    wanted.map_or(Ok(()), |wanted| write!(out, ", not {wanted}"))
                }
                Answer::NoConnection(why) => write!(out, "it listens for {target}, but: {why}"),
                Answer::Silence => write!(out, "{target} accepts connections but does not answer"),
                Answer::Closed => write!(out, "{target} closes connections without an answer"),
                Answer::NotHttp => write!(out, "{target} answers, but not in HTTP/1 (is it TLS, or HTTP/2 only?)"),
                Answer::ProcessNews => out.write_str("its process changed state"),
            },
        }
    }
}

/// The server's listening sockets and everybody's.
struct Survey {
    all: Vec<Listener>,
    own: HashSet<u64>,
}

impl Survey {
    /// The server's addresses by port.
    fn ports(&self) -> BTreeMap<u16, Vec<SocketAddr>> {
        let mut ports: BTreeMap<u16, Vec<SocketAddr>> = BTreeMap::new();
        for listener in self.all.iter().filter(|listener| self.own.contains(&listener.inode)) {
            ports.entry(listener.address.port()).or_default().push(listener.address);
        }
        ports
    }

    /// A listener of somebody else that gets connections to `target`, some or all.
    fn stranger(&self, target: SocketAddr) -> Option<Listener> {
        let claims = self.all.iter().filter_map(|listener| Some((claim(listener.address, target)?, listener)));
        let (own, others): (Vec<_>, Vec<_>) = claims.partition(|(_, listener)| self.own.contains(&listener.inode));
        let ours = own.iter().map(|(claim, _)| *claim).max()?;
        others.into_iter().find(|(theirs, _)| *theirs >= ours).map(|(_, listener)| *listener)
    }
}

impl Wait<'_> {
    /// Waits until the server answers as `ready` says.
    ///
    /// # Errors
    ///
    /// When it ends before, is not ready in time, cannot be told from others, or a signal comes.
    pub(super) fn until_ready(&self) -> Result<Found> {
        let mut other_answered: Option<Instant> = None;
        let mut last_sockets = Vec::new();
        let mut survey = Survey { all: Vec::new(), own: HashSet::new() };
        let mut walked: Option<Instant> = None;
        loop {
            if let Some(ended) = self.child.try_wait()? {
                return Err(failure::died_before_ready(self.child, ended));
            }
            let all =
                listeners().map_err(|error| Error::unexpected("cannot read the table of listening sockets", error))?;
            let sockets: Vec<_> = all.iter().map(|listener| listener.inode).collect();
            // Walking through the processes is the dear part: only when a socket came or went, and now and then.
            if sockets != last_sockets || walked.is_none_or(|walked| walked.elapsed() > 4 * LONGEST_PAUSE) {
                survey = Survey { all, own: held_below(self.child.supervisor_pid()) };
                walked = Some(Instant::now());
                last_sockets = sockets;
            }
            let seen = match self.look(&survey, &mut other_answered)? {
                Look::Ready(found) => return Ok(found),
                Look::Again => {
                    last_sockets.clear();
                    Seen::NoListener
                }
                Look::NotYet(seen) => seen,
            };
            let elapsed = self.stopwatch.elapsed();
            if elapsed >= self.ready.timeout {
                return Err(self.too_late(&seen));
            }
            let pause = (elapsed / 20).clamp(SHORTEST_PAUSE, LONGEST_PAUSE).min(self.ready.timeout - elapsed);
            self.interrupt.wait_for(&[self.child.events()], Some(pause))?;
        }
    }

    fn look(&self, survey: &Survey, other_answered: &mut Option<Instant>) -> Result<Look> {
        let ports = survey.ports();
        if let Some(bound) = self.port_of_the_asked()?.and_then(|port| ports.get(&port)) {
            return self.look_at(survey, bound, PATIENCE);
        }
        if ports.is_empty() {
            return Ok(Look::NotYet(Seen::NoListener));
        }
        // It does not listen where it was asked to, or not yet.
        let patience = if ports.len() == 1 { PATIENCE } else { SHORT_PATIENCE };
        let mut ready = Vec::new();
        let mut last = Seen::NoListener;
        for bound in ports.values() {
            match self.look_at(survey, bound, patience)? {
                Look::Ready(found) => ready.push(found),
                Look::Again => return Ok(Look::Again),
                Look::NotYet(seen) => last = seen,
            }
        }
        let Some(first) = ready.first() else {
            let several = Seen::NoPortAnswers(ports.keys().copied().collect());
            return Ok(Look::NotYet(if ports.len() == 1 { last } else { several }));
        };
        let answered_first = *other_answered.get_or_insert_with(Instant::now);
        if answered_first.elapsed() < SETTLE {
            return Ok(Look::Again);
        }
        if ready.len() > 1 {
            return Err(self.ambiguous(&ready));
        }
        // It was ready when it answered first; that we looked on for the asked port is no time of its own.
        let startup = first.startup.min(answered_first.saturating_duration_since(self.stopwatch.started()));
        Ok(Look::Ready(Found { startup, ..first.clone() }))
    }

    /// Where the server listens if it does so where it was asked to.
    ///
    /// A redirected server may be there by accident: its first fixed port becomes that one, be it for metrics. It obeys only
    /// if it asked for that port itself.
    fn port_of_the_asked(&self) -> Result<Option<u16>> {
        match self.ports {
            PortPolicy::Ask => Ok(Some(self.asked_port)),
            PortPolicy::Redirect => {
                let redirected = self.child.redirected()?;
                Ok(redirected.iter().find(|it| it.from == self.asked_port).map(|it| it.to))
            }
        }
    }

    /// Probes one port, at the addresses by which it may be reached.
    fn look_at(&self, survey: &Survey, bound: &[SocketAddr], patience: Duration) -> Result<Look> {
        let mut seen = Seen::NoListener;
        for target in targets(bound) {
            if survey.stranger(target).is_some() {
                self.refuse_stranger(target)?;
                return Ok(Look::Again);
            }
            let patience =
                patience.min(self.ready.timeout.saturating_sub(self.stopwatch.elapsed())).max(SHORTEST_PAUSE);
            let answer = ask(target, &self.ready.path, patience, self.child, self.interrupt)?;
            match answer {
                Answer::Status { code, at } if self.ready.status.is_none_or(|wanted| wanted == code) => {
                    return Ok(Look::Ready(Found { address: target, startup: at - self.stopwatch.started() }));
                }
                Answer::ProcessNews => return Ok(Look::Again),
                answer => {
                    let refused = matches!(answer, Answer::NoConnection(_));
                    let (path, wanted) = (self.ready.path.clone(), self.ready.status);
                    seen = Seen::Port { target, path, answer, wanted };
                    if !refused {
                        break;
                    }
                }
            }
        }
        Ok(Look::NotYet(seen))
    }

    /// Looks again, and fails if a stranger still gets our connections.
    fn refuse_stranger(&self, target: SocketAddr) -> Result<()> {
        self.interrupt.sleep(SECOND_LOOK)?;
        let all =
            listeners().map_err(|error| Error::unexpected("cannot read the table of listening sockets", error))?;
        let survey = Survey { all, own: held_below(self.child.supervisor_pid()) };
        let Some(stranger) = survey.stranger(target) else { return Ok(()) };
        let holder = holder(&stranger);
        let error = Error::new(
            ExitCode::ServerFailed,
            format!(
                "requests to `{}` on {target} would reach somebody else: {holder} listens there, too",
                self.child.name()
            ),
        )
        .details("listening on that port", [format!("{} is held by {holder}", stranger.address)])
        .help(format!("stop {holder}, or let the server listen on the port in the environment variable PORT"));
        Err(self.child.explain(error))
    }

    fn ambiguous(&self, ready: &[Found]) -> Error {
        let ports: Vec<_> = ready.iter().map(|found| found.address.to_string()).collect();
        let error = Error::new(
            ExitCode::ServerFailed,
            format!(
                "`{}` answers HTTP on {} ports, and none of them is the one that it was given ({})",
                self.child.name(),
                ports.len(),
                self.asked_port
            ),
        )
        .details("answering", ports)
        .help(
            "let the server that is to be measured listen on the port in the environment variable PORT, or on \
             `{port}` in `server.args`",
        );
        self.child.explain(error)
    }

    /// Whoever listens on the asked port without being below the supervisor: a container, a service, another user's process.
    fn outside_the_tree(&self, seen: &Seen) -> Vec<(SocketAddr, String)> {
        if *seen != Seen::NoListener {
            return Vec::new();
        }
        let all = listeners().unwrap_or_default();
        let own = held_below(self.child.supervisor_pid());
        let there = all.iter().filter(|it| it.address.port() == self.asked_port && !own.contains(&it.inode));
        there.map(|listener| (listener.address, holder(listener))).collect()
    }

    fn too_late(&self, seen: &Seen) -> Error {
        let timeout = humantime::format_duration(self.ready.timeout);
        let strangers = self.outside_the_tree(seen);
        let told = strangers
            .iter()
            .map(|(address, holder)| format!("{address} is listened on by {holder}, which the server did not start"));
        let error =
            Error::new(ExitCode::ServerFailed, format!("`{}` was not ready after {timeout}", self.child.name()))
                .details("last seen", std::iter::once(seen.to_string()).chain(told));
        if let Some((_, holder)) = strangers.first() {
            return self.child.explain(error.help(format!(
                "only what the server starts is measured: let it listen on the port in the environment variable PORT itself, and \
                 stop {holder}"
            )));
        }
        let error = error.help(match seen {
                Seen::NoListener => {
                    "let the server listen on the port in the environment variable PORT (or on `{port}` in `server.args`); if it only \
                     needs longer, raise `server.ready.timeout`"
                }
                Seen::Port { answer: Answer::Status { .. }, .. } => {
                    "set `server.ready` to a path and a status that the server answers once it is ready, or raise `server.ready.timeout`"
                }
                _ => "if the server only needs longer, raise `server.ready.timeout`; `server.ready.path` is what is asked for",
            });
        self.child.explain(error)
    }
}

/// What one look at a server found.
enum Look {
    Ready(Found),
    NotYet(Seen),
    /// Something is changing: look again soon.
    Again,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(all: &[(&str, u64)], own: &[u64]) -> Survey {
        let listener = |&(address, inode): &(&str, u64)| Listener {
            address: address.parse().expect("an address"),
            inode,
            user: 0,
        };
        Survey { all: all.iter().map(listener).collect(), own: own.iter().copied().collect() }
    }

    fn stranger_at(all: &[(&str, u64)], own: &[u64], target: &str) -> Option<u64> {
        survey(all, own).stranger(target.parse().expect("an address")).map(|listener| listener.inode)
    }

    #[test]
    fn stranger_is_whoever_gets_our_connections() {
        let target = "127.0.0.1:80";
        assert_eq!(stranger_at(&[("127.0.0.1:80", 1)], &[1], target), None);
        assert_eq!(stranger_at(&[("127.0.0.1:80", 1), ("127.0.0.1:80", 2)], &[1], target), Some(2), "shared port");
        assert_eq!(stranger_at(&[("0.0.0.0:80", 1), ("127.0.0.1:80", 2)], &[1], target), Some(2), "more specific");
        assert_eq!(stranger_at(&[("127.0.0.1:80", 1), ("0.0.0.0:80", 2)], &[1], target), None, "less specific");
        assert_eq!(stranger_at(&[("[::]:80", 1), ("127.0.0.1:80", 2)], &[1], target), Some(2), "other family");
        assert_eq!(stranger_at(&[("127.0.0.1:80", 1), ("[::]:80", 2)], &[1], target), None);
        assert_eq!(stranger_at(&[("127.0.0.1:80", 1), ("127.0.0.1:80", 2)], &[1, 2], target), None, "both are ours");
    }

    #[test]
    fn what_was_seen_is_told_in_words() {
        let answer = Answer::Status { code: 503, at: Instant::now() };
        let target = "127.0.0.1:80".parse().expect("an address");
        let seen = Seen::Port { target, path: "/health".into(), answer, wanted: Some(200) };
        assert_eq!(seen.to_string(), "GET /health on 127.0.0.1:80 answers 503, not 200");
    }
}
