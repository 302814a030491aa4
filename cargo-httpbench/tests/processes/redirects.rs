//! Servers that insist on a port, side by side.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::Command;

use cargo_httpbench::exit_code::ExitCode;
use cargo_httpbench::process::{Bind, Child, Launch, redirect_available};
use cargo_httpbench::server::{Note, PortPolicy, Server, ServerSpec};

use crate::servers::get;
use crate::{PART, base_env, details, interrupt, spec, supervise_with_the_real_one, wait_for};

/// A port that cannot be had: somebody else listens there as long as this lives.
struct Taken {
    port: u16,
    _holder: TcpListener,
}

fn taken() -> Taken {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    Taken { port: holder.local_addr().unwrap().port(), _holder: holder }
}

fn redirected(part: &str, fixed: u16, word: &str) -> ServerSpec {
    let mut spec = spec(part);
    spec.ports = PortPolicy::Redirect;
    spec.settings.env.insert("FIXED".into(), fixed.to_string());
    spec.settings.env.insert("WORD".into(), word.into());
    spec
}

/// This executable, playing a part.
fn myself(part: &str) -> Launch {
    let mut launch = Launch::new("myself", std::env::current_exe().unwrap(), "/");
    launch.args = ["--exact", "part", "--nocapture"].map(Into::into).to_vec();
    launch.env = base_env(part);
    launch
}

/// What a program says until its end.
fn said_by(launch: Launch) -> String {
    let child = Child::spawn(launch, &interrupt()).unwrap();
    child.wait(&interrupt()).unwrap();
    child.log().text()
}

fn start(spec: &ServerSpec) -> Server {
    Server::start(spec, &interrupt()).unwrap()
}

fn answer(server: &Server) -> String {
    get(server.address(), "/").rsplit("\r\n\r\n").next().unwrap().to_owned()
}

/// What two servers answer that insist on the same port, which neither can have, and the addresses by which they do.
pub(crate) fn answers_of_two() -> Vec<String> {
    let taken = taken();
    let servers = ["left", "right"].map(|word| start(&redirected("fixed", taken.port, word)));
    for server in &servers {
        let port = server.address().port();
        assert_ne!(port, taken.port);
        assert_eq!(server.notes(), [Note::Redirected { from: taken.port, to: port }]);
    }
    servers.iter().map(answer).collect()
}

#[test]
fn two_servers_with_the_same_fixed_port_answer_at_once_each_with_its_own_word() {
    assert_eq!(answers_of_two(), ["left", "right"]);
}

#[test]
fn unprivileged_user_can_redirect_as_well() {
    let me = std::env::current_exe().unwrap();
    if nix::unistd::geteuid().as_raw() != 0 {
        eprintln!("not run: every other test here runs without privileges already");
        return;
    }
    let nobody = |program: &std::path::Path| {
        let mut command = Command::new(program);
        command.uid(65_534).gid(65_534);
        command
    };
    if let Err(error) = nobody(&me).arg("--list").output() {
        eprintln!("not run: user 65534 cannot run {}: {error}", me.display());
        return;
    }
    let mut command = nobody(&me);
    command.args(["--exact", "part", "--nocapture"]).env(PART, "starts two with one fixed port");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(r#"answers: ["left", "right"]"#), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn container_that_forbids_to_take_sockets_does_not_prevent_redirection() {
    let text = said_by(myself("starts two with one fixed port in a container"));
    assert!(text.contains(r#"answers: ["left", "right"] "worker""#), "{text}");
    assert!(text.contains("port of datagrams: true") && text.contains("available: Ok(())"), "{text}");
}

#[test]
fn workers_that_share_a_fixed_port_share_the_other_one() {
    assert_eq!(answer_of_workers(), "worker");
}

/// What one of three workers answers, once all listen on the same port.
pub(crate) fn answer_of_workers() -> String {
    let taken = taken();
    let server = start(&redirected("fixed, by three workers", taken.port, "worker"));
    let addresses = || {
        let entries =
            fs::read_dir(server.dir()).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
        entries.filter(|text| !text.is_empty()).collect::<Vec<_>>()
    };
    wait_for("three workers", || addresses().len() == 3);
    assert_eq!(addresses().into_iter().collect::<HashSet<_>>(), HashSet::from([server.host()]));
    assert_eq!(server.notes().len(), 1, "{:?}", server.notes());
    answer(&server)
}

#[test]
fn fixed_ports_of_both_families_are_redirected() {
    if TcpListener::bind("[::]:0").is_err() {
        eprintln!("not run: this system has no IPv6");
        return;
    }
    let taken = taken();
    for (part, start_of_host) in [("fixed, on all addresses", "127.0.0.1:"), ("fixed, of version 6", "[::1]:")] {
        let server = start(&redirected(part, taken.port, part));
        assert!(server.host().starts_with(start_of_host), "{}", server.host());
        assert_eq!(answer(&server), part);
    }
}

#[test]
fn threads_and_orphans_with_sessions_of_their_own_are_redirected() {
    let taken = taken();
    for part in ["fixed, in a thread", "fixed, by an orphan"] {
        assert_eq!(answer(&start(&redirected(part, taken.port, part))), part);
    }
}

#[test]
fn every_fixed_port_gets_one_of_its_own() {
    let (taken, other) = (taken(), self::taken());
    let mut spec = redirected("fixed, and another one", taken.port, "both");
    spec.settings.env.insert("OTHER".into(), other.port.to_string());
    let server = start(&spec);
    let [Note::Redirected { from: mute, to: at }, Note::Redirected { from, to }] = server.notes() else {
        panic!("{:?}", server.notes())
    };
    assert_eq!((*mute, *from, *to), (other.port, taken.port, server.address().port()));
    assert!(at != to && ![taken.port, other.port].contains(at));
    assert_eq!(answer(&server), "both");
}

#[test]
fn server_that_obeys_for_one_of_its_ports_is_measured_there() {
    let taken = taken();
    let server = start(&redirected("fixed, and the asked one", taken.port, ""));
    assert_eq!(answer(&server), "the asked one");
    // The user's own PORT is a fixed port like any other.
    let mut configured = redirected("good", 1, "configured");
    configured.settings.env.insert("PORT".into(), taken.port.to_string());
    let servers = [start(&configured), start(&configured)];
    assert_ne!(servers[0].address(), servers[1].address());
    assert!(servers.iter().all(|server| answer(server) == "configured"));
}

#[test]
fn datagrams_unix_sockets_and_free_ports_are_left_alone() {
    assert!(answer_beside_datagrams());
    let port = taken().port;
    let free = start(&redirected("other port", port, "free"));
    let [Note::IgnoredPort { bound, .. }] = free.notes() else { panic!("{:?}", free.notes()) };
    assert_eq!((*bound, answer(&free).as_str()), (free.address().port(), "free"));
}

/// Whether a server's datagrams arrive where it wanted them to, while its connections do not.
pub(crate) fn answer_beside_datagrams() -> bool {
    // A port that nobody holds.
    let port = taken().port;
    let server = start(&redirected("fixed, but datagrams and Unix sockets go first", port, ""));
    server.address().port() != port && answer(&server) == format!("datagrams on {port}")
}

#[test]
fn obedient_server_is_not_touched() {
    let server = start(&redirected("good", 1, "good"));
    assert_eq!((server.notes(), answer(&server).as_str()), (&[][..], "good"));
}

#[test]
fn fixed_port_is_refused_the_second_time_as_ever() {
    let server = start(&redirected("fixed, and refused the second time", taken().port, ""));
    assert_eq!(answer(&server), "AddrInUse");
}

#[test]
fn database_on_another_port_stays_reachable() {
    let database = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut spec = redirected("fixed, with a database", taken().port, "");
    spec.settings.env.insert("DATABASE".into(), database.local_addr().unwrap().to_string());
    let greeter = std::thread::spawn(move || database.accept().unwrap().0.write_all(b"from the database").unwrap());
    assert_eq!(answer(&start(&spec)), "from the database");
    greeter.join().unwrap();
}

#[test]
fn supervisor_keeps_no_descriptor_of_a_thousand_calls() {
    let count = |pid: u32| fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let taken = taken();
    let once = start(&redirected("fixed", taken.port, "once"));
    let often = start(&redirected("fixed, a thousand times", taken.port, "often"));
    assert_eq!(answer(&often), "often");
    assert_eq!(count(often.root_pid()), count(once.root_pid()));
}

#[test]
fn signals_do_not_make_a_redirected_call_fail() {
    let server = start(&redirected("fixed, a thousand times under signals", taken().port, "calm"));
    assert_eq!(answer(&server), "calm");
}

#[test]
fn listener_of_calls_is_closed_with_the_last_process_that_could_call() {
    let server = start(&redirected("good", 1, "good"));
    let calls = || {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", server.root_pid())).unwrap();
        descriptors
            .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
            .any(|link| link.to_string_lossy().contains("seccomp"))
    };
    assert!(calls());
    get(server.address(), "/exit");
    wait_for("the end of the listener", || !calls());
}

#[test]
fn redirection_is_available_where_these_tests_run() {
    supervise_with_the_real_one();
    assert_eq!(redirect_available(&interrupt()).unwrap(), Ok(()));
}

#[test]
fn system_that_refuses_the_filter_is_told_with_its_reason() {
    // A process can have one such filter: what runs under one of ours is refused another, as in some sandboxes.
    let mut launch = myself("asks whether binds can be redirected");
    launch.bind = Bind::Redirect { port: 0 };
    let text = said_by(launch);
    assert!(text.contains(r#"answer: Err("a sandbox around this process watches its system calls already"#), "{text}");

    let mut launch = myself("asks whether binds can be redirected");
    launch.env.insert("FORBID_FILTERS".into(), "1".into());
    let text = said_by(launch);
    assert!(text.contains(r#"answer: Err("a sandbox around this process forbids seccomp filters"#), "{text}");
}

#[test]
fn program_that_cannot_be_started_under_a_filter_fails_as_ever() {
    let mut launch = Launch::new("gone", "/nowhere/gone", "/");
    launch.bind = Bind::Redirect { port: 0 };
    launch.exit = ExitCode::ServerFailed;
    let error = Child::spawn(launch, &interrupt()).unwrap_err();
    assert_eq!(error.exit, ExitCode::ServerFailed);
    assert!(error.cause.as_ref().unwrap().to_string().contains("No such file"), "{}", details(&error));
}

#[test]
#[ignore = "a measurement, not a test: run it with --nocapture"]
fn cost_of_the_filter_for_other_calls() {
    for _ in 0..5 {
        for bind in [Bind::AsAsked, Bind::Redirect { port: 0 }] {
            let mut launch = myself("a million calls");
            launch.bind = bind;
            let text = said_by(launch);
            eprintln!("{bind:?}: {}", text.lines().find(|line| line.contains("ns a call")).unwrap_or(&text));
        }
    }
}
