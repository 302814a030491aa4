//! HTTP/1.1 on one thread: keep-alive, a fixed piece of work, a fixed answer of 100 bytes.
//!
//! Only what our own scenario sends is served: requests without a body. Anything else is answered `501` or `400`, and the connection
//! closed, because a body that is taken for the next request would be worse.

use std::io;
use std::net::Ipv4Addr;

use httparse::Status;
use tokio::net::{TcpListener, TcpStream};

use super::Work;

/// A head of more bytes is refused.
const LONGEST_HEAD: usize = 16 * 1024;

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nserver: httpbench-reference\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\n\
0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";
const REFUSED: &[u8] = b"HTTP/1.1 501 Not Implemented\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const MALFORMED: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// What the bytes that have arrived begin with.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    /// A request of so many bytes, after which the connection stays open or not.
    Whole { length: usize, keep_alive: bool },
    /// Not all of a request.
    Partial,
    /// A request with a body.
    WithBody,
    /// No request.
    Malformed,
}

/// Serves until the process is ended.
pub(super) fn serve(port: u16, work: Work) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async move {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::task::spawn_local(async move {
                // A client that goes away ends its own connection and nothing else.
                let _ = converse(&stream, work).await;
            });
        }
    })
}

async fn converse(stream: &TcpStream, work: Work) -> io::Result<()> {
    let mut received: Vec<u8> = Vec::with_capacity(4 * 1024);
    let mut block = [0; 4 * 1024];
    loop {
        let mut answers = Vec::new();
        let mut open = true;
        while open {
            match read_head(&received) {
                Head::Whole { length, keep_alive } => {
                    received.drain(..length);
                    work.run();
                    answers.extend_from_slice(ANSWER);
                    open = keep_alive;
                }
                Head::Partial if received.len() <= LONGEST_HEAD => break,
                Head::Partial | Head::Malformed => {
                    answers.extend_from_slice(MALFORMED);
                    open = false;
                }
                Head::WithBody => {
                    answers.extend_from_slice(REFUSED);
                    open = false;
                }
            }
        }
        write_all(stream, &answers).await?;
        if !open {
            return Ok(());
        }
        stream.readable().await?;
        match stream.try_read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(length) => received.extend_from_slice(&block[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn write_all(stream: &TcpStream, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match stream.try_write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_head(bytes: &[u8]) -> Head {
    if bytes.is_empty() {
        return Head::Partial;
    }
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Head::Partial,
        Err(_) => return Head::Malformed,
    };
    let mut keep_alive = request.version == Some(1);
    for header in request.headers.iter() {
        if header.name.eq_ignore_ascii_case("transfer-encoding")
            || (header.name.eq_ignore_ascii_case("content-length") && header.value.trim_ascii() != b"0")
        {
            return Head::WithBody;
        }
        if header.name.eq_ignore_ascii_case("connection") && header.value.trim_ascii().eq_ignore_ascii_case(b"close") {
            keep_alive = false;
        }
    }
    Head::Whole { length, keep_alive }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_has_100_bytes_of_body() {
        let end = ANSWER.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
        assert_eq!(ANSWER.len() - end - 4, 100);
    }

    #[test]
    fn requests_are_told_from_what_is_none() {
        let get = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        assert_eq!(read_head(get), Head::Whole { length: get.len(), keep_alive: true });
        assert_eq!(read_head(&get[..20]), Head::Partial);
        assert_eq!(read_head(b""), Head::Partial);
        let closing = b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n";
        assert_eq!(read_head(closing), Head::Whole { length: closing.len(), keep_alive: false });
        assert!(matches!(read_head(b"GET / HTTP/1.0\r\n\r\n"), Head::Whole { keep_alive: false, .. }));
        assert_eq!(read_head(b"POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc"), Head::WithBody);
        assert_eq!(read_head(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"), Head::WithBody);
        assert_eq!(read_head(b"\x01\x02 nothing\r\n\r\n"), Head::Malformed);
    }
}
