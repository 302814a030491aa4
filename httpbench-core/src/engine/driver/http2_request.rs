//! A rendered request of HTTP/1.1, translated for HTTP/2 (RFC 9113, sections 8.2 and 8.3).
//!
//! The target becomes `:path`, `Host` becomes `:authority`, names become lower-case, and fields that speak of a connection
//! are left out. Done once for a request, not for each exchange.

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Uri, Version};

/// More fields than any request has that was written by hand.
const MAX_HEADERS: usize = 1024;

/// Fields that mean one connection of HTTP/1.1 (RFC 9113, section 8.2.2), besides those that `Connection` names.
const OF_A_CONNECTION: [&str; 5] = ["connection", "transfer-encoding", "upgrade", "keep-alive", "proxy-connection"];

/// See the [module](self).
pub(in crate::engine) struct Template {
    /// What it was made of.
    source: Vec<u8>,
    scheme: Scheme,
    method: Method,
    uri: Uri,
    fields: HeaderMap,
    body: Bytes,
}

/// A request that HTTP/2 cannot carry.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum RequestError {
    #[error("the request is not one of HTTP/1.1: {0}")]
    Parse(String),
    #[error("the request has no `Host`, which HTTP/2 needs as `:authority`")]
    NoHost,
    #[error("the request's {0} cannot be sent over HTTP/2: {1}")]
    Part(&'static str, http::Error),
}

impl Template {
    /// Of the bytes of a rendered request.
    pub(in crate::engine) fn new(request: &[u8], scheme: Scheme) -> Result<Self, RequestError> {
        let mut fields = vec![httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut fields);
        let length = match parsed.parse(request) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Err(RequestError::Parse("its head has no end".to_owned())),
            Err(error) => return Err(RequestError::Parse(error.to_string())),
        };
        let part = |name| move |error: http::Error| RequestError::Part(name, error);
        let method = Method::from_bytes(parsed.method.unwrap_or_default().as_bytes());
        let target = PathAndQuery::try_from(parsed.path.unwrap_or_default());
        let mut headers = HeaderMap::new();
        let mut authority = None;
        let named = named_by_connection(parsed.headers);
        for field in parsed.headers.iter() {
            let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|e| part("header name")(e.into()))?;
            let value = HeaderValue::from_bytes(field.value).map_err(|e| part("header value")(e.into()))?;
            if name == header::HOST {
                authority = Some(Authority::try_from(field.value).map_err(|e| part("host")(e.into()))?);
            } else if !named.contains(&name) && !is_of_a_connection(&name, &value) {
                headers.append(name, value);
            }
        }
        let authority = authority.ok_or(RequestError::NoHost)?;
        let uri = Uri::builder()
            .scheme(scheme.clone())
            .authority(authority)
            .path_and_query(target.map_err(|e| part("target")(e.into()))?)
            .build()
            .map_err(part("target"))?;
        Ok(Self {
            source: request.to_vec(),
            scheme,
            method: method.map_err(|e| part("method")(e.into()))?,
            uri,
            fields: headers,
            body: Bytes::copy_from_slice(&request[length..]),
        })
    }

    /// Whether it was made of these bytes.
    pub(super) fn is_of(&self, request: &[u8]) -> bool {
        self.source == request
    }

    pub(super) fn scheme(&self) -> Scheme {
        self.scheme.clone()
    }

    /// Without the body.
    pub(super) fn head(&self) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.fields.clone();
        *request.version_mut() = Version::HTTP_2;
        request
    }

    pub(super) fn body(&self) -> &Bytes {
        &self.body
    }
}

/// The names that the `Connection` fields list.
fn named_by_connection(fields: &[httparse::Header<'_>]) -> Vec<HeaderName> {
    let values = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("connection")).map(|field| field.value);
    let names = values.flat_map(|value| value.split(|byte| *byte == b','));
    names.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok()).collect()
}

/// Whether a field means one connection of HTTP/1.1.
fn is_of_a_connection(name: &HeaderName, value: &HeaderValue) -> bool {
    OF_A_CONNECTION.contains(&name.as_str()) || *name == header::TE && value != "trailers"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Result<Template, RequestError> {
        Template::new(text.as_bytes(), Scheme::HTTP)
    }

    #[test]
    fn host_and_target_become_pseudo_fields_and_fields_of_a_connection_are_left_out() {
        let text = "POST /a?b=c HTTP/1.1\r\nHost: h:81\r\nX-A: 1\r\nx-a: 2\r\nConnection: close, X-Hop\r\nX-Hop: 3\r\n\
                    Keep-Alive: 5\r\nTE: gzip\r\nContent-Length: 4\r\n\r\nbody";
        let template = template(text).expect("sound");
        let head = template.head();
        assert_eq!((head.method(), head.uri().to_string().as_str()), (&Method::POST, "http://h:81/a?b=c"));
        let fields: Vec<_> =
            head.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().expect("text"))).collect();
        assert_eq!(fields, [("x-a", "1"), ("x-a", "2"), ("content-length", "4")]);
        assert_eq!(template.body().as_ref(), b"body");
        assert!(template.is_of(text.as_bytes()) && !template.is_of(b""));
    }

    #[test]
    fn requests_that_have_no_authority_or_no_end_are_refused() {
        assert!(matches!(template("GET / HTTP/1.1\r\n\r\n"), Err(RequestError::NoHost)));
        assert!(matches!(template("GET / HTTP/1.1\r\nHost: h\r\n"), Err(RequestError::Parse(_))));
        assert!(matches!(template("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), Err(RequestError::Part("host", _))));
    }
}
