//! From a request and its redirect to the next request (RFC 9110, section 15.4).
//!
//! A POST becomes a GET after 301 and 302, as everybody does it; anything but HEAD does after 303; 307 and 308 repeat method and
//! body. Opens nothing. Invariant: what was said to one origin in confidence is never said to another, nor again
//! to the first one once the chain has left it (the Fetch standard, "HTTP-redirect fetch").

use super::location::{Origin, Place, Scheme};
use crate::scenario::WireRequest;

/// Fields that are for one origin's eyes.
const CREDENTIALS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// Fields that describe a body, and go with it.
const OF_BODY: [&str; 7] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-type",
    "expect",
    "transfer-encoding",
];

/// A request's head, taken apart.
struct Head<'a> {
    method: &'a str,
    target: &'a str,
    version: &'static str,
    fields: Vec<(&'a str, &'a [u8])>,
    length: usize,
}

/// The most fields of a request that is followed.
const MAX_FIELDS: usize = 256;

impl<'a> Head<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let Ok(httparse::Status::Complete(length)) = request.parse(bytes) else { return None };
        Some(Self {
            method: request.method?,
            target: request.path?,
            version: if request.version == Some(0) { "HTTP/1.0" } else { "HTTP/1.1" },
            fields: request.headers.iter().map(|field| (field.name, field.value)).collect(),
            length,
        })
    }
}

/// Where a request goes by its own words: its target at its `Host`. `None` if it is not one that can be followed.
pub(super) fn place_of(request: &WireRequest, scheme: Scheme) -> Option<Place> {
    let head = Head::parse(&request.bytes)?;
    let (_, host) = head.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"))?;
    let origin = Origin::parse(scheme, std::str::from_utf8(host).ok()?.trim()).ok()?;
    head.target.starts_with('/').then(|| Place { origin, target: head.target.to_owned() })
}

/// Whether a status asks to go elsewhere. 300 leaves a choice, 304 says that nothing has changed, 305 and 306 are history.
pub(super) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// The request that follows `request`, sent to `from`, after an answer with `status` that leads to `to`.
pub(super) fn next(request: &WireRequest, status: u16, from: &Place, to: &Place) -> Option<WireRequest> {
    let head = Head::parse(&request.bytes)?;
    let becomes_get = match status {
        303 => !matches!(head.method, "GET" | "HEAD"),
        301 | 302 => head.method == "POST",
        _ => false,
    };
    let leaves = from.origin != to.origin;
    let dropped = |name: &str| {
        let is = |other: &&str| name.eq_ignore_ascii_case(other);
        (becomes_get && OF_BODY.iter().any(&is)) || (leaves && (CREDENTIALS.iter().any(&is) || is(&"host")))
    };
    let method = if becomes_get { "GET" } else { head.method };
    let mut bytes = format!("{method} {} {}\r\n", to.target, head.version).into_bytes();
    let mut line = |name: &str, value: &[u8]| {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    };
    if leaves {
        line("Host", to.origin.authority().as_bytes());
    }
    head.fields.iter().filter(|(name, _)| !dropped(name)).for_each(|(name, value)| line(name, value));
    bytes.extend_from_slice(b"\r\n");
    if !becomes_get {
        bytes.extend_from_slice(&request.bytes[head.length..]);
    }
    Some(WireRequest { bytes, is_head: request.is_head, check: request.check.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Request;

    fn post() -> WireRequest {
        let request =
            Request::post("/a/b").header("authorization", "secret").header("Cookie", "id=1").header("X-A", "1");
        request.header("Content-Type", "text/plain").body("body").render("shop.example").expect("renders")
    }

    /// What follows the request after such an answer.
    fn after(request: &WireRequest, status: u16, location: &str) -> String {
        let from = place_of(request, Scheme::Http).expect("a place");
        let to = from.resolve(location).expect("a place");
        String::from_utf8(next(request, status, &from, &to).expect("a request").bytes).expect("ASCII")
    }

    #[test]
    fn post_becomes_get_without_a_body_or_stays_what_it_was() {
        for status in [301, 302, 303] {
            let text = after(&post(), status, "c");
            assert!(text.starts_with("GET /a/c HTTP/1.1\r\nHost: shop.example\r\n"), "{status}: {text}");
            assert!(
                !text.to_lowercase().contains("content-") && text.ends_with("\r\nX-A: 1\r\n\r\n"),
                "{status}: {text}"
            );
        }
        for status in [307, 308] {
            let text = after(&post(), status, "/c?d");
            assert!(text.starts_with("POST /c?d HTTP/1.1\r\nHost: shop.example\r\n"), "{status}: {text}");
            assert!(text.ends_with("Content-Type: text/plain\r\nContent-Length: 4\r\n\r\nbody"), "{status}: {text}");
        }
    }

    #[test]
    fn other_methods_change_after_303_only_and_head_never_does() {
        let put = Request::put("/").body("x").render("h").expect("renders");
        assert!(after(&put, 302, "/c").starts_with("PUT /c ") && after(&put, 303, "/c").starts_with("GET /c "));
        let head = Request::head("/").render("h").expect("renders");
        assert!(after(&head, 303, "/c").starts_with("HEAD /c "));
    }

    #[test]
    fn credentials_stay_with_their_origin() {
        let same = after(&post(), 302, "http://SHOP.example:80/c");
        assert!(same.contains("authorization: secret\r\n") && same.contains("Cookie: id=1\r\n"), "{same}");
        for other in ["http://shop.example:81/", "https://shop.example/", "http://www.shop.example/", "//evil.example/"]
        {
            let text = after(&post(), 307, other);
            assert!(!text.contains("secret") && !text.contains("id=1") && text.contains("X-A: 1\r\n"), "{text}");
            assert_eq!(text.matches("Host: ").count(), 1, "{text}");
        }
        assert!(after(&post(), 302, "//evil.example:81/x").starts_with("GET /x HTTP/1.1\r\nHost: evil.example:81\r\n"));
    }

    #[test]
    fn redirects_are_those_that_name_one_other_place() {
        let redirects: Vec<_> = (300..400).filter(|status| is_redirect(*status)).collect();
        assert_eq!(redirects, [301, 302, 303, 307, 308]);
    }
}
