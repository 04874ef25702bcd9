//! Heads and how they are forwarded.

use ballast_message::{BodyLength, Method, ReceivedTarget, Request, Response, Version};

use super::{request, response};
use crate::{
    H1Error, H1Limits, HeadParse, HeadScan, RequestHead, ResponseHead, leading_line_ends,
    parse_request, write_request_head, write_request_head_with, write_response_head,
};

fn whole(bytes: &str) -> (RequestHead, Request) {
    match request(bytes.as_bytes(), &H1Limits::default()) {
        (HeadParse::Complete(head), request) => (head, request),
        (other, _) => panic!("{bytes:?}: {other:?}"),
    }
}

fn whole_response(bytes: &str, method: Method) -> (ResponseHead, Response) {
    match response(bytes.as_bytes(), method) {
        (HeadParse::Complete(head), response) => (head, response),
        (other, _) => panic!("{bytes:?}: {other:?}"),
    }
}

/// The head as the next hop gets it.
fn forwarded(bytes: &str) -> String {
    let mut out = Vec::new();
    write_request_head(&whole(bytes).1, &mut out);
    String::from_utf8(out).unwrap()
}

fn forwarded_response(bytes: &str) -> String {
    let mut out = Vec::new();
    write_response_head(&whole_response(bytes, Method::Get).1, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_plain_request() {
    let bytes = "\r\nGET /a?b=c HTTP/1.1\r\nHost: A.b\r\nX-UP:  v \t\r\nCookie: x=1\r\n\r\nrest";
    let (head, request) = whole(bytes);
    assert_eq!(head.head_bytes, bytes.len() - 4);
    assert_eq!(head.body, BodyLength::None);
    assert!(head.persistent && !head.upgrade && !head.expect_continue);
    assert_eq!(request.method(), Method::Get);
    assert_eq!(request.path(), b"/a");
    assert_eq!(request.query(), Some(&b"b=c"[..]));
    assert_eq!(request.fields().first(b"X-Up"), Some(&b"v"[..]));
    assert_eq!(request.fields().len(), 3);
    let expected = "GET /a?b=c HTTP/1.1\r\nhost: A.b\r\nx-up: v\r\ncookie: x=1\r\n\r\n";
    assert_eq!(forwarded(bytes), expected);
}

#[test]
fn targets_upgrades_and_lengths_have_one_form() {
    for (received, sent) in [
        (
            "GET / HTTP/1.1\r\nConnection: upgrade, x\r\nUpgrade: h2c, foo\r\nUpgrade: H2\r\n\r\n",
            "GET / HTTP/1.1\r\nconnection: upgrade, x\r\nupgrade: foo\r\n\r\n",
        ),
        (
            "GET / HTTP/1.1\r\nConnection: upgrade, x\r\nUpgrade: h2c\r\n\r\n",
            "GET / HTTP/1.1\r\nconnection: x\r\n\r\n",
        ),
        (
            "GET / HTTP/1.1\r\nUpgrade: foo\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
        ),
        (
            "GET / HTTP/1.1\r\nConnection: upgrade\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 0002\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n",
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 00, 0\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n",
        ),
        (
            "GET http://a HTTP/1.1\r\nHost: A\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\nhost: a\r\n\r\n",
        ),
        (
            "OPTIONS http://a HTTP/1.1\r\nHost: A\r\n\r\n",
            "OPTIONS http://a HTTP/1.1\r\nhost: A\r\n\r\n",
        ),
        (
            "GET http://u@a:?x HTTP/1.1\r\nHost: A:80\r\n\r\n",
            "GET http://u@a?x HTTP/1.1\r\nhost: a\r\n\r\n",
        ),
        (
            "CONNECT a:80 HTTP/1.1\r\nHost: A:80\r\n\r\n",
            "CONNECT a:80 HTTP/1.1\r\nhost: A\r\n\r\n",
        ),
        (
            "CONNECT a:80 HTTP/1.1\r\nHost: A:\r\n\r\n",
            "CONNECT a:80 HTTP/1.1\r\nhost: A:\r\n\r\n",
        ),
    ] {
        assert_eq!(forwarded(received), sent);
    }
}

#[test]
fn the_next_hop_gets_what_the_oracle_sends() {
    for (received, sent) in [
        (
            "GET  /\tHTTP/1.2\r\nX:\r\n\r\n",
            "GET / HTTP/1.1\r\nx: \r\n\r\n",
        ),
        (
            "GET http://a:80/x HTTP/1.1\r\nHost: a:80\r\n\r\n",
            "GET http://a/x HTTP/1.1\r\nhost: a\r\n\r\n",
        ),
        (
            "GET http://a/x HTTP/1.1\r\nHost: a:80\r\n\r\n",
            "GET http://a/x HTTP/1.1\r\nhost: a:80\r\n\r\n",
        ),
        (
            "GET https://a:443/x?y HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET https://a/x?y HTTP/1.1\r\nhost: a\r\n\r\n",
        ),
        (
            "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
            "CONNECT a:443 HTTP/1.1\r\nhost: a\r\n\r\n",
        ),
        (
            "CONNECT u@a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT u@a:443 HTTP/1.1\r\nhost: a\r\n\r\n",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\nHost: A\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: a\r\nx: b\r\n\r\n",
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n",
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 2\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 2\r\nconnection: Upgrade\r\nupgrade: foo\r\n\r\n",
        ),
        (
            "PUT / HTTP/1.0\r\nContent-Length: 2\r\n\r\n",
            "PUT / HTTP/1.0\r\ncontent-length: 2\r\n\r\n",
        ),
    ] {
        assert_eq!(forwarded(received), sent);
    }
    for (received, sent) in [
        (
            "HTTP/1.1 200\r\nX-A: b\r\n\r\n",
            "HTTP/1.1 200 \r\nx-a: b\r\n\r\n",
        ),
        (
            "HTTP/1.1 200 OK\nX: a\r\n\tb\n\n",
            "HTTP/1.1 200 OK\r\nx: a  \tb\r\n\r\n",
        ),
        (
            "HTTP/1.1 200 OK\r\nX:\r\n b\r\n \r\n\r\n",
            "HTTP/1.1 200 OK\r\nx: b\r\n\r\n",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
        (
            "HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 204 No\r\n\r\n",
        ),
        (
            "HTTP/1.1 103 Early\r\nContent-Length: 5\r\nLink: a\r\n\r\n",
            "HTTP/1.1 103 Early\r\nlink: a\r\n\r\n",
        ),
        (
            "HTTP/1.0 304 No\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.0 304 No\r\ncontent-length: 2\r\n\r\n",
        ),
    ] {
        assert_eq!(forwarded_response(received), sent);
    }
}

#[test]
fn another_name_case_on_demand() {
    let (_, request) = whole("GET / HTTP/1.1\r\nhost: a\r\nx-b: c\r\n\r\n");
    let mut out = Vec::new();
    write_request_head_with(&request, &mut out, |name| {
        (name == b"host").then_some(&b"Host"[..])
    });
    assert_eq!(out, b"GET / HTTP/1.1\r\nHost: a\r\nx-b: c\r\n\r\n");
}

#[test]
fn request_bodies_and_persistence() {
    let head = |bytes: &str| whole(bytes).0;
    let known = head("POST / HTTP/1.1\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(known.body, BodyLength::Known(9));
    assert!(known.expect_continue);
    assert_eq!(
        head("POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n").body,
        BodyLength::Chunked
    );
    assert!(!head("POST / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n").expect_continue);
    assert!(!head("GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n").persistent);
    assert!(!head("GET / HTTP/1.0\r\n\r\n").persistent);
    assert!(head("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").persistent);
    let upgrade = head("GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n");
    assert!(upgrade.upgrade && upgrade.options.upgrade);
    assert!(!head("GET / HTTP/1.1\r\nUpgrade: foo\r\n\r\n").upgrade);
}

#[test]
fn response_bodies_and_persistence() {
    use BodyLength as B;
    let te = "Transfer-Encoding: chunked\r\n\r\n";
    let cl = "Content-Length: 5\r\n\r\n";
    for (start, rest, method, body, persistent) in [
        ("HTTP/1.1 200 OK", cl, Method::Get, B::Known(5), true),
        ("HTTP/1.1 200 OK", cl, Method::Head, B::None, true),
        ("HTTP/1.1 200 OK", te, Method::Get, B::Chunked, true),
        ("HTTP/1.1 200 OK", te, Method::Head, B::None, true),
        ("HTTP/1.0 200 OK", te, Method::Get, B::Chunked, false),
        ("HTTP/1.1 200 OK", "\r\n", Method::Get, B::UntilClose, false),
        ("HTTP/1.1 200 OK", "\r\n", Method::Connect, B::Tunnel, false),
        ("HTTP/1.1 407 No", cl, Method::Connect, B::Known(5), true),
        ("HTTP/1.1 101 Go", "\r\n", Method::Get, B::Tunnel, false),
        ("HTTP/1.1 204 No", cl, Method::Get, B::None, true),
        ("HTTP/1.1 304 No", cl, Method::Get, B::None, true),
        ("HTTP/1.1 100 Go", "\r\n", Method::Post, B::None, true),
        ("HTTP/1.0 200 OK", cl, Method::Get, B::Known(5), false),
        (
            "HTTP/1.1 200 OK",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            Method::Get,
            B::Chunked,
            false,
        ),
    ] {
        let (head, response) = whole_response(&format!("{start}\r\n{rest}"), method);
        assert_eq!(
            (head.body, head.persistent),
            (body, persistent),
            "{start} {rest:?} {method:?}"
        );
        assert_eq!(head.interim, response.status() == 100);
    }
}

#[test]
fn bounds_are_the_oracles() {
    let limits = H1Limits::default();
    let fields = |count: usize| {
        let lines: String = (0..count).map(|at| format!("h{at}: a\r\n")).collect();
        format!("GET / HTTP/1.1\r\n{lines}\r\n")
    };
    assert!(matches!(
        request(fields(100).as_bytes(), &limits).0,
        HeadParse::Complete(_)
    ));
    let error_of = |bytes: &[u8]| match request(bytes, &limits).0 {
        HeadParse::Error(fault) => fault.error,
        other => panic!("{other:?}"),
    };
    assert_eq!(error_of(fields(101).as_bytes()), H1Error::TooManyFields);
    let long = |bytes: usize| {
        let head = "GET / HTTP/1.1\r\nX: \r\n\r\n".len();
        format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(bytes - head))
    };
    let max = limits.head_bytes_max;
    assert!(matches!(
        request(long(max).as_bytes(), &limits).0,
        HeadParse::Complete(_)
    ));
    assert_eq!(error_of(long(max + 1).as_bytes()), H1Error::HeadTooLong);
    assert_eq!(
        error_of(&long(max + 1).as_bytes()[..max]),
        H1Error::HeadTooLong
    );
    let short = &long(max + 1).as_bytes()[..max - 1].to_vec();
    assert_eq!(request(short, &limits).0, HeadParse::Incomplete);
    // A request line that does not fit has a status of its own, unless its end was seen.
    let line = |bytes: usize| format!("GET /{} HTTP/1.1\r\n", "a".repeat(bytes));
    assert_eq!(
        error_of(&line(max).as_bytes()[..max]),
        H1Error::TargetTooLong
    );
    assert_eq!(error_of(line(max).as_bytes()), H1Error::HeadTooLong);
    assert_eq!(error_of("a".repeat(max).as_bytes()), H1Error::TargetTooLong);
    // Empty lines alone are limited too, and may be dropped before.
    assert_eq!(
        error_of("\r\n".repeat(max).as_bytes()),
        H1Error::HeadTooLong
    );
    assert_eq!(leading_line_ends(b"\r\n\r\nGET"), 4);
    assert_eq!(leading_line_ends(b"\r\n"), 2);
}

#[test]
fn the_preface_of_http2_is_told_apart() {
    let limits = H1Limits::default();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let (parse, request_then) = request(preface, &limits);
    assert_eq!(parse, HeadParse::Http2Preface);
    assert_eq!(request_then.method_token(), b"");
    for len in 0..16 {
        assert_eq!(
            request(&preface[..len], &limits).0,
            HeadParse::Incomplete,
            "{len}"
        );
    }
}

#[test]
fn a_head_is_reused_without_growing() {
    let limits = H1Limits::default();
    let mut request = Request::default();
    let mut out = Vec::new();
    let bytes = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n";
    for _ in 0..3 {
        let mut scan = HeadScan::default();
        let parse = parse_request(bytes, &mut scan, &limits, &mut request);
        assert!(matches!(parse, HeadParse::Complete(_)));
        assert_eq!(request.fields().len(), 2);
        assert_eq!(request.version(), Version::Http11);
        assert_eq!(
            request.fields().wire_bytes(),
            bytes.len() - " HTTP/1.1\r\n\r\n".len() - 1
        );
        out.clear();
        write_request_head(&request, &mut out);
    }
    // After a refusal nothing of the refused request is visible.
    let parse = parse_request(
        b"GET / HTTP/1.1\r\nX : a",
        &mut HeadScan::default(),
        &limits,
        &mut request,
    );
    assert_eq!(parse, HeadParse::Incomplete);
    assert_eq!(request.fields().first(b"host"), None);
    let parse = parse_request(
        b"GET / HTTP/1.1\r\nX: a\r\n: b\r\n",
        &mut HeadScan::default(),
        &limits,
        &mut request,
    );
    assert!(matches!(parse, HeadParse::Error(_)));
    assert!(request.fields().is_empty());
}

#[test]
fn a_head_half_received_may_be_asked() {
    let mut request = Request::default();
    let bytes = b"GET /a HTTP/1.1\r\nHost: a\r\nX: b";
    let mut scan = HeadScan::default();
    let parse = parse_request(bytes, &mut scan, &H1Limits::default(), &mut request);
    assert_eq!(parse, HeadParse::Incomplete);
    assert_eq!(request.path(), b"");
    assert_eq!(
        request
            .fields()
            .iter()
            .map(|field| field.value.len())
            .sum::<usize>(),
        0
    );
    assert_eq!(request.fields_mut().remove(b"host"), 0);
}

#[test]
fn a_target_composed_of_pseudo_fields_is_sent_as_a_path() {
    let mut request = Request::default();
    let target = ReceivedTarget::Absolute {
        scheme: b"https",
        authority: b"a.b",
        path: b"/p?q",
    };
    request.set_received_line(b"GET", target, true).unwrap();
    request.set_version(Version::Http2);
    let fields = request.fields_mut();
    fields.append_received(b"host", b"a.b").unwrap();
    fields.append_received(b"x", b"y").unwrap();
    let mut out = Vec::new();
    write_request_head(&request, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text, "GET /p?q HTTP/1.1\r\nhost: a.b\r\nx: y\r\n\r\n");
}
