//! Rules of RFC 9113 about streams, by the numbers of h2spec.

use super::peer::*;
use super::spec_frames::check;
use crate::{ErrorCode, Event, H2Error, H2Settings, SendError};

fn get(stream: u32) -> Vec<u8> {
    headers(stream, &block(&GET), WHOLE)
}

fn post(stream: u32) -> Vec<u8> {
    headers(stream, &block(&POST), END_HEADERS)
}

#[test]
fn h2spec_5_1_idle_and_half_closed() {
    check(&[
        ("5.1/1 idle: DATA", vec![data(1, b"x", 1)], &["GOAWAY 1"]),
        ("5.1/2 idle: RST_STREAM", vec![rst(1, 8)], &["GOAWAY 1"]),
        (
            "5.1/3 idle: WINDOW_UPDATE",
            vec![window_update(1, 100)],
            &["GOAWAY 1"],
        ),
        (
            "5.1/4 idle: CONTINUATION",
            vec![frame(9, 4, 1, &block(&GET))],
            &["GOAWAY 1"],
        ),
        (
            "5.1/5 half closed: DATA",
            vec![get(1), data(1, b"x", 1)],
            &["RST 1 5"],
        ),
        (
            "5.1/6 half closed: HEADERS",
            vec![get(1), get(1)],
            &["RST 1 5"],
        ),
        (
            "5.1/7 half closed: CONTINUATION",
            vec![get(1), frame(9, 4, 1, &block(&GET))],
            &["GOAWAY 1"],
        ),
        (
            "5.1/8 reset: DATA",
            vec![post(1), rst(1, 8), data(1, b"x", 1)],
            &["RST 1 5"],
        ),
        (
            "5.1/9 reset: HEADERS",
            vec![post(1), rst(1, 8), get(1)],
            &["RST 1 5"],
        ),
        (
            "5.1/10 reset: CONTINUATION",
            vec![post(1), rst(1, 8), frame(9, 4, 1, &block(&GET))],
            &["GOAWAY 1"],
        ),
        ("reset twice", vec![post(1), rst(1, 8), rst(1, 8)], &[]),
        (
            "half closed: WINDOW_UPDATE and PRIORITY",
            vec![get(1), window_update(1, 9), frame(2, 0, 1, &[0; 5])],
            &[],
        ),
    ]);
}

/// A server whose stream 1 was answered.
fn answered(is_finished: bool) -> Tested {
    let mut tested = Tested::server();
    tested.feed(&get(1));
    let Some(Event::Request { stream, .. }) = tested.events.pop() else {
        panic!("a request came");
    };
    let response = response(200, &[]);
    tested
        .connection
        .send_response(stream, &response, true, &mut tested.out)
        .unwrap();
    assert!(tested.connection.is_closed(stream));
    if is_finished {
        tested.connection.finish(stream, ErrorCode::NO_ERROR);
        assert_eq!(tested.connection.stream_count(), 0);
    }
    assert_eq!(tested.ends(), [""; 0]);
    tested
}

#[test]
fn h2spec_5_1_closed() {
    for is_finished in [false, true] {
        for (name, input, expected) in [
            ("5.1/11 DATA", data(1, b"x", 1), &["RST 1 5"][..]),
            ("5.1/12 HEADERS", get(1), &["GOAWAY 5"]),
            (
                "5.1/13 CONTINUATION",
                frame(9, 4, 1, &block(&GET)),
                &["GOAWAY 1"],
            ),
            ("WINDOW_UPDATE", window_update(1, 1), &[]),
            ("WINDOW_UPDATE by zero", window_update(1, 0), &[]),
            ("RST_STREAM", rst(1, 8), &[]),
            ("PRIORITY", frame(2, 0, 1, &[0; 5]), &[]),
        ] {
            let mut tested = answered(is_finished);
            tested.feed(&input);
            assert_eq!(tested.ends(), expected, "{name}, finished: {is_finished}");
        }
    }
}

#[test]
fn what_was_on_the_way_when_we_reset_is_dropped() {
    let mut tested = Tested::server();
    tested.feed(&post(1));
    let Some(Event::Request { stream, .. }) = tested.events.pop() else {
        panic!("a request came");
    };
    tested.connection.finish(stream, ErrorCode::CANCEL);
    assert_eq!(tested.ends(), ["RST 1 8"]);
    let trailers = headers(1, &block(&[("x-t", "1")]), WHOLE);
    for input in [
        data(1, b"late", 0),
        window_update(1, 5),
        trailers,
        rst(1, 8),
    ] {
        tested.feed(&input);
    }
    assert_eq!(tested.events, []);
    assert_eq!(tested.ends(), [""; 0]);
    tested.request(3, &GET, WHOLE);
    assert_eq!(tested.requests.len(), 2);
}

#[test]
fn h2spec_5_1_1_identifiers() {
    check(&[
        ("5.1.1/1 even", vec![get(2)], &["GOAWAY 1"]),
        (
            "5.1.1/2 smaller than before",
            vec![get(5), get(3)],
            &["GOAWAY 1"],
        ),
        ("far above", vec![get(1), get(99)], &[]),
    ]);
}

#[test]
fn h2spec_5_1_2_streams_at_once() {
    let settings = H2Settings {
        stream_count_max: 2,
        ..H2Settings::default()
    };
    let mut tested = Tested::server_with(settings);
    for stream in [1, 3, 5] {
        tested.feed(&post(stream));
    }
    assert_eq!(tested.ends(), ["RST 5 7"]);
    assert_eq!(tested.requests.len(), 2);
    // A stream counts until its exchange is over, though the client has reset it.
    tested.feed(&rst(1, 8));
    tested.feed(&post(7));
    assert_eq!(tested.ends(), ["RST 7 7"]);
    let first = tested.connection.streams().next().unwrap();
    tested.connection.finish(first, ErrorCode::CANCEL);
    tested.feed(&post(9));
    assert_eq!(tested.ends(), [""; 0]);
    assert_eq!(tested.requests.len(), 3);
}

#[test]
fn streams_in_all_are_limited_in_two_steps() {
    let settings = H2Settings {
        stream_count_max: 2,
        stream_total_max: 3,
        ..H2Settings::default()
    };
    let mut tested = Tested::server_with(settings);
    for stream in [1, 3, 5, 7, 9] {
        tested.feed(&get(stream));
        let id = tested.connection.streams().next().unwrap();
        tested.connection.finish(id, ErrorCode::NO_ERROR);
    }
    let said = tested.ends();
    assert!(said.contains(&"GOAWAY 0".to_owned()), "{said:?}");
    assert!(tested.connection.is_going_away());
    assert_eq!(tested.requests.len(), 5, "those on the way are served");
    tested.feed(&get(11));
    assert_eq!(
        tested.connection.error(),
        Some(H2Error::TotalStreamsExceeded)
    );
    assert_eq!(tested.ends(), ["GOAWAY 11"]);
}

#[test]
fn going_away_takes_two_steps() {
    let mut tested = Tested::server();
    tested.feed(&get(1));
    tested.connection.announce_go_away();
    tested.connection.announce_go_away();
    let first = tested.written();
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].payload, [0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    // On the way already: served.
    tested.feed(&get(3));
    assert_eq!(tested.requests.len(), 2);
    tested.connection.go_away(ErrorCode::NO_ERROR);
    let second = tested.written();
    assert_eq!(second[0].payload, [0, 0, 0, 3, 0, 0, 0, 0]);
    // Not served any more, and the table stays right.
    tested.feed(&post(5));
    tested.feed(&data(5, b"late", END_STREAM));
    assert_eq!(tested.requests.len(), 2);
    assert_eq!(tested.ends(), [""; 0]);
    tested.connection.go_away(ErrorCode::INTERNAL_ERROR);
    let third = tested.written();
    assert_eq!(third[0].payload, [0, 0, 0, 3, 0, 0, 0, 2]);
}

#[test]
fn a_server_that_goes_away_has_not_seen_later_streams() {
    let mut tested = Tested::client();
    let get = request("GET", "http://a.b/", &[]);
    let mut open = || {
        tested
            .connection
            .send_request(&get, None, true, &mut tested.out)
    };
    let streams = [open().unwrap(), open().unwrap(), open().unwrap()];
    tested.feed(&frame(7, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]));
    let code = ErrorCode::NO_ERROR;
    let expected = Event::GoAway {
        last_stream: 3,
        code,
    };
    assert_eq!(tested.events, [expected]);
    let closed = streams.map(|stream| tested.connection.is_closed(stream));
    assert_eq!(closed, [false, false, true]);
    let refused = tested
        .connection
        .send_request(&get, None, true, &mut tested.out);
    assert_eq!(refused, Err(SendError::NoStream));
}

#[test]
fn a_client_judges_the_streams_of_its_server() {
    let ok = block(&[(":status", "200")]);
    for (name, input, expected) in [
        ("an answer to nothing", headers(3, &ok, WHOLE), "GOAWAY 1"),
        ("a stream of the server", headers(2, &ok, WHOLE), "GOAWAY 1"),
        ("a push", frame(5, 4, 1, &[0, 0, 0, 2, 0x82]), "GOAWAY 1"),
        ("DATA before the head", data(1, b"x", 0), "RST 1 1"),
        ("push is wanted", settings(&[(2, 1)]), "GOAWAY 1"),
        (
            "an interim end",
            headers(1, &block(&[(":status", "103")]), WHOLE),
            "RST 1 1",
        ),
    ] {
        let mut tested = Tested::client();
        let get = request("GET", "http://a.b/", &[]);
        tested
            .connection
            .send_request(&get, None, true, &mut tested.out)
            .unwrap();
        tested.written();
        tested.feed(&input);
        assert_eq!(tested.ends(), [expected], "{name}");
    }
}

#[test]
fn streams_that_we_open_are_limited_by_both_sides() {
    let mut tested = Tested::client();
    assert_eq!(tested.connection.open_streams_max(), 100);
    tested.feed(&settings(&[(3, 1)]));
    assert_eq!(tested.connection.open_streams_max(), 1);
    let get = request("GET", "http://a.b/", &[]);
    let mut open = || {
        tested
            .connection
            .send_request(&get, None, true, &mut tested.out)
    };
    let stream = open().unwrap();
    assert_eq!(open(), Err(SendError::NoStream));
    tested.connection.finish(stream, ErrorCode::CANCEL);
    assert!(tested.ends().contains(&"RST 1 8".to_owned()));
    let again = tested
        .connection
        .send_request(&get, None, true, &mut tested.out);
    assert_eq!(again.map(|stream| stream.number()), Ok(3));
}

#[test]
fn the_rest_of_a_frame_is_dropped_when_its_stream_has_left() {
    for has_left in [false, true] {
        let mut tested = Tested::server();
        tested.feed(&post(1));
        let stream = tested.connection.streams().next().unwrap();
        tested.events.clear();
        let whole = data(1, b"0123456789", END_STREAM);
        let (first, rest) = whole.split_at(12);
        tested.feed(first);
        assert!(matches!(
            tested.events[..],
            [Event::Data {
                ends_stream: false,
                ..
            }]
        ));
        if has_left {
            tested.connection.finish(stream, ErrorCode::CANCEL);
        } else {
            tested.connection.reset(stream, ErrorCode::CANCEL);
        }
        tested.feed(rest);
        assert_eq!(tested.events.len(), 1);
        assert_eq!(tested.ends(), ["RST 1 8"]);
        tested.feed(&get(3));
        assert_eq!(tested.requests.len(), 2);
    }
}
