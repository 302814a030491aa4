//! One exchange as it went over the wire, line by line: `>` was sent, `<` was received.

use std::fmt::Write;

use httpbench_core::model::{Nanos, Trace};

use super::quantity;
use crate::style::{self, paint};

/// Lays an exchange out. Bytes that are no text are shown as escapes; long bodies are shown as far as they were kept.
#[must_use]
pub fn render_trace(scenario: &str, address: &str, trace: &Trace) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{} to {address}", paint(style::HEADING, scenario));
    push_lines(&mut text, '>', &trace.sent);
    push_lines(&mut text, '<', &trace.received);
    if trace.omitted_bytes > 0 {
        let _ = writeln!(text, "< … {} more", quantity::bytes(trace.omitted_bytes));
    }
    let received = trace.received.len() as u64 + trace.omitted_bytes;
    let _ = match &trace.outcome {
        Ok(answer) => writeln!(
            text,
            "{}: status {}, {} sent, {} received, {} from send to last byte",
            paint(style::GOOD, "good"),
            answer.status,
            quantity::bytes(trace.sent.len() as u64),
            quantity::bytes(received),
            quantity::time(Nanos(answer.service.0)),
        ),
        Err(reason) => writeln!(text, "{}: {reason}", paint(style::ERROR, "failed")),
    };
    text
}

fn push_lines(text: &mut String, direction: char, bytes: &[u8]) {
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let (content, ending) = match line {
            [content @ .., b'\r', b'\n'] => (content, "\\r\\n"),
            [content @ .., b'\n'] => (content, "\\n"),
            content => (content, ""),
        };
        let shown: String = String::from_utf8_lossy(content).chars().flat_map(visible).collect();
        let _ = writeln!(text, "{direction} {shown}{}", paint(style::QUIET, ending));
    }
}

/// Control characters as escapes, so that an answer cannot steer the terminal.
fn visible(character: char) -> Vec<char> {
    if character.is_control() && character != '\t' { character.escape_default().collect() } else { vec![character] }
}

#[cfg(test)]
mod tests {
    use httpbench_core::model::TracedAnswer;

    use super::*;

    fn plain(trace: &Trace) -> String {
        anstream::adapter::strip_str(&render_trace("index", "127.0.0.1:3000", trace)).to_string()
    }

    #[test]
    fn every_line_end_is_shown_and_control_characters_are_escaped() {
        let trace = Trace {
            sent: b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            received: b"HTTP/1.1 200 OK\r\n\r\n\x1b[31mred".to_vec(),
            omitted_bytes: 0,
            outcome: Ok(TracedAnswer { status: 200, service: Nanos::from_micros(120) }),
        };
        let expected = "index to 127.0.0.1:3000\n> GET / HTTP/1.1\\r\\n\n> \\r\\n\n< HTTP/1.1 200 OK\\r\\n\n< \\r\\n\n\
                        < \\u{1b}[31mred\ngood: status 200, 18 B sent, 27 B received, 120 µs from send to last byte\n";
        assert_eq!(plain(&trace), expected);
    }

    #[test]
    fn what_was_not_kept_and_why_it_failed_are_said() {
        let trace = Trace {
            sent: Vec::new(),
            received: b"x".to_vec(),
            omitted_bytes: 2_000,
            outcome: Err("status 404".into()),
        };
        assert_eq!(plain(&trace), "index to 127.0.0.1:3000\n< x\n< … 2.00 kB more\nfailed: status 404\n");
    }
}
