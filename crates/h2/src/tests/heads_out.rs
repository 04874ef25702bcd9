//! Heads that we write.

use super::peer::*;
use crate::{ErrorCode, Event, ExtendedConnect, SendError};
use ballast_message::Fields;

/// The fields of a request as we write it.
fn sent(method: &str, target: &str, fields: &[(&str, &str)]) -> Vec<String> {
    let mut tested = Tested::client();
    let request = request(method, target, fields);
    tested
        .connection
        .send_request(&request, None, true, &mut tested.out)
        .unwrap();
    let frames = tested.written();
    assert_eq!(
        (frames[0].kind, frames[0].flags, frames[0].stream),
        (1, WHOLE, 1)
    );
    BlockReader::new().read(&frames[0].payload)
}

/// Only a rule makes such a target.
#[test]
fn a_target_that_is_neither_path_nor_url_is_the_path() {
    for target in ["*z", "abc"] {
        let path = format!(":path: {target}");
        let expected = [":method: OPTIONS", ":scheme: https", &path, "host: a.b"];
        assert_eq!(sent("OPTIONS", target, &[("host", "a.b")]), expected);
    }
}

#[test]
fn requests_as_haproxy_writes_them() {
    for (method, target, fields, expected) in [
        (
            "GET",
            "/p?q",
            &[("host", "a.b"), ("x", "y")][..],
            &[
                ":method: GET",
                ":scheme: https",
                ":path: /p?q",
                "host: a.b",
                "x: y",
            ][..],
        ),
        (
            "GET",
            "http://a.b/x",
            &[("host", "a.b")],
            &[
                ":method: GET",
                ":scheme: http",
                ":authority: a.b",
                ":path: /x",
            ],
        ),
        (
            "OPTIONS",
            "*",
            &[("host", "a.b")],
            &[
                ":method: OPTIONS",
                ":scheme: https",
                ":path: *",
                "host: a.b",
            ],
        ),
        (
            "OPTIONS",
            "http://a.b",
            &[],
            &[
                ":method: OPTIONS",
                ":scheme: http",
                ":authority: a.b",
                ":path: *",
            ],
        ),
        (
            "CONNECT",
            "a.b:443",
            &[("host", "a.b:443")],
            &[":method: CONNECT", ":authority: a.b:443"],
        ),
        (
            "GET",
            "/",
            &[
                ("connection", "keep-alive, x-hop"),
                ("x-hop", "1"),
                ("keep-alive", "3"),
                ("proxy-connection", "z"),
                ("transfer-encoding", "chunked"),
                ("upgrade", "h2c"),
                ("http2-settings", "AA"),
                ("te", "trailers"),
            ],
            &[
                ":method: GET",
                ":scheme: https",
                ":path: /",
                "x-hop: 1",
                "http2-settings: AA",
                "te: trailers",
            ],
        ),
        (
            "GET",
            "/",
            &[("te", "gzip"), ("cookie", "a=1; b=2")],
            &[
                ":method: GET",
                ":scheme: https",
                ":path: /",
                "cookie: a=1; b=2",
            ],
        ),
    ] {
        assert_eq!(sent(method, target, fields), expected, "{method} {target}");
    }
}

#[test]
fn a_protocol_is_asked_for_when_the_server_takes_it() {
    let mut tested = Tested::client();
    let upgrade = request(
        "GET",
        "http://a.b/w",
        &[
            ("host", "a.b"),
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
        ],
    );
    let protocol = Some(ExtendedConnect {
        protocol: b"websocket",
        drops_key: false,
    });
    let refused = tested
        .connection
        .send_request(&upgrade, protocol, false, &mut tested.out);
    assert_eq!(refused, Err(SendError::ProtocolNotTaken));
    tested.feed(&settings(&[(8, 1)]));
    assert!(tested.connection.takes_connect_protocol());
    tested
        .connection
        .send_request(&upgrade, protocol, false, &mut tested.out)
        .unwrap();
    let frames = tested.written();
    let head = frames.iter().find(|frame| frame.kind == 1).unwrap();
    assert_eq!(
        BlockReader::new().read(&head.payload),
        [
            ":method: CONNECT",
            ":scheme: http",
            ":authority: a.b",
            ":path: /w",
            ":protocol: websocket",
        ]
    );
    tested.events.clear();
    tested.feed(&headers(
        1,
        &block(&[(":status", "200"), ("x", "y")]),
        END_HEADERS,
    ));
    let text = response_text(&tested.heads.response);
    assert_eq!(text, "101|connection: upgrade|upgrade: websocket|x: y");
    let Event::Response { head, .. } = &tested.events[0] else {
        panic!("a response");
    };
    assert!(!head.interim);
}

#[test]
fn responses_and_trailers() {
    let mut tested = Tested::server();
    tested.request(1, &POST, END_HEADERS);
    let Some(Event::Request { stream, .. }) = tested.events.pop() else {
        panic!("a request");
    };
    let connection = &mut tested.connection;
    let hop = [
        ("connection", "close"),
        ("transfer-encoding", "chunked"),
        ("x", "y"),
    ];
    connection
        .send_response(stream, &response(103, &[]), false, &mut tested.out)
        .unwrap();
    connection
        .send_response(stream, &response(101, &hop), false, &mut tested.out)
        .unwrap();
    let mut trailers = Fields::default();
    trailers.add(b"grpc-status", b"0").unwrap();
    connection
        .send_trailers(stream, &trailers, &mut tested.out)
        .unwrap();
    let again = connection.send_trailers(stream, &trailers, &mut tested.out);
    assert_eq!(again, Err(SendError::StreamClosed));
    let frames: Vec<Written> = tested
        .written()
        .into_iter()
        .filter(|frame| frame.kind == 1)
        .collect();
    let mut reader = BlockReader::new();
    let lists: Vec<Vec<String>> = frames
        .iter()
        .map(|frame| reader.read(&frame.payload))
        .collect();
    assert_eq!(lists[0], [":status: 103"]);
    // What accepts an extended CONNECT is 200 (RFC 8441).
    assert_eq!(lists[1], [":status: 200", "x: y"]);
    assert_eq!(lists[2], ["grpc-status: 0"]);
    let flags: Vec<u8> = frames.iter().map(|frame| frame.flags).collect();
    assert_eq!(flags, [END_HEADERS, END_HEADERS, WHOLE]);
    // The request is not complete: we need no more of it.
    tested.connection.finish(stream, ErrorCode::NO_ERROR);
    assert_eq!(tested.ends(), ["RST 1 0"]);
}

#[test]
fn trailers_without_a_field_end_the_stream() {
    let mut tested = Tested::server();
    tested.request(1, &GET, WHOLE);
    let stream = tested.connection.streams().next().unwrap();
    let connection = &mut tested.connection;
    connection
        .send_response(stream, &response(200, &[]), false, &mut tested.out)
        .unwrap();
    let mut trailers = Fields::default();
    for name in ["content-length", "host", "te", "connection"] {
        trailers.add(name.as_bytes(), b"1").unwrap();
    }
    connection
        .send_trailers(stream, &trailers, &mut tested.out)
        .unwrap();
    assert!(connection.is_closed(stream));
    let last = tested.written().pop().unwrap();
    assert_eq!(
        (last.kind, last.flags, last.payload.len()),
        (0, END_STREAM, 0)
    );
}

#[test]
fn long_heads_are_continued() {
    let mut tested = Tested::server();
    tested.request(1, &GET, WHOLE);
    let Some(Event::Request { stream, .. }) = tested.events.pop() else {
        panic!("a request");
    };
    let mut long = response(200, &[]);
    let limits = ballast_message::HeadLimits {
        head_bytes_max: 100_000,
        ..Default::default()
    };
    long.fields_mut().set_limits(limits);
    for name in ["a", "b", "c"] {
        long.fields_mut()
            .add(name.as_bytes(), &[b'v'; 15_000])
            .unwrap();
    }
    tested
        .connection
        .send_response(stream, &long, true, &mut tested.out)
        .unwrap();
    let frames = tested.written();
    let shape: Vec<(u8, u8, usize)> = frames
        .iter()
        .map(|frame| (frame.kind, frame.flags, frame.payload.len()))
        .collect();
    assert_eq!(shape[0], (1, END_STREAM, 16_384));
    assert_eq!(shape[1], (9, 0, 16_384));
    assert_eq!((shape[2].0, shape[2].1), (9, END_HEADERS));
    let whole: Vec<u8> = frames
        .iter()
        .flat_map(|frame| frame.payload.clone())
        .collect();
    let lines = BlockReader::new().read(&whole);
    let sizes: Vec<usize> = lines.iter().map(String::len).collect();
    assert_eq!(sizes, [12, 15_003, 15_003, 15_003]);
}
