//! After the load, in words: what its numbers rest on, and what kept them from being better.
//!
//! Each finding is a value with its own text; whether it is printed or serialised is decided elsewhere.

use std::fmt;

use httpbench_core::model::{Histogram, Nanos, Protocol, Reuse, Trust};

use super::interface;
use super::measured::LoadMeasured;
use crate::report::quantity;
use crate::warning::StartsPerSecond;

/// The engine counts as busy throughout from this share of its threads' time, as in a scenario.
const BUSY: f64 = 0.97;
/// An arrival rate counts as reached from this share of it, as in a scenario.
const REACHED: f64 = 0.99;
/// A link counts as full from this share of its speed: what remains goes to the headers of TCP, IP and Ethernet.
const FULL: f64 = 0.85;
/// From this many bytes per second on, copying on one machine is a large part of what is measured.
const LOOPBACK_BYTES: f64 = 1e9;
/// Starts count as late when one in ten begins later than this.
const LATE: Nanos = Nanos::from_millis(1);
/// Retransmissions of a SYN come after 1 s, 3 s and 7 s (RFC 6298, section 2, and Linux's doubling).
const RETRANSMISSIONS: [(Nanos, Nanos); 3] = [
    (Nanos::from_millis(950), Nanos::from_millis(1_300)),
    (Nanos::from_millis(2_900), Nanos::from_millis(3_500)),
    (Nanos::from_millis(6_900), Nanos::from_millis(7_700)),
];

/// Something that a reader of the numbers must know.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Advice {
    /// Certificates were not verified.
    Unverified,
    /// The command itself was built without optimisation.
    Unoptimised,
    /// The command was suspended while it loaded.
    Suspended,
    /// The server limits how much it answers.
    RateLimited {
        /// Answers with status 429.
        count: u64,
    },
    /// The server ends connections after some exchanges.
    KeepAliveLimit {
        /// Connections opened.
        opened: u64,
        /// Answers on each, on average.
        answers: f64,
    },
    /// Connections waited for a repeated SYN.
    BacklogFull {
        /// How many.
        count: u64,
    },
    /// The engine's threads were busy throughout.
    Saturated {
        /// The share of their time.
        busy: f64,
        /// How many threads.
        threads: u32,
    },
    /// Fewer exchanges began on schedule than were asked for.
    ArrivalRateNotReached {
        /// Starts per second that were asked for, where that is one number.
        asked: Option<f64>,
        /// The share that began while the schedule ran.
        share: f64,
    },
    /// Starts were left out.
    Dropped {
        /// How many.
        count: u64,
    },
    /// The engine itself began late.
    StartsLate {
        /// One in ten began later than this.
        p90: Nanos,
    },
    /// Every good answer was a redirect.
    OnlyRedirects,
    /// The link was full.
    LinkFull {
        /// The interface.
        interface: String,
        /// What went over it, the fuller direction.
        bits: f64,
        /// What it can carry.
        speed: f64,
    },
    /// Very much went between two programs of one machine.
    LoopbackBandwidth {
        /// Per second, both directions.
        bytes: f64,
    },
    /// Client and server share the machine.
    SameMachine {
        /// What there is to share.
        cores: usize,
    },
}

impl Advice {
    /// The word by which machines tell findings apart. Never changes.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unverified => "unverified",
            Self::Unoptimised => "unoptimised",
            Self::Suspended => "suspended",
            Self::RateLimited { .. } => "rate-limited",
            Self::KeepAliveLimit { .. } => "keep-alive-limit",
            Self::BacklogFull { .. } => "backlog-full",
            Self::Saturated { .. } => "generator-saturated",
            Self::ArrivalRateNotReached { .. } => "arrival-rate-not-reached",
            Self::Dropped { .. } => "starts-dropped",
            Self::StartsLate { .. } => "starts-late",
            Self::OnlyRedirects => "only-redirects",
            Self::LinkFull { .. } => "link-full",
            Self::LoopbackBandwidth { .. } => "loopback-bandwidth",
            Self::SameMachine { .. } => "same-machine",
        }
    }

    /// Whether it is a mere circumstance, and no reason to doubt the numbers.
    #[must_use]
    pub const fn is_circumstance(&self) -> bool {
        matches!(self, Self::SameMachine { .. })
    }

    /// All that a load gives reason for, the gravest first.
    #[must_use]
    pub fn on(measured: &LoadMeasured) -> Vec<Self> {
        let arm = measured.arm();
        let tls = measured.driven.arm.tls.as_ref();
        let mut found = Vec::new();
        found.extend(tls.filter(|tls| tls.trust == Trust::Anybody).map(|_| Self::Unverified));
        found.extend(cfg!(debug_assertions).then_some(Self::Unoptimised));
        found.extend(measured.suspended.then_some(Self::Suspended));
        let limited = arm.failed_statuses.get(&429).copied().unwrap_or(0);
        found.extend((limited > 0).then_some(Self::RateLimited { count: limited }));
        found.extend(not_reached(measured));
        found.extend((arm.dropped > 0).then_some(Self::Dropped { count: arm.dropped }));
        found.extend(keep_alive_limit(measured));
        let repeated = in_ranges(&arm.connect, &RETRANSMISSIONS);
        found.extend((repeated > 0).then_some(Self::BacklogFull { count: repeated }));
        if let Some(busy) = measured.engine_busy().filter(|busy| *busy >= BUSY) {
            found.push(Self::Saturated { busy, threads: measured.recording.engine.threads });
        }
        found.extend(arm.lateness.quantile(0.9).filter(|p90| *p90 > LATE).map(|p90| Self::StartsLate { p90 }));
        let answers = arm.statuses.success + arm.statuses.redirection;
        let all_redirected = measured.counts().good > 0 && answers == arm.statuses.redirection;
        found.extend(all_redirected.then_some(Self::OnlyRedirects));
        found.extend(bandwidth(measured));
        if measured.driven.is_local()
            && let Ok(cores) = std::thread::available_parallelism()
        {
            found.push(Self::SameMachine { cores: cores.get() });
        }
        found
    }
}

fn not_reached(measured: &LoadMeasured) -> Option<Advice> {
    let share = measured.recording.arrivals(0)?.reached()?;
    (share < REACHED).then(|| Advice::ArrivalRateNotReached { asked: measured.load.schedule.arrival_rate(), share })
}

/// More connections than were asked for, though they were to be kept.
#[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
fn keep_alive_limit(measured: &LoadMeasured) -> Option<Advice> {
    let sessions = matches!(measured.load.schedule, httpbench_core::model::Schedule::Sessions { .. });
    if measured.load.reuse == Reuse::Close || sessions || measured.driven.arm.protocol == Protocol::Http10 {
        return None;
    }
    let (opened, counts) = (measured.arm().connections, measured.counts());
    let answers =
        counts.good + counts.check_failures + measured.arm().warm_up.good + measured.arm().warm_up.check_failures;
    // A few reconnections have other reasons, errors among them.
    let many = opened > 2 * u64::from(measured.load.connections) && opened > 2 * counts.errors.total();
    (many && answers > 0).then(|| Advice::KeepAliveLimit { opened, answers: answers as f64 / opened as f64 })
}

fn in_ranges(times: &Histogram, ranges: &[(Nanos, Nanos)]) -> u64 {
    let within = |time: Nanos| ranges.iter().any(|(low, high)| (*low..=*high).contains(&time));
    times.buckets().filter(|(time, _)| within(*time)).map(|(_, count)| count).sum()
}

#[expect(clippy::cast_precision_loss, reason = "amounts of bytes below 2^52")]
fn bandwidth(measured: &LoadMeasured) -> Option<Advice> {
    let seconds = Some(measured.elapsed().as_secs_f64()).filter(|seconds| *seconds > 0.0)?;
    let per_second = |bytes: u64| bytes as f64 / seconds;
    let (sent, received) = (per_second(measured.arm().sent_bytes), per_second(measured.arm().received_bytes));
    if measured.driven.is_local() {
        let bytes = sent + received;
        return (bytes >= LOOPBACK_BYTES).then_some(Advice::LoopbackBandwidth { bytes });
    }
    let interface = interface::towards(measured.driven.ip()?)?;
    let (bits, speed) = (8.0 * sent.max(received), interface.bits_per_second? as f64);
    (bits >= FULL * speed).then_some(Advice::LinkFull { interface: interface.name, bits, speed })
}

fn bits(per_second: f64) -> String {
    if per_second >= 1e9 {
        format!("{:.2} Gbit/s", per_second / 1e9)
    } else {
        format!("{:.0} Mbit/s", per_second / 1e6)
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unverified => out.write_str(
                "--insecure: the server's certificate was NOT verified, so nobody knows who answered",
            ),
            Self::Unoptimised => out.write_str(
                "this `cargo-httpbench` is built without optimisation: its own part of the times is large; use a release build",
            ),
            Self::Suspended => {
                out.write_str("the command was suspended (Ctrl-Z) while it loaded: throughput and the longest times are wrong")
            }
            Self::RateLimited { count } => write!(
                out,
                "rate limiting: {} answers had status 429 (too many requests), so this measures the server's limit and not its \
                 speed; lift it for this client",
                quantity::count(*count)
            ),
            Self::KeepAliveLimit { opened, answers } => write!(
                out,
                "the server ends connections: {} were opened, one for {} answers on average; its keep-alive limit \
                 (`keepalive_requests`, `MaxKeepAliveRequests`) makes connecting a part of what is measured",
                quantity::count(*opened),
                quantity::three_digits(*answers),
            ),
            Self::BacklogFull { count } => write!(
                out,
                "{} connections took about 1 s, 3 s or 7 s: their SYN was lost and sent again, as it is when the server's accept \
                 queue is full; raise its `listen` backlog and `net.core.somaxconn`, or connect fewer at once",
                quantity::count(*count)
            ),
            Self::Saturated { busy, threads } => write!(
                out,
                "the load generator was the limit: its {} busy for {} of the time; give it more with --threads, or cores of its own",
                if *threads == 1 { "thread was".to_owned() } else { format!("{threads} threads were") },
                quantity::percent(busy.min(1.0))
            ),
            Self::ArrivalRateNotReached { asked, share } => {
                write!(out, "the schedule was not reached: {} of its starts began in time", quantity::percent(*share))?;
                if let Some(asked) = asked {
                    let shown = |rate: f64| StartsPerSecond::from(rate).to_string();
                    write!(out, ", {} of {} per second", shown(asked * share), shown(*asked))?;
                }
                out.write_str(
                    "; server, connections or load generator cannot keep up, so response times grow with the duration; \
                     ask for more --connections or fewer starts",
                )
            }
            Self::Dropped { count } => write!(
                out,
                "{} starts were dropped, because no connection was free in time: they are in no other number",
                quantity::count(*count)
            ),
            Self::StartsLate { p90 } => write!(
                out,
                "the load generator itself was late: one start in ten by more than {}; its cores have other work",
                quantity::time(*p90)
            ),
            Self::OnlyRedirects => out.write_str(
                "every answer was a redirect, which is cheap: `--max-redirects 5` follows them, or load the URL that they lead to",
            ),
            Self::LinkFull { interface, bits: achieved, speed } => write!(
                out,
                "the link was full: {} of the {} that `{interface}` can carry, so any faster server scores the same",
                bits(*achieved),
                bits(*speed)
            ),
            Self::LoopbackBandwidth { bytes } => write!(
                out,
                "{:.2} GB/s went through this machine's loopback: copying them is a large part of what is measured",
                bytes / 1e9
            ),
            Self::SameMachine { cores } => write!(
                out,
                "server and load generator share this machine's {}: each takes time from the other",
                if *cores == 1 { "one core".to_owned() } else { format!("{cores} cores") }
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use httpbench_core::model::{Schedule, Tls};

    use super::*;
    use crate::load::sample::measured;

    fn codes(change: impl FnOnce(&mut LoadMeasured)) -> Vec<&'static str> {
        let mut load = measured(1_000, 0);
        change(&mut load);
        let mut codes: Vec<_> = Advice::on(&load).iter().map(Advice::code).collect();
        // True of every test build.
        codes.retain(|code| *code != "unoptimised");
        codes
    }

    #[test]
    fn ordinary_load_gives_no_reason_for_advice_but_the_shared_machine() {
        assert_eq!(codes(|_| {}), ["same-machine"]);
    }

    #[test]
    fn each_finding_rests_on_its_own_number() {
        let same = "same-machine";
        let tls = Tls { server_name: "h".to_owned(), trust: Trust::Anybody, identity: None };
        assert_eq!(codes(|load| load.driven.arm.tls = Some(tls)), ["unverified", same]);
        let limited = |load: &mut LoadMeasured| _ = load.recording.arms[0].failed_statuses.insert(429, 3);
        assert_eq!(codes(limited), ["rate-limited", same]);
        assert_eq!(codes(|load| load.recording.arms[0].connections = 100), ["keep-alive-limit", same]);
        let connect = |ms| move |load: &mut LoadMeasured| load.recording.arms[0].connect.record(Nanos::from_millis(ms));
        assert_eq!(codes(connect(1_030)), ["backlog-full", same]);
        assert_eq!(codes(connect(3_050)), ["backlog-full", same]);
        assert_eq!(codes(connect(500)), [same]);
        assert_eq!(codes(|load| load.suspended = true), ["suspended", same]);
        let busy = |load: &mut LoadMeasured| load.recording.engine.cpu = load.recording.engine.wall;
        assert_eq!(codes(busy), ["generator-saturated", same]);
        assert_eq!(codes(|load| load.recording.arms[0].dropped = 1), ["starts-dropped", same]);
        let late = |load: &mut LoadMeasured| load.recording.arms[0].lateness.record(Nanos::from_millis(2));
        assert_eq!(codes(late), ["starts-late", same]);
        let redirects = |load: &mut LoadMeasured| {
            let statuses = &mut load.recording.arms[0].statuses;
            (statuses.success, statuses.redirection) = (0, 1_000);
        };
        assert_eq!(codes(redirects), ["only-redirects", same]);
        let much = |load: &mut LoadMeasured| load.recording.arms[0].received_bytes = 3_000_000_000;
        assert_eq!(codes(much), ["loopback-bandwidth", same]);
    }

    #[test]
    fn closed_connections_that_were_asked_for_are_no_finding() {
        let close = |load: &mut LoadMeasured| {
            load.load.reuse = Reuse::Close;
            load.recording.arms[0].connections = 1_000;
        };
        assert_eq!(codes(close), ["same-machine"]);
    }

    #[test]
    fn schedule_that_was_not_reached_is_told_with_both_numbers() {
        let mut load = measured(1_000, 0);
        load.load.schedule = Schedule::Constant { per_second: 100.0 };
        load.recording.slices[0].scheduled = 200;
        load.recording.slices[0].begun = 40;
        let advice = Advice::on(&load).into_iter().find(|advice| advice.code() == "arrival-rate-not-reached");
        let text = advice.expect("not reached").to_string();
        assert!(text.contains("20.0% of its starts") && text.contains("20 of 100 per second"), "{text}");
    }
}
