//! Servers of one script: what they answer is said by a closure, and what they saw can be asked for.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nServer: scripted\r\nContent-Length: 5\r\n\r\nhello";
pub(crate) const OOPS: &str = "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n";

/// No step of a script waits longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server of one script: for the request of this number, from 0, and its text, what to answer. `None` hangs up.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
}

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) connections: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) texts: Mutex<Vec<String>>,
    pub(crate) over: AtomicBool,
}

pub(crate) trait Script: Fn(u64, &str) -> Option<String> + Send + Sync + 'static {}
impl<F: Fn(u64, &str) -> Option<String> + Send + Sync + 'static> Script for F {}

impl Scripted {
    pub(crate) fn new(script: impl Script) -> Self {
        Self::at("127.0.0.1:0", script)
    }

    pub(crate) fn at(address: &str, script: impl Script) -> Self {
        let listener = TcpListener::bind(address).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (seen, script) = (Arc::<Seen>::default(), Arc::new(script));
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.over.load(Ordering::SeqCst) {
                    return;
                }
                shared.connections.fetch_add(1, Ordering::SeqCst);
                stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
                stream.set_nodelay(true).expect("a socket option");
                let (shared, script) = (Arc::clone(&shared), Arc::clone(&script));
                thread::spawn(move || drop(converse(stream, &shared, &*script)));
            }
        });
        Self { address, seen }
    }

    pub(crate) fn ok() -> Self {
        Self::new(|_, _| Some(OK.to_owned()))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn texts_contain(&self, text: &str) -> bool {
        self.seen.texts.lock().expect("not poisoned").iter().any(|request| request.contains(text))
    }

    pub(crate) fn first_text(&self) -> String {
        self.seen.texts.lock().expect("not poisoned").first().cloned().expect("a request")
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.seen.over.store(true, Ordering::SeqCst);
        // Wakes the acceptor, so that it sees the end.
        drop(TcpStream::connect(self.address));
    }
}

pub(crate) fn converse(
    mut stream: impl Read + Write,
    seen: &Seen,
    script: &dyn Fn(u64, &str) -> Option<String>,
) -> io::Result<()> {
    let mut unread = Vec::new();
    loop {
        let Some(text) = read_request(&mut stream, &mut unread)? else { return Ok(()) };
        let number = seen.requests.fetch_add(1, Ordering::SeqCst);
        {
            let mut texts = seen.texts.lock().expect("not poisoned");
            if texts.len() < 10 {
                texts.push(text.clone());
            }
        }
        match script(number, &text) {
            Some(answer) => stream.write_all(answer.as_bytes())?,
            None => return Ok(()),
        }
    }
}

pub(crate) fn read_request(stream: &mut impl Read, unread: &mut Vec<u8>) -> io::Result<Option<String>> {
    let mut piece = [0; 16 * 1024];
    loop {
        if let Some(head) = unread.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4) {
            let text = String::from_utf8_lossy(&unread[..head]).to_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
            let whole = head + length.map_or(0, |length| length.trim().parse().expect("a length"));
            if unread.len() >= whole {
                let rest = unread.split_off(whole);
                return Ok(Some(String::from_utf8_lossy(&std::mem::replace(unread, rest)).into_owned()));
            }
        }
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            length => unread.extend_from_slice(&piece[..length]),
        }
    }
}
