//! Certificates made for a test, and a scripted server that speaks TLS.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};

use httpbench_core::model::{ArmPlan, Identity, Tls, Trust};

/// Signs certificates.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// For a server of this name, with the parameters changed at will.
    pub(crate) fn server(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        change(&mut params);
        self.sign(&params)
    }

    pub(crate) fn client(&self) -> Identity {
        let mut params = CertificateParams::new(vec!["client".to_owned()]).expect("parameters");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Identity { certificates: certificate.pem(), key: key.serialize_pem() }
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::Roots { pem: self.pem.clone() }
    }
}

/// Settings of a server that shows `identity`, demands nothing of its clients, and offers `protocols` by ALPN.
pub(crate) fn config(identity: &Identity, protocols: &[&str]) -> ServerConfig {
    config_of(identity, protocols, rustls::ALL_VERSIONS, None)
}

/// The same with the versions of TLS and the authority of the client certificates.
pub(crate) fn config_of(
    identity: &Identity,
    protocols: &[&str],
    versions: &[&'static SupportedProtocolVersion],
    clients: Option<&Authority>,
) -> ServerConfig {
    let chain = CertificateDer::pem_slice_iter(identity.certificates.as_bytes());
    let chain: Vec<_> = chain.collect::<Result<_, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("a key");
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_protocol_versions(versions).expect("versions");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).expect("a root")).expect("usable");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        }
    };
    let mut config = builder.with_single_cert(chain, key).expect("a certificate and its key");
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

/// An arm that speaks TLS with the server `name` at `address`.
pub(crate) fn secured(address: SocketAddr, name: &str, trust: Trust) -> ArmPlan {
    let tls = Some(Tls { server_name: name.to_owned(), trust, identity: None });
    ArmPlan { tls, ..ArmPlan::plain(address) }
}

pub(crate) struct SecurePeer {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicU64,
    requests: AtomicU64,
    protocols: Mutex<Vec<Option<String>>>,
    names: Mutex<Vec<Option<String>>>,
    stopped: AtomicBool,
}

/// One connection, as its script sees it.
pub(crate) struct SecureTalk {
    stream: StreamOwned<ServerConnection, TcpStream>,
    seen: Arc<Seen>,
    unread: Vec<u8>,
}

impl SecurePeer {
    /// Runs `script` for every connection after its handshake; it is closed without `close_notify` when that returns.
    pub(crate) fn new(
        config: ServerConfig,
        script: impl Fn(&mut SecureTalk) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (seen, script, config) = (Arc::<Seen>::default(), Arc::new(script), Arc::new(config));
        let shared = Arc::clone(&seen);
        let acceptor = thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { return };
                let (script, config, seen) = (Arc::clone(&script), Arc::clone(&config), Arc::clone(&shared));
                // A script may end with an error: engines close connections as they like.
                thread::spawn(move || {
                    let mut talk = SecureTalk::accept(stream, config, seen)?;
                    script(&mut talk)
                });
            }
        });
        Self { address, seen, acceptor: Some(acceptor) }
    }

    /// Answers every request with the same bytes, and keeps the connection open.
    pub(crate) fn answering(config: ServerConfig, answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(config, move |talk| {
            while talk.read_request()? {
                talk.send(&answer)?;
            }
            Ok(())
        })
    }

    /// Those whose handshake went well.
    pub(crate) fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::SeqCst)
    }

    /// What ALPN chose, by connection.
    pub(crate) fn protocols(&self) -> Vec<Option<String>> {
        self.seen.protocols.lock().expect("not poisoned").clone()
    }

    /// What SNI asked for, by connection.
    pub(crate) fn names(&self) -> Vec<Option<String>> {
        self.seen.names.lock().expect("not poisoned").clone()
    }
}

impl Drop for SecurePeer {
    fn drop(&mut self) {
        self.seen.stopped.store(true, Ordering::SeqCst);
        // Wakes the acceptor, so that it sees the end.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().expect("the acceptor does not panic");
        }
    }
}

impl SecureTalk {
    fn accept(stream: TcpStream, config: Arc<ServerConfig>, seen: Arc<Seen>) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.set_write_timeout(Some(Duration::from_secs(20)))?;
        let session = ServerConnection::new(config).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(session, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        seen.connections.fetch_add(1, Ordering::SeqCst);
        seen.protocols.lock().expect("not poisoned").push(stream.conn.alpn_protocol().map(name));
        seen.names.lock().expect("not poisoned").push(stream.conn.server_name().map(str::to_owned));
        Ok(Self { stream, seen, unread: Vec::new() })
    }

    /// Reads a whole request, body included. `false` at the end of the connection.
    pub(crate) fn read_request(&mut self) -> io::Result<bool> {
        loop {
            if let Some(at) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                let text = String::from_utf8_lossy(&self.unread[..at]).to_lowercase();
                let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
                let whole = at + 4 + length.map_or(0, |length| length.trim().parse::<usize>().expect("a length"));
                if self.unread.len() >= whole {
                    self.unread.drain(..whole);
                    self.seen.requests.fetch_add(1, Ordering::SeqCst);
                    return Ok(true);
                }
            }
            let mut piece = [0; 64 * 1024];
            let length = self.stream.read(&mut piece)?;
            if length == 0 {
                return Ok(false);
            }
            self.unread.extend_from_slice(&piece[..length]);
        }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())?;
        self.stream.flush()
    }

    /// Ends the connection as TLS wants it.
    pub(crate) fn close_notify(&mut self) -> io::Result<()> {
        self.stream.conn.send_close_notify();
        self.stream.flush()?;
        self.stream.sock.shutdown(Shutdown::Write)
    }

    /// Asks the client for new keys, which it answers unasked.
    pub(crate) fn refresh_keys(&mut self) -> io::Result<()> {
        self.stream.conn.refresh_traffic_keys().map_err(io::Error::other)?;
        self.stream.flush()
    }
}
