//! TLS and HTTP/2 against servers of their own libraries and against scripted ones: what is believed, what is counted, how
//! connections and streams end.

mod frames;
mod http2;
#[path = "../engine_cases/load.rs"]
#[expect(dead_code, reason = "shared with the cases of HTTP/1.1 over plain TCP")]
mod load;
#[path = "../engine_cases/peer.rs"]
#[expect(dead_code, reason = "shared with the cases of HTTP/1.1 over plain TCP")]
mod peer;
mod secure_peer;
mod tls;
