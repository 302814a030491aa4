//! `cargo httpbench`: builds an HTTP server, starts it, drives it through its scenarios, and reports.

pub mod bench;
pub mod build;
pub mod cargo;
pub mod cli;
pub mod config;
pub mod discover;
pub mod environment;
pub mod error;
pub mod exit_code;
pub mod interrupt;
pub mod process;
pub mod server;
pub mod nearest;
pub mod warning;
