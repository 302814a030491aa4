//! A server for `tests/peers`: how late does an open loop's load arrive, as the server sees it?
//!
//! `arrivals PER-SECOND` answers 100 bytes to every request, on an address that it prints, until its standard input ends. Then
//! it says by how much requests came later than a constant schedule of that arrival rate has them: the one that fits the
//! earliest of them, so that a delay which all have in common is not seen, and a lead of one counts against all others. The
//! first half second is left out: connections are opened in it.

use std::io::Read;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use std::cell::RefCell;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Notify;

type Error = Box<dyn std::error::Error>;

/// What is left out at the beginning.
const LEAD_IN: Duration = Duration::from_millis(500);
/// Ends after that time, should nobody end it.
const LONGEST: Duration = Duration::from_secs(600);
/// The most arrivals that are kept.
const MOST: usize = 10_000_000;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("arrivals: {error}");
            ExitCode::from(2)
        }
    }
}

fn serve() -> Result<(), Error> {
    let per_second: f64 = std::env::args().nth(1).ok_or("expected `arrivals PER-SECOND`")?.parse()?;
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    let arrivals = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let ended = Arc::new(Notify::new());
        let end = Arc::clone(&ended);
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            end.notify_one();
        });
        let arrivals = Rc::new(RefCell::new(Vec::new()));
        let accepting = async {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                tokio::task::spawn_local(answer(stream, Rc::clone(&arrivals)));
            }
        };
        tokio::select! {
            () = accepting => {}
            () = ended.notified() => {}
            () = tokio::time::sleep(LONGEST) => {}
        }
        Ok::<_, Error>(arrivals.take())
    })?;
    println!("arrivals {}", arrivals.len());
    let late = lateness(&arrivals, per_second);
    for (name, q) in [("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99), ("max_us", 1.0)] {
        if let Some(value) = quantile(&late, q) {
            println!("{name} {:.1}", value * 1e6);
        }
    }
    Ok(())
}

async fn answer(mut stream: TcpStream, arrivals: Rc<RefCell<Vec<Instant>>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let answer =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\n{}", "x".repeat(100));
    let mut request = [0; 4096];
    while stream.read(&mut request).await? > 0 {
        let now = Instant::now();
        if arrivals.borrow().len() < MOST {
            arrivals.borrow_mut().push(now);
        }
        stream.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

/// Seconds by which each arrival after the lead-in is late, in ascending order.
fn lateness(arrivals: &[Instant], per_second: f64) -> Vec<f64> {
    let Some(first) = arrivals.first() else { return Vec::new() };
    let since = arrivals.iter().map(|arrival| arrival.duration_since(*first)).filter(|since| *since >= LEAD_IN);
    let against: Vec<_> =
        since.zip(0_u32..).map(|(since, k)| since.as_secs_f64() - f64::from(k) / per_second).collect();
    let earliest = against.iter().copied().fold(f64::INFINITY, f64::min);
    let mut late: Vec<_> = against.iter().map(|against| against - earliest).collect();
    late.sort_by(f64::total_cmp);
    late
}

/// The value of rank ⌈q·n⌉ of sorted values.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = ((q * sorted.len() as f64).ceil() as usize).max(1);
    sorted.get(rank - 1).copied()
}
