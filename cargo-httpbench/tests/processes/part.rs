//! What this executable does when it is run as a server, a worker or a command.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use cargo_httpbench::interrupt::Interrupt;
use cargo_httpbench::process::{adopt_orphans, redirect_available};
use cargo_httpbench::server::Server;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, SockaddrIn6, bind, listen, setsockopt, socket, sockopt,
};
use nix::unistd::{getppid, setsid};

use crate::platform::{forbid, under_signals};
use crate::{PART, interrupt, make_stubborn, redirects, spec, supervise_with_the_real_one, wait_for};

/// Plays a part until it is over.
pub(crate) fn play(part: &str) {
    let asked = || (std::env::var("HOST").unwrap(), std::env::var("PORT").unwrap().parse().unwrap());
    let bound = || TcpListener::bind(asked()).unwrap();
    match part {
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
            std::thread::sleep(Duration::from_millis(30));
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
        "IPv6 only" => serve(&version_6_listener(asked().1), 200),
        "both families" => serve(&TcpListener::bind(("::", asked().1)).unwrap(), 200),
        "shares its port" => serve(&shared_listener(asked().1), 200),
        "address in use" => {
            let taken = std::env::var("TAKEN").unwrap();
            let error = TcpListener::bind(&taken).unwrap_err();
            eprintln!("cannot bind {taken}: {error}");
            std::process::exit(1);
        }
        "command" => command(),
        "asks whether binds can be redirected" => {
            if std::env::var_os("FORBID_FILTERS").is_some() {
                forbid(libc::SYS_seccomp);
            }
            supervise_with_the_real_one();
            println!("answer: {:?}", redirect_available(&interrupt()).unwrap());
        }
        "starts two with one fixed port" => {
            supervise_with_the_real_one();
            println!("answers: {:?}", redirects::answers_of_two());
        }
        "starts two with one fixed port in a container" => {
            supervise_with_the_real_one();
            forbid(libc::SYS_pidfd_getfd);
            println!("answers: {:?} {:?}", redirects::answers_of_two(), redirects::answer_of_workers());
            println!("port of datagrams: {:?}", redirects::answer_beside_datagrams());
            println!("available: {:?}", redirect_available(&interrupt()).unwrap());
        }
        "a million calls" => {
            let started = Instant::now();
            (0..1_000_000).for_each(|_| {
                std::hint::black_box(getppid());
            });
            println!("{} ns a call", started.elapsed().as_nanos() / 1_000_000);
        }
        fixed => play_fixed(fixed),
    }
}

/// Plays a server that insists on the port in `FIXED`.
fn play_fixed(part: &str) {
    let fixed: u16 = std::env::var("FIXED").unwrap().parse().unwrap();
    let bound = || TcpListener::bind(("127.0.0.1", fixed)).unwrap();
    let play_too = |part| {
        let mut other = Command::new(std::env::current_exe().unwrap());
        other.args(["--exact", "part", "--nocapture"]).env(PART, part).spawn().unwrap()
    };
    match part {
        "fixed" => serve(&bound(), 200),
        "fixed, on all addresses" => serve(&TcpListener::bind(("::", fixed)).unwrap(), 200),
        "fixed, of version 6" => serve(&version_6_listener(fixed), 200),
        "fixed, one of several" => {
            let listener = shared_listener(fixed);
            fs::write(dir().join(std::process::id().to_string()), listener.local_addr().unwrap().to_string()).unwrap();
            serve(&listener, 200);
        }
        "fixed, by three workers" => {
            let workers = [(); 3].map(|()| play_too("fixed, one of several"));
            workers.into_iter().for_each(|mut worker| drop(worker.wait()));
        }
        "fixed, in a session of its own" => {
            setsid().unwrap();
            serve(&bound(), 200);
        }
        "fixed, by an orphan" => {
            let script = r#""$0" --exact part --nocapture & exit 0"#;
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", script]).arg(std::env::current_exe().unwrap());
            shell.env(PART, "fixed, in a session of its own").status().unwrap();
            std::thread::sleep(Duration::from_secs(60));
        }
        "fixed, in a thread" => {
            let thread = std::thread::spawn(move || TcpListener::bind(("127.0.0.1", fixed)).unwrap());
            serve(&thread.join().unwrap(), 200);
        }
        "fixed, and another one" => {
            let other = std::env::var("OTHER").unwrap().parse().unwrap();
            let _mute = TcpListener::bind(("127.0.0.1", other)).unwrap();
            serve(&bound(), 200);
        }
        "fixed, and the asked one" => {
            let metrics = bound();
            std::thread::spawn(move || serve_word(&metrics, 200, "metrics"));
            let asked: u16 = std::env::var("PORT").unwrap().parse().unwrap();
            serve_word(&TcpListener::bind(("127.0.0.1", asked)).unwrap(), 200, "the asked one");
        }
        "fixed, but datagrams and Unix sockets go first" => {
            let datagrams = std::net::UdpSocket::bind(("127.0.0.1", fixed)).unwrap();
            let path = dir().join("socket");
            let _unix = UnixListener::bind(&path).unwrap();
            assert!(path.exists());
            let free = anywhere().local_addr().unwrap().port();
            assert_ne!(free, 0);
            let word = format!("datagrams on {}", datagrams.local_addr().unwrap().port());
            serve_word(&bound(), 200, &word);
        }
        "fixed, a thousand times" => {
            (0..1000).for_each(|_| drop(bound()));
            serve(&bound(), 200);
        }
        "fixed, a thousand times under signals" => {
            under_signals(move || (0..1000).for_each(|_| drop(TcpListener::bind(("127.0.0.1", fixed)).unwrap())));
            serve(&bound(), 200);
        }
        "fixed, and refused the second time" => {
            let listener = bound();
            let again = TcpListener::bind(("127.0.0.1", fixed)).unwrap_err();
            serve_word(&listener, 200, &format!("{:?}", again.kind()));
        }
        "fixed, with a database" => {
            let mut greeting = String::new();
            let mut database = TcpStream::connect(std::env::var("DATABASE").unwrap()).unwrap();
            database.read_to_string(&mut greeting).unwrap();
            serve_word(&bound(), 200, &greeting);
        }
        other => panic!("no such part: {other}"),
    }
}

fn anywhere() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn dir() -> PathBuf {
    std::env::var_os("HTTPBENCH_DIR").unwrap().into()
}

/// A small server, one connection at a time, whose answer is the word in `WORD`, or "ok". `GET /exit` ends it.
fn serve(listener: &TcpListener, status: u16) {
    serve_word(listener, status, &std::env::var("WORD").unwrap_or_else(|_| "ok".to_owned()));
}

fn serve_word(listener: &TcpListener, status: u16, word: &str) {
    let length = word.len();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let _ = reader.read_line(&mut line);
        if line.starts_with("GET /exit ") {
            eprintln!("asked to exit");
            std::process::exit(7);
        }
        let _ = write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{word}");
    }
}

/// A listener that others may join.
pub(crate) fn shared_listener(port: u16) -> TcpListener {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    setsockopt(&socket, sockopt::ReusePort, &true).unwrap();
    bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, port)).unwrap();
    listen(&socket, Backlog::new(16).unwrap()).unwrap();
    TcpListener::from(socket)
}

/// A listener that does not take IPv4 connections in IPv6 clothes.
fn version_6_listener(port: u16) -> TcpListener {
    let socket = socket(AddressFamily::Inet6, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    setsockopt(&socket, sockopt::Ipv6V6Only, &true).unwrap();
    let anywhere = std::net::SocketAddrV6::new(std::net::Ipv6Addr::UNSPECIFIED, port, 0, 0);
    bind(socket.as_raw_fd(), &SockaddrIn6::from(anywhere)).unwrap();
    listen(&socket, Backlog::new(16).unwrap()).unwrap();
    TcpListener::from(socket)
}

/// A command as ours will be: starts a server, says who is who, waits for a signal, cleans up, exits with the signal's code.
fn command() {
    supervise_with_the_real_one();
    let interrupt = Interrupt::install().unwrap();
    adopt_orphans();
    println!("\nsignals are caught");
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
