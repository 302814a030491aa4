//! The executable.

use std::process::ExitCode;

fn main() -> ExitCode {
    cargo_httpbench::process::supervisor::main_if_asked().unwrap_or(ExitCode::SUCCESS)
}
