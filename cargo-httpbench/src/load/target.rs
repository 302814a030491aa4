//! From a URL to an address: what may stand in a URL, where connections go, how they are secured.
//!
//! A name is resolved once, before the load, and everything goes to that one address: it is in the report.

use std::fs;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::str::FromStr;

use httpbench_core::model::{ArmPlan, Asked, Endpoint, Identity, Protocol, Tls, Trust};
use url::{Host, Url};

use super::options::{Route, TlsOptions, Verification};
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;
use crate::server::somebody_listens;

/// A URL that can be loaded: `http` or `https`, with a host, without credentials and fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetUrl(Url);

impl FromStr for TargetUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ACCEPTED: &str = "write `http://HOST:PORT/PATH` or `https://…`";
        if text.is_empty() {
            return Err(format!("it is empty: {ACCEPTED}"));
        }
        let parsed = Url::parse(text);
        let has_scheme = parsed.as_ref().is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        if !has_scheme && !text.contains("://") {
            return Err(format!("it has no scheme: write `http://{text}`"));
        }
        let url = parsed.map_err(|error| format!("{error}: {ACCEPTED}"))?;
        if !has_scheme {
            return Err(format!("the scheme `{}` is not one that can be loaded: {ACCEPTED}", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it holds credentials, which would stand in every report: leave them out, and send them with \
                 `-H 'Authorization: …'`"
                .to_owned());
        }
        if url.fragment().is_some() {
            return Err(
                "it holds a fragment (`#…`), which is never sent to a server: leave it out, or write `%23`".to_owned()
            );
        }
        if url.port() == Some(0) {
            return Err("nothing can be reached at port 0: write the port that the server listens on".to_owned());
        }
        Ok(Self(url))
    }
}

impl TargetUrl {
    /// The whole URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it asks for TLS.
    #[must_use]
    pub fn is_secured(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The name or address in it, the latter without brackets.
    #[must_use]
    pub fn host(&self) -> String {
        match self.0.host() {
            Some(Host::Ipv6(address)) => address.to_string(),
            Some(host) => host.to_string(),
            None => String::new(),
        }
    }

    /// The port in it, or its scheme's.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(80)
    }

    /// What stands in `Host`: the port only where it is not the scheme's (RFC 9110, section 7.2).
    #[must_use]
    pub fn host_header(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// What stands in the request line: path and query.
    #[must_use]
    pub fn request_target(&self) -> String {
        match self.0.query() {
            Some(query) => format!("{}?{query}", self.0.path()),
            None => self.0.path().to_owned(),
        }
    }
}

/// A target with the address that its connections go to.
#[derive(Clone, Debug, PartialEq)]
pub struct Driven {
    /// As it was asked for.
    pub url: TargetUrl,
    /// Where it is and how one talks to it.
    pub arm: ArmPlan,
    /// What else its name stands for, in the system's order.
    pub other_addresses: Vec<SocketAddr>,
}

impl Driven {
    /// The address, as a person writes it.
    #[must_use]
    pub fn address(&self) -> String {
        match &self.arm.endpoint {
            Endpoint::Tcp(address) => address.to_string(),
            Endpoint::Unix(path) => path.display().to_string(),
        }
    }

    /// Its IP address, where it has one.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match &self.arm.endpoint {
            Endpoint::Tcp(address) => Some(address.ip()),
            Endpoint::Unix(_) => None,
        }
    }

    /// Whether nothing leaves this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.ip().is_none_or(|ip| ip.to_canonical().is_loopback())
    }
}

/// Finds out where a URL's connections go.
///
/// # Errors
///
/// When a name cannot be resolved.
pub(super) fn reach(url: &TargetUrl, route: &Route, tls: Option<&Tls>, protocol: Protocol) -> Result<Driven> {
    let (endpoint, other_addresses) = match route {
        Route::Unix(path) => (Endpoint::Unix(path.clone()), Vec::new()),
        Route::Named(detours) => {
            let detour = detours.iter().find(|detour| detour.is_for(url));
            let (host, port) =
                detour.map_or_else(|| (url.host(), url.port()), |detour| (detour.host.clone(), detour.port));
            let mut addresses = resolve(&host, port)?;
            let address = addresses.remove(best(&addresses));
            (Endpoint::Tcp(address), addresses)
        }
    };
    let tls = tls.filter(|_| url.is_secured()).map(|tls| Tls { server_name: url.host(), ..tls.clone() });
    let arm = ArmPlan { endpoint, host: url.host_header(), protocol, tls, root_pid: None, asked: Asked::Scenario };
    Ok(Driven { url: url.clone(), arm, other_addresses })
}

/// All addresses of a name, at least one, in the system's order.
fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let refused = || Error::new(ExitCode::Usage, format!("the name `{host}` cannot be resolved"));
    let help =
        "check its spelling and this machine's name servers, or say where it is with `--connect-to ADDRESS:PORT`";
    let mut addresses: Vec<SocketAddr> = match (host, port).to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(cause) => return Err(refused().caused_by(cause).help(help)),
    };
    let mut seen = std::collections::HashSet::new();
    addresses.retain(|address| seen.insert(*address));
    if addresses.is_empty() { Err(refused().help(help)) } else { Ok(addresses) }
}

/// The first that the system names, but where all are this machine's own, as `localhost` is, the first that somebody listens
/// at: many servers bind `127.0.0.1` alone, and a trial connection would be one more than is counted.
fn best(addresses: &[SocketAddr]) -> usize {
    if addresses.len() < 2 || !addresses.iter().all(|address| address.ip().is_loopback()) {
        return 0;
    }
    addresses.iter().position(|address| somebody_listens(*address) == Some(true)).unwrap_or(0)
}

/// Reads the files that the options name. The server's name is filled in for each URL.
///
/// # Errors
///
/// When one cannot be read or is no PEM file of its kind (exit code 2).
pub(super) fn read_tls(options: &TlsOptions) -> Result<Option<Tls>> {
    let trust = match &options.verification {
        Verification::System => Trust::System,
        Verification::Nothing => Trust::Anybody,
        Verification::Roots(path) => Trust::Roots { pem: read_pem(path, "--cacert", "CERTIFICATE")? },
    };
    let identity = match &options.identity {
        Some((certificates, key)) => Some(Identity {
            certificates: read_pem(certificates, "--cert", "CERTIFICATE")?,
            key: read_pem(key, "--key", "PRIVATE KEY")?,
        }),
        None => None,
    };
    Ok(Some(Tls { server_name: String::new(), trust, identity }))
}

fn read_pem(path: &Path, flag: &str, kind: &str) -> Result<String> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|cause| {
        Error::new(ExitCode::Usage, format!("the file of `{flag}`, `{shown}`, cannot be read"))
            .caused_by(cause)
            .help("give the path of a PEM file that is there and readable")
    })?;
    // `BEGIN PRIVATE KEY`, `BEGIN RSA PRIVATE KEY`, `BEGIN EC PRIVATE KEY` (RFC 7468 and its forerunners).
    let is_there = text.lines().any(|line| line.starts_with("-----BEGIN ") && line.contains(kind));
    if !is_there {
        return Err(Error::new(
            ExitCode::Usage,
            format!("the file of `{flag}`, `{shown}`, holds no PEM block `{kind}`"),
        )
        .help(format!("it must hold a block that begins with `-----BEGIN {kind}-----`")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn url(text: &str) -> TargetUrl {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn host_header_has_the_port_only_where_it_is_not_the_schemes() {
        for (text, host, target) in [
            ("http://h:80/", "h", "/"),
            ("http://h:1?x=1", "h:1", "/?x=1"),
            ("https://h:443/a?b#".trim_end_matches('#'), "h", "/a?b"),
            ("https://h:80/", "h:80", "/"),
            ("http://[::1]:8080/", "[::1]:8080", "/"),
            ("http://[::1]", "[::1]", "/"),
            ("http://B%C3%BCcher.example/a b", "xn--bcher-kva.example", "/a%20b"),
        ] {
            assert_eq!(
                (url(text).host_header().as_str(), url(text).request_target().as_str()),
                (host, target),
                "{text}"
            );
        }
    }

    #[test]
    fn url_that_cannot_be_loaded_is_refused_with_what_is_accepted() {
        for (text, said) in [
            ("", "it is empty"),
            ("localhost:8080/", "write `http://localhost:8080/`"),
            ("127.0.0.1:80", "write `http://127.0.0.1:80`"),
            ("example.org", "write `http://example.org`"),
            ("ftp://h/", "the scheme `ftp`"),
            ("http://", "empty host"),
            ("http://h:99999/", "invalid port"),
            ("http://[::1/", "IPv6"),
            ("http://me:secret@h/", "credentials"),
            ("http://me@h/", "credentials"),
            ("http://h/#top", "fragment"),
            ("http://h/#", "fragment"),
            ("http://h:0/", "port 0"),
        ] {
            let error = text.parse::<TargetUrl>().expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn detour_changes_the_address_and_neither_host_nor_certificate() {
        let tls = Tls { server_name: String::new(), trust: Trust::Anybody, identity: None };
        let route = Route::Named(vec!["shop.example:443:127.0.0.1:8443".parse().expect("a detour")]);
        let driven =
            reach(&url("https://shop.example/"), &route, Some(&tls), Protocol::Http11).expect("needs no resolver");
        assert_eq!(driven.address(), "127.0.0.1:8443");
        assert_eq!(driven.arm.host, "shop.example");
        assert_eq!(driven.arm.tls.expect("secured").server_name, "shop.example");
        let plain = reach(&url("http://127.0.0.1:1/"), &route, Some(&tls), Protocol::Http11).expect("an address");
        assert_eq!((plain.address().as_str(), plain.arm.tls), ("127.0.0.1:1", None));
    }

    #[test]
    fn detour_for_nobody_is_refused() {
        let route = Route::Named(vec!["a.example:443:127.0.0.1:8443".parse().expect("a detour")]);
        let error = route.refuse_unused(&[url("https://b.example/")]).expect_err("nobody");
        assert_eq!((error.exit, error.what.contains("a.example")), (ExitCode::Usage, true));
    }

    #[test]
    fn of_several_addresses_of_this_machine_the_one_with_a_listener_is_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let taken = listener.local_addr().expect("an address");
        let other = SocketAddr::new("::1".parse().expect("an address"), taken.port());
        assert_eq!(best(&[other, taken]), 1);
        let foreign: SocketAddr = "192.0.2.1:80".parse().expect("an address");
        assert_eq!(best(&[foreign, taken]), 0);
    }

    #[test]
    fn file_that_is_no_certificate_is_refused_by_its_flag() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ca.pem");
        let options = |verification| TlsOptions { verification, identity: None };
        let error = read_tls(&options(Verification::Roots(path.clone()))).expect_err("not there");
        assert_eq!((error.exit, error.what.contains("--cacert")), (ExitCode::Usage, true));
        fs::write(&path, "-----BEGIN PRIVATE KEY-----\n").expect("written");
        let error = read_tls(&options(Verification::Roots(path))).expect_err("a key");
        assert!(error.what.contains("no PEM block `CERTIFICATE`"), "{error}");
    }
}
