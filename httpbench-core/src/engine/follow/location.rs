//! From a `Location` to the place it names (RFC 9110, section 10.2.2; RFC 3986, section 5).
//!
//! Understands `http` and `https`, whole and relative references. Resolves no names and opens nothing. Invariant: what it
//! gives as a target can stand in a request line.

use std::fmt;

/// A place that a request can go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) origin: Origin,
    /// Path and query.
    pub(super) target: String,
}

/// Scheme, host and port: what credentials and connections belong to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub(super) scheme: Scheme,
    /// In lower case; an address of IPv6 in its brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

/// How connections are secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Why a reference cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unfollowable {
    #[error("it is neither `http` nor `https`")]
    Scheme,
    #[error("its host is empty or no host's name")]
    Host,
    #[error("its port is not one from 1 to 65535")]
    Port,
    #[error("it holds a user name or password")]
    Credentials,
    #[error("it holds a control character")]
    Control,
}

impl Origin {
    /// That of an authority: `host`, `host:port`, `[::1]:port`.
    pub(super) fn parse(scheme: Scheme, authority: &str) -> Result<Self, Unfollowable> {
        if authority.contains('@') {
            return Err(Unfollowable::Credentials);
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let end = rest.find(']').ok_or(Unfollowable::Host)?;
                rest[..end].parse::<std::net::Ipv6Addr>().map_err(|_| Unfollowable::Host)?;
                let port = &rest[end + 1..];
                (
                    &authority[..end + 2],
                    if port.is_empty() { port } else { port.strip_prefix(':').ok_or(Unfollowable::Port)? },
                )
            }
            None => {
                let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
                let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
                if host.is_empty() || !host.bytes().all(is_name) {
                    return Err(Unfollowable::Host);
                }
                (host, port)
            }
        };
        let port = match port {
            "" => scheme.default_port(),
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|port| *port > 0).ok_or(Unfollowable::Port)?
            }
            _ => return Err(Unfollowable::Port),
        };
        Ok(Self { scheme, host: host.to_ascii_lowercase(), port })
    }

    /// As a `Host` header says it: without the port if it is the scheme's own.
    pub(super) fn authority(&self) -> String {
        if self.port == self.scheme.default_port() { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(out, "{scheme}://{}", self.authority())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.origin, self.target)
    }
}

impl Place {
    /// Where a `Location` in an answer to a request to this place leads.
    pub(super) fn resolve(&self, location: &str) -> Result<Self, Unfollowable> {
        let reference = location.trim_matches([' ', '\t']);
        if reference.chars().any(char::is_control) {
            return Err(Unfollowable::Control);
        }
        // A fragment is the client's own business.
        let reference = reference.split('#').next().unwrap_or_default();
        let (scheme, rest) = match scheme_of(reference) {
            Some((name, rest)) if name.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            Some((name, rest)) if name.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
            Some(_) => return Err(Unfollowable::Scheme),
            None if reference.starts_with("//") => (self.origin.scheme, reference),
            None => return Ok(Self { origin: self.origin.clone(), target: encode(&self.relative(reference)) }),
        };
        let rest = rest.strip_prefix("//").ok_or(Unfollowable::Host)?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let target = &rest[end..];
        let (path, query) = split_query(target);
        Ok(Self {
            origin: Origin::parse(scheme, &rest[..end])?,
            target: encode(&format!("{}{query}", without_dots(if path.is_empty() { "/" } else { path }))),
        })
    }

    /// RFC 3986, section 5.2.2, from the path on.
    fn relative(&self, reference: &str) -> String {
        let (base, base_query) = split_query(&self.target);
        let (path, query) = split_query(reference);
        if path.is_empty() {
            return format!("{base}{}", if query.is_empty() { base_query } else { query });
        }
        let whole = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("{}{path}", &base[..base.rfind('/').map_or(0, |slash| slash + 1)])
        };
        format!("{}{query}", without_dots(&whole))
    }
}

/// A reference's scheme and what follows its colon. A relative one may hold a colon too, but behind a slash.
fn scheme_of(reference: &str) -> Option<(&str, &str)> {
    let (name, rest) = reference.split_once(':')?;
    let is_scheme = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some((name, rest))
}

/// Path, and query with its `?`.
fn split_query(target: &str) -> (&str, &str) {
    target.split_at(target.find('?').unwrap_or(target.len()))
}

/// RFC 3986, section 5.2.4, for a path that begins with `/`.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// What servers send unencoded all the same, encoded as browsers do.
fn encode(target: &str) -> String {
    let mut encoded = String::with_capacity(target.len());
    for byte in target.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Place {
        let origin = Origin::parse(Scheme::Http, "Shop.example:8080").expect("an origin");
        Place { origin, target: "/b/c/d?q".to_owned() }
    }

    #[test]
    fn references_are_resolved_as_rfc_3986_says() {
        // The examples of its section 5.4, as far as they differ for what a server sends.
        for (location, place) in [
            ("g", "http://shop.example:8080/b/c/g"),
            ("./g", "http://shop.example:8080/b/c/g"),
            ("g/", "http://shop.example:8080/b/c/g/"),
            ("/g", "http://shop.example:8080/g"),
            ("//g", "http://g/"),
            ("?y", "http://shop.example:8080/b/c/d?y"),
            ("g?y#s", "http://shop.example:8080/b/c/g?y"),
            ("#s", "http://shop.example:8080/b/c/d?q"),
            ("", "http://shop.example:8080/b/c/d?q"),
            (".", "http://shop.example:8080/b/c/"),
            ("..", "http://shop.example:8080/b/"),
            ("../../../g", "http://shop.example:8080/g"),
            ("/./g/../h", "http://shop.example:8080/h"),
            ("g;x=1/../y", "http://shop.example:8080/b/c/y"),
            ("/a:b", "http://shop.example:8080/a:b"),
            ("/back?to=http://x/../y", "http://shop.example:8080/back?to=http://x/../y"),
            ("HTTP://Other.example:80/X?y=Z", "http://other.example/X?y=Z"),
            ("https://other.example", "https://other.example/"),
            ("https://other.example:80?x", "https://other.example:80/?x"),
            ("http://[::1]:8080/", "http://[::1]:8080/"),
            (" /a b\u{e9}\"", "http://shop.example:8080/a%20b%C3%A9%22"),
        ] {
            assert_eq!(base().resolve(location).map(|place| place.to_string()), Ok(place.to_owned()), "{location:?}");
        }
    }

    #[test]
    fn references_that_lead_nowhere_say_why() {
        for (location, why) in [
            ("ftp://x/", Unfollowable::Scheme),
            ("mailto:a@b", Unfollowable::Scheme),
            ("javascript:alert(1)", Unfollowable::Scheme),
            ("http:/x", Unfollowable::Host),
            ("http://", Unfollowable::Host),
            ("http://:80/", Unfollowable::Host),
            ("http://a b/", Unfollowable::Host),
            ("http://[::g]/", Unfollowable::Host),
            ("http://[::1/", Unfollowable::Host),
            ("http://x:0/", Unfollowable::Port),
            ("http://x:65536/", Unfollowable::Port),
            ("http://x:+1/", Unfollowable::Port),
            ("http://[::1]8080/", Unfollowable::Port),
            ("http://user:secret@x/", Unfollowable::Credentials),
            ("/a\r\nX: y", Unfollowable::Control),
        ] {
            assert_eq!(base().resolve(location), Err(why), "{location:?}");
        }
    }

    #[test]
    fn authority_has_no_port_that_the_scheme_implies() {
        for (text, authority) in [("h:80", "h"), ("h", "h"), ("h:", "h"), ("H:8080", "h:8080"), ("[::1]:80", "[::1]")] {
            assert_eq!(Origin::parse(Scheme::Http, text).map(|origin| origin.authority()), Ok(authority.to_owned()));
        }
    }
}
