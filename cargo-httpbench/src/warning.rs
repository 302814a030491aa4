//! What is odd but does not stop a run. Warnings are values: whoever prints or serialises them decides how.
//!
//! Leaves colours and the word "warning" to the shell. Every text says what was found and what to do about it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::measure::ONE_AT_A_TIME_COST;

/// An arrival rate to be read, to the thousandth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartsPerSecond(u64);

impl From<f64> for StartsPerSecond {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "arrival rates are positive and small")]
    fn from(per_second: f64) -> Self {
        Self((per_second * 1e3).round() as u64)
    }
}

impl fmt::Display for StartsPerSecond {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:03}", self.0 / 1_000, self.0 % 1_000);
        out.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Something odd that was found before or while measuring.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A key of the configuration that nobody reads.
    UnknownKey {
        /// The file that holds it.
        file: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// With its tables: `server.bni`.
        key: String,
        /// The key that was probably meant.
        nearest: Option<String>,
    },
    /// A word in braces that is nearly a placeholder of ours, and so stays as it is.
    UnknownPlaceholder {
        /// The file that holds it.
        file: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// The key of the text, with its tables: `server.args`.
        key: String,
        /// What stands there, with its braces.
        placeholder: String,
        /// The placeholder that was probably meant, with its braces.
        nearest: &'static str,
    },
    /// An environment variable that looks like one of ours, and is none.
    UnknownVariable {
        /// Its name.
        name: String,
        /// The one that was probably meant.
        nearest: String,
    },
    /// A bench target that was not run because its executable is no bench binary of ours.
    ForeignBench {
        /// Its package.
        package: String,
        /// Its name.
        bench: String,
    },
    /// The load engine was built without optimisation.
    UnoptimisedBench {
        /// The bench target's name.
        bench: String,
    },
    /// The server was built without optimisation.
    UnoptimisedServer {
        /// The binary's name.
        bin: String,
        /// The profile that it was built with.
        profile: String,
    },
    /// A server did not obey SIGTERM in time.
    ServerKilled {
        /// The server.
        server: String,
        /// What it was given.
        grace: Duration,
    },
    /// Some processes of a server could not be ended.
    ProcessesLeft {
        /// The server.
        server: String,
        /// Their ids.
        pids: Vec<u32>,
    },
    /// A server's `teardown` failed. The measurement before it stands.
    TeardownFailed {
        /// What happened, with its last lines.
        text: String,
    },
    /// A scenario's loaded time was too short for the fewest slices that a round needs.
    Stretched {
        /// The scenario.
        scenario: String,
        /// What it took instead, over all rounds.
        loaded: Duration,
    },
    /// A baseline was replaced by one with fewer scenarios.
    BaselineNarrowed {
        /// The baseline.
        name: String,
        /// The scenarios that are in it no more.
        lost: Vec<String>,
    },
    /// There was nothing to compare with, and the policy says that this is no failure.
    NotCompared {
        /// Why.
        why: String,
    },
    /// Scenarios write, and every start of the server works on the same database.
    SharedDatabase {
        /// Their package.
        package: String,
        /// Scenarios that write.
        scenarios: Vec<String>,
        /// The variables that name the database. Their values are secrets.
        variables: Vec<String>,
    },
    /// The arms of a comparison cannot run at once.
    ArmsOneAtATime {
        /// Their package.
        package: String,
        /// Why the port that both insist on could not be redirected.
        why: String,
    },
    /// A git revision has no lock file of its own.
    RevisionWithoutLock {
        /// The commit.
        revision: String,
        /// Whether the working tree has one, which was taken for both.
        is_copied: bool,
    },
    /// A git revision would choose another toolchain.
    RevisionsToolchain {
        /// The commit.
        revision: String,
        /// The file that differs.
        file: PathBuf,
    },
    /// A git revision does not know some of the features that were asked for.
    RevisionWithoutFeatures {
        /// The commit.
        revision: String,
        /// Those that it was built without.
        features: Vec<String>,
    },
    /// Fewer exchanges began on schedule than an open loop asked for.
    ArrivalRateNotReached {
        /// The scenario.
        scenario: String,
        /// Starts per second that were asked for.
        asked: StartsPerSecond,
        /// Those that began while the schedule ran.
        reached: StartsPerSecond,
    },
    /// Connections that are opened anew may meet the end of the local ports.
    FewLocalPorts {
        /// For one destination.
        ports: u64,
        /// That may be open at once.
        connections: u64,
    },
    /// Nobody listens at an address that is loaded.
    NobodyListens {
        /// The address.
        address: String,
    },
}

impl Warning {
    /// The word by which machines tell warnings apart. Never changes.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnknownKey { .. } => "unknown-key",
            Self::UnknownPlaceholder { .. } => "unknown-placeholder",
            Self::UnknownVariable { .. } => "unknown-variable",
            Self::ForeignBench { .. } => "foreign-bench",
            Self::UnoptimisedBench { .. } => "unoptimised-bench",
            Self::UnoptimisedServer { .. } => "unoptimised-server",
            Self::ServerKilled { .. } => "server-killed",
            Self::ProcessesLeft { .. } => "processes-left",
            Self::TeardownFailed { .. } => "teardown-failed",
            Self::Stretched { .. } => "stretched",
            Self::BaselineNarrowed { .. } => "baseline-narrowed",
            Self::NotCompared { .. } => "not-compared",
            Self::SharedDatabase { .. } => "shared-database",
            Self::ArmsOneAtATime { .. } => "arms-one-at-a-time",
            Self::RevisionWithoutLock { .. } => "revision-without-lock",
            Self::RevisionsToolchain { .. } => "revisions-toolchain",
            Self::RevisionWithoutFeatures { .. } => "revision-without-features",
            Self::ArrivalRateNotReached { .. } => "arrival-rate-not-reached",
            Self::FewLocalPorts { .. } => "few-local-ports",
            Self::NobodyListens { .. } => "nobody-listens",
        }
    }
}

impl Warning {
    /// Whether it says that something is not judged as it was asked for, so that the report must repeat it.
    #[must_use]
    pub fn is_gap(&self) -> bool {
        const GATES: [&str; 2] = ["limit", "tolerance"];
        match self {
            Self::UnknownKey { key, nearest, .. } => {
                let table = key.split('.').next();
                table.into_iter().chain(nearest.as_deref()).any(|name| GATES.contains(&name))
            }
            Self::NotCompared { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { file, line, key, nearest } => {
                write!(out, "{}:{line}: unknown key `{key}` is not used", file.display())?;
                match nearest {
                    Some(nearest) => write!(out, "; did you mean `{nearest}`?"),
                    None => Ok(()),
                }
            }
            Self::UnknownPlaceholder { file, line, key, placeholder, nearest } => write!(
                out,
                "{}:{line}: `{placeholder}` in `{key}` is not filled in; did you mean `{nearest}`?",
                file.display()
            ),
            Self::UnknownVariable { name, nearest } => {
                write!(out, "unknown environment variable `{name}` is not used; did you mean `{nearest}`?")
            }
            Self::ForeignBench { package, bench } => write!(
                out,
                "bench target `{bench}` of package `{package}` is skipped: its `main` does not call `httpbench_core::main()`"
            ),
            Self::UnoptimisedBench { bench } => write!(
                out,
                "bench target `{bench}` is built without optimisation: the load engine will be slow and may become the \
                 limit; use a profile with `opt-level = 3`"
            ),
            Self::UnoptimisedServer { bin, profile } => write!(
                out,
                "server `{bin}` is built without optimisation (profile `{profile}`): its numbers say little about a \
                 release build"
            ),
            Self::ServerKilled { server, grace } => write!(
                out,
                "`{server}` still ran {} after SIGTERM and was killed; `server.stop-timeout` gives it longer",
                humantime::format_duration(*grace)
            ),
            Self::ProcessesLeft { server, pids } => {
                write!(out, "processes of `{server}` could not be killed: {pids:?}")
            }
            Self::TeardownFailed { text } => out.write_str(text),
            Self::Stretched { scenario, loaded } => write!(
                out,
                "`{scenario}` is too slow for its `duration`: it is loaded for {} instead, the least that a round needs",
                humantime::format_duration(Duration::from_millis(
                    u64::try_from(loaded.as_millis()).unwrap_or(u64::MAX)
                ))
            ),
            Self::BaselineNarrowed { name, lost } => write!(
                out,
                "baseline `{name}` holds {} scenarios less than before: `{}`; save without a filter to keep them",
                lost.len(),
                lost.join("`, `")
            ),
            Self::SharedDatabase { package, scenarios, variables } => write!(
                out,
                "{package}: `{}` writes, and every start of the server finds what earlier ones wrote (`{}`): rounds are not alike, and a faster \
                 arm inserts more and then looks slower; give each start its own by `server.env` with `{{dir}}`, `server.copy` or `server.setup`",
                scenarios.join("`, `"),
                variables.join("`, `")
            ),
            Self::NotCompared { why } => {
                write!(
                    out,
                    "nothing is compared: {why}; the candidate is measured alone (`--on-missing fail` makes this a failure)"
                )
            }
            Self::ArmsOneAtATime { package, why } => write!(
                out,
                "the arms of `{package}` run one at a time: both insist on the same port, and it cannot be redirected here \
                 ({why}); {ONE_AT_A_TIME_COST}; let the server read its port from `PORT`, or pass `{{port}}` in `server.args`"
            ),
            Self::RevisionWithoutLock { revision, is_copied: true } => write!(
                out,
                "`{revision}` has no `Cargo.lock`: it is built with the working tree's, so that dependencies are the same"
            ),
            Self::RevisionWithoutLock { revision, is_copied: false } => write!(
                out,
                "`{revision}` has no `Cargo.lock`, nor has the working tree: their dependencies may differ; commit one"
            ),
            Self::RevisionsToolchain { revision, file } => write!(
                out,
                "`{}` of `{revision}` is not the working tree's: both are built with the toolchain in use here",
                file.display()
            ),
            Self::RevisionWithoutFeatures { revision, features } => {
                write!(out, "`{revision}` is built without features that it does not have: `{}`", features.join("`, `"))
            }
            Self::ArrivalRateNotReached { scenario, asked, reached } => write!(
                out,
                "`{scenario}` did not reach its arrival rate: {reached} of {asked} starts per second; server, connections or load \
                 engine cannot keep up, so its response times grow with the duration; ask for more `connections` or for a \
                 lower `arrival-rate`"
            ),
            Self::FewLocalPorts { ports, connections } => write!(
                out,
                "this machine has {ports} local ports for one destination, and {connections} connections are opened again and \
                 again: they may run out; widen `net.ipv4.ip_local_port_range` (sysctl) or keep connections alive"
            ),
            Self::NobodyListens { address } => write!(out, "nobody listens at {address}: connections are refused"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_warning_has_its_text_and_its_code() {
        let key = |nearest: Option<&str>| Warning::UnknownKey {
            file: PathBuf::from("/w/httpbench.toml"),
            line: 3,
            key: "server.bni".to_owned(),
            nearest: nearest.map(str::to_owned),
        };
        let bench = "http".to_owned();
        let cases = [
            (
                key(Some("bin")),
                "unknown-key",
                "/w/httpbench.toml:3: unknown key `server.bni` is not used; did you mean `bin`?",
            ),
            (key(None), "unknown-key", "/w/httpbench.toml:3: unknown key `server.bni` is not used"),
            (
                Warning::UnknownPlaceholder {
                    file: PathBuf::from("/w/httpbench.toml"),
                    line: 2,
                    key: "server.args".to_owned(),
                    placeholder: "{prot}".to_owned(),
                    nearest: "{port}",
                },
                "unknown-placeholder",
                "/w/httpbench.toml:2: `{prot}` in `server.args` is not filled in; did you mean `{port}`?",
            ),
            (
                Warning::UnknownVariable { name: "HTTPBENCH_ROUND".to_owned(), nearest: "HTTPBENCH_ROUNDS".to_owned() },
                "unknown-variable",
                "unknown environment variable `HTTPBENCH_ROUND` is not used; did you mean `HTTPBENCH_ROUNDS`?",
            ),
            (
                Warning::ForeignBench { package: "shop".to_owned(), bench: bench.clone() },
                "foreign-bench",
                "bench target `http` of package `shop` is skipped: its `main` does not call `httpbench_core::main()`",
            ),
            (
                Warning::UnoptimisedBench { bench },
                "unoptimised-bench",
                "bench target `http` is built without optimisation: the load engine will be slow and may become the limit; \
                 use a profile with `opt-level = 3`",
            ),
            (
                Warning::UnoptimisedServer { bin: "shop".to_owned(), profile: "dev".to_owned() },
                "unoptimised-server",
                "server `shop` is built without optimisation (profile `dev`): its numbers say little about a release build",
            ),
            (
                Warning::ServerKilled { server: "shop".to_owned(), grace: Duration::from_secs(5) },
                "server-killed",
                "`shop` still ran 5s after SIGTERM and was killed; `server.stop-timeout` gives it longer",
            ),
            (
                Warning::ProcessesLeft { server: "shop".to_owned(), pids: vec![7, 8] },
                "processes-left",
                "processes of `shop` could not be killed: [7, 8]",
            ),
            (
                Warning::TeardownFailed { text: "`teardown of shop` exited with status 1".to_owned() },
                "teardown-failed",
                "`teardown of shop` exited with status 1",
            ),
            (
                Warning::Stretched { scenario: "list".to_owned(), loaded: Duration::from_micros(2_500_900) },
                "stretched",
                "`list` is too slow for its `duration`: it is loaded for 2s 500ms instead, the least that a round needs",
            ),
            (
                Warning::BaselineNarrowed { name: "main".to_owned(), lost: vec!["a".to_owned(), "b".to_owned()] },
                "baseline-narrowed",
                "baseline `main` holds 2 scenarios less than before: `a`, `b`; save without a filter to keep them",
            ),
            (
                Warning::SharedDatabase {
                    package: "shop".to_owned(),
                    scenarios: vec!["buy".to_owned()],
                    variables: vec!["DATABASE_URL".to_owned()],
                },
                "shared-database",
                "shop: `buy` writes, and every start of the server finds what earlier ones wrote (`DATABASE_URL`): rounds are not alike, \
                 and a faster arm inserts more and then looks slower; give each start its own by `server.env` with `{dir}`, `server.copy` or \
                 `server.setup`",
            ),
            (
                Warning::NotCompared { why: "there is no baseline `main`".to_owned() },
                "not-compared",
                "nothing is compared: there is no baseline `main`; the candidate is measured alone (`--on-missing fail` makes \
                 this a failure)",
            ),
            (
                Warning::ArmsOneAtATime { package: "shop".to_owned(), why: "a sandbox".to_owned() },
                "arms-one-at-a-time",
                "the arms of `shop` run one at a time: both insist on the same port, and it cannot be redirected here (a \
                 sandbox); where both ways were recorded, throughput estimated from 12 rounds had a standard deviation of \
                 4.8 % this way (one window of 0.8 s for each arm) instead of 1.0 % side by side; let the server read its \
                 port from `PORT`, or pass `{port}` in `server.args`",
            ),
            (
                Warning::RevisionWithoutLock { revision: "1a2b".to_owned(), is_copied: true },
                "revision-without-lock",
                "`1a2b` has no `Cargo.lock`: it is built with the working tree's, so that dependencies are the same",
            ),
            (
                Warning::RevisionWithoutLock { revision: "1a2b".to_owned(), is_copied: false },
                "revision-without-lock",
                "`1a2b` has no `Cargo.lock`, nor has the working tree: their dependencies may differ; commit one",
            ),
            (
                Warning::RevisionsToolchain { revision: "1a2b".to_owned(), file: "rust-toolchain.toml".into() },
                "revisions-toolchain",
                "`rust-toolchain.toml` of `1a2b` is not the working tree's: both are built with the toolchain in use here",
            ),
            (
                Warning::RevisionWithoutFeatures {
                    revision: "1a2b".to_owned(),
                    features: vec!["x".to_owned(), "y".to_owned()],
                },
                "revision-without-features",
                "`1a2b` is built without features that it does not have: `x`, `y`",
            ),
            (
                Warning::ArrivalRateNotReached {
                    scenario: "list".to_owned(),
                    asked: 100.0.into(),
                    reached: 19.75.into(),
                },
                "arrival-rate-not-reached",
                "`list` did not reach its arrival rate: 19.75 of 100 starts per second; server, connections or load engine \
                 cannot keep up, so its response times grow with the duration; ask for more `connections` or for a lower \
                 `arrival-rate`",
            ),
            (
                Warning::FewLocalPorts { ports: 100, connections: 64 },
                "few-local-ports",
                "this machine has 100 local ports for one destination, and 64 connections are opened again and again: they may \
                 run out; widen `net.ipv4.ip_local_port_range` (sysctl) or keep connections alive",
            ),
            (
                Warning::NobodyListens { address: "127.0.0.1:1".to_owned() },
                "nobody-listens",
                "nobody listens at 127.0.0.1:1: connections are refused",
            ),
        ];
        for (warning, code, text) in cases {
            assert_eq!(warning.code(), code);
            assert_eq!(warning.to_string(), text);
        }
    }

    #[test]
    fn gaps_are_what_a_gate_was_to_judge_and_does_not() {
        let unknown = |key: &str, nearest: Option<&str>| Warning::UnknownKey {
            file: PathBuf::from("httpbench.toml"),
            line: 1,
            key: key.to_owned(),
            nearest: nearest.map(str::to_owned),
        };
        assert!(unknown("limit.p9", Some("p99")).is_gap());
        assert!(unknown("tolerance.throughputs", Some("throughput")).is_gap());
        assert!(unknown("limits", Some("limit")).is_gap(), "a whole table of limits");
        assert!(Warning::NotCompared { why: String::new() }.is_gap());
        assert!(!unknown("server.bni", Some("bin")).is_gap());
    }
}
