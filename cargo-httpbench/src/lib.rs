//! `cargo httpbench`: builds an HTTP server, starts it, drives it through its scenarios, and reports.
//!
//! The story stands in [`run`]: discover → build → start server → measure rounds → judge → report. Every other module is one of
//! its nouns. Data goes one way:
//!
//! | module | what it knows | what it leaves to others |
//! |---|---|---|
//! | [`cli`], [`config`] | flags, files, environment → [`config::Settings`] | acting on them |
//! | [`cargo`], [`discover`], [`build`] | packages, targets, executables | starting them |
//! | [`environment`] | what a child process inherits | who the child is |
//! | [`process`], [`interrupt`] | supervised children, signals | what the children are for |
//! | [`server`] | the server under test: folder, port, readiness, memory, end | the load on it |
//! | [`bench`](mod@bench) | our end of the control channel to a bench binary | what its numbers mean |
//! | [`prepare`] | built and running parts of a package | measuring them |
//! | [`measure`] | rounds, their plan, what they saw | the slices, which run in the engine of [`httpbench_core`] |
//! | [`baseline`], [`revision`] | what is compared with: kept by an earlier run, or built from git | measuring it |
//! | [`stats`] | order statistics, exact tests; no HTTP | everything else |
//! | [`verdict`] | limits, saturation, comparisons: from measured values to words | passing or failing |
//! | [`baseline_arm`] | the arm that the candidate is compared with, or why there is none | measuring it |
//! | [`numbers_only`], [`compare_stored`] | what is left of a baseline that cannot be started, and two of those | judging |
//! | [`compare`] | how many rounds, looks and confirmations two arms get | running them |
//! | [`gate`], [`exit_code`] | passing or failing | |
//! | [`report`] | one format, one file | writing it anywhere |
//! | [`shell`], [`style`] | the terminal; the only writer | |
//! | [`error`], [`warning`] | what happened, why, what to do | |
//! | [`reference`](mod@reference) | the built-in server, the ruler of numbers that are compared without an executable | what it is compared with |
//! | [`selftest`] | how small a change is found on this machine, and how often in error | deciding |
//! | [`looking`] | names, one exchange, a server that stays up | measuring |
//! | [`load`](mod@load) | any URL, without a project; the engine runs in this process | judging by comparison |
//!
//! Scenarios, the load engine and the messages between the two processes stand in [`httpbench_core`]; the attribute in
//! `httpbench-macros`.

pub mod baseline;
pub mod baseline_arm;
pub mod bench;
pub mod build;
pub mod cargo;
pub mod cli;
pub mod compare;
pub mod compare_stored;
pub mod config;
pub mod discover;
pub mod environment;
pub mod error;
pub mod exit_code;
pub mod gate;
pub mod interrupt;
pub mod load;
pub mod looking;
pub mod measure;
pub mod nearest;
pub mod numbers_only;
pub mod prepare;
pub mod process;
pub mod reference;
#[cfg(test)]
mod refusal_tests;
pub mod report;
pub mod revision;
pub mod run;
pub mod selftest;
pub mod server;
pub mod shell;
pub mod stats;
pub mod style;
pub mod verdict;
pub mod warning;
