//! Errors about a server that ended by itself, with what can be found out about the reason.

use super::sockets::{holder, listeners};
use crate::error::Error;
use crate::exit_code::ExitCode;
use crate::process::{Child, Ended};

/// How programs say EADDRINUSE: Rust, C and Go, Node, Python, Java.
const ADDRESS_IN_USE: [&str; 5] = ["address already in use", "address in use", "eaddrinuse", "os error 98", "errno 98"];

/// SIGKILL, which no server sends itself.
const SIGKILL: i32 = 9;

/// The server ended before it was ready.
pub(super) fn died_before_ready(child: &Child, ended: Ended) -> Error {
    let error = child.failure(ExitCode::ServerFailed, ended, "before it was ready");
    let text = child.log().text();
    let lower = text.to_lowercase();
    if ADDRESS_IN_USE.iter().any(|phrase| lower.contains(phrase)) {
        let holders = holders_of(&ports_in(&text));
        let error = if holders.is_empty() { error } else { error.details("the address is in use", holders) };
        return error.help(
            "let the server listen on the port in the environment variable PORT, which is free, or on `{port}` in `server.args`; \
             or stop whoever holds its port",
        );
    }
    match ended {
        Ended::Exited { code: 0 } => error.help(
            "a server has to stay in the foreground until it gets SIGTERM: switch off its daemon mode; if this binary is not a \
             server, name the right one as `server.bin`",
        ),
        _ => with_reason(error, ended, "start it by hand with the command above; PORT, HOST and HTTPBENCH_DIR are set for it"),
    }
}

/// The server ended while it was in use.
pub(super) fn died_in_use(child: &Child, ended: Ended) -> Error {
    let error = child.failure(ExitCode::ServerFailed, ended, "while it was being measured");
    with_reason(error, ended, "what was measured until then is not judged; the server's log should tell why it ended")
}

fn with_reason(error: Error, ended: Ended, otherwise: &str) -> Error {
    match ended {
        Ended::Killed { signal: SIGKILL, .. } => {
            error.help("somebody killed it; if it was the kernel, because memory ran out, `dmesg` says so")
        }
        _ => error.help(otherwise),
    }
}

/// Who listens on these ports.
fn holders_of(ports: &[u16]) -> Vec<String> {
    let all = listeners().unwrap_or_default();
    let held = all.iter().filter(|listener| ports.contains(&listener.address.port()));
    held.map(|listener| format!("{} is held by {}", listener.address, holder(listener))).collect()
}

/// Numbers in a log that may be ports. Which of them are is found by looking at who listens.
fn ports_in(text: &str) -> Vec<u16> {
    let mut ports: Vec<_> = text
        .split(|character: char| !character.is_ascii_digit())
        .filter(|digits| (2..=5).contains(&digits.len()))
        .filter_map(|digits| digits.parse().ok())
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_found_in_the_words_of_several_languages() {
        assert_eq!(ports_in("Error: listen EADDRINUSE: address already in use 127.0.0.1:3000"), [127, 3000]);
        assert_eq!(ports_in("bind() to 0.0.0.0:80 failed (98: Address already in use)"), [80, 98]);
        assert_eq!(ports_in("Address already in use (os error 98), 99999"), [98]);
        assert!(ports_in("no numbers").is_empty());
    }
}
