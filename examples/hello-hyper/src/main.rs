//! The smallest server: hyper, one route, a port written into the code.
//!
//! The port is fixed on purpose. Many small servers are written like this and do not read `PORT`; `cargo httpbench` must
//! find the port that is really listened on instead of believing the one that it asked for. So this example keeps the case
//! alive: do not make the port configurable. What a configurable server looks like is shown by `todo-axum`.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3000);

async fn hello(_request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"Hello, world!\n"))))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind(ADDRESS).await?;
    println!("listening on http://{ADDRESS}");
    loop {
        let (stream, _) = listener.accept().await?;
        // Without it, Nagle's algorithm and delayed acknowledgements hold back answers that need more than one write.
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            // A client that goes away in the middle of an exchange is no reason to stop serving the others.
            if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(hello)).await {
                eprintln!("connection ended: {error}");
            }
        });
    }
}
