//! Servers with one trick each.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use cargo_httpbench::config::Ready;
use cargo_httpbench::error::Error;
use cargo_httpbench::exit_code::ExitCode;
use cargo_httpbench::server::{Note, Server, ServerSpec};
use cargo_httpbench::warning::Warning;

use crate::part::shared_listener;
use crate::{SOON, base_env, details, interrupt, make_stubborn, spec, state_of};

pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = write!(stream, "GET {path} HTTP/1.1\r\n\r\n");
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

fn refused(spec: &ServerSpec) -> Error {
    Server::start(spec, &interrupt()).map(|server| server.address()).expect_err("the server is not fit for use")
}

#[test]
fn server_answers_where_it_was_asked_to_and_leaves_nothing() {
    let server = Server::start(&spec("good"), &interrupt()).unwrap();
    assert!(get(server.address(), "/").ends_with("ok"));
    assert_eq!(server.host(), format!("127.0.0.1:{}", server.address().port()));
    assert!(server.notes().is_empty() && server.died().is_none());
    let memory = server.memory().unwrap();
    assert!(memory.resident_bytes > 100_000 && memory.peak_bytes >= memory.resident_bytes, "{memory:?}");
    assert!(memory.shared_bytes <= memory.resident_bytes);
    let (root, pid, dir) = (server.root_pid(), server.pid(), server.dir().to_owned());
    assert!(dir.is_dir());
    assert!(server.stop().unwrap().is_empty());
    assert_eq!((state_of(root), state_of(pid), dir.exists()), (None, None, false));
}

#[test]
fn slow_server_is_waited_for() {
    let server = Server::start(&spec("slow"), &interrupt()).unwrap();
    assert!(server.startup() >= Duration::from_millis(700));
}

#[test]
fn server_that_dies_at_start_is_reported_with_its_status_and_its_log() {
    let error = refused(&spec("dies"));
    assert_eq!(
        (error.exit, error.what.as_str()),
        (ExitCode::ServerFailed, "`fake` exited with status 3 before it was ready")
    );
    let details = details(&error);
    assert!(details.contains("line 29 of my last words") && !details.contains("line 9 of"), "{details}");
    assert!(details.contains("--exact part"), "the command line: {details}");
}

#[test]
fn server_that_goes_into_the_background_is_told_to_stay() {
    let error = refused(&spec("daemon"));
    assert!(error.help.unwrap().contains("foreground"));
}

#[test]
fn server_that_never_listens_is_given_up_with_advice() {
    let mut spec = spec("silent");
    spec.settings.ready.timeout = Duration::from_millis(300);
    let error = refused(&spec);
    assert_eq!((error.exit, error.what.as_str()), (ExitCode::ServerFailed, "`fake` was not ready after 300ms"));
    assert!(details(&error).contains("no process of the server has a listening TCP socket"));
    assert!(error.help.unwrap().contains("PORT"));
}

#[test]
fn stranger_on_the_port_of_a_server_that_never_listens_is_named() {
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = stranger.local_addr().unwrap();
    let mut spec = spec("silent");
    spec.settings.ready.timeout = Duration::from_millis(300);
    spec.settings.env.insert("PORT".into(), address.port().to_string());
    let error = refused(&spec);
    let holder = format!("(pid {})", std::process::id());
    let line = details(&error).lines().find(|line| line.starts_with(&address.to_string())).unwrap().to_owned();
    assert!(line.contains(&holder), "{line}");
    assert!(error.help.unwrap().contains(&holder));
}

#[test]
fn wrong_status_and_silence_are_not_ready() {
    let mut spec = spec("unready");
    spec.settings.ready = Ready { path: "/health".into(), status: Some(200), timeout: Duration::from_secs(4) };
    assert!(details(&refused(&spec)).contains("answers 503, not 200"));
    spec.settings.ready.status = Some(503);
    drop(Server::start(&spec, &interrupt()).unwrap());
    spec.base_env = base_env("mute");
    assert!(details(&refused(&spec)).contains("accepts connections but does not answer"));
}

#[test]
fn server_that_ignores_sigterm_is_killed_with_a_warning() {
    let mut spec = spec("good");
    make_stubborn(&mut spec, Duration::from_millis(100));
    let server = Server::start(&spec, &interrupt()).unwrap();
    let (pid, dir) = (server.pid(), server.dir().to_owned());
    let warnings = server.stop().unwrap();
    assert!(matches!(&warnings[..], [Warning::ServerKilled { .. }]), "{warnings:?}");
    assert_eq!((state_of(pid), dir.exists()), (None, false));
}

#[test]
fn worker_with_a_session_of_its_own_does_not_outlive_its_server() {
    let server = Server::start(&spec("forks"), &interrupt()).unwrap();
    let worker: u32 = fs::read_to_string(server.dir().join("worker.pid")).unwrap().parse().unwrap();
    assert!(state_of(worker).is_some());
    server.stop().unwrap();
    assert_eq!(state_of(worker), None);
}

#[test]
fn hundred_megabytes_of_output_block_nobody() {
    let server = Server::start(&spec("chatty"), &interrupt()).unwrap();
    assert!(server.log().since(0).1 > 100 * 1024 * 1024);
    assert_eq!(server.log().last(1), ["the end"]);
    assert!(get(server.address(), "/").ends_with("ok"));
}

#[test]
fn of_two_ports_the_asked_one_is_taken() {
    let server = Server::start(&spec("two ports"), &interrupt()).unwrap();
    assert!(server.notes().is_empty(), "{:?}", server.notes());
}

#[test]
fn two_ports_of_which_none_was_asked_for_are_listed() {
    let error = refused(&spec("two other ports"));
    assert!(error.what.contains("answers HTTP on 2 ports"), "{error}");
    assert_eq!(error.details[0].lines.len(), 2, "{error:?}");
    assert!(error.help.unwrap().contains("{port}"));
}

#[test]
fn server_that_ignores_port_is_found() {
    for part in ["other port", "other port and a mute one"] {
        let server = Server::start(&spec(part), &interrupt()).unwrap();
        assert!(get(server.address(), "/").ends_with("ok"));
        let [Note::IgnoredPort { asked, bound }] = server.notes() else { panic!("{:?}", server.notes()) };
        assert_eq!(*bound, server.address().port());
        assert_ne!(asked, bound);
    }
}

#[test]
fn wildcard_addresses_are_reached_by_loopback() {
    let mut cases = vec![("any address", "127.0.0.1:")];
    if TcpListener::bind("[::]:0").is_ok() {
        cases.extend([("both families", "127.0.0.1:"), ("IPv6 only", "[::1]:")]);
    }
    for (part, start) in cases {
        let server = Server::start(&spec(part), &interrupt()).unwrap();
        assert!(server.host().starts_with(start), "{part}: {}", server.host());
        assert!(get(server.address(), "/").ends_with("ok"));
    }
}

#[test]
fn port_that_is_shared_with_a_stranger_is_refused_by_name_and_pid() {
    let stranger = shared_listener(0);
    let mut spec = spec("shares its port");
    spec.settings.env.insert("PORT".into(), stranger.local_addr().unwrap().port().to_string());
    let error = refused(&spec);
    assert_eq!(error.exit, ExitCode::ServerFailed);
    assert!(error.what.contains(&format!("(pid {})", std::process::id())), "{error}");
}

#[test]
fn holder_of_an_address_in_use_is_named() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut spec = spec("address in use");
    spec.settings.env.insert("TAKEN".into(), holder.local_addr().unwrap().to_string());
    let error = refused(&spec);
    assert!(details(&error).contains(&format!("(pid {})", std::process::id())), "{error:?}");
    assert!(error.help.unwrap().contains("PORT"));
}

#[test]
fn server_that_dies_in_use_is_noticed() {
    let interrupt = interrupt();
    let server = Server::start(&spec("good"), &interrupt).unwrap();
    get(server.address(), "/exit");
    interrupt.wait_for(&[server.events()], Some(SOON)).unwrap();
    let error = server.died().expect("it has exited");
    assert_eq!(error.exit, ExitCode::ServerFailed);
    assert_eq!(error.what, "`fake` exited with status 7 while it was being measured");
    assert!(details(&error).contains("asked to exit"));
}

#[test]
fn setup_server_and_teardown_run_in_order_with_copied_files_and_filled_placeholders() {
    let package = tempfile::tempdir().unwrap();
    fs::create_dir(package.path().join("sub")).unwrap();
    fs::write(package.path().join("seed.txt"), "seed").unwrap();
    let journal = package.path().join("journal");
    let script = |word: &str| {
        let script = format!(
            "echo {word} $0 $PORT $HOST $HTTPBENCH_DIR `cat {{dir}}/seed.txt` `pwd -P` $ASK >> {}",
            journal.display()
        );
        vec!["/bin/sh".to_owned(), "-c".to_owned(), script, "{port}".to_owned()]
    };
    let mut spec = spec("good");
    spec.package_root = package.path().canonicalize().unwrap();
    spec.settings.working_dir = Some("sub".into());
    spec.settings.copy = vec!["seed.txt".into()];
    spec.settings.setup = Some(script("setup"));
    spec.settings.teardown = Some(script("teardown"));
    spec.settings.env.insert("ASK".into(), "{host}:{port}".into());
    let server = Server::start(&spec, &interrupt()).unwrap();
    let (port, dir) = (server.address().port(), server.dir().display().to_string());
    assert_eq!(fs::read_to_string(&journal).unwrap().lines().count(), 1, "teardown comes after the server");
    assert!(server.stop().unwrap().is_empty());
    let sub = spec.package_root.join("sub");
    let expected = |word| format!("{word} {port} {port} 127.0.0.1 {dir} seed {} 127.0.0.1:{port}", sub.display());
    let journal = fs::read_to_string(&journal).unwrap();
    assert_eq!(journal.lines().collect::<Vec<_>>(), [expected("setup"), expected("teardown")]);
    assert!(!Path::new(&dir).exists());
}

#[test]
fn failing_setup_ends_the_start_and_failing_teardown_is_a_warning() {
    let failing = Some(["/bin/sh", "-c", "echo cannot seed; exit 4"].map(String::from).to_vec());
    let mut with_setup = spec("good");
    with_setup.settings.setup.clone_from(&failing);
    let error = refused(&with_setup);
    assert_eq!((error.exit, error.what.trim()), (ExitCode::ServerFailed, "`setup of fake` exited with status 4"));
    assert!(details(&error).contains("cannot seed"));

    let mut with_teardown = spec("good");
    with_teardown.settings.teardown = failing;
    let warnings = Server::start(&with_teardown, &interrupt()).unwrap().stop().unwrap();
    let [warning @ Warning::TeardownFailed { .. }] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(warning.to_string().starts_with("`teardown of fake` exited with status 4\n"), "{warning}");
}
