//! A to-do list as a JSON API: axum in front of an embedded SQLite.
//!
//! This file starts and stops the server. What it answers is in [`routes`], what it keeps is in [`store`].

mod config;
mod error;
mod routes;
mod seed;
mod store;

use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use config::Config;
use store::{READERS, Store};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("todo-axum: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let config = Config::from_process()?;
    let store = Arc::new(Store::open(&config.database)?);
    // Every query holds one of READERS + 1 connections. More blocking threads could only wait for one: tokio's own queue
    // does that more cheaply than 512 sleeping threads.
    let runtime = runtime::Builder::new_multi_thread().enable_all().max_blocking_threads(READERS + 1).build()?;
    runtime.block_on(serve(&config, store))
}

async fn serve(config: &Config, store: Arc<Store>) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind((config.host.as_str(), config.port)).await?;
    println!("listening on http://{}, database {}", listener.local_addr()?, config.database.display());
    axum::serve(listener, routes::router(store)).with_graceful_shutdown(stop_signal()?).await?;
    println!("stopped");
    Ok(())
}

/// Resolves at the first SIGTERM or Ctrl-C. The handlers are in place when this returns, not when it is first polled.
fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
