//! TLS by rustls (with ring's cryptography) under a raw connection or under HTTP/2.
//!
//! Versions 1.2 and 1.3, certificates verified unless the plan says otherwise. Every connection makes a whole handshake:
//! no session is resumed, so that handshake times mean the same on the first connection and on the thousandth. Ends of
//! the stream are told apart: with `close_notify` it is an end; without, it is [`io::ErrorKind::UnexpectedEof`], and the
//! connection decides by the answer's framing what that means.
//!
//! Leaves HTTP and timing to others. Invariants: what the server sends unasked within TLS (session tickets, key updates)
//! is no answer and no reason to drop an idle connection; the bytes counted are those on the wire, handshake included.

use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;

use super::metered::{Closing, Meter, Metered};
use super::raw::Stream;
use crate::engine::clock::Clock;
use crate::model::{Identity, Nanos, Protocol, Tls, Trust};

/// A plan's settings, read and ready for every connection.
#[derive(Clone)]
pub(in crate::engine) struct Settings {
    connector: TlsConnector,
    name: ServerName<'static>,
}

/// Settings that TLS cannot be spoken with.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum SettingsError {
    #[error("the server name {0:?} is neither a host name nor an address")]
    ServerName(String),
    #[error("this machine trusts no certificate authority{}; name the roots to be trusted", .0.as_ref().map_or(String::new(), |why| format!(" ({why})")))]
    NoSystemRoots(Option<String>),
    #[error("the {what} cannot be read as PEM: {why}")]
    Pem { what: &'static str, why: rustls::pki_types::pem::Error },
    #[error("the {0} hold no certificate (PEM begins with `-----BEGIN CERTIFICATE-----`)")]
    NoCertificate(&'static str),
    #[error("a trusted root is not usable: {0}")]
    Root(rustls::Error),
    #[error("the client certificate and its key are not usable: {0}")]
    Identity(rustls::Error),
    #[error("no protocol version is left: {0}")]
    Versions(rustls::Error),
}

impl Settings {
    /// Reads what the plan gives. Offers by ALPN the one protocol that is to be spoken.
    pub(in crate::engine) fn new(tls: &Tls, protocol: Protocol) -> Result<Self, SettingsError> {
        let name = ServerName::try_from(tls.server_name.clone())
            .map_err(|_| SettingsError::ServerName(tls.server_name.clone()))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(SettingsError::Versions)?;
        let builder = match &tls.trust {
            Trust::System => builder.with_root_certificates(system_roots()?),
            Trust::Roots { pem } => builder.with_root_certificates(roots(pem)?),
            Trust::Anybody => builder.dangerous().with_custom_certificate_verifier(Arc::new(Believe(provider))),
        };
        let mut config = match &tls.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = read_identity(identity)?;
                builder.with_client_auth_cert(chain, key).map_err(SettingsError::Identity)?
            }
        };
        config.resumption = Resumption::disabled();
        config.alpn_protocols = match protocol {
            Protocol::Http2 => vec![b"h2".to_vec()],
            Protocol::Http10 | Protocol::Http11 => vec![b"http/1.1".to_vec()],
        };
        Ok(Self { connector: Arc::new(config).into(), name })
    }
}

fn certificates(what: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let read = read.map_err(|why| SettingsError::Pem { what, why })?;
    if read.is_empty() { Err(SettingsError::NoCertificate(what)) } else { Ok(read) }
}

fn roots(pem: &str) -> Result<RootCertStore, SettingsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates("trusted roots", pem)? {
        store.add(certificate).map_err(SettingsError::Root)?;
    }
    Ok(store)
}

/// What of the machine's own roots can be used; old ones that cannot are left out, as browsers do.
fn system_roots() -> Result<RootCertStore, SettingsError> {
    let mut found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(std::mem::take(&mut found.certs));
    if store.is_empty() {
        return Err(SettingsError::NoSystemRoots(found.errors.first().map(ToString::to_string)));
    }
    Ok(store)
}

fn read_identity(identity: &Identity) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), SettingsError> {
    let chain = certificates("client certificates", &identity.certificates)?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())
        .map_err(|why| SettingsError::Pem { what: "client certificate's key", why })?;
    Ok((chain, key))
}

/// Believes every certificate, and what is signed with it.
#[derive(Debug)]
struct Believe(Arc<CryptoProvider>);

impl ServerCertVerifier for Believe {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// What a secured stream connects to.
pub(in crate::engine) struct Target<T> {
    pub(in crate::engine) transport: T,
    pub(in crate::engine) settings: Settings,
    pub(in crate::engine) clock: Clock,
}

/// TLS over `S`.
pub(in crate::engine) struct TlsStream<S: Stream> {
    inner: tokio_rustls::client::TlsStream<Metered<S>>,
    handshake: Nanos,
}

impl<S: Stream + AsRawFd> TlsStream<S> {
    /// The protocol that the server chose by ALPN.
    #[cfg(feature = "http2")]
    pub(super) fn protocol(&self) -> Option<&[u8]> {
        self.inner.get_ref().1.alpn_protocol()
    }

    /// What is on the wire.
    pub(super) fn meter(&self) -> &Rc<Meter> {
        self.inner.get_ref().0.meter()
    }

    /// Keeps what an error says of TLS.
    fn note(&self, error: &io::Error) {
        if let Some(text) = explain(error) {
            self.inner.get_ref().0.meter().note(text);
        }
    }

    /// Looks, where writing failed, for what the server said before it closed.
    fn find_reason<T>(&mut self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(_)) = &written
            && let Err(error) = self.absorb()
        {
            self.note(&error);
        }
        written
    }

    /// Handles what has arrived for TLS itself. `false` if it is the end, broken, or there is something to be read.
    fn absorb(&mut self) -> io::Result<bool> {
        let (transport, session) = self.inner.get_mut();
        loop {
            match session.read_tls(&mut Arrived(transport)) {
                Ok(0) => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            let state = session.process_new_packets().map_err(io::Error::other)?;
            if state.peer_has_closed() || state.plaintext_bytes_to_read() > 0 {
                return Ok(false);
            }
        }
    }
}

/// Reads what a socket holds, whatever tokio knows of it: asking twice costs nothing, and a new arrival is a new event.
struct Arrived<'a, S: Stream>(&'a Metered<S>);

impl<S: Stream + AsRawFd> Read for Arrived<'_, S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match recv(self.0.meter().socket, bytes, MsgFlags::MSG_DONTWAIT) {
            Ok(length) => {
                self.0.meter().add_received(length as u64);
                Ok(length)
            }
            Err(Errno::EAGAIN) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error.into()),
        }
    }
}

impl<S: Stream + AsRawFd> Stream for TlsStream<S> {
    type Target = Target<S::Target>;

    async fn open(target: &Self::Target) -> io::Result<Self> {
        let transport = Metered::new(S::open(&target.transport).await?);
        let begun = target.clock.now();
        let Settings { connector, name } = &target.settings;
        let inner = connector.connect(name.clone(), transport).await.map_err(in_handshake)?;
        Ok(Self { inner, handshake: target.clock.now() - begun })
    }

    fn handshake(&self) -> Option<Nanos> {
        Some(self.handshake)
    }

    /// What is written is encrypted first, and then may stay here for a while: there is no short way.
    fn try_write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn is_quiet(&mut self) -> bool {
        self.absorb().unwrap_or(false)
    }

    fn wire(&mut self) -> Option<(u64, u64)> {
        Some(self.inner.get_ref().0.meter().take())
    }

    fn close_abruptly(self) {
        self.inner.get_ref().0.meter().close(Closing::Abrupt);
    }
}

impl<S: Stream + AsRawFd> AsyncRead for TlsStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // A write that TLS took may not have gone out whole, and there is nobody else to see to that. Should it fail, what
        // the server said before is still worth reading.
        if self.inner.get_ref().1.wants_write() {
            let _ = Pin::new(&mut self.inner).poll_flush(cx);
        }
        let polled = Pin::new(&mut self.inner).poll_read(cx, out);
        if let Poll::Ready(Err(error)) = &polled {
            self.note(error);
        }
        polled
    }
}

impl<S: Stream + AsRawFd> AsyncWrite for TlsStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.find_reason(polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        self.find_reason(polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// An error within a handshake, as one of TLS: also where the server simply hangs up.
fn in_handshake(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return io::Error::other(Refusal("the server closed the connection within its handshake".to_owned()));
    }
    error
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(pub(super) String);

/// What an error of a secured stream says, in words that tell what is to be done; `None` if it is not one of TLS.
pub(super) fn explain(error: &io::Error) -> Option<String> {
    let inner = error.get_ref()?;
    if let Some(refusal) = inner.downcast_ref::<Refusal>() {
        return Some(refusal.to_string());
    }
    Some(match inner.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(why) => explain_certificate(why),
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server demands a client certificate".to_owned()
        }
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the server speaks none of the protocols that were offered by ALPN".to_owned()
        }
        rustls::Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::DecryptError
            | AlertDescription::AccessDenied,
        ) => "the server does not accept the client certificate".to_owned(),
        rustls::Error::AlertReceived(AlertDescription::UnrecognisedName) => {
            "the server knows no site of the name that it was asked for".to_owned()
        }
        rustls::Error::AlertReceived(alert) => format!("the server ended it with the alert {alert:?}"),
        rustls::Error::InvalidMessage(_) => "what the server sends is not TLS".to_owned(),
        rustls::Error::PeerIncompatible(why) => format!("the server's TLS and ours have nothing in common: {why:?}"),
        other => other.to_string(),
    })
}

fn explain_certificate(why: &CertificateError) -> String {
    let certificate = "the server's certificate";
    match why {
        CertificateError::UnknownIssuer => format!("{certificate} is signed by nobody who is trusted"),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => format!("{certificate} has expired"),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("{certificate} is not valid yet")
        }
        CertificateError::NotValidForName => format!("{certificate} is for another name"),
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "{certificate} is not for `{}`, but for {}",
            expected.to_str(),
            if presented.is_empty() { "no name at all".to_owned() } else { presented.join(", ") }
        ),
        CertificateError::Revoked => format!("{certificate} was revoked"),
        CertificateError::BadSignature => {
            format!("{certificate} is signed by nobody who is trusted: only the name is that of a trusted authority")
        }
        CertificateError::Other(OtherError(why)) => format!("{certificate} cannot be used: {why}"),
        other => format!("{certificate} is not accepted: {other}"),
    }
}
