//! `cargo httpbench`: builds an HTTP server, starts it, drives it through its scenarios, and reports.

pub mod config;
pub mod error;
pub mod exit_code;
pub mod interrupt;
pub mod process;
pub mod server;
