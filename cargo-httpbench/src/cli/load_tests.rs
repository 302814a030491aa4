//! The command line of `load` as users type it.

use std::ffi::OsString;

use httpbench_core::model::{Late, Nanos, Protocol, Reuse, Schedule};

use crate::baseline::Ci;
use crate::cli::{Task, parse_in};
use crate::load::{BodySource, LoadOptions, Period, Route, Verification};

fn read(line: &str) -> Result<LoadOptions, clap::Error> {
    let words = ["cargo-httpbench", "load"].into_iter().chain(line.split_whitespace()).map(OsString::from);
    parse_in(words, Ci::No).map(|invocation| match invocation.task {
        Task::Load(options) => *options,
        other => panic!("{other:?}"),
    })
}

fn right(line: &str) -> LoadOptions {
    read(line).unwrap_or_else(|error| panic!("`{line}`: {error}"))
}

#[test]
fn without_flags_it_is_a_closed_loop_of_ten_seconds() {
    let options = right("http://h/");
    let period = Period { requests: None, duration: Some(Nanos::from_secs(10)), warm_up: Nanos::ZERO };
    assert_eq!((options.period, options.protocol), (period, Protocol::Http11));
    let load = options.load;
    assert_eq!((load.connections, load.threads, load.depth, load.redirects), (64, 1, 1, 0));
    assert_eq!((load.schedule, load.late, load.reuse), (Schedule::Closed, Late::Send, Reuse::Keep));
    assert_eq!(options.route, Route::Named(Vec::new()));
    assert_eq!(options.tls.verification, Verification::System);
}

#[test]
fn count_ends_it_without_a_time_unless_both_are_given() {
    let period = |line: &str| right(line).period;
    assert_eq!((period("-n 10 http://h/").requests, period("-n 10 http://h/").duration), (Some(10), None));
    assert_eq!(period("-n 1_000 -d 3s http://h/").duration, Some(Nanos::from_secs(3)));
    assert_eq!(period("--ramp 1:2:7s http://h/").duration, Some(Nanos::from_secs(7)), "a ramp is not cut off");
    assert_eq!(period("--ramp 2:0:7s -n 1000 http://h/").duration, Some(Nanos::from_secs(7)), "nor endless");
    assert_eq!(period("--warm-up 1s http://h/").warm_up, Nanos::from_secs(1));
}

#[test]
fn no_more_connections_are_opened_than_there_are_requests() {
    let load = |line: &str| right(line).load;
    assert_eq!(load("-n 10 http://h/").connections, 10);
    assert_eq!(load("-n 10 -c 3 -t 2 http://h/").connections, 3);
    assert_eq!((load("-n 2 -c 8 -t 4 http://h/").connections, load("-n 2 -c 8 -t 4 http://h/").threads), (2, 2));
}

#[test]
fn each_schedule_is_said_by_its_own_flags() {
    let schedule = |line: &str| right(&format!("{line} http://h/")).load.schedule;
    assert_eq!(schedule("--arrival-rate 0.5"), Schedule::Constant { per_second: 0.5 });
    assert_eq!(schedule("--arrival-rate 9 --arrivals constant"), Schedule::Constant { per_second: 9.0 });
    let poisson = Schedule::Poisson { per_second: 9.0, seed: 7 };
    assert_eq!(schedule("--arrival-rate 9 --arrivals poisson --seed 7"), poisson);
    let ramp = Schedule::Ramp { from: 1.0, to: 5.0, over: Nanos::from_millis(1_500) };
    assert_eq!(schedule("--ramp 1:5:1500ms"), ramp);
    assert_eq!(schedule("--connection-rate 3"), Schedule::Sessions { per_second: 3.0, calls: 1 });
    assert_eq!(schedule("--connection-rate 3 --calls 10"), Schedule::Sessions { per_second: 3.0, calls: 10 });
    assert_eq!(right("--ramp 1:5:1s --drop-late http://h/").load.late, Late::Drop);
}

#[test]
fn request_and_connection_flags_mean_what_they_say() {
    let options = right(
        "-m PUT -H X-A:1 -H X-A:2 -b @f --check-status 201 --max-redirects 3 --timeout 2s --connect-timeout 1s --no-keepalive \
         --http1.0 --connect-to 127.0.0.1:81 http://h/",
    );
    let request = options.request;
    assert_eq!((request.method.as_deref(), request.headers.len()), (Some("PUT"), 2));
    assert_eq!((request.body, request.check_status), (Some(BodySource::File("f".into())), Some(201)));
    let load = options.load;
    assert_eq!(
        (load.redirects, load.request_timeout, load.connect_timeout),
        (3, Nanos::from_secs(2), Nanos::from_secs(1))
    );
    assert_eq!((load.reuse, options.protocol), (Reuse::Close, Protocol::Http10));
    assert!(matches!(options.route, Route::Named(detours) if detours.len() == 1));
    assert_eq!(right("--unix-socket /s http://h/").route, Route::Unix("/s".into()));
    let options = right("--http2 --streams 8 --insecure --cert c --key k https://h/ https://g/");
    assert_eq!((options.protocol, options.load.depth, options.targets.len()), (Protocol::Http2, 8, 2));
    assert_eq!(options.tls.verification, Verification::Nothing);
    assert_eq!(options.tls.identity, Some(("c".into(), "k".into())));
    assert_eq!(right("--pipeline 4 http://h/").load.depth, 4);
    assert_eq!(right("--cacert c https://h/").tls.verification, Verification::Roots("c".into()));
}

#[test]
fn wrong_usage_ends_with_two_and_says_what_is_accepted() {
    for (line, said) in [
        ("", "<URL>"),
        ("localhost:80", "write `http://localhost:80`"),
        ("ftp://h/", "`http://HOST:PORT/PATH`"),
        ("http://u:p@h/", "credentials"),
        ("http://h/#x", "fragment"),
        ("http://h:x/", "invalid port"),
        ("-H X-A http://h/", "no colon"),
        ("-c 0 http://h/", "`0` is not a whole number from 1"),
        ("-n 0 http://h/", "`0` is not a whole number of at least 1"),
        ("-n -5 http://h/", "unexpected argument"),
        ("-t 0 http://h/", "`0` is not a whole number from 1"),
        ("-c 2 -t 3 http://h/", "a thread without a connection does nothing"),
        ("-d 0s http://h/", "above zero"),
        ("-d 5 http://h/", "`5` is not a duration"),
        ("--timeout 0s http://h/", "above zero"),
        ("--arrival-rate 0 http://h/", "not an arrival rate"),
        ("--arrival-rate -1 http://h/", "not an arrival rate"),
        ("--arrival-rate fast http://h/", "starts per second"),
        ("--connection-rate 0 http://h/", "connections per second"),
        ("--ramp 1:2 http://h/", "START:END:DURATION"),
        ("--ramp 0:0:1s http://h/", "starts nothing"),
        ("--ramp 1:x:1s http://h/", "not an arrival rate"),
        ("--connection-rate 1 --pipeline 2 http://h/", "cannot be used with"),
        ("--connection-rate 1 --http2 --streams 2 http://h/", "cannot be used with"),
        ("--arrivals poisson http://h/", "--arrival-rate"),
        ("--arrivals normal --arrival-rate 1 http://h/", "poisson"),
        ("--seed 1 http://h/", "--arrivals"),
        ("--seed 1 --arrivals constant --arrival-rate 1 http://h/", "decides nothing"),
        ("--calls 3 http://h/", "--connection-rate"),
        ("--drop-late http://h/", "--arrival-rate"),
        ("--ramp 1:2:1s --arrival-rate 1 http://h/", "cannot be used with"),
        ("--connection-rate 1 --arrival-rate 1 http://h/", "cannot be used with"),
        ("--connection-rate 1 --ramp 1:2:1s http://h/", "cannot be used with"),
        ("--connection-rate 1 --no-keepalive http://h/", "cannot be used with"),
        ("--streams 2 http://h/", "--http2"),
        ("--http2 --pipeline 2 http://h/", "cannot be used with"),
        ("--http1.0 --pipeline 2 http://h/", "cannot be used with"),
        ("--no-keepalive --pipeline 2 http://h/", "cannot be used with"),
        ("--http1.0 --http2 http://h/", "cannot be used with"),
        ("--insecure http://h/", "no URL begins with `https://`"),
        ("--cacert c http://h/", "no URL begins with `https://`"),
        ("--cert c --key k http://h/", "no URL begins with `https://`"),
        ("--cert c https://h/", "--key"),
        ("--key k https://h/", "--cert"),
        ("--insecure --cacert c https://h/", "cannot be used with"),
        ("--unix-socket s --connect-to h:1 http://h/", "cannot be used with"),
        ("--connect-to h http://h/", "HOST:PORT"),
        ("--check-status 99 http://h/", "from 200 to 599"),
        ("--check-status ok http://h/", "from 200 to 599"),
        ("--max-redirects -1 http://h/", "unexpected argument"),
        ("-b @ http://h/", "@FILE"),
        ("-q -v http://h/", "cannot be used with"),
        ("--package x http://h/", "unexpected argument"),
    ] {
        let error = read(line).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(said), "`{line}` does not say `{said}`: {error}");
    }
}

#[test]
fn help_tells_defaults_examples_and_exit_codes() {
    let help = read("--help").expect_err("help").to_string();
    for word in [
        "Examples:",
        "Exit codes:",
        "\n  107  ",
        "[default: 64",
        "[default: 10s",
        "docs/measuring.md",
        "--max-redirects",
    ] {
        assert!(help.contains(word), "{word}: {help}");
    }
    let command = crate::cli::command();
    let load = command.find_subcommand("load").expect("a subcommand");
    let undocumented: Vec<_> =
        load.get_arguments().filter(|arg| arg.get_help().is_none()).map(|arg| arg.get_id().to_string()).collect();
    assert_eq!(undocumented, Vec::<String>::new());
}
