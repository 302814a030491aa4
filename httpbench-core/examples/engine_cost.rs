//! The two ends of `tests/engine-cost.sh`, which counts what an exchange costs the engine.
//!
//! `engine_cost serve` answers 100 bytes to every request, on a port that it prints; `engine_cost serve changing` counts its
//! answers in a header, `engine_cost serve unlike` makes that header now longer and now shorter, and `engine_cost serve parsed`
//! changes the body's length as well. `engine_cost load ADDRESS CONNECTIONS MILLISECONDS
//! [ARRIVAL-RATE]` drives that with the engine, on one thread, and prints how many exchanges were good; with an arrival rate
//! also how late the engine sent them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use httpbench_core::Check;
use httpbench_core::engine::run_round;
use httpbench_core::model::{ArmPlan, Histogram, Load, Nanos, RoundPlan, Schedule, SlicePlan};
use httpbench_core::scenario::WireRequest;

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let ended = match arguments[..] {
        ["serve"] => serve(Heads::Equal),
        ["serve", "changing"] => serve(Heads::Changing),
        ["serve", "unlike"] => serve(Heads::Unlike),
        ["serve", "parsed"] => serve(Heads::Parsed),
        ["load", address, connections, milliseconds] => load(address, connections, milliseconds, None),
        ["load", address, connections, milliseconds, per_second] => {
            load(address, connections, milliseconds, Some(per_second))
        }
        _ => Err("expected `serve [changing|unlike|parsed]` or `load ADDRESS CONNECTIONS MILLISECONDS [ARRIVAL-RATE]`"
            .into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("engine_cost: {error}");
            ExitCode::from(2)
        }
    }
}

fn load(address: &str, connections: &str, milliseconds: &str, per_second: Option<&str>) -> Result<(), Error> {
    let address: SocketAddr = address.parse()?;
    let plan = RoundPlan {
        scenario: "engine_cost".to_owned(),
        arms: vec![ArmPlan::plain(address)],
        load: Load {
            connections: connections.parse()?,
            threads: 1,
            schedule: match per_second {
                Some(text) => Schedule::Constant { per_second: text.parse()? },
                None => Schedule::Closed,
            },
            cores: Vec::new(),
            request_timeout: Nanos::from_secs(10),
            connect_timeout: Nanos::from_secs(10),
            ..Load::default()
        },
        warm_up: Nanos::from_millis(200),
        slices: vec![SlicePlan {
            arm: 0,
            length: Nanos::from_millis(milliseconds.parse()?),
            lead_in: Nanos::ZERO,
            requests: None,
        }],
    };
    let bytes = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes();
    let request = WireRequest { bytes, is_head: false, check: Check::default() };
    let recording = run_round(&plan, vec![request])?;
    let arm = &recording.arms[0];
    println!("exchanges {}", arm.counts.good + arm.warm_up.good);
    println!("failed {}", arm.counts.failed() + arm.warm_up.failed());
    println!("p50_ns {}", arm.service.quantile(0.5).unwrap_or_default().0);
    let slice = &recording.slices[0];
    println!("throughput_per_s {:.0}", slice.good as f64 / slice.span.as_secs_f64());
    println!("engine_cpu_ns_per_exchange {}", slice.engine_cpu.0.checked_div(slice.completed).unwrap_or_default());
    if per_second.is_some() {
        println!("scheduled {} begun {}", slice.scheduled, slice.begun);
        for q in [0.5, 0.9, 0.99, 1.0] {
            let of = |times: &Histogram| times.quantile(q).unwrap_or_default().0 / 1_000;
            println!(
                "quantile {q}: lateness_us {} response_us {} service_us {}",
                of(&arm.lateness),
                of(&arm.response),
                of(&arm.service)
            );
        }
        println!("starts that found no connection free {}", arm.queued.count());
    }
    Ok(())
}

/// Answers on all connections.
static ANSWERS: AtomicU64 = AtomicU64::new(0);

/// Whether all answers have the same head.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heads {
    Equal,
    /// A field changes and keeps its length, as a request's number in hexadecimal digits does.
    Changing,
    /// It changes its length too.
    Unlike,
    /// The body's length changes, so that each head has to be parsed.
    Parsed,
}

/// Ends after ten minutes, should nobody end it.
fn serve(heads: Heads) -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(600));
        std::process::exit(0);
    });
    for stream in listener.incoming() {
        let stream = stream?;
        std::thread::Builder::new().stack_size(64 * 1024).spawn(move || answer(stream, heads))?;
    }
    Ok(())
}

/// A request fits one segment and is never sent ahead, so a read is a request.
fn answer(mut stream: TcpStream, heads: Heads) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let answer = |counter: &str, length: usize| {
        format!(
            "HTTP/1.1 200 OK\r\nServer: engine-cost\r\nContent-Type: text/plain\r\n\
             Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n{counter}Content-Length: {length}\r\n\r\n{}",
            "x".repeat(length)
        )
    };
    let equal = answer("", 100);
    let mut request = [0; 4096];
    while stream.read(&mut request)? > 0 {
        let number = ANSWERS.fetch_add(1, Ordering::Relaxed);
        let width = (number % 7) as usize;
        let counted = match heads {
            Heads::Equal => {
                stream.write_all(equal.as_bytes())?;
                continue;
            }
            Heads::Changing => answer(&format!("X-Request-Id: {number:016x}\r\n"), 100),
            Heads::Unlike => answer(&format!("X-Request-Id: {number:016x}{:width$}.\r\n", ""), 100),
            Heads::Parsed => answer(&format!("X-Request-Id: {number:016x}\r\n"), 100 + width),
        };
        stream.write_all(counted.as_bytes())?;
    }
    Ok(())
}
