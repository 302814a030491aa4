//! Requests as bytes, and every mistake that rendering tells.

use super::*;

fn text(request: &Request) -> String {
    String::from_utf8(request.render("127.0.0.1:8080").expect("renders").bytes).expect("ASCII")
}

fn mistake(request: &Request) -> String {
    request.render("localhost").expect_err("cannot be sent").to_string()
}

#[test]
fn rendered_request_is_these_bytes() {
    let request = Request::post("/search?q=rust")
        .header("X-A", "1")
        .header("accept", "application/json")
        .header("x-a", "2")
        .json(&serde_json::json!({ "page": 1 }));
    let expected = concat!(
        "POST /search?q=rust HTTP/1.1\r\n",
        "Host: 127.0.0.1:8080\r\n",
        "User-Agent: httpbench/",
        env!("CARGO_PKG_VERSION"),
        "\r\n",
        "X-A: 1\r\n",
        "accept: application/json\r\n",
        "x-a: 2\r\n",
        "Content-Type: application/json\r\n",
        "Content-Length: 10\r\n",
        "\r\n",
        "{\"page\":1}",
    );
    assert_eq!(text(&request), expected);
}

#[test]
fn get_without_a_body_has_the_default_headers_and_no_length() {
    let expected = concat!(
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: httpbench/",
        env!("CARGO_PKG_VERSION"),
        "\r\nAccept: */*\r\n\r\n"
    );
    assert_eq!(text(&Request::get("/")), expected);
    assert_eq!(text(&Request::get("")), expected);
}

#[test]
fn methods_that_anticipate_content_have_length_zero_without_it() {
    for request in [Request::post("/"), Request::put("/"), Request::patch("/"), Request::post("/").body("")] {
        assert!(text(&request).contains("\r\nContent-Length: 0\r\n"), "{request:?}");
    }
    for request in [Request::get("/"), Request::head("/"), Request::delete("/"), Request::options("/")] {
        assert!(!text(&request).contains("Content-Length"), "{request:?}");
    }
    assert!(text(&Request::delete("/").body("abc")).ends_with("Content-Length: 3\r\n\r\nabc"));
}

#[test]
fn query_without_a_path_is_sent_with_the_root_path() {
    let request = Request::get("?x=1");
    assert!(text(&request).starts_with("GET /?x=1 HTTP/1.1\r\n"));
    assert_eq!(request.summary().target, "/?x=1");
}

#[test]
fn only_head_is_marked_as_head() {
    assert!(Request::head("/").render("localhost").expect("renders").is_head);
    assert!(!Request::get("/").render("localhost").expect("renders").is_head);
}

#[test]
fn host_of_the_user_replaces_ours_once() {
    let rendered = text(&Request::get("/").header("host", "shop.example"));
    assert!(rendered.contains("host: shop.example\r\n") && !rendered.contains("127.0.0.1"), "{rendered}");
    assert_eq!(
        mistake(&Request::get("/").header("host", "a").header("Host", "b")),
        "header `Host` is given 2 times: a request has exactly one"
    );
}

#[test]
fn content_type_of_the_user_wins_whether_given_before_or_after_the_json() {
    let before = Request::post("/").header("content-type", "application/vnd.api+json").json(&1);
    let after = Request::post("/").json(&1).header("content-type", "application/vnd.api+json");
    for request in [before, after] {
        assert_eq!(text(&request).to_ascii_lowercase().matches("content-type").count(), 1);
    }
    assert!(!text(&Request::post("/").json(&1).body("1")).contains("Content-Type"), "the later body is no JSON");
}

#[test]
fn body_bytes_are_sent_as_they_are() {
    let wire = Request::put("/").body([0, 255, 13, 10]).render("localhost").expect("renders");
    assert!(wire.bytes.ends_with(b"Content-Length: 4\r\n\r\n\x00\xff\r\n"));
}

#[test]
fn header_value_may_hold_bytes_above_ascii() {
    let wire = Request::get("/").header("x-name", "Zoë").render("localhost").expect("renders");
    assert!(wire.bytes.ends_with("x-name: Zoë\r\n\r\n".as_bytes()));
}

#[test]
fn methods_that_are_not_sent_are_told() {
    assert_eq!(
        mistake(&Request::new("GE T", "/")),
        "the method \"GE T\" is not one word of letters: such as `GET` or `PURGE`"
    );
    assert!(matches!(Request::new("", "/").render("h"), Err(RequestError::Method { .. })));
    assert_eq!(mistake(&Request::new("post", "/")), "the method `post` is written `POST`: methods are case-sensitive");
    assert!(matches!(Request::new("CONNECT", "/").render("h"), Err(RequestError::Connect)));
    assert!(Request::new("purge", "/").render("h").is_ok(), "not a standard method: its case is its own");
}

#[test]
fn targets_that_are_not_origin_form_are_told_with_a_way_out() {
    for absolute in ["http://127.0.0.1:3000/x", "HTTPS://h"] {
        let error = mistake(&Request::get(absolute));
        assert!(error.contains("is a whole URL: give the path only"), "{error}");
    }
    assert_eq!(mistake(&Request::get("items")), "the target \"items\" does not begin with `/`: write \"/items\"");
    assert!(matches!(Request::options("*").render("h"), Err(RequestError::RelativeTarget { .. })));
    for (target, found, hint) in [
        ("/a b", ' ', "%20"),
        ("/a#b", '#', "fragment"),
        ("/a\r\nX: y", '\r', "control"),
        ("/caf\u{e9}", '\u{e9}', "not ASCII"),
        ("/\u{85}", '\u{85}', "control"),
    ] {
        match Request::get(target).render("h") {
            Err(RequestError::TargetCharacter { found: told, hint: why, .. }) => {
                assert_eq!(told, found);
                assert!(why.contains(hint), "{why}");
            }
            other => panic!("{target:?}: {other:?}"),
        }
    }
    assert!(Request::get("/redirect?to=http://elsewhere/").render("h").is_ok());
}

#[test]
fn header_injection_is_refused() {
    assert_eq!(
        mistake(&Request::get("/").header("x-a", "1\r\nx-b: 2")),
        "the value of header `x-a` holds the control character '\\r'"
    );
    for name in ["", "x a", "x:", "x\r\n", "naïve"] {
        assert!(
            matches!(Request::get("/").header(name, "1").render("h"), Err(RequestError::HeaderName { .. })),
            "{name}"
        );
    }
}

#[test]
fn framing_of_the_user_must_agree_with_the_body() {
    let right = Request::post("/").header("content-length", "2").body("hi");
    assert_eq!(text(&right).to_ascii_lowercase().matches("content-length").count(), 1);
    assert_eq!(
        mistake(&Request::post("/").header("content-length", "3").body("hi")),
        "header `Content-Length: 3` contradicts the body of 2 bytes: leave it out, it is computed"
    );
    let twice = Request::post("/").header("content-length", "2").header("Content-Length", "2").body("hi");
    assert!(matches!(twice.render("h"), Err(RequestError::ContentLength { .. })));
    let chunked = Request::post("/").header("transfer-encoding", "chunked").body("hi");
    assert!(matches!(chunked.render("h"), Err(RequestError::TransferEncoding)));
}

#[test]
fn value_that_has_no_json_is_told() {
    let keys_that_are_no_texts = std::collections::BTreeMap::from([([1, 2], 3)]);
    let error = Request::post("/").json(&keys_that_are_no_texts).render("h").expect_err("no JSON");
    assert_eq!(error.to_string(), "the body could not be serialised as JSON");
    assert_eq!(std::error::Error::source(&error).expect("a source").to_string(), "key must be a string");
}

#[test]
fn check_that_can_never_hold_is_told() {
    assert_eq!(
        mistake(&Request::get("/").check(Check::status(20))),
        "the check can never hold: 20 is not the status of a final answer (200 to 599)"
    );
    assert_eq!(
        mistake(&Request::head("/").check(Check::default().body_contains("x"))),
        "the check can never hold: an answer to HEAD has no body"
    );
}

#[test]
fn summary_names_method_target_and_size() {
    let summary = Request::post("/items").body("abc").summary();
    assert_eq!((summary.method.as_str(), summary.target.as_str(), summary.body_bytes), ("POST", "/items", 3));
}

#[test]
fn checksum_tells_requests_apart_by_all_that_is_sent_and_checked() {
    let base = || Request::post("/items").header("x", "1").body("abc");
    let sum = |request: Request| request.summary().checksum;
    assert_eq!(sum(base()), sum(base()));
    let others = [
        Request::put("/items").header("x", "1").body("abc"),
        Request::post("/item").header("x", "1").body("abc"),
        Request::post("/items").header("x", "2").body("abc"),
        Request::post("/items").header("x", "1").body("abd"),
        base().check(Check::status(201)),
    ];
    for other in others {
        assert_ne!(sum(other.clone()), sum(base()), "{other:?}");
    }
}

#[test]
fn version_and_close_are_rendered_as_asked() {
    let render = |request: &Request, version, reuse| {
        String::from_utf8(request.render_as("h", WireOptions { version, reuse }).expect("renders").bytes)
            .expect("ASCII")
    };
    let old = render(&Request::get("/"), Protocol::Http10, Reuse::Keep);
    assert!(old.starts_with("GET / HTTP/1.0\r\nHost: h\r\n") && !old.contains("Connection"), "{old}");
    let close = render(&Request::post("/").body("b"), Protocol::Http11, Reuse::Close);
    assert!(close.ends_with("Content-Length: 1\r\nConnection: close\r\n\r\nb"), "{close}");
    let said = render(&Request::get("/").header("connection", "TE, Close"), Protocol::Http11, Reuse::Close);
    assert_eq!(said.to_lowercase().matches("connection").count(), 1, "{said}");
    let other = render(&Request::get("/").header("Connection", "keep-alive"), Protocol::Http11, Reuse::Close);
    assert!(other.ends_with("Connection: keep-alive\r\nConnection: close\r\n\r\n"), "{other}");
    assert!(render(&Request::get("/"), Protocol::Http2, Reuse::Keep).starts_with("GET / HTTP/1.1\r\n"));
}
