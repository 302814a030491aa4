//! The flags of `cargo httpbench load`, as they are typed. Only [`super::load_meaning`] reads them.
//!
//! What clap can know by itself is refused here: options that contradict each other, numbers, durations. What needs two values
//! at once, and URLs, whose secrets must not be repeated, are left to the meaning, files to [`crate::load`].

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, ArgGroup, Args, ValueEnum, ValueHint};

use super::flags::OutputFlags;
use crate::config;
use crate::load::{BodySource, Detour, HeaderLine, RampSpan};

pub(super) const AFTER_LONG_HELP: &str = "\
Examples:
  cargo httpbench load http://localhost:8080/                          10 s, 64 connections, as fast as it goes
  cargo httpbench load -c 1 -n 1000 http://localhost:8080/             Exactly 1,000 requests, one after the other
  cargo httpbench load --arrival-rate 2000 -d 30s http://[::1]:8080/   2,000 requests a second, whatever the server does
  cargo httpbench load --arrival-rate 500 --arrivals poisson --seed 7 http://localhost:8080/
  cargo httpbench load --ramp 100:5000:30s -d 40s http://localhost:8080/
  cargo httpbench load --connection-rate 100 --calls 10 http://localhost:8080/
  cargo httpbench load -b @order.json -H 'Content-Type: application/json' http://localhost:8080/orders
  cargo httpbench load --http2 --streams 16 -c 4 --cacert ca.pem https://localhost:8443/
  cargo httpbench load http://localhost:8080/a http://localhost:8080/b   One after the other, a row for each

There is no warm-up unless `--warm-up` asks for one, and no request is sent beside those that are counted. In a closed loop (the \
default) each connection sends its next request after the last answer, and times are service times: send to last byte. With an \
arrival rate, a ramp or a connection rate, starts follow a schedule, and response times count from when each should have started. \
A request is good if its answer has a status below 400, or the one that --check-status names. docs/measuring.md says what each \
number is and is not. One engine thread is faster than most servers: the report says where it was the limit.

Exit codes:
    0  done, and every answer was right
    1  something that should not happen did: please report it
    2  the command line is wrong, or a file that it names cannot be read
  100  some exchanges failed: broken, or answered wrongly
  107  the measurement is invalid: nothing good came back, or this machine's own limits broke exchanges
  110  output could not be written
  130  ended by Ctrl-C (143 by SIGTERM), with a report of what there was until then";

#[derive(Debug, Args)]
#[command(
    next_help_heading = "Load",
    group = ArgGroup::new("open_loop").args(["arrival_rate", "ramp", "connection_rate"])
)]
pub(super) struct LoadUrlFlags {
    /// What to send requests to; several are loaded one after the other, each with connections of its own
    #[arg(value_name = "URL", required = true, help_heading = None, value_hint = ValueHint::Url)]
    pub(super) urls: Vec<String>,

    /// Connections that may be open at once [default: 64, or as many as `-n` asks for requests]
    #[arg(short = 'c', long, value_name = "N", value_parser = config::positive)]
    pub(super) connections: Option<u32>,

    /// Start exactly so many requests at each URL, none beside them; with `-d` too, whichever is first
    #[arg(short = 'n', long, value_name = "N", value_parser = whole_number)]
    pub(super) requests: Option<u64>,

    /// For how long requests are started, such as `20s` or `1m 30s` [default: 10s, or as long as `--ramp` takes; without limit
    /// where `-n` is given]
    #[arg(short = 'd', long, value_name = "TIME", value_parser = config::duration)]
    pub(super) duration: Option<Duration>,

    /// Threads of the load engine; one is enough for most servers, and the report says when it was not [default: 1]
    #[arg(short = 't', long, value_name = "N", value_parser = config::positive)]
    pub(super) threads: Option<u32>,

    /// Loaded time before anything is counted [default: none]
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    pub(super) warm_up: Option<Duration>,

    /// An open loop: requests to start per second over all connections, whatever the server does, such as `2000` or `0.5`
    #[arg(
        long,
        value_name = "N",
        help_heading = "Schedule",
        allow_negative_numbers = true,
        value_parser = config::arrival_rate,
        conflicts_with_all = ["ramp", "connection_rate"]
    )]
    pub(super) arrival_rate: Option<f64>,

    /// How the starts of `--arrival-rate` are spaced: evenly, or at random like those of many independent users [default: constant]
    #[arg(long, value_name = "HOW", help_heading = "Schedule", requires = "arrival_rate")]
    pub(super) arrivals: Option<ArrivalsFlag>,

    /// Seed of `--arrivals poisson`: the same seed gives the same schedule [default: a new one each time]
    #[arg(long, value_name = "N", help_heading = "Schedule", requires = "arrivals")]
    pub(super) seed: Option<u64>,

    /// An open loop whose arrival rate goes evenly from START to END per second in DURATION, and stays there, such as
    /// `0:5000:30s`
    #[arg(long, value_name = "START:END:DURATION", help_heading = "Schedule", conflicts_with = "connection_rate")]
    pub(super) ramp: Option<RampSpan>,

    /// Open so many connections per second, each for `--calls` requests, one after the other
    #[arg(
        long,
        value_name = "N",
        help_heading = "Schedule",
        allow_negative_numbers = true,
        value_parser = connection_rate,
        conflicts_with_all = ["streams", "pipeline"]
    )]
    pub(super) connection_rate: Option<f64>,

    /// Requests on each connection of `--connection-rate` [default: 1]
    #[arg(long, value_name = "N", help_heading = "Schedule", requires = "connection_rate", value_parser = whole_number)]
    pub(super) calls: Option<u64>,

    /// Leave out and count starts that no connection was free for in time [default: they are sent as soon as one is, without a gap]
    #[arg(long, help_heading = "Schedule", requires = "open_loop")]
    pub(super) drop_late: bool,

    /// Method, in capitals [default: GET, with a body POST]
    #[arg(short = 'm', long, value_name = "METHOD", help_heading = "Request")]
    pub(super) method: Option<String>,

    /// Header to send, `Name: value`; may be repeated, also with one name. `Host`, `User-Agent` and `Accept` of your own replace ours
    #[arg(short = 'H', long = "header", value_name = "HEADER", help_heading = "Request", action = ArgAction::Append)]
    pub(super) headers: Vec<HeaderLine>,

    /// Body to send: a text, `@FILE` for a file's bytes, or `@-` for standard input
    #[arg(short = 'b', long, value_name = "BODY", help_heading = "Request", allow_hyphen_values = true)]
    pub(super) body: Option<BodySource>,

    /// Status that a good answer has, from 200 to 599 [default: any below 400]
    #[arg(long, value_name = "STATUS", help_heading = "Request", value_parser = status)]
    pub(super) check_status: Option<u16>,

    /// Redirects to follow within one exchange [default: 0, a redirect is the answer]
    #[arg(long, value_name = "N", help_heading = "Request")]
    pub(super) max_redirects: Option<u32>,

    /// Time to wait for an answer, from the send to its last byte [default: 10s]
    #[arg(long, value_name = "TIME", help_heading = "Request", value_parser = config::duration)]
    pub(super) timeout: Option<Duration>,

    /// Speak HTTP/1.0
    #[arg(long = "http1.0", help_heading = "Connection", group = "version")]
    pub(super) http1_0: bool,

    /// Speak HTTP/1.1, the default
    #[arg(long = "http1.1", help_heading = "Connection", group = "version")]
    pub(super) http1_1: bool,

    /// Speak HTTP/2: negotiated over TLS, with prior knowledge otherwise
    #[arg(long, help_heading = "Connection", group = "version")]
    pub(super) http2: bool,

    /// HTTP/2 streams that may be open at once on each connection [default: 1]
    #[arg(long, value_name = "N", help_heading = "Connection", requires = "http2", value_parser = config::positive)]
    pub(super) streams: Option<u32>,

    /// HTTP/1.1 requests that may be outstanding on each connection; few servers gain by it [default: 1]
    #[arg(
        long,
        value_name = "N",
        help_heading = "Connection",
        value_parser = config::positive,
        conflicts_with_all = ["http2", "http1_0", "no_keepalive"]
    )]
    pub(super) pipeline: Option<u32>,

    /// Open a new connection for each request [default: connections are kept for the next request]
    #[arg(long, help_heading = "Connection", conflicts_with_all = ["http2", "connection_rate"])]
    pub(super) no_keepalive: bool,

    /// Time to wait for a connection [default: 5s]
    #[arg(long, value_name = "TIME", help_heading = "Connection", value_parser = config::duration)]
    pub(super) connect_timeout: Option<Duration>,

    /// Connect to this address in place of the URL's, whose name stays in `Host` and in the certificate's check: `HOST:PORT`, or
    /// `URLHOST:URLPORT:HOST:PORT` for that origin alone; may be repeated
    #[arg(
        long,
        value_name = "ADDRESS",
        help_heading = "Connection",
        conflicts_with = "unix_socket",
        action = ArgAction::Append
    )]
    pub(super) connect_to: Vec<Detour>,

    /// Connect to this Unix domain socket in place of the URL's address
    #[arg(long, value_name = "PATH", help_heading = "Connection", value_hint = ValueHint::FilePath)]
    pub(super) unix_socket: Option<PathBuf>,

    /// Do not verify the server's certificate
    #[arg(long, help_heading = "TLS", conflicts_with = "cacert")]
    pub(super) insecure: bool,

    /// Trust the certificates of this PEM file alone [default: those that this machine trusts]
    #[arg(long, value_name = "FILE", help_heading = "TLS", value_hint = ValueHint::FilePath)]
    pub(super) cacert: Option<PathBuf>,

    /// Client certificate with its chain, a PEM file
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires = "key", value_hint = ValueHint::FilePath)]
    pub(super) cert: Option<PathBuf>,

    /// Private key of the client certificate, a PEM file
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires = "cert", value_hint = ValueHint::FilePath)]
    pub(super) key: Option<PathBuf>,

    #[command(flatten)]
    pub(super) output: OutputFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ArrivalsFlag {
    Constant,
    Poisson,
}

fn whole_number(text: &str) -> Result<u64, String> {
    let digits: String = text.trim().chars().filter(|letter| *letter != '_').collect();
    let number = digits.parse().ok().filter(|number| *number > 0 && !digits.starts_with('+'));
    number.ok_or_else(|| format!("`{text}` is not a whole number of at least 1"))
}

fn connection_rate(text: &str) -> Result<f64, String> {
    config::arrival_rate(text).map_err(|_| {
        format!("`{text}` is not a connection rate: write connections per second above 0, such as `100` or `0.5`")
    })
}

fn status(text: &str) -> Result<u16, String> {
    let status = text.trim().parse().ok().filter(|status| (200..=599).contains(status));
    status.ok_or_else(|| format!("`{text}` is not the status of a final answer: write one from 200 to 599"))
}
