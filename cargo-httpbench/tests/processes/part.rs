//! What this executable does when it is run as a server, a worker or a command.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use cargo_httpbench::interrupt::Interrupt;
use cargo_httpbench::server::Server;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, SockaddrIn6, bind, listen, setsockopt, socket, sockopt,
};
use nix::unistd::setsid;

use crate::{PART, make_stubborn, spec, supervise_with_the_real_one, wait_for};

/// Plays a part until it is over.
pub(crate) fn play(part: &str) {
    let asked = || (std::env::var("HOST").unwrap(), std::env::var("PORT").unwrap().parse().unwrap());
    let bound = || TcpListener::bind(asked()).unwrap();
    let anywhere = || TcpListener::bind("127.0.0.1:0").unwrap();
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
