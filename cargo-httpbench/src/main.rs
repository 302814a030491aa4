//! The executable: a supervisor or a part of the reference server if it was started as one, else the command.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;

use cargo_httpbench::error::Error;
use cargo_httpbench::exit_code::ExitCode;
use cargo_httpbench::interrupt::Interrupt;
use cargo_httpbench::process::{adopt_orphans, supervisor};
use cargo_httpbench::shell::Shell;
use cargo_httpbench::{cli, reference, run};

fn main() -> process::ExitCode {
    if let Some(supervised) = supervisor::main_if_asked() {
        return supervised;
    }
    if let Some(ended) = reference::main_if_asked() {
        return ended;
    }
    let invocation = match cli::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(error) => error.exit(),
    };
    let mut shell = Shell::new(invocation.output);
    adopt_orphans();
    // A panic is a bug of ours: it unwinds, so that everything that was started is ended, and has the exit code of one.
    let done = catch_unwind(AssertUnwindSafe(|| {
        let interrupt = Interrupt::install()?;
        run::run(&invocation, &mut shell, &interrupt)
    }));
    let done = done.unwrap_or_else(|_| Err(Error::new(ExitCode::Unexpected, "cargo-httpbench panicked")));
    done.unwrap_or_else(|error| run::show_failure(&error, &mut shell)).into()
}
