//! The last lines that a program wrote, however much it wrote.
//!
//! A thread empties the program's pipe for as long as anybody holds its other end, so a chatty server never blocks; memory
//! stays below [`LIMIT`] twice. Nothing is looked at before somebody asks for lines: draining costs one copy.

use std::io::{self, PipeReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that are kept at least, once there were as many.
const LIMIT: usize = 64 * 1024;

/// Characters of a line that are shown.
const LINE_LIMIT: usize = 400;

/// How long the rest of a dead program's output is waited for.
const SETTLE: Duration = Duration::from_millis(100);

/// The tail of what a program wrote to standard output and error, in the order of its arrival.
#[derive(Clone, Debug, Default)]
pub struct LogTail {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    tail: Mutex<Tail>,
    at_end: Condvar,
}

#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    /// Bytes that were dropped in front of `bytes`.
    dropped: u64,
    ended: bool,
}

impl LogTail {
    /// Starts to drain a pipe.
    pub(crate) fn drain(mut pipe: PipeReader) -> io::Result<Self> {
        let log = Self::default();
        let shared = Arc::clone(&log.shared);
        std::thread::Builder::new().name("log".into()).spawn(move || {
            let mut buffer = vec![0; LIMIT];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(length @ 1..) => shared.lock().push(&buffer[..length]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => break,
                }
            }
            shared.lock().ended = true;
            shared.at_end.notify_all();
        })?;
        Ok(log)
    }

    /// The last `count` lines, made fit for display: control characters and escape sequences are left out, very long lines
    /// are cut.
    #[must_use]
    pub fn last(&self, count: usize) -> Vec<String> {
        let text = self.text();
        let lines: Vec<_> = text.lines().map(displayable).collect();
        let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        lines[end.saturating_sub(count)..end].to_vec()
    }

    /// Everything that is kept, from the first whole line.
    #[must_use]
    pub fn text(&self) -> String {
        let tail = self.shared.lock();
        let mut bytes = &tail.bytes[tail.bytes.len().saturating_sub(LIMIT)..];
        if tail.dropped > 0 || bytes.len() < tail.bytes.len() {
            // A line that alone is longer than what is kept is better than nothing.
            let before_last = &bytes[..bytes.len().saturating_sub(1)];
            let whole = before_last.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            bytes = &bytes[whole..];
        }
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// What was written after the first `seen` bytes, as far as it is kept, and how many bytes were written so far.
    #[must_use]
    pub fn since(&self, seen: u64) -> (String, u64) {
        let tail = self.shared.lock();
        let written = tail.dropped + tail.bytes.len() as u64;
        let fresh = usize::try_from(written.saturating_sub(seen)).unwrap_or(usize::MAX).min(tail.bytes.len());
        (String::from_utf8_lossy(&tail.bytes[tail.bytes.len() - fresh..]).into_owned(), written)
    }

    /// Waits a moment for the rest of a dead program's output. Its children may hold the pipe open for longer.
    pub(crate) fn settle(&self) {
        let tail = self.shared.lock();
        drop(self.shared.at_end.wait_timeout_while(tail, SETTLE, |tail| !tail.ended));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tail {
    fn push(&mut self, new: &[u8]) {
        // Dropping in steps of LIMIT keeps the cost at one move per byte.
        if self.bytes.len() + new.len() > 2 * LIMIT {
            let excess = self.bytes.len() - LIMIT.saturating_sub(new.len()).min(self.bytes.len());
            self.bytes.drain(..excess);
            self.dropped += excess as u64;
        }
        self.bytes.extend_from_slice(new);
    }
}

/// A line without what would move the cursor, colour the terminal, or fill it.
fn displayable(line: &str) -> String {
    let mut shown = String::with_capacity(line.len().min(LINE_LIMIT));
    let mut characters = line.chars().peekable();
    let mut count = 0;
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_escape(&mut characters),
            '\t' => shown.push_str("    "),
            _ if character.is_control() => continue,
            _ => shown.push(character),
        }
        count += 1;
        if count == LINE_LIMIT && characters.peek().is_some() {
            shown.push('…');
            break;
        }
    }
    shown.truncate(shown.trim_end().len());
    shown
}

/// Skips what follows an escape: a control sequence up to its final byte, an operating system command up to its
/// terminator, or one character (ECMA-48, sections 5.3 to 5.6).
fn skip_escape(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match characters.next() {
        Some('[') => {
            for character in characters.by_ref() {
                if matches!(character, '@'..='~') {
                    break;
                }
            }
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(character) = characters.next() {
                if character == '\u{7}' || (character == '\u{1b}' && characters.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn log_of(write: impl FnOnce(&mut dyn Write)) -> LogTail {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let log = LogTail::drain(reader).expect("a thread");
        write(&mut writer);
        drop(writer);
        log.settle();
        log
    }

    #[test]
    fn last_lines_come_without_colours_controls_and_trailing_blanks() {
        let log = log_of(|out| {
            out.write_all(b"one\n\x1b[1;31mtwo\x1b[0m\x07\n\x1b]0;title\x07three\tx\xff\r\nfour\n\n\n")
                .expect("the log is read");
        });
        assert_eq!(log.last(3), ["two", "three    x\u{fffd}", "four"]);
        assert_eq!(log.last(20).len(), 4);
    }

    #[test]
    fn much_output_is_drained_and_only_its_whole_last_lines_are_kept() {
        let log = log_of(|out| {
            for number in 0..200_000 {
                out.write_all(format!("line {number:09}\n").as_bytes()).expect("the log is read");
            }
        });
        assert_eq!(log.since(200_000 * 15 - 6), ("00199999\n"[3..].to_owned(), 200_000 * 15));
        assert!(log.text().len() <= LIMIT);
        assert!(log.text().starts_with("line "), "{:?}", &log.text()[..20]);
        assert_eq!(log.last(1), ["line 000199999"]);
    }

    #[test]
    fn one_endless_line_is_cut() {
        let log = log_of(|out| {
            out.write_all(&vec![b'x'; 1_000_000]).expect("the log is read");
            out.write_all(b"\n").expect("the log is read");
        });
        assert_eq!(log.last(20), [format!("{}…", "x".repeat(LINE_LIMIT))]);
    }

    #[test]
    fn silent_program_has_no_lines() {
        assert!(log_of(|_| ()).last(20).is_empty());
    }
}
