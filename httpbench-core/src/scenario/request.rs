//! The request that a scenario function describes, and how it becomes bytes.
//!
//! Building never fails and never panics: whatever was said is kept as it was said, and judged when the request is
//! rendered. Rendering happens once per arm and round, so it may be thorough; what it lets through is one well-formed
//! HTTP/1.1 message (RFC 9112) whose framing the server cannot read in two ways.

use std::sync::Arc;

use serde::Serialize;

use super::{Check, WireOptions, WireRequest};
use crate::model::{Protocol, RequestSummary, Reuse};

/// A request, built by what a scenario function says.
///
/// Nothing here fails: a mistake (a target without its `/`, a header with a line break) is told when the request is
/// rendered, by `cargo httpbench` as well as by `cargo test --all-targets`.
///
/// ```
/// use httpbench_core::prelude::*;
///
/// let request = Request::post("/login?next=%2F")
///     .header("x-tenant", "7")
///     .body("user=ferris")
///     .check(Check::status(204));
/// let wire = request.render("127.0.0.1:8080")?;
/// assert!(wire.bytes.starts_with(b"POST /login?next=%2F HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"));
/// # Ok::<(), httpbench_core::RequestError>(())
/// ```
///
/// `Host`, `User-Agent: httpbench/…` and `Accept: */*` are sent unless the request has its own. `Content-Length` is
/// computed, and is `0` for POST, PUT and PATCH without a body.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<Header>,
    body: Body,
    check: Check,
}

#[derive(Clone, Debug)]
struct Header {
    name: String,
    value: Vec<u8>,
}

impl Header {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

#[derive(Clone, Debug)]
enum Body {
    Absent,
    Bytes(Vec<u8>),
    Json(Result<Vec<u8>, Arc<serde_json::Error>>),
}

impl Body {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) | Self::Json(Ok(bytes)) => bytes,
            Self::Absent | Self::Json(Err(_)) => &[],
        }
    }
}

/// Why a request cannot be sent.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The method is no token (RFC 9110, section 9.1).
    #[error("the method {method:?} is not one word of letters: such as `GET` or `PURGE`")]
    Method {
        /// What was given.
        method: String,
    },
    /// The method is a standard one in the wrong case.
    #[error("the method `{method}` is written `{}`: methods are case-sensitive", method.to_ascii_uppercase())]
    MethodCase {
        /// What was given.
        method: String,
    },
    /// CONNECT asks for a tunnel.
    #[error("`CONNECT` opens a tunnel, which is not an exchange that can be measured")]
    Connect,
    /// The target is a whole URL.
    #[error(
        "the target {target:?} is a whole URL: give the path only, such as `/items?page=2`, the server's address is filled in"
    )]
    AbsoluteTarget {
        /// What was given.
        target: String,
    },
    /// The target does not begin with `/` or `?`.
    #[error("the target {target:?} does not begin with `/`: write {:?}", format!("/{target}"))]
    RelativeTarget {
        /// What was given.
        target: String,
    },
    /// The target holds what a request line cannot.
    #[error("the target {target:?} holds {found:?}: {hint}")]
    TargetCharacter {
        /// What was given.
        target: String,
        /// The first wrong character.
        found: char,
        /// What to do about it.
        hint: &'static str,
    },
    /// The header's name is no token (RFC 9110, section 5.1).
    #[error("the header name {name:?} is not one word: letters, digits and hyphens, without the colon")]
    HeaderName {
        /// What was given.
        name: String,
    },
    /// The header's value holds a line break or another control character (RFC 9110, section 5.5).
    #[error("the value of header `{name}` holds the control character {:?}", char::from(*found))]
    HeaderValue {
        /// Whose value.
        name: String,
        /// The first wrong byte.
        found: u8,
    },
    /// `Host` was given more than once (RFC 9112, section 3.2).
    #[error("header `Host` is given {count} times: a request has exactly one")]
    HostRepeated {
        /// How often.
        count: usize,
    },
    /// `Content-Length` contradicts the body.
    #[error(
        "header `Content-Length: {given}` contradicts the body of {body_bytes} bytes: leave it out, it is computed"
    )]
    ContentLength {
        /// What was given.
        given: String,
        /// How long the body is.
        body_bytes: usize,
    },
    /// `Transfer-Encoding` contradicts the body, which is sent as it is.
    #[error("header `Transfer-Encoding` contradicts the body, which is sent whole with `Content-Length`: leave it out")]
    TransferEncoding,
    /// The body could not be serialised.
    #[error("the body could not be serialised as JSON")]
    Json(#[source] Arc<serde_json::Error>),
    /// The check can never hold.
    #[error("the check can never hold: {0}")]
    Check(String),
}

impl Request {
    /// A GET request for a path, with its query if it has one.
    #[must_use]
    pub fn get(target: impl Into<String>) -> Self {
        Self::new("GET", target)
    }

    /// A HEAD request.
    #[must_use]
    pub fn head(target: impl Into<String>) -> Self {
        Self::new("HEAD", target)
    }

    /// A POST request.
    #[must_use]
    pub fn post(target: impl Into<String>) -> Self {
        Self::new("POST", target)
    }

    /// A PUT request.
    #[must_use]
    pub fn put(target: impl Into<String>) -> Self {
        Self::new("PUT", target)
    }

    /// A PATCH request.
    #[must_use]
    pub fn patch(target: impl Into<String>) -> Self {
        Self::new("PATCH", target)
    }

    /// A DELETE request.
    #[must_use]
    pub fn delete(target: impl Into<String>) -> Self {
        Self::new("DELETE", target)
    }

    /// An OPTIONS request.
    #[must_use]
    pub fn options(target: impl Into<String>) -> Self {
        Self::new("OPTIONS", target)
    }

    /// A request by any other method, such as `PURGE`.
    ///
    /// ```
    /// use httpbench_core::Request;
    ///
    /// assert!(Request::new("PURGE", "/cache").render("localhost").is_ok());
    /// assert!(Request::new("get", "/").render("localhost").is_err());
    /// ```
    #[must_use]
    pub fn new(method: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            target: target.into(),
            headers: Vec::new(),
            body: Body::Absent,
            check: Check::default(),
        }
    }

    /// Adds a header. A name may be given several times: every value is sent, in the order given, on a line of its own.
    ///
    /// A `Host`, `User-Agent`, `Accept` or `Content-Type` of your own replaces ours.
    ///
    /// ```
    /// use httpbench_core::Request;
    ///
    /// let wire = Request::get("/").header("x-a", "1").header("x-a", "2").render("localhost")?;
    /// assert!(String::from_utf8_lossy(&wire.bytes).contains("x-a: 1\r\nx-a: 2\r\n"));
    /// # Ok::<(), httpbench_core::RequestError>(())
    /// ```
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl AsRef<[u8]>) -> Self {
        self.headers.push(Header { name: name.into(), value: value.as_ref().to_vec() });
        self
    }

    /// Sets the body: text or bytes, sent as they are.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Body::Bytes(body.into());
        self
    }

    /// Sets the body to a value's JSON, and `Content-Type: application/json` unless a header says otherwise.
    ///
    /// ```
    /// use httpbench_core::Request;
    ///
    /// let wire = Request::post("/items").json(&["tea", "milk"]).render("localhost")?;
    /// assert!(wire.bytes.ends_with(b"Content-Type: application/json\r\nContent-Length: 14\r\n\r\n[\"tea\",\"milk\"]"));
    /// # Ok::<(), httpbench_core::RequestError>(())
    /// ```
    #[must_use]
    pub fn json(mut self, value: &(impl Serialize + ?Sized)) -> Self {
        self.body = Body::Json(serde_json::to_vec(value).map_err(Arc::new));
        self
    }

    /// Says what the answer must be. Without it, any status below 400 will do.
    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    /// Method, target and size, for reports.
    #[must_use]
    pub fn summary(&self) -> RequestSummary {
        RequestSummary {
            method: self.method.clone(),
            target: self.origin_form(),
            body_bytes: self.body.bytes().len() as u64,
            checksum: self.checksum(),
        }
    }

    /// FNV-1a, 64 bits (draft-eastlake-fnv), over all that the user wrote, each part with its length. What every request of ours
    /// has is left out: a new version of ours is no new request.
    fn checksum(&self) -> u64 {
        let mut sum = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |part: &[u8]| {
            for &byte in (part.len() as u64).to_le_bytes().iter().chain(part) {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        };
        add(self.method.as_bytes());
        add(self.origin_form().as_bytes());
        for header in &self.headers {
            add(header.name.as_bytes());
            add(&header.value);
        }
        add(self.body.bytes());
        add(format!("{:?}", self.check).as_bytes());
        sum
    }

    /// Renders the request for the server at `host`: the value of the `Host` header, unless the request has its own.
    ///
    /// # Errors
    ///
    /// What makes the request one that cannot be sent; the first such thing.
    pub fn render(&self, host: &str) -> Result<WireRequest, RequestError> {
        self.render_as(host, WireOptions::default())
    }

    /// Renders the request for the server at `host`, in another version of HTTP or for connections that are not kept.
    ///
    /// ```
    /// use httpbench_core::Request;
    /// use httpbench_core::model::{Protocol, Reuse};
    /// use httpbench_core::scenario::WireOptions;
    ///
    /// let options = WireOptions { version: Protocol::Http10, reuse: Reuse::Close };
    /// let wire = Request::get("/").render_as("localhost", options)?;
    /// assert!(wire.bytes.starts_with(b"GET / HTTP/1.0\r\nHost: localhost\r\n"));
    /// assert!(wire.bytes.ends_with(b"\r\nConnection: close\r\n\r\n"));
    /// # Ok::<(), httpbench_core::RequestError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Request::render`].
    pub fn render_as(&self, host: &str, options: WireOptions) -> Result<WireRequest, RequestError> {
        self.judge_method()?;
        let target = self.origin_form();
        self.judge_target(&target)?;
        self.judge_headers()?;
        if let Body::Json(Err(error)) = &self.body {
            return Err(RequestError::Json(Arc::clone(error)));
        }
        let is_head = self.method == "HEAD";
        if let Some(why) = self.check.contradiction(is_head) {
            return Err(RequestError::Check(why));
        }
        Ok(WireRequest { bytes: self.bytes(&target, host, options), is_head, check: self.check.clone() })
    }

    fn bytes(&self, target: &str, host: &str, options: WireOptions) -> Vec<u8> {
        let body = self.body.bytes();
        let version = match options.version {
            Protocol::Http10 => "HTTP/1.0",
            Protocol::Http11 | Protocol::Http2 => "HTTP/1.1",
        };
        let mut bytes = format!("{} {target} {version}\r\n", self.method).into_bytes();
        let mut line = |name: &str, value: &[u8]| {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        };
        // RFC 9112, section 3.2: Host should be the first of them.
        for (name, value) in
            [("Host", host), ("User-Agent", concat!("httpbench/", env!("CARGO_PKG_VERSION"))), ("Accept", "*/*")]
        {
            if !self.has(name) {
                line(name, value.as_bytes());
            }
        }
        for header in &self.headers {
            line(&header.name, &header.value);
        }
        if matches!(self.body, Body::Json(_)) && !self.has("Content-Type") {
            line("Content-Type", b"application/json");
        }
        // RFC 9110, section 8.6: a method that anticipates content has a length even without; others have none.
        let anticipates = matches!(self.method.as_str(), "POST" | "PUT" | "PATCH");
        if (anticipates || !body.is_empty()) && !self.has("Content-Length") {
            line("Content-Length", body.len().to_string().as_bytes());
        }
        // Several fields are one list, in which `close` wins (RFC 9112, section 9.3).
        if options.reuse == Reuse::Close && !self.says_close() {
            line("Connection", b"close");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        bytes
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|header| header.is(name))
    }

    fn says_close(&self) -> bool {
        let connection = self.headers.iter().filter(|header| header.is("Connection"));
        let mut items = connection.flat_map(|header| header.value.split(|byte| *byte == b','));
        items.any(|item| item.trim_ascii().eq_ignore_ascii_case(b"close"))
    }

    /// RFC 9112, section 3.2.1: an empty path is sent as `/`.
    fn origin_form(&self) -> String {
        if self.target.is_empty() || self.target.starts_with('?') {
            format!("/{}", self.target)
        } else {
            self.target.clone()
        }
    }

    fn judge_method(&self) -> Result<(), RequestError> {
        const STANDARD: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];
        let method = self.method.clone();
        if !is_token(&method) {
            return Err(RequestError::Method { method });
        }
        if method == "CONNECT" {
            return Err(RequestError::Connect);
        }
        let upper = method.to_ascii_uppercase();
        if upper != method && STANDARD.contains(&upper.as_str()) {
            return Err(RequestError::MethodCase { method });
        }
        Ok(())
    }

    fn judge_target(&self, origin: &str) -> Result<(), RequestError> {
        let target = || self.target.clone();
        if !origin.starts_with('/') {
            let before_query = origin.split('?').next().unwrap_or(origin);
            return Err(if before_query.contains("://") {
                RequestError::AbsoluteTarget { target: target() }
            } else {
                RequestError::RelativeTarget { target: target() }
            });
        }
        let hint = |found: char| match found {
            '#' => Some("a fragment is never sent to a server: leave it out, or write `%23`"),
            ' ' => Some("write `%20`"),
            _ if found.is_control() => Some("a request line cannot hold control characters: percent-encode it"),
            _ if !found.is_ascii() => Some("percent-encode what is not ASCII"),
            _ => None,
        };
        match origin.chars().find_map(|found| hint(found).map(|hint| (found, hint))) {
            Some((found, hint)) => Err(RequestError::TargetCharacter { target: target(), found, hint }),
            None => Ok(()),
        }
    }

    fn judge_headers(&self) -> Result<(), RequestError> {
        for header in &self.headers {
            let name = header.name.clone();
            if !is_token(&name) {
                return Err(RequestError::HeaderName { name });
            }
            // RFC 9110, section 5.5: visible characters, spaces, tabs and obs-text.
            if let Some(&found) = header.value.iter().find(|byte| byte.is_ascii_control() && **byte != b'\t') {
                return Err(RequestError::HeaderValue { name, found });
            }
        }
        let hosts = self.headers.iter().filter(|header| header.is("Host")).count();
        if hosts > 1 {
            return Err(RequestError::HostRepeated { count: hosts });
        }
        if self.has("Transfer-Encoding") {
            return Err(RequestError::TransferEncoding);
        }
        self.judge_content_length()
    }

    /// A length of the user's own is accepted once, if it is the right one.
    fn judge_content_length(&self) -> Result<(), RequestError> {
        let body_bytes = self.body.bytes().len();
        let given: Vec<_> = self
            .headers
            .iter()
            .filter(|header| header.is("Content-Length"))
            .map(|header| String::from_utf8_lossy(&header.value).into_owned())
            .collect();
        match given.as_slice() {
            [] => Ok(()),
            [one] if *one == body_bytes.to_string() => Ok(()),
            several => Err(RequestError::ContentLength { given: several.join(", "), body_bytes }),
        }
    }
}

/// RFC 9110, section 5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
