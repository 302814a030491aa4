//! The server under test, from its build to its end, and everything that it may do wrong.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use httpbench_tests::{Outcome, Project, wait_for_file};

const NOTHING: [PathBuf; 0] = [];

fn index(project: &Project) -> httpbench_tests::Httpbench<'_> {
    project.httpbench().short().arg("index")
}

/// The server does something wrong right at the start: that must be known long before a readiness timeout of 30 s.
const AT_ONCE: Duration = Duration::from_secs(20);

/// So that no compiler time is in a run whose own time matters.
fn built(name: &str) -> Project {
    let project = Project::copy(name);
    project.httpbench().arg("--no-run").run().assert_code(0);
    project
}

#[test]
fn good_server_is_measured_and_nothing_is_left() {
    let project = Project::copy("plain");
    let outcome = project.httpbench().short().run();
    outcome.assert_code(0).assert_stdout(&["index", "page[1]", "page[10]", "slow"]);
    assert_eq!(project.new_files(), NOTHING);
}

#[test]
fn answers_of_404_exceed_the_limit_of_errors() {
    let project = Project::copy("plain");
    let outcome = project.httpbench().short().args(["--ignored", "missing"]).run();
    outcome.assert_code(100).assert_stdout(&["missing", "errors", "status 404"]);
}

#[test]
fn limit_that_is_not_kept_is_100_and_both_numbers_are_shown() {
    let project = Project::copy("plain");
    let outcome = project.httpbench().short().args(["--ignored", "too_ambitious"]).run();
    outcome.assert_code(100).assert_stdout(&["too_ambitious", "throughput"]);
}

#[test]
fn some_wrong_answers_are_enough_to_fail() {
    let project = Project::copy("plain");
    index(&project).env("ERR_EVERY", "10").run().assert_code(100).assert_stdout(&["status 500"]);
}

#[test]
fn server_that_exits_at_start_is_reported_at_once_with_its_log() {
    let project = built("plain");
    let outcome = index(&project).env("DIE_AT_START", "1").deadline(AT_ONCE).run();
    outcome.assert_code(105).assert_stderr(&["plain", "status 7", "no licence for the flux capacitor"]);
}

#[test]
fn server_that_dies_in_mid_run_is_reported_with_status_and_log() {
    let project = built("plain");
    let run = project.httpbench().args(["index", "--quick", "--rounds", "1", "--duration", "60s", "--warm-up", "20ms"]);
    let outcome = run.env("DIE_AFTER", "2000").deadline(AT_ONCE).run();
    outcome.assert_code(105).assert_stderr(&["plain", "status 3", "out of flux after"]);
}

#[test]
fn other_scenarios_run_although_the_server_died_in_one() {
    let project = built("plain");
    // With 4 connections, /slow cannot ask more than about 70 times; index goes far beyond 500.
    let run = project.httpbench().short().args(["index", "slow", "--connections", "4"]);
    let outcome = run.env("DIE_AFTER", "500").run();
    outcome.assert_code(105).assert_stdout(&["slow"]);
}

#[test]
fn dead_server_outranks_an_exceeded_limit_and_that_an_invalid_measurement() {
    let project = built("plain");
    let run = project.httpbench().short().args(["--ignored", "missing"]);
    run.env("DIE_AFTER", "300").run().assert_code(105);
    let outcome = project.httpbench().short().args(["--ignored", "missing", "panics"]).run();
    outcome.assert_code(100).assert_stderr(&["no flux today"]);
}

#[test]
fn server_that_never_listens_is_105_after_its_timeout_with_its_log() {
    let project = built("plain");
    project.write("httpbench.toml", "[server]\nready = { timeout = \"1s\" }\n");
    let outcome = index(&project).env("NEVER_READY", "deaf").deadline(AT_ONCE).run();
    outcome.assert_code(105).assert_stderr(&["ready", "1s", "fixture server", "timeout"]);
}

#[test]
fn server_that_accepts_and_never_answers_is_105_after_its_timeout() {
    let project = built("plain");
    project.write("httpbench.toml", "[server]\nready = { timeout = \"1s\" }\n");
    let outcome = index(&project).env("NEVER_READY", "mute").deadline(AT_ONCE).run();
    outcome.assert_code(105).assert_stderr(&["ready", "1s"]);
}

#[test]
fn readiness_path_with_the_wrong_status_tells_what_was_answered() {
    let project = built("plain");
    project.write("httpbench.toml", "[server]\nready = { path = \"/health\", status = 200, timeout = \"1s\" }\n");
    index(&project).deadline(AT_ONCE).run().assert_code(105).assert_stderr(&["/health", "404", "200"]);
}

#[test]
fn server_that_takes_its_time_is_waited_for() {
    let project = Project::copy("plain");
    index(&project).env("START_DELAY_MS", "3000").run().assert_code(0);
}

#[test]
fn server_that_ignores_sigterm_is_killed_after_the_stop_timeout() {
    let project = built("plain");
    project.write("httpbench.toml", "[server]\nstop-timeout = \"300ms\"\n");
    let outcome = index(&project).env("IGNORE_SIGTERM", "1").deadline(AT_ONCE).run();
    outcome.assert_code(0).assert_stderr(&["SIGTERM"]);
}

#[test]
fn workers_and_their_sessions_end_with_the_server() {
    let project = Project::copy("plain");
    index(&project).env("FORK_WORKERS", "3").run().assert_code(0);
}

#[test]
fn workers_that_ignore_sigterm_end_with_the_server() {
    let project = built("plain");
    project.write("httpbench.toml", "[server]\nstop-timeout = \"300ms\"\n");
    index(&project).env("FORK_WORKERS", "3").env("IGNORE_SIGTERM", "1").deadline(AT_ONCE).run().assert_code(0);
}

#[test]
fn hundred_megabytes_on_standard_output_do_no_harm() {
    let project = Project::copy("plain");
    let outcome = index(&project).env("SPAM_STDOUT_MB", "100").run();
    outcome.assert_code(0);
    assert!(outcome.stdout.len() + outcome.stderr.len() < 100_000, "{outcome}");
}

#[test]
fn of_a_hundred_megabytes_only_the_last_lines_are_shown() {
    let project = Project::copy("plain");
    let outcome = index(&project).env("SPAM_STDOUT_MB", "100").env("DIE_AT_START", "1").run();
    outcome.assert_code(105).assert_stderr(&["no licence for the flux capacitor"]);
    let lines = outcome.stderr.lines().filter(|line| line.contains("spam spam")).count();
    assert!((1..=20).contains(&lines), "{lines} lines of the log\n{outcome}");
}

#[test]
fn of_two_ports_the_one_that_was_asked_for_is_measured() {
    let project = Project::copy("plain");
    index(&project).env("TWO_PORTS", "asked").run().assert_code(0);
}

#[test]
fn of_two_ports_the_only_one_that_speaks_http_is_measured() {
    let project = Project::copy("plain");
    index(&project).env("TWO_PORTS", "silent").run().assert_code(0);
}

#[test]
fn two_unasked_ports_that_both_speak_http_are_listed_and_refused() {
    let project = built("plain");
    let outcome = index(&project).env("TWO_PORTS", "others").run();
    outcome.assert_code(105).assert_stderr(&["{port}"]);
    let ports = outcome.stderr.matches("127.0.0.1:").count();
    assert!(ports >= 2, "both ports should be named\n{outcome}");
}

/// The fixture's port is one for all tests: only one at a time may use it.
static HARD_CODED_PORT: Mutex<()> = Mutex::new(());

#[test]
fn port_that_is_written_into_the_code_is_found() {
    let _alone = HARD_CODED_PORT.lock().unwrap_or_else(PoisonError::into_inner);
    let project = Project::copy("hard-coded-port");
    project.httpbench().short().run().assert_code(0).assert_stdout(&["index"]);
}

#[test]
fn port_that_is_written_into_the_code_and_taken_is_the_servers_failure() {
    let _alone = HARD_CODED_PORT.lock().unwrap_or_else(PoisonError::into_inner);
    let _other = TcpListener::bind("127.0.0.1:38417").expect("nobody else uses this port");
    let project = Project::copy("hard-coded-port");
    let outcome = project.httpbench().short().run();
    let holder = format!("(pid {})", std::process::id());
    outcome.assert_code(105).assert_stderr(&["cannot bind 127.0.0.1:38417", "status 4", &holder]);
}

#[test]
fn port_that_somebody_else_serves_is_refused_by_name_and_pid() {
    let project = built("plain");
    project.write("httpbench.toml", "[server]\nready = { timeout = \"3s\" }\n");
    let told = project.beside("port");
    let run = index(&project).env("NEVER_READY", "deaf").env("TELL_PORT", &told).deadline(AT_ONCE).start();
    let port: u16 = wait_for_file(&told, AT_ONCE).parse().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    let stranger = std::thread::spawn({
        let listener = listener.try_clone().unwrap();
        move || {
            for mut stream in listener.incoming().flatten().take_while(|stream| stream.peer_addr().is_ok()) {
                let mut request = [0; 1024];
                let count = stream.read(&mut request).unwrap_or(0);
                if request[..count].starts_with(b"STOP") {
                    return;
                }
                _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nstranger");
            }
        }
    });
    let outcome = run.wait();
    std::net::TcpStream::connect(("127.0.0.1", port)).unwrap().write_all(b"STOP").unwrap();
    stranger.join().unwrap();
    outcome.assert_code(105).assert_stderr(&[&port.to_string(), &format!("(pid {})", std::process::id())]);
}

#[test]
fn server_has_no_feature_that_only_a_dev_dependency_switches_on() {
    let project = Project::copy("dev-feature");
    project.httpbench().short().run().assert_code(0).assert_stdout(&["as_shipped"]);
}

/// Runs the scenario that asks for a target and expects a text.
fn ask(project: &Project, target: &str, expected: &str) -> Outcome {
    project.httpbench().short().args(["--ignored", "asked"]).env("ASK", target).env("EXPECT", expected).run()
}

#[test]
fn private_folder_holds_the_copied_files_and_what_setup_made_and_is_gone_afterwards() {
    let project = Project::copy("plain");
    let teardown = project.beside("teardown");
    project.write("seed/todo.txt", "water the plants\n");
    project.write(
        "httpbench.toml",
        &format!(
            "[server]\ncopy = [\"seed\"]\n\
             setup = [\"sh\", \"-c\", \"cat seed/todo.txt > \\\"$1/made.txt\\\"; echo by setup >> \\\"$1/made.txt\\\"\", \"sh\", \"{{dir}}\"]\n\
             teardown = [\"sh\", \"-c\", \"echo \\\"$1\\\" >> '{}'\", \"sh\", \"{{dir}}\"]\n",
            teardown.display()
        ),
    );
    ask(&project, "/file/seed/todo.txt", "water the plants").assert_code(0);
    ask(&project, "/file/made.txt", "by setup").assert_code(0);
    let folders = fs::read_to_string(teardown).unwrap();
    assert!(folders.lines().count() >= 2, "{folders}");
    for folder in folders.lines() {
        assert!(!folder.is_empty() && !PathBuf::from(folder).exists(), "{folder} is still there");
    }
}

#[test]
fn setup_that_fails_is_told_with_its_words() {
    let project = Project::copy("plain");
    project.write("httpbench.toml", "[server]\nsetup = [\"sh\", \"-c\", \"echo no such table >&2; exit 5\"]\n");
    let outcome = index(&project).run();
    outcome.assert_code(105).assert_stderr(&["setup", "no such table", "status 5"]);
}

#[test]
fn working_directory_is_the_package_root_wherever_the_command_is_called() {
    let project = Project::copy("plain");
    let outcome = project
        .httpbench()
        .short()
        .args(["--ignored", "asked"])
        .env("ASK", "/cwd")
        .env("EXPECT", project.root())
        .current_dir(project.root().join("src"))
        .run();
    outcome.assert_code(0);
}

#[test]
fn users_environment_reaches_the_server_but_not_what_cargo_set_for_us() {
    let project = Project::copy("plain");
    // As when the command is called through `cargo run`, which is what an alias in the user's project does.
    let ask = |name: &str, expected: &str| {
        let run = project.httpbench().short().args(["--ignored", "asked"]);
        run.env("ASK", format!("/env/{name}"))
            .env("EXPECT", expected)
            .env("FAVOURITE_COLOUR", "blue")
            .env("CARGO_MANIFEST_DIR", "/somewhere/else")
            .env("CARGO_PKG_NAME", "somebody-else")
            .env("CARGO_BIN_EXE_other", "/somewhere/else/other")
            .run()
            .assert_code(0);
    };
    ask("FAVOURITE_COLOUR", "FAVOURITE_COLOUR=blue;");
    ask("CARGO_BIN_EXE_other", "CARGO_BIN_EXE_other is unset;");
    // What `cargo run` would set for the server itself.
    ask("CARGO_PKG_NAME", "CARGO_PKG_NAME=plain;");
    ask("CARGO_MANIFEST_DIR", &format!("CARGO_MANIFEST_DIR={};", project.root().display()));
    ask("HOST", "HOST=127.0.0.1;");
}

#[test]
fn configured_environment_and_arguments_are_filled_in() {
    let project = Project::copy("plain");
    project.write("httpbench.toml", "[server]\nenv = { WHERE = \"at {host}\", FAVOURITE_COLOUR = \"green\" }\n");
    ask(&project, "/env/WHERE", "WHERE=at 127.0.0.1;").assert_code(0);
    ask(&project, "/env/FAVOURITE_COLOUR", "FAVOURITE_COLOUR=green;").assert_code(0);
}
