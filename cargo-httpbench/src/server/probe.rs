//! One question to a server that may not be ready: `GET path`, and what came back.
//!
//! Its own few lines of HTTP/1.1: a probe has to notice the server's death and a signal while it waits.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::process::{Child, Woken};

/// For the connection. On loopback only a full backlog makes it wait.
const CONNECT: Duration = Duration::from_millis(500);

/// How long the rest of an answer is read after its head, so that a server does not see its client vanish.
const REST: Duration = Duration::from_millis(100);

/// Bytes of an answer that are read at most.
const ANSWER_LIMIT: usize = 256 * 1024;

/// What a probe saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// An HTTP status.
    Status {
        /// The code.
        code: u16,
        /// When its head was complete.
        at: Instant,
    },
    /// The connection was refused, or failed otherwise.
    NoConnection(String),
    /// It was accepted (perhaps by the kernel alone), and then nothing.
    Silence,
    /// It was closed or reset without an answer.
    Closed,
    /// What came is not HTTP/1.
    NotHttp,
    /// The server's process has news: look there first.
    ProcessNews,
}

/// Asks once, for at most `patience`.
pub(super) fn ask(
    target: SocketAddr,
    path: &str,
    patience: Duration,
    child: &Child,
    interrupt: &Interrupt,
) -> Result<Answer> {
    let mut stream = match TcpStream::connect_timeout(&target, CONNECT.min(patience).max(Duration::from_millis(1))) {
        Ok(stream) => stream,
        Err(error) => return Ok(Answer::NoConnection(error.to_string())),
    };
    let version = env!("CARGO_PKG_VERSION");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {target}\r\nUser-Agent: cargo-httpbench/{version}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    if stream.write_all(request.as_bytes()).and_then(|()| stream.set_nonblocking(true)).is_err() {
        return Ok(Answer::Closed);
    }
    let deadline = Instant::now() + patience;
    let mut bytes = Vec::new();
    loop {
        let state = receive(&mut stream, &mut bytes);
        match status(&bytes) {
            Head::Complete(code) => {
                let answer = Answer::Status { code, at: Instant::now() };
                read_rest(&mut stream, &mut bytes, interrupt)?;
                return Ok(answer);
            }
            Head::NotHttp => return Ok(Answer::NotHttp),
            Head::Partial if state == Received::End => {
                return Ok(if bytes.is_empty() { Answer::Closed } else { Answer::NotHttp });
            }
            Head::Partial => {}
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Answer::Silence);
        }
        if interrupt.wait_for(&[stream.as_fd(), child.events()], Some(left))? == Woken::Readable
            && child.try_wait()?.is_some()
        {
            return Ok(Answer::ProcessNews);
        }
    }
}

/// How far an answer's head has come.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    Partial,
    Complete(u16),
    NotHttp,
}

/// Looks at what has arrived. Interim answers (1xx) are skipped.
fn status(mut bytes: &[u8]) -> Head {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 256];
        let mut response = httparse::Response::new(&mut headers);
        match response.parse(bytes) {
            Ok(httparse::Status::Partial) if bytes.len() < ANSWER_LIMIT => return Head::Partial,
            Ok(httparse::Status::Partial) | Err(_) => return Head::NotHttp,
            Ok(httparse::Status::Complete(length)) => match response.code {
                Some(100 | 102..200) => bytes = &bytes[length..],
                Some(code) => return Head::Complete(code),
                None => return Head::NotHttp,
            },
        }
    }
}

/// Whether more may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Received {
    Some,
    End,
}

/// Reads what is there, without waiting.
fn receive(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Received {
    let mut buffer = [0; 8 * 1024];
    while bytes.len() < ANSWER_LIMIT {
        match stream.read(&mut buffer) {
            Ok(length @ 1..) => bytes.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Received::Some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return Received::End,
        }
    }
    Received::End
}

fn read_rest(stream: &mut TcpStream, bytes: &mut Vec<u8>, interrupt: &Interrupt) -> Result<()> {
    let deadline = Instant::now() + REST;
    while receive(stream, bytes) == Received::Some {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || interrupt.wait_for(&[stream.as_fd()], Some(left))? == Woken::TimedOut {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_from_fragments_and_from_other_protocols() {
        let cases: [(&[u8], Head); 6] = [
            (b"", Head::Partial),
            (b"HTTP/1.1 200 OK\r\nA: b\r\n", Head::Partial),
            (b"HTTP/1.1 503 No\r\n\r\nbody", Head::Complete(503)),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 204 No Content\r\n\r\n", Head::Complete(204)),
            (b"SSH-2.0-OpenSSH_9.6\r\n", Head::NotHttp),
            (b"\x15\x03\x01\x00\x02\x02\x16", Head::NotHttp),
        ];
        for (bytes, head) in cases {
            assert_eq!(status(bytes), head, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
