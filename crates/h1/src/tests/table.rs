//! Each row: the head, HAProxy 3.2's status (200: forwarded), and ours. Where the two differ, ours
//! is stricter, on purpose.

use ballast_message::{HostError, LengthError, Method};

use super::{request, response};
use crate::H1Error as E;
use crate::{H1Error, H1Limits, HeadParse};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\n";

/// HAProxy's status: 200 where it forwards.
type Oracle = u16;

/// One additional line, after a POST and its Host.
const FIELD_LINES: &[(&str, Oracle, Result<(), H1Error>)] = &[
    ("X: a\rb\r\n", 400, Err(E::BareCr)),
    ("X: a\r\r\n", 400, Err(E::BareCr)),
    ("X\r: a\r\n", 400, Err(E::BareCr)),
    ("X: a\n", 200, Err(E::BareLf)),
    ("X: a\0b\r\n", 200, Err(E::Nul)),
    ("X\0: a\r\n", 400, Err(E::Nul)),
    ("X: a\x01b\x7f\r\n", 200, Ok(())),
    ("X: a\u{80}b\r\n", 200, Ok(())),
    ("X:\r\nY:   \r\n", 200, Ok(())),
    ("X : a\r\n", 400, Err(E::SpaceBeforeColon)),
    ("X\t: a\r\n", 400, Err(E::SpaceBeforeColon)),
    ("X y: a\r\n", 400, Err(E::FieldNameInvalid)),
    (": a\r\n", 400, Err(E::FieldNameEmpty)),
    ("Xa\r\n", 400, Err(E::ColonMissing)),
    ("X(a: b\r\n", 400, Err(E::FieldNameInvalid)),
    ("X\u{80}: b\r\n", 400, Err(E::FieldNameInvalid)),
    ("X: a\r\n b\r\n", 200, Err(E::FoldedLine)),
    ("X: a\r\n\tb\r\n", 200, Err(E::FoldedLine)),
    ("Host: a\r\n", 200, Ok(())),
    ("Host: A\r\n", 200, Ok(())),
    ("Host: b\r\n", 400, Err(E::Host(HostError::HostsDiffer))),
    ("Upgrade: websocket\r\n", 200, Ok(())),
    (
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nContent-Length: 2\r\n",
        400,
        Err(E::WebSocketWithBody),
    ),
    (
        "Connection: Upgrade\r\nUpgrade: websocket\r\n",
        400,
        Err(E::WebSocketKeyMissing),
    ),
    (
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        200,
        Ok(()),
    ),
    (
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        400,
        not_last(),
    ),
    ("Transfer-Encoding: chunked, chunked\r\n", 400, not_last()),
    ("Transfer-Encoding: chunked, gzip\r\n", 400, not_last()),
    ("Transfer-Encoding: chunked,\r\n", 400, missing()),
    ("Transfer-Encoding: ,chunked\r\n", 400, missing()),
    (
        "Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n",
        400,
        missing(),
    ),
    (
        "Transfer-Encoding: gzip, chunked\r\n",
        422,
        length(LengthError::CodingBeforeChunked),
    ),
    ("Transfer-Encoding: gzip\r\n", 400, missing()),
    ("Transfer-Encoding: identity\r\n", 400, missing()),
    ("Transfer-Encoding: xchunked\r\n", 400, missing()),
    ("Transfer-Encoding: chunked;q=1\r\n", 400, missing()),
    ("Transfer-Encoding: \x0bchunked\r\n", 400, missing()),
    ("Transfer-Encoding: \"chunked\"\r\n", 400, missing()),
];

fn heads() -> Vec<(String, Oracle, Result<(), H1Error>)> {
    let mut rows = Vec::new();
    let mut row = |head: String, oracle, ours| rows.push((head, oracle, ours));
    for &(line, oracle, ours) in FIELD_LINES {
        row(format!("{POST}{line}\r\n"), oracle, ours);
    }
    row(format!("{POST}Transfer-Encoding:\r\n\r\n"), 400, missing());
    let both = length(LengthError::ContentLengthAndTransferEncoding);
    row(
        format!("{POST}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n"),
        200,
        both,
    );
    row(
        format!("{GET}Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        200,
        both,
    );
    let invalid = || length(LengthError::ContentLengthInvalid);
    for value in [
        "+2",
        "-2",
        "0x2",
        "",
        "2,",
        ",2",
        "2 2",
        "2.0",
        "99999999999999999999",
        "2;a",
        "٢",
    ] {
        row(
            format!("{POST}Content-Length: {value}\r\n\r\n"),
            400,
            invalid(),
        );
    }
    row(
        format!("{POST}Content-Length: 9223372036854775808\r\n\r\n"),
        400,
        invalid(),
    );
    row(
        format!("{POST}Content-Length: 18446744073709551615\r\n\r\n"),
        200,
        invalid(),
    );
    for value in [
        "2",
        "02",
        "2, 2",
        "2 \t",
        "2\r\nContent-Length: 2",
        "02\r\nContent-Length: 2",
    ] {
        row(
            format!("{POST}Content-Length: {value}\r\n\r\n"),
            200,
            Ok(()),
        );
    }
    for value in ["2, 3", "2\r\nContent-Length: 3"] {
        let differ = length(LengthError::ContentLengthsDiffer);
        row(
            format!("{POST}Content-Length: {value}\r\n\r\n"),
            400,
            differ,
        );
    }
    rows
}

const MISMATCH: Result<(), H1Error> = Err(E::Host(HostError::HostNotAuthority));
const EARLY_CODING: Result<(), H1Error> = length(LengthError::TransferEncodingBeforeHttp11);

const START_LINES: &[(&str, Oracle, Result<(), H1Error>)] = &[
    ("GET / HTTP/1.1\nHost: a\n\n", 200, Err(E::BareLf)),
    ("\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 200, Err(E::BareLf)),
    (
        " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::MethodInvalid),
    ),
    (
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        400,
        Err(E::FoldedLine),
    ),
    ("GET /\r\n\r\n", 400, Err(E::Http09)),
    ("GET\r\n\r\n", 400, Err(E::Http09)),
    ("GET / HTTP/0.9\r\n\r\n", 200, Err(E::VersionInvalid)),
    ("GET / HTTP/1.0\r\n\r\n", 200, Ok(())),
    ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", 200, Ok(())),
    (
        "GET / HTTP/1.10\r\nHost: a\r\n\r\n",
        400,
        Err(E::VersionInvalid),
    ),
    ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 200, Ok(())),
    ("GET / HTTP/3.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    (
        "GET / http/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::VersionInvalid),
    ),
    (
        "GET / RTSP/1.0\r\nHost: a\r\n\r\n",
        400,
        Err(E::VersionInvalid),
    ),
    (
        "GET / HTTP/1.\r\nHost: a\r\n\r\n",
        400,
        Err(E::VersionInvalid),
    ),
    (
        "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
        400,
        Err(E::VersionInvalid),
    ),
    (
        "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n",
        400,
        Err(E::VersionInvalid),
    ),
    ("GET  /\t HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    (
        "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::VersionInvalid),
    ),
    (
        "GET /\u{80} HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::TargetInvalid),
    ),
    (
        "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::TargetInvalid),
    ),
    (
        "GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::TargetInvalid),
    ),
    (
        "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::TargetInvalid),
    ),
    ("GET /\"<>\\^`{|} HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    (
        "GET abc HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::TargetInvalid),
    ),
    ("GET abc HTTP/1.1\r\n\r\n", 200, Err(E::TargetInvalid)),
    ("GET ?q HTTP/1.1\r\n\r\n", 200, Err(E::TargetInvalid)),
    (
        "GET http:/a HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::TargetInvalid),
    ),
    ("GET http:///a HTTP/1.1\r\n\r\n", 200, Ok(())),
    ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    ("PATCH * HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    (
        "OPTIONS *x HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::TargetInvalid),
    ),
    (
        "PATCH *?a HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::TargetInvalid),
    ),
    ("BREW * HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    (
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::TargetInvalid),
    ),
    (
        "GET http://a:b:c/ HTTP/1.1\r\nHost: a:b:c\r\n\r\n",
        200,
        Ok(()),
    ),
    ("GET http://u,@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    (
        "GET http://a,b/ HTTP/1.1\r\n\r\n",
        400,
        Err(E::TargetInvalid),
    ),
    (
        "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::MethodInvalid),
    ),
    ("get / HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    ("GET / HTTP/1.1\r\n\r\n", 200, Ok(())),
    ("GET / HTTP/1.1\r\nHost:\r\n\r\n", 200, Ok(())),
    ("GET http://a/x?y HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    ("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    // HAProxy takes the query for a part of the host.
    ("GET http://a?q HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    ("GET http://a:80/x HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    ("GET http://a/x HTTP/1.1\r\nHost: a:80\r\n\r\n", 200, Ok(())),
    ("GET http://A/x HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    ("GET http://u@a/x HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    ("GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n", 400, MISMATCH),
    (
        "GET http://a:81/x HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        MISMATCH,
    ),
    (
        "GET http://a:443/x HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        MISMATCH,
    ),
    (
        "PRI / HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::MethodInvalid),
    ),
    ("pri /x HTTP/1.0\r\n\r\n", 400, Err(E::MethodInvalid)),
    (
        "PRI * HTTP/2.0\r\nHost: a\r\n\r\n",
        400,
        Err(E::MethodInvalid),
    ),
    ("PRIX / HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    ("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 200, Ok(())),
    ("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 200, Ok(())),
    ("CONNECT a:443 HTTP/1.1\r\n\r\n", 200, Ok(())),
    (
        "CONNECT a:443 HTTP/1.1\r\nHost: a:80\r\n\r\n",
        400,
        MISMATCH,
    ),
    ("CONNECT a:8080 HTTP/1.1\r\nHost: a\r\n\r\n", 400, MISMATCH),
    ("CONNECT b:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400, MISMATCH),
    (
        "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::TargetInvalid),
    ),
    (
        "CONNECT a: HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::TargetInvalid),
    ),
    (
        "CONNECT /a HTTP/1.1\r\nHost: a\r\n\r\n",
        400,
        Err(E::TargetInvalid),
    ),
    (
        "CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n",
        200,
        Err(E::ConnectWithBody),
    ),
    (
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        200,
        EARLY_CODING,
    ),
    (
        "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        413,
        Err(E::PayloadUnexpected),
    ),
    (
        "GET / HTTP/1.0\r\nContent-Length: 2\r\n\r\n",
        413,
        Err(E::PayloadUnexpected),
    ),
    (
        "DELETE / HTTP/1.0\r\nContent-Length: 2\r\n\r\n",
        413,
        Err(E::PayloadUnexpected),
    ),
    ("GET / HTTP/1.0\r\nContent-Length: 0\r\n\r\n", 200, Ok(())),
    ("PUT / HTTP/1.0\r\nContent-Length: 2\r\n\r\n", 200, Ok(())),
    ("\x16\x03\x01\x02", 400, Err(E::MethodInvalid)),
];

const fn length(error: LengthError) -> Result<(), H1Error> {
    Err(H1Error::Length(error))
}

const fn not_last() -> Result<(), H1Error> {
    length(LengthError::ChunkedNotLast)
}

const fn missing() -> Result<(), H1Error> {
    length(LengthError::ChunkedMissing)
}

#[test]
fn requests_are_judged_as_by_the_oracle_or_stricter() {
    let limits = H1Limits::default();
    let all = START_LINES
        .iter()
        .map(|&(head, oracle, ours)| (head.to_owned(), oracle, ours));
    for (head, oracle, ours) in heads().into_iter().chain(all) {
        let (parse, _) = request(head.as_bytes(), &limits);
        match (parse, ours) {
            (HeadParse::Complete(_), Ok(())) => {}
            (HeadParse::Error(fault), Err(error)) => {
                assert_eq!(fault.error, error, "{head:?}");
                assert!(fault.at_byte <= head.len(), "{head:?}");
            }
            (parse, ours) => panic!("{head:?}: {parse:?}, not {ours:?}"),
        }
        // Only stricter: a head that the oracle refuses is never forwarded.
        assert!(oracle == 200 || ours.is_err(), "{head:?}");
    }
}

#[test]
fn host_is_a_host() {
    let limits = H1Limits::default();
    let is_taken = |host: &[u8]| {
        let head = [b"GET / HTTP/1.1\r\nHost: ", host, b"\r\n\r\n"].concat();
        matches!(request(&head, &limits).0, HeadParse::Complete(_))
    };
    for host in [
        "", "a", "a:", "a:80", "a:b:c", "[]", "[::1]", "[::1]:80", "[g]:x", "a;b", "%41", "a..b",
    ] {
        assert!(is_taken(host.as_bytes()), "{host}");
    }
    for host in [
        "a b", "a\tb", "a,b", "a/b", "a?b", "a#b", "a\\b", "u@a", "[::1", "::1]", "[::1]x",
        "x[::1]", "[[::1]]", "a\x01b", "a\x7f", "a\u{80}",
    ] {
        assert!(!is_taken(host.as_bytes()), "{host:?}");
    }
}

#[test]
fn lenient_lets_pass_what_the_option_lets_pass() {
    let lenient = H1Limits {
        lenient: true,
        ..H1Limits::default()
    };
    for head in [
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET /a#b\u{80} HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nX(\u{80}a: b\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n",
    ] {
        let (parse, _) = request(head.as_bytes(), &lenient);
        assert!(
            matches!(parse, HeadParse::Complete(_)),
            "{head:?}: {parse:?}"
        );
        let (parse, _) = request(head.as_bytes(), &H1Limits::default());
        assert!(matches!(parse, HeadParse::Error(_)), "{head:?}: {parse:?}");
    }
    for head in [
        "GET abc HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET ?abc HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http:/abc HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT http://a/b HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT /a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nX : b\r\n\r\n",
        "GET / HTTP/1.1\r\nX\0: b\r\n\r\n",
        "GET / HTTP/1.1\r\nX: a\rb\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\n 2\r\n\r\n",
    ] {
        let (parse, _) = request(head.as_bytes(), &lenient);
        assert!(matches!(parse, HeadParse::Error(_)), "{head:?}: {parse:?}");
    }
}

#[test]
fn a_lenient_target_puts_nothing_in_host_that_no_host_has() {
    let lenient = H1Limits {
        lenient: true,
        ..H1Limits::default()
    };
    for (authority, host) in [("a,b:80", "b"), ("a\u{e9}", "b"), ("a.c:80", "a.c")] {
        let head = format!("GET http://{authority} HTTP/1.1\r\nHost: b\r\n\r\n");
        let (parse, request) = request(head.as_bytes(), &lenient);
        assert!(
            matches!(parse, HeadParse::Complete(_)),
            "{head:?}: {parse:?}"
        );
        assert_eq!(request.fields().first(b"host"), Some(host.as_bytes()));
    }
}

#[test]
fn responses_are_judged_as_by_the_oracle_or_stricter() {
    use H1Error as E;
    let ok = "HTTP/1.1 200 OK\r\n";
    let rows: Vec<(String, Oracle, Result<(), H1Error>)> = vec![
        ("HTTP/1.1 200\r\n\r\n".into(), 200, Ok(())),
        ("HTTP/1.1 200 \r\n\r\n".into(), 200, Ok(())),
        ("HTTP/1.1  200 All \u{e9} fine\r\n\r\n".into(), 200, Ok(())),
        ("HTTP/1.1 999 x\r\n\r\n".into(), 200, Ok(())),
        ("HTTP/1.1 200 OK\nX: a\n\n".into(), 200, Ok(())),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n".into(), 200, Ok(())),
        ("HTTP/1.1 200 A\0B\r\n\r\n".into(), 200, Err(E::Nul)),
        ("HTTP/1.1 99 x\r\n\r\n".into(), 200, Err(E::StatusInvalid)),
        ("HTTP/1.1 099 x\r\n\r\n".into(), 200, Err(E::StatusInvalid)),
        ("HTTP/1.1 2000 x\r\n\r\n".into(), 200, Err(E::StatusInvalid)),
        ("HTTP/1.1 abc x\r\n\r\n".into(), 502, Err(E::StatusInvalid)),
        ("HTTP/1.1\r\n\r\n".into(), 502, Err(E::StatusInvalid)),
        ("HTTP/2.0 200 OK\r\n\r\n".into(), 200, Ok(())),
        ("SSH-2.0\r\n\r\n".into(), 502, Err(E::VersionInvalid)),
        ("SSH".into(), 502, Err(E::VersionInvalid)),
        (format!("{ok}X: a\r\n b\r\n\r\n"), 200, Ok(())),
        (format!("{ok}X : a\r\n\r\n"), 502, Err(E::SpaceBeforeColon)),
        (format!("{ok}X(: a\r\n\r\n"), 502, Err(E::FieldNameInvalid)),
        (format!("{ok}X: a\0\r\n\r\n"), 200, Err(E::Nul)),
        (format!("{ok}X: a\rb\r\n\r\n"), 502, Err(E::BareCr)),
        (
            format!("{ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\n"),
            502,
            length(LengthError::ContentLengthsDiffer),
        ),
        (
            format!("{ok}Content-Length: x\r\n\r\n"),
            502,
            length(LengthError::ContentLengthInvalid),
        ),
        (
            format!("{ok}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"),
            200,
            Ok(()),
        ),
        (
            format!("{ok}Transfer-Encoding: gzip\r\n\r\n"),
            502,
            missing(),
        ),
        (
            format!("{ok}Transfer-Encoding: identity\r\n\r\n"),
            502,
            missing(),
        ),
        (
            format!("{ok}Transfer-Encoding: gzip, chunked\r\n\r\n"),
            502,
            length(LengthError::CodingBeforeChunked),
        ),
        (
            format!("{ok}Transfer-Encoding: chunked, gzip\r\n\r\n"),
            502,
            not_last(),
        ),
        (
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
            200,
            Ok(()),
        ),
    ];
    for (head, oracle, ours) in rows {
        match (response(head.as_bytes(), Method::Get).0, ours) {
            (HeadParse::Complete(_), Ok(())) => {}
            (HeadParse::Error(fault), Err(error)) => assert_eq!(fault.error, error, "{head:?}"),
            (parse, ours) => panic!("{head:?}: {parse:?}, not {ours:?}"),
        }
        assert!(oracle == 200 || ours.is_err(), "{head:?}");
    }
}

#[test]
fn statuses_are_the_oracles() {
    assert_eq!(H1Error::BareLf.status(), 400);
    assert_eq!(H1Error::HeadTooLong.status(), 431);
    assert_eq!(H1Error::TooManyFields.status(), 400);
    assert_eq!(H1Error::PayloadUnexpected.status(), 413);
    assert_eq!(
        H1Error::Length(LengthError::CodingBeforeChunked).status(),
        422
    );
    assert_eq!(H1Error::VersionInvalid.status(), 400);
}
