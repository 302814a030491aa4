//! A scripted server: each connection runs a closure that reads requests and writes exactly what it likes.
//!
//! Counts connections and requests, so that a test can compare them with what the engine says. Every wait is bounded.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// No step of a script waits longer.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicU64,
    requests: AtomicU64,
    last: Mutex<Vec<u8>>,
    stopped: AtomicBool,
}

/// One connection, as its script sees it.
pub(crate) struct Talk {
    pub(crate) stream: TcpStream,
    seen: Arc<Seen>,
    unread: Vec<u8>,
    last: Vec<u8>,
}

impl Peer {
    /// Runs `script` for every connection; the connection is closed when it returns.
    pub(crate) fn new(script: impl Fn(&mut Talk) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").expect("a free port"), script)
    }

    /// The same on a listener of the test's own.
    pub(crate) fn at(
        listener: TcpListener,
        script: impl Fn(&mut Talk) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("an address");
        let (seen, script) = (Arc::<Seen>::default(), Arc::new(script));
        let shared = Arc::clone(&seen);
        let acceptor = thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { return };
                shared.connections.fetch_add(1, Ordering::SeqCst);
                stream.set_nodelay(true).expect("a socket option");
                stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
                stream.set_write_timeout(Some(PATIENCE)).expect("a socket option");
                let mut talk = Talk { stream, seen: Arc::clone(&shared), unread: Vec::new(), last: Vec::new() };
                let script = Arc::clone(&script);
                // A script may end with an error: engines close connections as they like.
                thread::spawn(move || drop(script(&mut talk)));
            }
        });
        Self { address, seen, acceptor: Some(acceptor) }
    }

    /// Answers every request with the same bytes, and keeps the connection open.
    pub(crate) fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |talk| {
            while talk.read_request()? {
                talk.send(&answer)?;
            }
            Ok(())
        })
    }

    pub(crate) fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// Whole requests.
    pub(crate) fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn last_request(&self) -> Vec<u8> {
        self.seen.last.lock().expect("not poisoned").clone()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.seen.stopped.store(true, Ordering::SeqCst);
        // Wakes the acceptor, so that it sees the end.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().expect("the acceptor does not panic");
        }
    }
}

impl Talk {
    /// Reads a whole request, body included. `false` at the end of the connection.
    pub(crate) fn read_request(&mut self) -> io::Result<bool> {
        let head = loop {
            if let Some(at) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if self.read_more()? == 0 {
                return Ok(false);
            }
        };
        let text = String::from_utf8_lossy(&self.unread[..head]).to_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
        let whole = head + length.map_or(0, |length| length.trim().parse::<usize>().expect("a length"));
        while self.unread.len() < whole {
            if self.read_more()? == 0 {
                return Ok(false);
            }
        }
        let rest = self.unread.split_off(whole);
        self.last = std::mem::replace(&mut self.unread, rest);
        self.seen.last.lock().expect("not poisoned").clone_from(&self.last);
        self.seen.requests.fetch_add(1, Ordering::SeqCst);
        Ok(true)
    }

    /// Reads a whole request; [`io::ErrorKind::WouldBlock`] if none goes on within so many milliseconds.
    pub(crate) fn read_request_within(&mut self, milliseconds: u64) -> io::Result<bool> {
        self.stream.set_read_timeout(Some(Duration::from_millis(milliseconds)))?;
        self.read_request()
    }

    /// Reads only the head of a request, and leaves its body in the socket.
    pub(crate) fn read_head(&mut self) -> io::Result<()> {
        let mut byte = [0];
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            self.stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        Ok(())
    }

    /// The last request on this connection.
    pub(crate) fn last_request(&self) -> Vec<u8> {
        self.last.clone()
    }

    /// The target of the last request on this connection.
    pub(crate) fn target(&self) -> String {
        String::from_utf8_lossy(&self.last).split(' ').nth(1).expect("a target").to_owned()
    }

    /// Reads so many bytes of what follows a head.
    pub(crate) fn read_exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Whether the other side sends nothing for so many milliseconds; its end is silence too.
    pub(crate) fn is_silent_for(&mut self, milliseconds: u64) -> io::Result<bool> {
        self.stream.set_read_timeout(Some(Duration::from_millis(milliseconds)))?;
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_read_timeout(Some(PATIENCE))?;
        match peeked {
            Ok(length) => Ok(length == 0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            // The engine's RST.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Closes the reading side.
    pub(crate) fn read_no_more(&mut self) -> io::Result<()> {
        self.stream.shutdown(std::net::Shutdown::Read)
    }

    fn read_more(&mut self) -> io::Result<usize> {
        let mut piece = [0; 64 * 1024];
        let length = self.stream.read(&mut piece)?;
        self.unread.extend_from_slice(&piece[..length]);
        Ok(length)
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Waits for the other side to close, and reads whatever it sends.
    pub(crate) fn wait_for_close(&mut self) -> io::Result<()> {
        while self.read_more()? > 0 {
            self.unread.clear();
        }
        Ok(())
    }

    /// Ends the connection with RST.
    pub(crate) fn reset(&mut self) -> io::Result<()> {
        // Closing with unread bytes makes Linux send RST; a linger time of zero makes every system.
        nix::sys::socket::setsockopt(
            &self.stream,
            nix::sys::socket::sockopt::Linger,
            &nix::libc::linger { l_onoff: 1, l_linger: 0 },
        )?;
        Ok(())
    }
}

pub(crate) fn pause(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}
