//! From the flags to the one request that is sent again and again.

use std::fs;
use std::io::{self, Read};

use httpbench_core::scenario::{WireOptions, WireRequest};
use httpbench_core::{Check, Request};

use super::options::{BodySource, HeaderLine, LoadOptions, RequestOptions};
use super::target::TargetUrl;
use crate::error::{Error, Result};
use crate::exit_code::ExitCode;

/// Reads a body.
///
/// # Errors
///
/// When its file or standard input cannot be read (exit code 2).
pub(super) fn read_body(source: &BodySource) -> Result<Vec<u8>> {
    match source {
        BodySource::Text(text) => Ok(text.clone().into_bytes()),
        BodySource::File(path) => fs::read(path).map_err(|cause| {
            Error::new(ExitCode::Usage, format!("the body's file, `{}`, cannot be read", path.display()))
                .caused_by(cause)
                .help("give the path of a file that is there and readable after the `@`; without `@` the text itself is sent")
        }),
        BodySource::StandardInput => {
            let mut body = Vec::new();
            io::stdin().lock().read_to_end(&mut body).map(|_| body).map_err(|cause| {
                Error::new(ExitCode::Usage, "the body cannot be read from standard input").caused_by(cause)
            })
        }
    }
}

/// Renders the request for a URL.
///
/// # Errors
///
/// When it cannot be sent (exit code 2).
pub(super) fn render(
    options: &RequestOptions,
    body: Option<&[u8]>,
    url: &TargetUrl,
    all: &LoadOptions,
) -> Result<WireRequest> {
    let method = options.method.as_deref().unwrap_or(if body.is_some() { "POST" } else { "GET" });
    let mut request = Request::new(method, url.request_target());
    for HeaderLine { name, value } in &options.headers {
        request = request.header(name, value);
    }
    if let Some(body) = body {
        request = request.body(body);
    }
    if let Some(status) = options.check_status {
        request = request.check(Check::status(status));
    }
    let wire = WireOptions { version: all.protocol, reuse: all.load.reuse };
    request.render_as(&url.host_header(), wire).map_err(|cause| {
        Error::new(ExitCode::Usage, format!("the request for `{}` cannot be sent", url.as_str())).caused_by(cause)
    })
}

#[cfg(test)]
mod tests {
    use httpbench_core::model::{Protocol, Reuse};

    use super::*;
    use crate::load::sample::options;

    fn rendered(change: impl FnOnce(&mut LoadOptions), body: Option<&[u8]>) -> Result<String> {
        let mut options = options("http://h:81/a?b");
        change(&mut options);
        let request = render(&options.request, body, &options.targets[0], &options)?;
        Ok(String::from_utf8(request.bytes).expect("text"))
    }

    fn header(name: &str, value: &str) -> HeaderLine {
        HeaderLine { name: name.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn method_is_get_and_with_a_body_post() {
        let get = rendered(|_| {}, None).expect("right");
        assert!(get.starts_with("GET /a?b HTTP/1.1\r\nHost: h:81\r\n") && !get.contains("Content-Length"), "{get}");
        let post = rendered(|_| {}, Some(b"")).expect("right");
        assert!(post.starts_with("POST ") && post.contains("Content-Length: 0\r\n"), "{post}");
        let put = rendered(|options| options.request.method = Some("PUT".to_owned()), Some(b"xy")).expect("right");
        assert!(put.starts_with("PUT ") && put.ends_with("Content-Length: 2\r\n\r\nxy"), "{put}");
    }

    #[test]
    fn equal_names_are_sent_in_order_and_own_host_wins() {
        let headers = || vec![header("X-A", "1"), header("X-A", "2"), header("host", "other")];
        let text = rendered(|options| options.request.headers = headers(), None).expect("right");
        assert!(text.contains("X-A: 1\r\nX-A: 2\r\nhost: other\r\n") && !text.contains("h:81"), "{text}");
    }

    #[test]
    fn connection_that_will_be_closed_is_announced_once() {
        let close = |options: &mut LoadOptions| options.load.reuse = Reuse::Close;
        let text = rendered(close, None).expect("right");
        assert_eq!(text.matches("Connection: close\r\n").count(), 1, "{text}");
        let own = |options: &mut LoadOptions| {
            close(options);
            options.request.headers = vec![header("connection", "close")];
        };
        assert_eq!(rendered(own, None).expect("right").to_lowercase().matches("connection: close").count(), 1);
    }

    #[test]
    fn version_is_the_one_that_is_spoken() {
        let text = rendered(|options| options.protocol = Protocol::Http10, None).expect("right");
        assert!(text.starts_with("GET /a?b HTTP/1.0\r\n"), "{text}");
    }

    #[test]
    fn request_that_cannot_be_sent_is_wrong_usage_and_says_why() {
        for method in ["get", "G T", "CONNECT", ""] {
            let error = rendered(|options| options.request.method = Some(method.to_owned()), None).expect_err(method);
            assert_eq!(error.exit, ExitCode::Usage, "{method}");
            assert!(error.cause.is_some(), "{method}");
        }
        let wrong = |options: &mut LoadOptions| options.request.headers = vec![header("Content-Length", "5")];
        assert_eq!(rendered(wrong, Some(b"xy")).expect_err("contradicts").exit, ExitCode::Usage);
    }
}
