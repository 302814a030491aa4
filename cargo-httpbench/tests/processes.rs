//! Supervised children and servers with one trick each, end to end: real processes, real sockets, real signals.
//!
//! This executable plays all parts: run again with [`PART`] set, it is a server with a trick, or a command that is killed.
//! The supervisor is the real one. Every wait has an end; only processes that were started here are signalled.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test says what failed by where it panics")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cargo_httpbench::config::{Ready, ServerSettings};
use cargo_httpbench::error::Error;
use cargo_httpbench::exit_code::ExitCode;
use cargo_httpbench::interrupt::Interrupt;
use cargo_httpbench::process::{Child, Ended, InheritedDescriptor, Launch, Output, Stopped, use_executable};
use cargo_httpbench::server::{Note, Server, ServerSpec, StopWarning};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, listen, setsockopt, socket, sockopt,
};
use nix::unistd::{Pid, setsid};

/// The environment variable that makes this executable somebody else.
const PART: &str = "HTTPBENCH_TEST_PART";

/// What is waited for, at most, when it has to happen soon.
const SOON: Duration = Duration::from_secs(10);

// ---------------------------------------------------------------------------------------------------- the other parts

/// Not a test of its own: what this executable does when it is run as a server.
#[test]
fn part() {
    let Ok(part) = std::env::var(PART) else { return };
    let asked = || (std::env::var("HOST").unwrap(), std::env::var("PORT").unwrap().parse().unwrap());
    let bound = || TcpListener::bind(asked()).unwrap();
    let anywhere = || TcpListener::bind("127.0.0.1:0").unwrap();
    match &*part {
        "good" => serve(&bound(), 200),
        "slow" => {
            std::thread::sleep(Duration::from_millis(700));
            serve(&bound(), 200);
        }
        "dies" => {
            (0..30).for_each(|line| eprintln!("line {line} of my last words"));
            std::process::exit(3);
        }
        "daemon" => std::process::exit(0),
        "silent" => std::thread::sleep(Duration::from_secs(60)),
        "unready" => serve(&bound(), 503),
        "mute" => {
            let _socket = bound();
            std::thread::sleep(Duration::from_secs(60));
        }
        "chatty" => {
            let line = [b'x'; 1023];
            let mut out = std::io::stdout().lock();
            for _ in 0..100 * 1024 {
                out.write_all(&line).unwrap();
                out.write_all(b"\n").unwrap();
            }
            out.write_all(b"the end\n").unwrap();
            drop(out);
            serve(&bound(), 200);
        }
        "forks" => {
            let me = std::env::current_exe().unwrap();
            // The shell goes away at once: the worker is an orphan with a session of its own.
            let script = r#""$0" --exact part --nocapture & exit 0"#;
            Command::new("/bin/sh").args(["-c", script]).arg(me).env(PART, "worker").status().unwrap();
            wait_for("the worker", || dir().join("worker.pid").exists());
            serve(&bound(), 200);
        }
        "worker" => {
            setsid().unwrap();
            fs::write(dir().join("worker.tmp"), std::process::id().to_string()).unwrap();
            fs::rename(dir().join("worker.tmp"), dir().join("worker.pid")).unwrap();
            std::thread::sleep(Duration::from_secs(60));
        }
        "two ports" => {
            let other = anywhere();
            std::thread::spawn(move || serve(&other, 200));
            // The asked one comes late.
            std::thread::sleep(Duration::from_millis(100));
            serve(&bound(), 200);
        }
        "two other ports" => {
            let other = anywhere();
            std::thread::spawn(move || serve(&other, 200));
            serve(&anywhere(), 200);
        }
        "other port" => serve(&anywhere(), 200),
        "other port and a mute one" => {
            let _mute = anywhere();
            serve(&anywhere(), 200);
        }
        "any address" => serve(&TcpListener::bind(("0.0.0.0", asked().1)).unwrap(), 200),
        "both families" => serve(&TcpListener::bind(("::", asked().1)).unwrap(), 200),
        "shares its port" => serve(&shared_listener(asked().1), 200),
        "address in use" => {
            let taken = std::env::var("TAKEN").unwrap();
            let error = TcpListener::bind(&taken).unwrap_err();
            eprintln!("cannot bind {taken}: {error}");
            std::process::exit(1);
        }
        "command" => command(),
        other => panic!("no such part: {other}"),
    }
}

fn dir() -> PathBuf {
    std::env::var_os("HTTPBENCH_DIR").unwrap().into()
}

/// A small server, one connection at a time. `GET /exit` ends it.
fn serve(listener: &TcpListener, status: u16) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let _ = reader.read_line(&mut line);
        if line.starts_with("GET /exit ") {
            eprintln!("asked to exit");
            std::process::exit(7);
        }
        let _ = write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
    }
}

/// A listener that others may join.
fn shared_listener(port: u16) -> TcpListener {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    setsockopt(&socket, sockopt::ReusePort, &true).unwrap();
    bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, port)).unwrap();
    listen(&socket, Backlog::new(16).unwrap()).unwrap();
    TcpListener::from(socket)
}

/// A command as ours will be: starts a server, says who is who, waits for a signal, cleans up, exits with the signal's code.
fn command() {
    supervise_with_the_real_one();
    let interrupt = Interrupt::install().unwrap();
    let mut spec = spec(&std::env::var("SERVER_PART").unwrap());
    if std::env::var_os("STUBBORN").is_some() {
        make_stubborn(&mut spec, Duration::from_secs(50));
    }
    let server = Server::start(&spec, &interrupt).unwrap();
    let suspensions = interrupt.suspensions();
    println!("\nstarted {} {} {}", server.root_pid(), server.pid(), server.dir().display());
    let error = loop {
        if let Err(error) = interrupt.sleep(Duration::from_millis(20)) {
            break error;
        }
        if interrupt.suspensions() != suspensions {
            fs::write(server.dir().join("suspended"), "").unwrap();
        }
    };
    println!("\nstopping");
    server.stop().unwrap();
    std::process::exit(error.exit.code().into());
}

// ------------------------------------------------------------------------------------------------------------ tools

fn supervise_with_the_real_one() {
    use_executable(env!("CARGO_BIN_EXE_cargo-httpbench"));
}

fn interrupt() -> Interrupt {
    supervise_with_the_real_one();
    Interrupt::deaf().unwrap()
}

fn base_env(part: &str) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    env.insert(PART.into(), part.into());
    env
}

fn spec(part: &str) -> ServerSpec {
    ServerSpec {
        name: "fake".into(),
        executable: std::env::current_exe().unwrap(),
        settings: ServerSettings {
            bin: None,
            args: ["--exact", "part", "--nocapture"].map(String::from).to_vec(),
            env: BTreeMap::new(),
            copy: Vec::new(),
            setup: None,
            teardown: None,
            working_dir: None,
            ready: Ready { path: "/".into(), status: None, timeout: Duration::from_secs(30) },
            stop_timeout: Duration::from_secs(5),
        },
        package_root: env!("CARGO_MANIFEST_DIR").into(),
        base_env: base_env(part),
        cores: Vec::new(),
    }
}

/// Makes the server ignore SIGTERM: what a shell ignores stays ignored in what it becomes.
fn make_stubborn(spec: &mut ServerSpec, stop_timeout: Duration) {
    let me = spec.executable.to_str().unwrap().to_owned();
    spec.executable = "/bin/sh".into();
    let script = r#"trap '' TERM; exec "$0" --exact part --nocapture"#;
    spec.settings.args = vec!["-c".into(), script.into(), me];
    spec.settings.stop_timeout = stop_timeout;
}

fn shell(script: &str) -> Launch {
    let mut launch = Launch::new("script", "/bin/sh", "/");
    launch.args = vec!["-c".into(), script.into()];
    launch.env = std::env::vars_os().collect();
    launch
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// `None` when the process is gone, or only waits to be reaped by whatever is process 1 here.
fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = stat[stat.rfind(')')? + 2..].chars().next()?;
    (!matches!(state, 'Z' | 'X')).then_some(state)
}

fn send_signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = write!(stream, "GET {path} HTTP/1.1\r\n\r\n");
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

fn details(error: &Error) -> String {
    error.details.iter().flat_map(|details| &details.lines).map(|line| format!("{line}\n")).collect()
}

fn refused(spec: &ServerSpec) -> Error {
    Server::start(spec, &interrupt()).map(|server| server.address()).expect_err("the server is not fit for use")
}

// --------------------------------------------------------------------------------------------------------- children

#[test]
fn output_and_status_of_a_program_are_seen() {
    let child = Child::spawn(shell("echo out; echo err >&2; exit 3"), &interrupt()).unwrap();
    assert_eq!(child.wait(&interrupt()).unwrap(), Ended::Exited { code: 3 });
    let error = child.failure(ExitCode::ServerFailed, Ended::Exited { code: 3 }, "too early");
    assert_eq!(error.what, "`script` exited with status 3 too early");
    assert!(details(&error).contains("out\nerr\n"), "{error:?}");
    assert!(details(&error).contains("/bin/sh -c 'echo out"), "{error:?}");
}

#[test]
fn program_that_kills_itself_is_reported_with_its_signal() {
    let child = Child::spawn(shell("kill -KILL $$"), &interrupt()).unwrap();
    assert_eq!(child.wait(&interrupt()).unwrap(), Ended::Killed { signal: 9, core_dumped: false });
}

#[test]
fn program_that_does_not_exist_fails_with_the_code_of_its_launch() {
    let mut launch = Launch::new("gone", "/nowhere/gone", "/");
    launch.exit = ExitCode::BuildFailed;
    let error = Child::spawn(launch, &interrupt()).unwrap_err();
    assert_eq!((error.exit, error.what.as_str()), (ExitCode::BuildFailed, "cannot start `gone`"));
    assert!(error.cause.unwrap().to_string().contains("No such file"));
}

#[test]
fn piped_output_is_the_callers_and_inherited_descriptor_is_open_in_the_program() {
    let (mut near, far) = std::io::pipe().unwrap();
    let mut launch = shell("echo \"$MARK\"; echo through >/proc/self/fd/$NUMBER");
    launch.env.insert("MARK".into(), "mark".into());
    launch.stdout = Output::Piped;
    launch.inherit = Some(InheritedDescriptor { descriptor: OwnedFd::from(far), variable: "NUMBER".into() });
    let mut child = Child::spawn(launch, &interrupt()).unwrap();
    let (mut out, mut through) = (String::new(), String::new());
    child.take_stdout().unwrap().read_to_string(&mut out).unwrap();
    near.read_to_string(&mut through).unwrap();
    assert_eq!((out.as_str(), through.as_str()), ("mark\n", "through\n"));
}

#[test]
fn no_descriptor_of_the_command_leaks_into_a_program() {
    let _other = Child::spawn(shell("sleep 60"), &interrupt()).unwrap();
    let child = Child::spawn(shell("for fd in /proc/$$/fd/*; do readlink $fd; done"), &interrupt()).unwrap();
    child.wait(&interrupt()).unwrap();
    let text = child.log().text();
    assert!(!text.contains("socket:"), "{text}");
    assert_eq!(text.lines().next(), Some("/dev/null"), "{text}");
}

#[test]
fn program_runs_on_the_cores_that_it_is_given_and_its_supervisor_stays_free() {
    let mut launch = shell("grep Cpus_allowed_list /proc/self/status");
    launch.cores = vec![0];
    let child = Child::spawn(launch, &interrupt()).unwrap();
    child.wait(&interrupt()).unwrap();
    assert_eq!(child.log().last(1), ["Cpus_allowed_list:    0"]);
    let mut impossible = shell("true");
    impossible.cores = vec![1000];
    let error = Child::spawn(impossible, &interrupt()).unwrap_err();
    assert!(error.cause.unwrap().to_string().contains("[1000]"));
}

#[test]
fn dropped_child_takes_its_whole_tree_along() {
    let child = Child::spawn(shell("sleep 60 & echo $!; sleep 60"), &interrupt()).unwrap();
    wait_for("the line", || child.log().text().ends_with('\n'));
    let grandchild: u32 = child.log().text().trim().parse().unwrap();
    let (pid, supervisor) = (child.pid(), child.supervisor_pid());
    assert!(state_of(pid).is_some() && state_of(grandchild).is_some() && state_of(supervisor).is_some());
    drop(child);
    assert_eq!((state_of(pid), state_of(grandchild), state_of(supervisor)), (None, None, None));
}

#[test]
fn supervisor_shrugs_off_signals_and_if_killed_its_child_is_reported_lost() {
    let child = Child::spawn(shell("sleep 60"), &interrupt()).unwrap();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGPIPE, Signal::SIGQUIT] {
        send_signal(child.supervisor_pid(), signal);
    }
    assert_eq!(child.wait_timeout(Duration::from_millis(100), &interrupt()).unwrap(), None);
    send_signal(child.supervisor_pid(), Signal::SIGKILL);
    assert_eq!(child.wait(&interrupt()).unwrap(), Ended::Unknown);
    let pid = child.pid();
    drop(child);
    wait_for("the orphan's end", || state_of(pid).is_none());
}

#[test]
fn stop_is_polite_at_first_and_then_is_not() {
    let polite =
        Child::spawn(shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"), &interrupt());
    let polite = polite.unwrap();
    wait_for("the trap", || polite.log().written() > 0);
    assert_eq!(polite.stop(SOON).unwrap(), Stopped::Politely);
    assert_eq!(polite.try_wait().unwrap(), Some(Ended::Exited { code: 0 }));
    assert_eq!(polite.log().last(1), ["bye"]);

    let stubborn = Child::spawn(shell("trap '' TERM; echo ready; while :; do sleep 1; done"), &interrupt()).unwrap();
    wait_for("the trap", || stubborn.log().written() > 0);
    let grace = Duration::from_millis(50);
    assert_eq!(stubborn.stop(grace).unwrap(), Stopped::Killed { after: grace });
    assert_eq!(stubborn.try_wait().unwrap(), Some(Ended::Killed { signal: 9, core_dumped: false }));
}

// ---------------------------------------------------------------------------------------------------------- servers

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
fn wrong_status_and_silence_are_not_ready() {
    let mut spec = spec("unready");
    spec.settings.ready = Ready { path: "/health".into(), status: Some(200), timeout: Duration::from_secs(1) };
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
    assert!(matches!(&warnings[..], [StopWarning::HadToBeKilled { .. }]), "{warnings:?}");
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
    assert!(server.log().written() > 100 * 1024 * 1024);
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
    for part in ["any address", "both families"] {
        let server = Server::start(&spec(part), &interrupt()).unwrap();
        assert!(server.address().to_string().starts_with("127.0.0.1:"), "{part}: {}", server.address());
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
    let [warning @ StopWarning::Teardown(_)] = &warnings[..] else { panic!("{warnings:?}") };
    assert_eq!(warning.to_string().trim(), "`teardown of fake` exited with status 4");
}

// ---------------------------------------------------------------------------------------------------------- signals

/// A command with a server, from outside.
struct Outside {
    command: std::process::Child,
    out: BufReader<std::process::ChildStdout>,
    supervisor: u32,
    server: u32,
    dir: PathBuf,
}

impl Outside {
    fn start(server_part: &str, configure: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "part", "--nocapture"]).env(PART, "command").env("SERVER_PART", server_part);
        command.stdout(Stdio::piped());
        configure(&mut command);
        let mut command = command.spawn().unwrap();
        let out = BufReader::new(command.stdout.take().unwrap());
        let mut outside = Self { command, out, supervisor: 0, server: 0, dir: PathBuf::new() };
        let line = outside.line("started ");
        let mut words = line.splitn(3, ' ');
        outside.supervisor = words.next().unwrap().parse().unwrap();
        outside.server = words.next().unwrap().parse().unwrap();
        outside.dir = words.next().unwrap().into();
        outside
    }

    /// The rest of the next line that starts so.
    fn line(&mut self, start: &str) -> String {
        let mut line = String::new();
        while self.out.read_line(&mut line).unwrap() > 0 {
            if let Some(rest) = line.trim_end().strip_prefix(start) {
                return rest.to_owned();
            }
            line.clear();
        }
        panic!("the command ended before it said `{start}`");
    }

    fn signal(&self, signal: Signal) {
        send_signal(self.command.id(), signal);
    }

    fn exit_code(&mut self) -> Option<i32> {
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(status) = self.command.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the command does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

#[test]
fn killed_command_leaves_no_process_and_no_folder() {
    let mut outside = Outside::start("forks", |_| ());
    let worker: u32 = fs::read_to_string(outside.dir.join("worker.pid")).unwrap().parse().unwrap();
    assert!(state_of(worker).is_some() && state_of(outside.server).is_some());
    outside.signal(Signal::SIGKILL);
    assert_eq!(outside.exit_code(), None);
    for pid in [worker, outside.server, outside.supervisor] {
        wait_for("the end of every process", || state_of(pid).is_none());
    }
    assert!(!outside.dir.exists());
}

#[test]
fn signal_ends_the_command_with_its_code_after_the_cleaning_up() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let mut outside = Outside::start("good", |_| ());
        outside.signal(signal);
        assert_eq!(outside.exit_code(), Some(code));
        assert_eq!((state_of(outside.server), state_of(outside.supervisor)), (None, None), "{signal}");
        assert!(!outside.dir.exists());
    }
}

#[test]
fn second_interrupt_does_not_wait_for_a_stubborn_server() {
    // Its stop timeout is far longer than what this test waits for.
    let mut outside = Outside::start("good", |command| {
        command.env("STUBBORN", "1");
    });
    outside.signal(Signal::SIGINT);
    outside.line("stopping");
    outside.signal(Signal::SIGINT);
    assert_eq!(outside.exit_code(), Some(130));
    assert_eq!((state_of(outside.server), state_of(outside.supervisor)), (None, None));
    assert!(!outside.dir.exists());
}

#[test]
fn suspended_command_suspends_its_server_and_counts_it() {
    let mut outside = Outside::start("good", |_| ());
    outside.signal(Signal::SIGTSTP);
    wait_for("the stop of the command", || state_of(outside.command.id()) == Some('T'));
    assert_eq!(state_of(outside.server), Some('T'));
    outside.signal(Signal::SIGCONT);
    wait_for("the server to go on", || state_of(outside.server) != Some('T'));
    wait_for("the count", || outside.dir.join("suspended").exists());
    outside.signal(Signal::SIGTERM);
    assert_eq!(outside.exit_code(), Some(143));
}

#[test]
fn interrupted_wait_for_a_server_that_never_gets_ready_ends_at_once() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "part", "--nocapture"]).env(PART, "command").env("SERVER_PART", "silent");
    let mut command = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    send_signal(command.id(), Signal::SIGINT);
    let mut text = String::new();
    command.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    command.wait().unwrap();
    assert!(text.contains("Signal(2)"), "{text}");
}
