//! `cargo httpbench load`, from the outside: against servers that are scripted here, without any project.
//!
//! LG numbers are those of the cases that the load engine is tested by as well; here it is the command that must be right
//! about them: what it sends, counts, says, and exits with.

mod scripted;

use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use httpbench_tests::{Httpbench, Outcome, Project};
use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sys::signal::Signal;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use scripted::{OK, OOPS, PATIENCE, Scripted, Seen, converse};

/// A folder without any project in or above it.
fn nowhere() -> Project {
    let project = Project::copy("plain");
    std::fs::create_dir(project.beside("nowhere")).expect("a folder");
    project
}

fn load<'a>(project: &'a Project, words: &[&str]) -> Httpbench<'a> {
    let run = project.httpbench().arg("load").args(words).current_dir(project.beside("nowhere"));
    run.deadline(Duration::from_secs(60))
}

/// The last line of standard output, in which the accounting must be right.
#[track_caller]
fn finished(outcome: &Outcome) -> Value {
    let last = outcome.json_lines().pop().expect("a line");
    assert_eq!(last["reason"], "load-finished", "{outcome}");
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} is no number\n{outcome}"));
    let errors: u64 = last["errors"].as_object().expect("classes").values().map(number).sum();
    let ended = number(&last["good"]) + number(&last["check_failures"]) + errors + number(&last["in_flight"]);
    assert_eq!(number(&last["started"]), ended, "{outcome}");
    last
}

#[track_caller]
fn json(words: &[&str], code: i32) -> Value {
    let project = nowhere();
    let outcome = load(&project, words).args(["--message-format", "json"]).run();
    outcome.assert_code(code);
    finished(&outcome)
}

#[test]
fn lg_29_address_at_which_nobody_listens_is_refused_quickly_and_fails() {
    let address = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let url = format!("http://{address}/");
    let project = nowhere();
    // Far less than a minute: no server is to be waited for.
    let outcome =
        load(&project, &["-d", "60s", "--message-format", "json", &url]).deadline(Duration::from_secs(20)).run();
    outcome.assert_code(107).assert_stderr(&["nobody listens at", "nothing good came back", "start the server"]);
    let last = finished(&outcome);
    assert_eq!((&last["good"], &last["end"]), (&0.into(), &"nobody-listens".into()), "{last}");
    assert!(last["errors"]["refused"].as_u64().is_some_and(|count| (1..50_000).contains(&count)), "{last}");
}

#[test]
fn lg_29_count_is_a_promise_even_where_nobody_listens() {
    let address = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let last = json(&["-n", "10", "-c", "2", &format!("http://{address}/")], 107);
    assert_eq!((&last["started"], &last["errors"]["refused"]), (&10.into(), &10.into()), "{last}");
}

#[test]
fn lg_42_interrupted_load_reports_what_there_was_and_exits_with_the_signal() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let server = Scripted::ok();
        let project = nowhere();
        let mut run = load(&project, &["-d", "60s", "-c", "2", "--message-format", "json", &server.url()]).start();
        httpbench_tests::wait_until("requests", PATIENCE, || server.requests() > 100);
        run.wait_for_text("Loading");
        run.signal_group(signal);
        let outcome = run.wait();
        outcome.assert_code(code).assert_stderr(&["interrupted"]);
        let last = finished(&outcome);
        assert_eq!((&last["end"], &last["exit_code"]), (&"interrupted".into(), &code.into()), "{last}");
        assert!(last["good"].as_u64().is_some_and(|good| good > 100), "{last}");
        assert!(outcome.elapsed < Duration::from_secs(30), "{outcome}");
    }
}

#[test]
fn lg_53_exactly_so_many_requests_are_started_and_no_other_is_sent() {
    let server = Scripted::ok();
    let last = json(&["-n", "10", "-c", "3", "-t", "2", &server.url()], 0);
    assert_eq!((&last["started"], &last["good"], &last["in_flight"]), (&10.into(), &10.into(), &0.into()), "{last}");
    assert_eq!((server.requests(), server.connections()), (10, 3));
    assert_eq!((&last["connections_opened"], &last["threads"]), (&3.into(), &2.into()), "{last}");
}

#[test]
fn lg_55_wrong_answers_are_no_throughput_and_fail_the_load() {
    let server = Scripted::new(|number, _| Some(if number % 2 == 0 { OK } else { OOPS }.to_owned()));
    let last = json(&["-n", "100", "-c", "1", &server.url()], 100);
    assert_eq!((&last["good"], &last["check_failures"]), (&50.into(), &50.into()), "{last}");
    assert_eq!((&last["statuses"]["2xx"], &last["statuses"]["5xx"]), (&50.into(), &50.into()), "{last}");
    assert_eq!((&last["service"]["count"], &last["failed_statuses"]["500"]), (&50.into(), &50.into()), "{last}");
    let project = nowhere();
    let outcome = load(&project, &["-n", "100", "-c", "1", &server.url()]).run();
    outcome.assert_code(100).assert_stdout(&["50 failed (50.0%)", "50 check failures, the first: status 500"]);
    outcome.assert_stderr(&["50 of 100 exchanges"]);
}

#[test]
fn lg_60_without_a_good_answer_there_are_no_numbers() {
    let server = Scripted::new(|_, _| Some(OOPS.to_owned()));
    let last = json(&["-n", "5", &server.url()], 107);
    for value in [&last["throughput"], &last["p50_ns"], &last["service"]["p99_ns"], &last["mean_ns"]] {
        assert_eq!(value, &Value::Null, "{last}");
    }
    let project = nowhere();
    let outcome = load(&project, &["-n", "5", &server.url()]).run();
    outcome.assert_code(107).assert_stdout(&["no samples", "5 failed (100%)"]).assert_silent_about(&["NaN", " inf"]);
    outcome.assert_stderr(&["nothing good came back", "--check-status 500"]);
    json(&["-n", "5", "--check-status", "500", &server.url()], 0);
}

#[test]
fn lg_70_address_of_ipv6_is_sent_in_brackets() {
    let server = Scripted::at("[::1]:0", |_, _| Some(OK.to_owned()));
    let last = json(&["-n", "1", &server.url()], 0);
    assert_eq!(last["good"], 1);
    let host = format!("\r\nHost: [::1]:{}\r\n", server.address.port());
    assert!(server.first_text().contains(&host), "{}", server.first_text());
}

#[test]
fn lg_73_74_request_line_has_path_and_query_and_host_the_port() {
    for (rest, line) in [("?x=1", "GET /?x=1 HTTP/1.1\r\n"), ("/a/b?c=d%20e", "GET /a/b?c=d%20e HTTP/1.1\r\n")] {
        let server = Scripted::ok();
        json(&["-n", "1", &format!("http://{}{rest}", server.address)], 0);
        let text = server.first_text();
        assert!(text.starts_with(line) && text.contains(&format!("\r\nHost: {}\r\n", server.address)), "{text}");
    }
    // The scheme's own port is left out of `Host`; the connection goes elsewhere, for nobody may bind that port.
    let server = Scripted::ok();
    json(&["-n", "1", "--connect-to", &server.address.to_string(), "http://shop.invalid:80/"], 0);
    assert!(server.first_text().contains("\r\nHost: shop.invalid\r\n"), "{}", server.first_text());
}

#[test]
fn lg_76_headers_are_sent_in_order_and_own_ones_replace_ours() {
    let server = Scripted::ok();
    json(&["-n", "1", "-H", "X-A: 1", "-H", "X-A: 2", "-H", "Host: other", "-H", "user-agent: me", &server.url()], 0);
    let text = server.first_text();
    assert!(text.contains("X-A: 1\r\nX-A: 2\r\nHost: other\r\nuser-agent: me\r\n"), "{text}");
    assert_eq!(text.to_lowercase().matches("host:").count(), 1, "{text}");
}

#[test]
fn lg_77_bodies_have_their_length_and_come_from_text_file_and_standard_input() {
    let project = nowhere();
    std::fs::write(project.beside("nowhere").join("body"), "from a file").expect("written");
    let cases: [(&[&str], &str); 5] = [
        (&["-m", "POST"], "\r\nContent-Length: 0\r\n"),
        (&["-b", ""], "\r\nContent-Length: 0\r\n"),
        (&["-b", "text"], "\r\nContent-Length: 4\r\n\r\ntext"),
        (&["-b", "@body"], "\r\nContent-Length: 11\r\n\r\nfrom a file"),
        (&["-b", "@-"], "\r\nContent-Length: 11\r\n\r\nfrom a file"),
    ];
    for (flags, said) in cases {
        let server = Scripted::ok();
        let run = load(&project, flags).args(["-n", "3", "-c", "1", &server.url()]);
        run.stdin_from(project.beside("nowhere").join("body")).run().assert_code(0);
        let text = server.first_text();
        assert!(text.starts_with("POST / ") && text.contains(said), "{flags:?}: {text}");
        assert_eq!(server.requests(), 3);
    }
    let server = Scripted::ok();
    json(&["-n", "1", &server.url()], 0);
    assert!(!server.first_text().to_lowercase().contains("content-length"), "{}", server.first_text());
}

#[test]
fn lg_78_redirect_is_the_answer_unless_it_is_to_be_followed() {
    let elsewhere = Scripted::ok();
    let to = elsewhere.url();
    let server =
        Scripted::new(move |_, _| Some(format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")));
    let project = nowhere();
    let outcome = load(&project, &["-n", "4", "--message-format", "json", &server.url()]).run();
    outcome.assert_code(0).assert_stderr(&["every answer was a redirect", "--max-redirects"]);
    let last = finished(&outcome);
    assert_eq!((&last["statuses"]["3xx"], &last["redirected"]), (&4.into(), &0.into()), "{last}");
    assert_eq!(elsewhere.connections(), 0);
    let secret = ["-H", "Authorization: Bearer hunter2", "--max-redirects", "2", "-n", "4", "-c", "2"];
    let last = json(&[&secret[..], &[&server.url()]].concat(), 0);
    assert_eq!(
        (&last["good"], &last["statuses"]["2xx"], &last["redirected"]),
        (&4.into(), &4.into(), &4.into()),
        "{last}"
    );
    assert_eq!(elsewhere.requests(), 4);
    assert!(server.texts_contain("hunter2") && !elsewhere.texts_contain("hunter2"), "{}", elsewhere.first_text());
}

#[test]
fn lg_79_several_urls_are_loaded_one_after_the_other_each_with_its_own_connections() {
    let (first, second) = (Scripted::ok(), Scripted::new(|_, _| Some(OOPS.to_owned())));
    let project = nowhere();
    let words = ["-n", "6", "-c", "2", &first.url(), &second.url()];
    let outcome = load(&project, &words).arg("--message-format").arg("json").run();
    outcome.assert_code(107);
    let lines = outcome.json_lines();
    let each: Vec<_> = lines.iter().filter(|line| line["reason"] == "load").collect();
    assert_eq!(
        each.iter().map(|line| line["url"].as_str().expect("a URL")).collect::<Vec<_>>(),
        [first.url(), second.url()]
    );
    assert_eq!((&each[0]["good"], &each[1]["good"]), (&6.into(), &0.into()));
    assert_eq!(finished(&outcome)["started"], 12);
    for server in [&first, &second] {
        assert_eq!((server.requests(), server.connections()), (6, 2));
    }
    let outcome = load(&project, &words).run();
    outcome.assert_code(107).assert_stdout(&[&first.url(), &second.url(), "6 check failures"]);
}

#[test]
fn lg_81_82_narrow_terminals_and_readers_that_go_away_are_no_reason_to_panic() {
    let server = Scripted::ok();
    let project = nowhere();
    for format in ["json", "human"] {
        let mut run =
            load(&project, &["-n", "50", "--message-format", format, &server.url()]).env("COLUMNS", "20").start();
        run.close_stdout();
        let outcome = run.wait();
        outcome.assert_silent_about(&["panicked", "RUST_BACKTRACE"]).assert_nothing_left();
        assert!(matches!(outcome.code(), Some(0 | 110)), "{outcome}");
        let full = load(&project, &["-n", "5", "--message-format", format, &server.url()]).stdout_to("/dev/full").run();
        full.assert_code(110).assert_stderr(&["standard output"]);
    }
}

#[test]
fn lg_81_live_line_fits_a_terminal_of_twenty_columns() {
    let server = Scripted::ok();
    let size = Winsize { ws_row: 10, ws_col: 20, ws_xpixel: 0, ws_ypixel: 0 };
    let OpenptyResult { master, slave } = openpty(&size, None).expect("a terminal");
    let other = slave.try_clone().expect("a descriptor");
    let mut child = Command::new(httpbench_tests::executable())
        .args(["load", "-d", "1200ms", "-c", "2", &server.url()])
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(slave)
        .stderr(other)
        .spawn()
        .expect("it starts");
    let mut text = Vec::new();
    // At the end of a terminal that nobody holds any more, Linux answers EIO.
    _ = File::from(master).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    let status = child.wait().expect("it ends");
    assert!(status.success() && !text.contains("panicked"), "{status}: {text}");
    assert!(text.contains("answers") && text.contains("throughput") | text.contains("p50"), "{text}");
}

#[test]
fn report_names_what_was_driven_and_is_plain_in_a_pipe() {
    let server = Scripted::ok();
    let project = nowhere();
    let outcome = load(&project, &["-n", "200", "-c", "4", &server.url()]).run();
    outcome.assert_code(0).assert_stdout(&[
        "200 requests in",
        "every answer was right",
        &server.url(),
        &format!("at {}", server.address),
        "HTTP/1.1, 4 connections, 1 thread, closed loop",
        "first answer: status 200, 5 B, server `scripted`",
        "service",
        "first byte",
        "connect",
        "200 2xx",
        "4 opened, 50.0 answers on each",
        "generator",
    ]);
    assert!(!outcome.stdout.contains(['\u{1b}', '\r']) && !outcome.stderr.contains(['\u{1b}', '\r']), "{outcome}");
    let quiet = load(&project, &["-n", "5", "-q", &server.url()]).run();
    assert_eq!((quiet.code(), quiet.stderr.as_str()), (Some(0), ""), "{quiet}");
    let colour = load(&project, &["-n", "5", "--color", "always", &server.url()]).run();
    assert!(colour.stdout.contains('\u{1b}'), "{colour}");
}

#[test]
fn arrival_rate_starts_on_schedule_and_tells_response_and_service_times() {
    let server = Scripted::ok();
    let last = json(&["--arrival-rate", "200", "-d", "500ms", "-c", "20", &server.url()], 0);
    assert_eq!((&last["started"], &last["schedule"]["kind"]), (&100.into(), &"constant".into()), "{last}");
    assert_eq!((&last["response"]["count"], &last["service"]["count"]), (&100.into(), &100.into()), "{last}");
    assert_eq!(last["p50_ns"], last["response"]["p50_ns"], "{last}");
    let starts = |key: &str| last[key]["count"].as_u64().expect("a count");
    assert_eq!(starts("lateness") + starts("queued"), 100, "{last}");
}

/// 50 ms an answer on one connection are 20 a second: of the 200 asked for, most come too late.
const TOO_MANY: [&str; 8] = ["--arrival-rate", "200", "-d", "300ms", "-c", "1", "--timeout", "20s"];

fn slow() -> Scripted {
    Scripted::new(|_, _| {
        thread::sleep(Duration::from_millis(50));
        Some(OK.to_owned())
    })
}

#[test]
fn lg_48_52_late_starts_are_all_sent_and_the_schedule_is_not_reached() {
    let server = slow();
    let project = nowhere();
    let outcome = load(&project, &TOO_MANY).args(["--message-format", "json", &server.url()]).run();
    outcome.assert_code(0).assert_stderr(&["the schedule was not reached"]);
    let last = finished(&outcome);
    assert_eq!((&last["started"], &last["dropped"], server.requests()), (&60.into(), &0.into(), 60), "{last}");
    assert!(last["schedule_reached"].as_f64().is_some_and(|share| share < 0.5), "{last}");
}

#[test]
fn lg_52_late_starts_are_dropped_and_counted_where_that_is_asked_for() {
    let server = slow();
    let project = nowhere();
    let outcome = load(&project, &TOO_MANY).args(["--drop-late", "--message-format", "json", &server.url()]).run();
    outcome.assert_code(0).assert_stderr(&["were dropped"]);
    let last = finished(&outcome);
    let number = |key: &str| last[key].as_u64().expect("a number");
    assert!(number("dropped") >= 30 && number("started") + number("dropped") == 60, "{last}");
    assert_eq!(number("started"), server.requests());
}

#[test]
fn lg_50_poisson_ramp_and_sessions_start_what_they_ask_for() {
    let server = Scripted::ok();
    let poisson = ["--arrival-rate", "1000", "--arrivals", "poisson", "--seed", "7", "-d", "300ms", "-c", "50"];
    let [first, again] = [(); 2].map(|()| json(&[&poisson[..], &[&server.url()]].concat(), 0));
    assert_eq!(first["started"], again["started"], "the same seed gives the same schedule");
    assert!(first["started"].as_u64().is_some_and(|started| (200..=400).contains(&started)), "{first}");
    // From 0 to 400 per second in half a second are 100 starts.
    let ramp = json(&["--ramp", "0:400:500ms", "-c", "50", &server.url()], 0);
    assert!(ramp["started"].as_u64().is_some_and(|started| (98..=101).contains(&started)), "{ramp}");
    let server = Scripted::ok();
    let sessions = json(&["--connection-rate", "40", "--calls", "5", "-d", "500ms", "-c", "20", &server.url()], 0);
    assert_eq!((&sessions["started"], &sessions["connections_opened"]), (&100.into(), &20.into()), "{sessions}");
    assert_eq!((server.requests(), server.connections()), (100, 20));
}

#[test]
fn lg_27_connections_that_are_not_kept_are_announced_and_counted() {
    let server = Scripted::ok();
    let last = json(&["-n", "20", "-c", "2", "--no-keepalive", &server.url()], 0);
    assert_eq!((&last["good"], &last["connections_opened"]), (&20.into(), &20.into()), "{last}");
    assert_eq!(server.connections(), 20);
    assert!(server.first_text().contains("\r\nConnection: close\r\n"), "{}", server.first_text());
}

#[test]
fn rate_limits_and_keep_alive_limits_are_named() {
    let server = Scripted::new(|number, _| {
        let limited = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let close = OK.replace("Server", "Connection: close\r\nServer");
        Some(if number % 4 == 3 { limited.to_owned() } else { close })
    });
    let project = nowhere();
    let outcome = load(&project, &["-n", "40", "-c", "2", &server.url()]).run();
    outcome.assert_code(100).assert_stdout(&[
        "rate limiting",
        "10 answers had status 429",
        "the server ends connections",
    ]);
}

/// A server that speaks TLS with a certificate of its own for `localhost`; its PEM text is the authority's as well.
fn secured(protocols: &[&str]) -> (SocketAddr, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    let mut config = builder.with_single_cert(vec![made.cert.der().clone()], key).expect("a certificate and its key");
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("a session");
            thread::spawn(move || {
                drop(converse(StreamOwned::new(connection, stream), &Seen::default(), &|_, _| Some(OK.to_owned())));
            });
        }
    });
    (address, made.cert.pem())
}

#[test]
fn certificate_is_verified_unless_that_is_waived_loudly() {
    let (address, pem) = secured(&[]);
    let project = nowhere();
    std::fs::write(project.beside("nowhere").join("ca.pem"), pem).expect("written");
    let (url, to) = (format!("https://localhost:{}/", address.port()), address.to_string());
    let words = ["-n", "4", "-c", "2", "--connect-to", &to, &url];
    let outcome = load(&project, &words).args(["--cacert", "ca.pem", "--message-format", "json"]).run();
    outcome.assert_code(0);
    let last = finished(&outcome);
    assert_eq!((&last["good"], &last["tls_handshake"]["count"]), (&4.into(), &2.into()), "{last}");
    let insecure = load(&project, &words).arg("--insecure").run();
    insecure.assert_code(0).assert_stdout(&["WITHOUT verifying its certificate", "NOT verified", "TLS"]);
    let unknown =
        load(&project, &["-n", "1", "--connect-to", &to, "--cacert", "ca.pem", "https://other.invalid/"]).run();
    unknown.assert_code(107).assert_stderr(&["--cacert FILE"]).assert_stdout(&["`tls`", "other.invalid"]);
}

#[test]
fn pipelined_requests_are_outstanding_on_one_connection() {
    let server = Scripted::ok();
    let last = json(&["-n", "40", "-c", "1", "--pipeline", "4", &server.url()], 0);
    assert_eq!((&last["good"], &last["depth"], server.connections()), (&40.into(), &4.into(), 1), "{last}");
    assert_eq!(server.requests(), 40);
}

#[test]
fn http_2_that_the_server_does_not_speak_is_an_error_and_no_hang() {
    let server = Scripted::new(|_, _| Some("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_owned()));
    let project = nowhere();
    let outcome =
        load(&project, &["-n", "2", "-c", "1", "--http2", "--streams", "2", "--timeout", "1s", &server.url()]).run();
    outcome.assert_code(107).assert_stdout(&["HTTP/2, 1 connection", "2 streams on each"]);
}

#[test]
fn unix_socket_is_reached_without_any_port() {
    let project = nowhere();
    let path = project.beside("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let seen = Arc::<Seen>::default();
    let shared = Arc::clone(&seen);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok).take(2) {
            let shared = Arc::clone(&shared);
            thread::spawn(move || drop(converse(stream, &shared, &|_, _| Some(OK.to_owned()))));
        }
    });
    let words = ["-n", "10", "-c", "2", "--message-format", "json", "--unix-socket"];
    let outcome = load(&project, &words).arg(&path).arg("http://app/").run();
    outcome.assert_code(0);
    assert_eq!(finished(&outcome)["good"], 10);
    assert_eq!(seen.requests.load(Ordering::SeqCst), 10);
    let absent = load(&project, &words).arg(project.beside("absent")).arg("http://app/").run();
    absent.assert_code(107).assert_stderr(&["nothing good came back"]);
}

#[test]
fn warm_up_is_counted_apart_and_only_on_request() {
    let server = Scripted::ok();
    let last = json(&["-n", "10", "-c", "1", "--warm-up", "50ms", &server.url()], 0);
    assert_eq!(last["started"], 10, "{last}");
    let warm = last["warm_up"]["started"].as_u64().expect("a count");
    assert!(warm > 0 && server.requests() == warm + 10, "{last}");
}

#[test]
fn more_connections_than_descriptors_are_refused_before_the_start_with_the_number_needed() {
    let server = Scripted::ok();
    let project = nowhere();
    let words = ["-c", "1000000", &server.url()];
    let outcome = load(&project, &words).run();
    outcome.assert_code(107).assert_stderr(&["1000000 connections need"]);
    assert_eq!((server.connections(), outcome.stdout.as_str()), (0, ""));
}

#[test]
fn bad_input_is_refused_with_two_and_what_is_accepted_and_nothing_is_sent() {
    let server = Scripted::ok();
    let url = server.url();
    let secret = format!("http://me:hunter2@{}/", server.address);
    let fragment = format!("{url}#top");
    let cases: &[(&[&str], &str)] = &[
        (&[], "<URL>"),
        (&["127.0.0.1:80"], "write `http://127.0.0.1:80`"),
        (&["gopher://h/"], "http://HOST:PORT/PATH"),
        (&["http://exa mple/"], "http://HOST:PORT/PATH"),
        (&[&secret], "credentials"),
        (&[&fragment], "fragment"),
        (&["-H", "no colon", &url], "Name: value"),
        (&["-H", "X: a\nb", &url], "control character"),
        (&["-H", "Bad Name: x", &url], "header name"),
        (&["-m", "get", &url], "`GET`"),
        (&["--arrival-rate", "0", &url], "starts per second above 0"),
        (&["--arrival-rate", "-1", &url], "starts per second above 0"),
        (&["-d", "soon", &url], "write a number and its unit"),
        (&["-b", "@absent.json", &url], "absent.json"),
        (&["-c", "0", &url], "whole number from 1"),
        (&["-n", "0", &url], "at least 1"),
        (&["--http2", "--pipeline", "2", &url], "cannot be used with"),
        (&["--streams", "2", &url], "--http2"),
        (&["--insecure", &url], "https://"),
        (&["--cacert", "absent.pem", "https://127.0.0.1:1/"], "absent.pem"),
        (&["--connect-to", "other.invalid:80:127.0.0.1:80", &url], "other.invalid"),
        (&["-H", "Content-Length: 7", "-b", "x", &url], "Content-Length"),
    ];
    let project = nowhere();
    for (words, said) in cases {
        let outcome = load(&project, words).run();
        outcome.assert_code(2).assert_stderr(&[said]).assert_silent_about(&["hunter2", "panicked"]);
        assert_eq!(outcome.stdout, "", "{outcome}");
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn url_that_cannot_be_resolved_is_refused_by_its_name() {
    let project = nowhere();
    let outcome = load(&project, &["http://nobody.invalid/"]).run();
    outcome.assert_code(2).assert_stderr(&["`nobody.invalid` cannot be resolved", "--connect-to"]);
}

#[test]
fn help_of_load_is_found_through_cargo_and_in_the_list_of_commands() {
    let project = nowhere();
    load(&project, &["--help"]).run().assert_code(0).assert_stdout(&["Examples:", "--arrival-rate", "Exit codes:"]);
    project.httpbench().arg("--help").run().assert_code(0).assert_stdout(&["load", "without a project"]);
}
