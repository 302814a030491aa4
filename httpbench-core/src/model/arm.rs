//! Where a server is, and how one talks to it.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One server under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmPlan {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// The `Host` header that requests to it carry.
    pub host: String,
    /// The version of HTTP.
    #[serde(default)]
    pub protocol: Protocol,
    /// How connections are secured; `None`: not at all.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// The process whose descendants are the server: its supervisor. `None`: nothing is sampled.
    pub root_pid: Option<u32>,
    /// What it is sent.
    #[serde(default)]
    pub asked: Asked,
}

/// What an arm is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asked {
    /// The scenario's requests.
    #[default]
    Scenario,
    /// `GET /`, whatever the scenario sends: it is the command's own reference server.
    Reference,
}

impl ArmPlan {
    /// A server that speaks HTTP/1.1 over plain TCP, is named by its address, and is not sampled.
    #[must_use]
    pub fn plain(address: SocketAddr) -> Self {
        Self {
            endpoint: Endpoint::Tcp(address),
            host: address.to_string(),
            protocol: Protocol::Http11,
            tls: None,
            root_pid: None,
            asked: Asked::Scenario,
        }
    }
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Endpoint {
    /// An address of IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A Unix domain socket.
    Unix(PathBuf),
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// HTTP/1.0.
    #[serde(rename = "HTTP/1.0")]
    Http10,
    /// HTTP/1.1.
    #[default]
    #[serde(rename = "HTTP/1.1")]
    Http11,
    /// HTTP/2: by ALPN over TLS, with prior knowledge otherwise.
    #[serde(rename = "HTTP/2")]
    Http2,
}

/// How TLS is spoken (1.2 or 1.3, without resuming sessions). Certificates and keys are PEM texts, not paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// The name or address that the server's certificate must carry, sent as SNI if it is a name.
    pub server_name: String,
    /// Whose certificates are believed.
    pub trust: Trust,
    /// What this side shows of itself.
    #[serde(default)]
    pub identity: Option<Identity>,
}

/// Whose certificates are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// The roots that this machine trusts.
    #[default]
    System,
    /// These roots alone.
    Roots {
        /// Certificates.
        pem: String,
    },
    /// Anybody's: nothing is verified.
    Anybody,
}

/// A client certificate.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The chain, the client's own certificate first.
    pub certificates: String,
    /// Its private key.
    pub key: String,
}

/// Without the key.
impl std::fmt::Debug for Identity {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Identity").field("certificates", &self.certificates).finish_non_exhaustive()
    }
}
