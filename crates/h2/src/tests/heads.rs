//! Heads of requests and responses: what HAProxy 3.2 makes of each list of fields, and we too. What
//! differs is marked where it stands.

use super::peer::*;
use crate::{ErrorCode, Event, H2Error, HeadError};
use ballast_message::BodyLength;

/// Fields of a list.
type Pairs<'a> = &'a [(&'a str, &'a str)];

/// Four pseudo-fields with changes, then other fields. An empty change removes the pseudo-field.
fn list<'a>(
    changes: &[(&'a str, &'a str)],
    more: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    GET.iter()
        .filter_map(
            |(name, value)| match changes.iter().find(|(changed, _)| changed == name) {
                Some((_, "")) => None,
                Some((_, other)) => Some((*name, *other)),
                None => Some((*name, *value)),
            },
        )
        .chain(more.iter().copied())
        .collect()
}

/// What a list of fields becomes: the request as over HTTP/1, with `400 ` before one that is to be
/// answered so, or the reset.
fn outcome(fields: &[(&str, &str)], flags: u8) -> String {
    let mut tested = Tested::server();
    tested.request(1, fields, flags);
    let is_bad = match tested.events.first() {
        Some(Event::Request { head, .. }) => head.is_bad,
        Some(Event::StreamError { .. }) => {
            assert_eq!(tested.connection.counters().glitches, 1);
            return tested.ends().join(",");
        }
        other => panic!("{other:?}"),
    };
    let bad = if is_bad { "400 " } else { "" };
    format!("{bad}{}", tested.requests[0])
}

fn check_heads(rows: &[(Pairs<'_>, Pairs<'_>, &str)]) {
    for (changes, more, expected) in rows {
        let expected = match *expected {
            "reset" => "RST 1 1",
            other => other,
        };
        let got = outcome(&list(changes, more), WHOLE);
        assert_eq!(got, expected, "{changes:?} {more:?}");
    }
}

#[test]
fn authority_and_host_become_one() {
    check_heads(&[
        (&[], &[], "GET /|host: a.b"),
        (&[(":authority", "")], &[("host", "h.x")], "GET /|host: h.x"),
        (&[], &[("host", "a.b")], "GET /|host: a.b"),
        // `:authority` wins.
        (&[], &[("host", "x.y")], "GET /|host: a.b"),
        (&[(":authority", "")], &[], "GET /"),
        (&[(":authority", "u:p@a.b")], &[], "reset"),
        (&[(":authority", "a b")], &[], "reset"),
        (&[(":authority", "a/b")], &[], "reset"),
        (&[(":authority", "")], &[("host", "a/b")], "reset"),
        (&[(":authority", "")], &[("host", "u@b")], "reset"),
        (
            &[(":authority", "")],
            &[("x", "1"), ("host", "h.x"), ("host", "h.y")],
            "GET /|x: 1|host: h.x",
        ),
        // Default ports are left out.
        (&[(":authority", "a.b:80")], &[], "GET /|host: a.b"),
        (&[(":authority", "a.b:")], &[], "GET /|host: a.b"),
        (
            &[(":scheme", "https"), (":authority", "a.b:443")],
            &[],
            "GET /|host: a.b",
        ),
        (
            &[(":scheme", "https"), (":authority", "a.b:80")],
            &[],
            "GET /|host: a.b:80",
        ),
        (
            &[(":authority", "[::1]:8080")],
            &[],
            "GET /|host: [::1]:8080",
        ),
    ]);
}

#[test]
fn rules_see_an_absolute_target() {
    for (changes, expected) in [
        (
            &[(":scheme", "https"), (":path", "/u?q")][..],
            "https://a.b/u?q",
        ),
        (&[(":scheme", "HTTP")], "HTTP://a.b/"),
        (&[(":scheme", "ftp")], "ftp://a.b/"),
        (&[(":authority", "")], "/"),
        (&[(":path", "*")], "http://a.b/"),
        (&[(":method", "OPTIONS"), (":path", "*")], "http://a.b"),
    ] {
        let mut tested = Tested::server();
        tested.request(1, &list(changes, &[]), WHOLE);
        let target = tested.heads.request.target();
        assert_eq!(String::from_utf8_lossy(target), expected);
    }
    // Of other schemes the target stays absolute on the way.
    check_heads(&[(&[(":scheme", "ftp")], &[], "GET ftp://a.b/|host: a.b")]);
    // An empty authority is none that `list` can write.
    let fields = [GET[0], GET[1], GET[2], (":authority", "")];
    assert_eq!(outcome(&fields, WHOLE), "GET /|host: ");
}

#[test]
fn h2spec_8_1_2_1_and_3_pseudo_fields() {
    check_heads(&[
        (&[], &[(":foo", "z")], "reset"),
        (&[], &[(":", "z")], "reset"),
        (&[], &[(":status", "200")], "reset"),
        (&[], &[("x", "y"), (":path", "/")], "reset"),
        (&[(":path", "")], &[("x", "y"), (":path", "/")], "reset"),
        (&[(":method", "")], &[], "reset"),
        (&[(":scheme", "")], &[], "reset"),
        (&[(":path", "")], &[], "reset"),
        (&[(":path", "")], &[(":path", "")], "reset"),
        (&[(":method", "")], &[(":method", "")], "reset"),
        (&[], &[(":method", "GET")], "reset"),
        (&[], &[(":scheme", "http")], "reset"),
        (&[], &[(":path", "/2")], "reset"),
        (&[], &[(":authority", "z")], "reset"),
        (&[], &[(":protocol", "websocket")], "reset"),
    ]);
}

#[test]
fn methods_schemes_and_paths() {
    check_heads(&[
        (&[(":method", "get")], &[], "get /|host: a.b"),
        (
            &[(":method", "OPTIONS"), (":path", "*")],
            &[],
            "OPTIONS *|host: a.b",
        ),
        (&[(":path", "abc")], &[], "reset"),
        (&[(":path", "?x")], &[], "reset"),
        (&[(":path", "/a b")], &[], "reset"),
        (&[(":path", "/a\tb")], &[], "reset"),
        (&[(":path", "/a\u{1}b")], &[], "reset"),
        (&[(":path", "/a#b")], &[], "reset"),
        (&[(":path", "http://x/y")], &[], "reset"),
        (&[(":path", "/a\u{e9}b")], &[], "GET /a\u{e9}b|host: a.b"),
        // HAProxy answers these with 400. What is kept of them is harmless.
        (&[(":path", "/a\u{7f}b")], &[], "400 GET /a%7Fb|host: a.b"),
        (&[(":method", "G T")], &[], "400 G%20T /|host: a.b"),
        (&[(":method", "PRI")], &[], "400 PRI /|host: a.b"),
        (&[(":scheme", "ht tp")], &[], "400 GET /|host: a.b"),
    ]);
}

#[test]
fn h2spec_8_1_2_and_8_1_2_2_fields() {
    check_heads(&[
        (&[], &[("X-Up", "y")], "reset"),
        (&[], &[("x-uP", "y")], "reset"),
        (&[], &[("connection", "close")], "reset"),
        (&[], &[("keep-alive", "x")], "reset"),
        (&[], &[("proxy-connection", "x")], "reset"),
        (&[], &[("transfer-encoding", "chunked")], "reset"),
        (&[], &[("upgrade", "x")], "reset"),
        (&[], &[("te", "trailers")], "GET /|host: a.b|te: trailers"),
        (&[], &[("te", "Trailers")], "reset"),
        (&[], &[("te", "trailers, x")], "reset"),
        (&[], &[("te", "")], "reset"),
        (
            &[],
            &[("http2-settings", "x")],
            "GET /|host: a.b|http2-settings: x",
        ),
        // HAProxy ends the connection for an empty name.
        (&[], &[("", "x")], "reset"),
        (&[], &[("a b", "x")], "reset"),
        (&[], &[("a:b", "x")], "reset"),
        (&[], &[("a\u{e9}", "x")], "reset"),
        (&[], &[("a\u{1}", "x")], "reset"),
        (&[], &[("a\0", "x")], "reset"),
        (&[], &[("a(", "x")], "reset"),
        (&[], &[("a", "x\0y")], "reset"),
        (&[], &[("a", "x\ry")], "reset"),
        (&[], &[("a", "x\ny")], "reset"),
        (&[], &[("a", "x\u{1}y")], "GET /|host: a.b|a: x\u{1}y"),
        (&[], &[("a", "x\u{7f}y")], "GET /|host: a.b|a: x\u{7f}y"),
        (&[], &[("a", "x\u{e9}y")], "GET /|host: a.b|a: x\u{e9}y"),
        (&[], &[("a", " \tx\t ")], "GET /|host: a.b|a: x"),
        (&[], &[("a", "")], "GET /|host: a.b|a: "),
    ]);
}

#[test]
fn cookies_are_joined_and_last() {
    check_heads(&[
        (
            &[],
            &[
                ("cookie", "a=1"),
                ("x", "y"),
                ("cookie", "b=2"),
                ("cookie", "c=3"),
            ],
            "GET /|host: a.b|x: y|cookie: a=1; b=2; c=3",
        ),
        (
            &[],
            &[("cookie", "a=1"), ("x", "y")],
            "GET /|host: a.b|x: y|cookie: a=1",
        ),
        (
            &[],
            &[("cookie", ""), ("x", "y"), ("cookie", "")],
            "GET /|host: a.b|x: y|cookie: ;",
        ),
    ]);
}

#[test]
fn lengths_of_heads_without_a_body() {
    check_heads(&[
        (
            &[],
            &[("content-length", "0")],
            "GET /|host: a.b|content-length: 0",
        ),
        (&[], &[("content-length", "5")], "reset"),
        (&[], &[("content-length", "x")], "reset"),
        (&[], &[("content-length", "+5")], "reset"),
        (&[], &[("content-length", "")], "reset"),
        (
            &[],
            &[("content-length", "0"), ("content-length", "1")],
            "reset",
        ),
        (&[], &[("content-length", "9223372036854775808")], "reset"),
    ]);
    for (length, expected) in [("5, 5", "5"), ("0005", "5"), ("5", "5")] {
        let fields = list(&[(":method", "POST")], &[("content-length", length)]);
        let text = format!("POST /|host: a.b|content-length: {expected}");
        assert_eq!(outcome(&fields, END_HEADERS), text);
    }
}

/// A request with a body in pieces and trailers: what is reported, and what is written.
fn body(fields: &[(&str, &str)], pieces: &[&str], trailers: Option<&[(&str, &str)]>) -> String {
    let fields = list(&[(":method", "POST")], fields);
    let mut tested = Tested::server();
    tested.request(1, &fields, END_HEADERS);
    for (at, piece) in pieces.iter().enumerate() {
        let is_last = at + 1 == pieces.len() && trailers.is_none();
        let flags = if is_last { END_STREAM } else { 0 };
        tested.feed(&data(1, piece.as_bytes(), flags));
    }
    if let Some(trailers) = trailers {
        tested.feed(&headers(1, &block(trailers), WHOLE));
    }
    let mut said = String::new();
    for event in &tested.events[1..] {
        match event {
            Event::Data {
                range, ends_stream, ..
            } => {
                said.push_str(&format!(
                    "{}{} ",
                    range.len(),
                    if *ends_stream { "." } else { "" }
                ));
            }
            Event::Trailers { .. } => said.push_str(&fields_text(&tested.heads.trailers)),
            Event::StreamError { error, .. } => said.push_str(&format!("{error}")),
            other => panic!("{other:?}"),
        }
    }
    said.trim_end().to_owned()
}

#[test]
fn h2spec_8_1_2_6_bodies_are_as_long_as_they_say() {
    let differ = "content-length and DATA differ";
    let five = [("content-length", "5")];
    for (fields, pieces, trailers, expected) in [
        (&five[..], &["hel", "lo"][..], None, "3 2."),
        (&[("content-length", "6")], &["hello"], None, differ),
        (&[("content-length", "4")], &["hello"], None, differ),
        (
            &[("content-length", "4")],
            &["hel", "lo"],
            None,
            "3 content-length and DATA differ",
        ),
        (&[("content-length", "0")], &["hello"], None, differ),
        (&five, &[""], None, differ),
        (&[], &["hello"], None, "5."),
        (&[], &[""], None, "0."),
        (&[], &["", "", "a", ""], None, "1 0."),
        (&[], &["hello"], Some(&[("x-t", "1")][..]), "5 |x-t: 1"),
        (&[], &[], Some(&[("x-t", "1")]), "|x-t: 1"),
        (&five, &["hello"], Some(&[("x-t", "1")]), "5 |x-t: 1"),
        (
            &[("content-length", "6")],
            &["hello"],
            Some(&[("x-t", "1")]),
            "5 content-length and DATA differ",
        ),
    ] {
        assert_eq!(
            body(fields, pieces, trailers),
            expected,
            "{fields:?} {pieces:?}"
        );
    }
}

#[test]
fn trailers_have_fields_only() {
    for (trailers, expected) in [
        (("cookie", "a"), "|cookie: a"),
        (("x", " y "), "|x: y"),
        ((":path", "/"), "a pseudo-field after other fields"),
        (("X-T", "1"), "invalid field name"),
        (("connection", "close"), "a field of the connection"),
        (("transfer-encoding", "x"), "a field of the connection"),
        (
            ("content-length", "5"),
            "a field that trailers must not have",
        ),
        (("host", "a"), "a field that trailers must not have"),
        (("te", "trailers"), "a field that trailers must not have"),
        (("a", "x\ny"), "invalid byte in a field value"),
    ] {
        assert_eq!(body(&[], &[], Some(&[trailers])), expected, "{trailers:?}");
    }
}

#[test]
fn h2spec_8_1_a_second_head_ends_the_stream() {
    let mut tested = Tested::server();
    tested.request(1, &POST, END_HEADERS);
    tested.feed(&headers(1, &block(&[("x", "y")]), END_HEADERS));
    assert_eq!(tested.ends(), ["RST 1 1"]);
}

#[test]
fn connect_has_an_authority_only() {
    let connect = |more: &[(&'static str, &'static str)]| {
        let mut fields = vec![(":method", "CONNECT")];
        fields.extend_from_slice(more);
        fields
    };
    for (more, expected) in [
        (
            &[(":authority", "a.b:443")][..],
            "CONNECT a.b:443|host: a.b:443",
        ),
        (
            &[(":authority", "a.b:443"), ("host", "c.d:443")],
            "CONNECT a.b:443|host: a.b:443",
        ),
        (&[(":authority", "a.b:443"), (":path", "/")], "RST 1 1"),
        (&[(":authority", "a.b:443"), (":scheme", "http")], "RST 1 1"),
        (&[("host", "a.b:443")], "RST 1 1"),
        (&[], "RST 1 1"),
        // HAProxy forwards the length; the next hop could read a body there.
        (
            &[(":authority", "a.b:443"), ("content-length", "5")],
            "CONNECT a.b:443|host: a.b:443",
        ),
    ] {
        assert_eq!(outcome(&connect(more), END_HEADERS), expected, "{more:?}");
    }
    let mut tested = Tested::server();
    tested.request(1, &connect(&[(":authority", "a.b:443")]), END_HEADERS);
    let Event::Request { head, .. } = &tested.events[0] else {
        panic!("a request");
    };
    assert_eq!((head.body, head.upgrade), (BodyLength::Tunnel, false));
}

#[test]
fn rfc_8441_extended_connect_becomes_an_upgrade() {
    let websocket = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/chat"),
        (":authority", "a.b"),
    ];
    let mut fields = websocket.to_vec();
    fields.push(("origin", "x"));
    let text = "GET /chat|host: a.b|origin: x|upgrade: websocket|connection: upgrade";
    assert_eq!(outcome(&fields, END_HEADERS), text);
    for missing in 1..websocket.len() {
        let mut fields = websocket.to_vec();
        fields.remove(missing);
        assert_eq!(outcome(&fields, END_HEADERS), "RST 1 1", "{missing}");
    }
    fields.push((":protocol", "websocket"));
    assert_eq!(outcome(&fields, END_HEADERS), "RST 1 1");
    // Not offered.
    let settings = crate::H2Settings {
        offers_connect_protocol: false,
        ..crate::H2Settings::default()
    };
    let mut tested = Tested::server_with(settings);
    tested.request(1, &websocket, END_HEADERS);
    assert_eq!(tested.ends(), ["RST 1 1"]);
}

#[test]
fn heads_are_limited_and_the_table_stays_right() {
    let many: Vec<(String, String)> = (0..120)
        .map(|at| (format!("x-{at}"), "y".to_owned()))
        .collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(outcome(&list(&[], &many), WHOLE), "RST 1 1");
    assert!(outcome(&list(&[], &many[..95]), WHOLE).starts_with("GET /"));
    let long = "y".repeat(7_900);
    assert_eq!(
        outcome(&list(&[], &[("x", &long), ("z", &long)]), WHOLE),
        "RST 1 1"
    );
    let fits = "y".repeat(7_000);
    assert!(outcome(&list(&[], &[("x", &fits), ("z", &fits)]), WHOLE).starts_with("GET /"));
    // Fields of a refused list that entered the table are there.
    let mut tested = Tested::server();
    let mut refused = block(&list(&[], &many));
    refused.extend_from_slice(b"\x40\x05x-new\x03yes");
    tested.feed(&headers(1, &refused, WHOLE));
    let mut next = block(&GET);
    next.push(0xbe);
    tested.feed(&headers(3, &next, WHOLE));
    assert_eq!(tested.requests, ["GET /|host: a.b|x-new: yes"]);
}

/// What a response becomes for a request with this method.
fn answer(method: &str, fields: &[(&str, &str)], flags: u8) -> String {
    let mut tested = Tested::client();
    let asked = request(method, "http://a.b/", &[]);
    tested
        .connection
        .send_request(&asked, None, true, &mut tested.out)
        .unwrap();
    tested.written();
    tested.feed(&headers(1, &block(fields), flags));
    match tested.events.first() {
        Some(Event::Response { head, .. }) => {
            format!("{} {:?}", response_text(&tested.heads.response), head.body)
        }
        Some(Event::StreamError { .. }) => tested.ends().join(","),
        other => panic!("{other:?}"),
    }
}

#[test]
fn responses() {
    for (fields, expected) in [
        (&[(":status", "200"), ("x", "y")][..], "200|x: y None"),
        (&[("x", "y")], "RST 1 1"),
        (&[(":status", "")], "RST 1 1"),
        (&[(":status", "99")], "RST 1 1"),
        (&[(":status", "1000")], "RST 1 1"),
        (&[(":status", "abc")], "RST 1 1"),
        // HAProxy forwards 099, and closes.
        (&[(":status", "099")], "RST 1 1"),
        (&[(":status", "101")], "RST 1 1"),
        (&[(":status", "600")], "600 None"),
        (&[(":status", "999")], "999 None"),
        (&[(":status", "200"), (":status", "200")], "RST 1 1"),
        (&[(":status", "200"), (":path", "/")], "RST 1 1"),
        (&[("x", "y"), (":status", "200")], "RST 1 1"),
        (&[(":status", "200"), ("X", "y")], "RST 1 1"),
        (&[(":status", "200"), ("connection", "close")], "RST 1 1"),
        (
            &[(":status", "200"), ("te", "trailers")],
            "200|te: trailers None",
        ),
        (&[(":status", "200"), ("content-length", "4")], "RST 1 1"),
        (&[(":status", "200"), ("content-length", "x")], "RST 1 1"),
        (
            &[(":status", "204"), ("content-length", "0")],
            "204|content-length: 0 None",
        ),
        (
            &[(":status", "304"), ("content-length", "7")],
            "304|content-length: 7 None",
        ),
        (
            &[(":status", "200"), ("set-cookie", "a"), ("set-cookie", "b")],
            "200|set-cookie: a|set-cookie: b None",
        ),
    ] {
        assert_eq!(answer("GET", fields, WHOLE), expected, "{fields:?}");
    }
    let five = [(":status", "200"), ("content-length", "5")];
    assert_eq!(
        answer("GET", &five, END_HEADERS),
        "200|content-length: 5 Known(5)"
    );
    assert_eq!(answer("GET", &five[..1], END_HEADERS), "200 Chunked");
    assert_eq!(answer("HEAD", &five, WHOLE), "200|content-length: 5 None");
}

#[test]
fn bodies_that_no_response_has_are_dropped() {
    for (method, status) in [("HEAD", "200"), ("GET", "204"), ("GET", "304")] {
        let mut tested = Tested::client();
        let asked = request(method, "http://a.b/", &[]);
        let opened = tested
            .connection
            .send_request(&asked, None, true, &mut tested.out);
        let stream = opened.unwrap();
        let fields = [(":status", status), ("content-length", "5")];
        tested.feed(&headers(1, &block(&fields), END_HEADERS));
        tested.feed(&data(1, b"hello", 0));
        tested.feed(&data(1, b"more", END_STREAM));
        let end = Event::Data {
            stream,
            range: 9..9,
            ends_stream: true,
        };
        assert_eq!(tested.events.len(), 2, "{method} {status}");
        assert_eq!(tested.events[1], end, "{method} {status}");
        assert!(tested.connection.is_closed(stream));
    }
}

#[test]
fn interim_responses_come_before_the_final_one() {
    let mut tested = Tested::client();
    let asked = request("GET", "http://a.b/", &[]);
    tested
        .connection
        .send_request(&asked, None, true, &mut tested.out)
        .unwrap();
    tested.feed(&headers(
        1,
        &block(&[(":status", "103"), ("link", "x")]),
        END_HEADERS,
    ));
    tested.feed(&headers(1, &block(&[(":status", "100")]), END_HEADERS));
    tested.feed(&headers(1, &block(&[(":status", "200")]), END_HEADERS));
    tested.feed(&headers(1, &block(&[("x-t", "1")]), WHOLE));
    let interims: Vec<bool> = tested
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Response { head, .. } => Some(head.interim),
            _ => None,
        })
        .collect();
    assert_eq!(interims, [true, true, false]);
    assert_eq!(fields_text(&tested.heads.trailers), "|x-t: 1");
}

#[test]
fn an_error_says_which_rule() {
    let mut tested = Tested::server();
    tested.request(1, &list(&[], &[("te", "gzip")]), WHOLE);
    let Event::StreamError { stream, error } = &tested.events[0] else {
        panic!("an error");
    };
    assert_eq!(*error, H2Error::Head(HeadError::TeInvalid));
    assert_eq!(
        (stream.number(), error.code()),
        (1, ErrorCode::PROTOCOL_ERROR)
    );
    assert_eq!(error.to_string(), "te other than trailers");
}
