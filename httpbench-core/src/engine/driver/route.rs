//! How a shared connection gets to its server: TCP or a Unix domain socket, in clear or over TLS, behind one type.
//!
//! One such stream carries many exchanges and is read in large pieces, so a call through a pointer is lost in it; the raw
//! driver, where it would not be, is static instead. Invariant: what is counted is what is on the wire.

use std::io;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::rc::Rc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::Opening;
use super::metered::{Meter, Metered};
use super::raw::Stream;
#[cfg(feature = "tls")]
use super::tls;
use crate::engine::clock::Clock;
use crate::model::Endpoint;

/// To one server.
#[derive(Clone)]
pub(in crate::engine) struct Route {
    pub(in crate::engine) endpoint: Endpoint,
    pub(in crate::engine) clock: Clock,
    /// `None`: in clear.
    #[cfg(feature = "tls")]
    pub(in crate::engine) tls: Option<tls::Settings>,
}

/// What bytes go through.
pub(super) trait ByteStream: AsyncRead + AsyncWrite {}

impl<T: AsyncRead + AsyncWrite> ByteStream for T {}

/// An open stream to a server.
pub(super) struct Conduit {
    pub(super) stream: Pin<Box<dyn ByteStream>>,
    pub(super) meter: Rc<Meter>,
    pub(super) opening: Opening,
    /// What ALPN chose.
    #[cfg(feature = "http2")]
    pub(super) chosen: Option<Chosen>,
}

/// What the server chose by ALPN, if anything.
#[cfg(feature = "http2")]
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chosen(pub(super) Option<Vec<u8>>);

impl Route {
    pub(super) async fn open(&self) -> io::Result<Conduit> {
        match self.endpoint {
            Endpoint::Tcp(_) => self.open_by::<TcpStream>().await,
            Endpoint::Unix(_) => self.open_by::<UnixStream>().await,
        }
    }

    async fn open_by<S: Stream<Target = Endpoint> + AsRawFd>(&self) -> io::Result<Conduit> {
        let asked = self.clock.now();
        #[cfg(feature = "tls")]
        if let Some(settings) = &self.tls {
            let (transport, settings) = (self.endpoint.clone(), settings.clone());
            let target = tls::Target { transport, settings, clock: self.clock };
            let stream = tls::TlsStream::<S>::open(&target).await?;
            let handshake = stream.handshake();
            let connect = self.clock.now() - asked - handshake.unwrap_or_default();
            return Ok(Conduit {
                meter: Rc::clone(stream.meter()),
                opening: Opening { connect, tls: handshake },
                #[cfg(feature = "http2")]
                chosen: Some(Chosen(stream.protocol().map(<[u8]>::to_vec))),
                stream: Box::pin(stream),
            });
        }
        let stream = Metered::new(S::open(&self.endpoint).await?);
        Ok(Conduit {
            meter: Rc::clone(stream.meter()),
            opening: Opening { connect: self.clock.now() - asked, tls: None },
            #[cfg(feature = "http2")]
            chosen: None,
            stream: Box::pin(stream),
        })
    }
}
