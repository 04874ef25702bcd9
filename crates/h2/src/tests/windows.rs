//! Flow control: rules of RFC 9113 section 6.9 by the numbers of h2spec, turns, and what is given back.

use super::peer::*;
use super::spec_frames::check;
use crate::{ErrorCode, Event, H2Settings, SendError, StreamId};

#[test]
fn h2spec_6_9_window_updates() {
    let post = headers(1, &block(&POST), END_HEADERS);
    let most = (1 << 31) - 1;
    check(&[
        ("6.9/1 zero", vec![window_update(0, 0)], &["GOAWAY 1"]),
        (
            "6.9/2 zero on a stream",
            vec![post.clone(), window_update(1, 0)],
            &["RST 1 1"],
        ),
        (
            "6.9/3 length",
            vec![frame(8, 0, 0, &[0, 0, 1])],
            &["GOAWAY 6"],
        ),
        (
            "6.9.1/2 above 2^31-1",
            vec![window_update(0, most), window_update(0, most)],
            &["GOAWAY 3"],
        ),
        (
            "6.9.1/3 above 2^31-1, stream",
            vec![post.clone(), window_update(1, most)],
            &["RST 1 3"],
        ),
        (
            "6.9.2/3 above 2^31-1 by settings",
            vec![post.clone(), window_update(1, 1), settings(&[(4, most)])],
            &["GOAWAY 3"],
        ),
        (
            "6.9.2/3 not a number of 31 bits",
            vec![post, settings(&[(4, 1 << 31)])],
            &["GOAWAY 3"],
        ),
    ]);
}

/// A server with so many requests, answered with a head; and these streams.
fn responding(count: u32) -> (Tested, Vec<StreamId>) {
    let mut tested = Tested::server();
    for at in 0..count {
        tested.request(2 * at + 1, &GET, WHOLE);
    }
    let streams: Vec<StreamId> = tested.connection.streams().collect();
    for stream in &streams {
        let response = response(200, &[]);
        tested
            .connection
            .send_response(*stream, &response, false, &mut tested.out)
            .unwrap();
    }
    tested.written();
    tested.events.clear();
    (tested, streams)
}

#[test]
fn h2spec_6_9_1_1_and_6_9_2_no_more_is_sent_than_the_peer_allows() {
    let (mut tested, streams) = responding(1);
    let stream = streams[0];
    // 6.9.2/2: the window is negative after what was sent.
    assert_eq!(tested.connection.reserve(stream, 10), 10);
    tested
        .connection
        .send_data(stream, &[0; 10], false, &mut tested.out)
        .unwrap();
    tested.feed(&settings(&[(4, 3)]));
    assert_eq!(tested.connection.reserve(stream, 10), 0);
    tested.feed(&window_update(stream.number(), 7));
    assert_eq!(tested.connection.next_turn(), None);
    tested.feed(&window_update(stream.number(), 2));
    assert_eq!(tested.connection.next_turn(), Some(stream));
    assert_eq!(tested.connection.reserve(stream, 10), 2);
    let more = tested
        .connection
        .send_data(stream, &[0; 3], false, &mut tested.out);
    assert_eq!(more, Err(SendError::NotReserved));
    tested
        .connection
        .send_data(stream, &[0; 2], false, &mut tested.out)
        .unwrap();
    // 6.9.2/1: the window grows with the setting.
    assert_eq!(tested.connection.reserve(stream, 10), 0);
    tested.events.clear();
    tested.feed(&settings(&[(4, 4)]));
    assert_eq!(tested.events, [Event::Settings]);
    assert_eq!(tested.connection.next_turn(), Some(stream));
    // 6.9.1/1: byte by byte.
    assert_eq!(tested.connection.reserve(stream, 10), 1);
    tested
        .connection
        .send_data(stream, b"x", true, &mut tested.out)
        .unwrap();
    let sent: Vec<(usize, u8)> = tested
        .written()
        .iter()
        .filter(|frame| frame.kind == 0)
        .map(|frame| (frame.payload.len(), frame.flags))
        .collect();
    assert_eq!(sent, [(10, 0), (2, 0), (1, END_STREAM)]);
}

#[test]
fn what_new_settings_allow_goes_after_their_acknowledgement() {
    let (mut tested, streams) = responding(1);
    tested.feed(&settings(&[(4, 0)]));
    tested.written();
    assert_eq!(tested.connection.reserve(streams[0], 10), 0);
    tested.feed(&settings(&[(4, 1)]));
    assert_eq!(tested.connection.next_turn(), Some(streams[0]));
    assert_eq!(tested.connection.reserve(streams[0], 10), 1);
    tested
        .connection
        .send_data(streams[0], b"x", false, &mut tested.out)
        .unwrap();
    let kinds: Vec<u8> = tested.written().iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [4, 0]);
}

#[test]
fn streams_take_turns_at_the_window_of_the_connection() {
    let (mut tested, streams) = responding(3);
    let connection = &mut tested.connection;
    // One takes all there is.
    assert_eq!(connection.reserve(streams[0], 100_000), 65_535);
    assert_eq!(connection.reserve(streams[1], 10), 0);
    assert_eq!(connection.reserve(streams[2], 10), 0);
    assert_eq!(connection.reserve(streams[1], 10), 0);
    assert_eq!(connection.next_turn(), None);
    connection
        .send_data(streams[0], &[0; 65_535], false, &mut tested.out)
        .unwrap();
    // It waits for its own window: the others are not in its way, nor it in theirs.
    assert_eq!(connection.reserve(streams[0], 100), 0);
    tested.feed(&window_update(0, 5));
    assert_eq!(tested.events, [Event::WindowOpened]);
    let connection = &mut tested.connection;
    assert_eq!(connection.next_turn(), Some(streams[1]));
    assert_eq!(connection.next_turn(), None, "nothing is left for the next");
    assert_eq!(connection.reserve(streams[1], 10), 5);
    connection
        .send_data(streams[1], &[0; 5], false, &mut tested.out)
        .unwrap();
    assert_eq!(connection.reserve(streams[1], 10), 0);
    tested.feed(&window_update(0, 20_000));
    let connection = &mut tested.connection;
    // A frame at most for each.
    assert_eq!(connection.next_turn(), Some(streams[2]));
    assert_eq!(connection.reserve(streams[2], 100_000), 20_000);
    // Who needs less gives up the rest.
    assert_eq!(connection.reserve(streams[2], 10), 10);
    assert_eq!(connection.next_turn(), Some(streams[1]));
    connection.unreserve(streams[1]);
    assert_eq!(connection.next_turn(), None);
    tested.feed(&window_update(streams[0].number(), 1));
    assert_eq!(tested.connection.next_turn(), Some(streams[0]));
}

#[test]
fn what_was_reserved_is_free_after_a_reset() {
    let (mut tested, streams) = responding(3);
    assert_eq!(tested.connection.reserve(streams[0], 100_000), 65_535);
    assert_eq!(tested.connection.reserve(streams[1], 1), 0);
    assert_eq!(tested.connection.reserve(streams[2], 1), 0);
    tested.feed(&rst(streams[1].number(), 8));
    tested.feed(&rst(streams[0].number(), 8));
    let late = tested
        .connection
        .send_data(streams[0], b"x", false, &mut tested.out);
    assert_eq!(late, Err(SendError::StreamClosed));
    assert_eq!(tested.connection.next_turn(), Some(streams[2]));
    assert_eq!(tested.connection.reserve(streams[2], 1), 1);
    assert_eq!(tested.connection.next_turn(), None);
    assert_eq!(tested.connection.reserve(streams[1], 1), 0);
}

#[test]
fn frames_are_as_large_as_the_peer_takes() {
    let (mut tested, streams) = responding(1);
    tested.feed(&settings(&[(5, 20_000), (4, 1 << 20)]));
    tested.feed(&window_update(0, 1 << 20));
    assert_eq!(tested.connection.frame_bytes_max(), 20_000);
    assert_eq!(tested.connection.reserve(streams[0], 50_000), 50_000);
    tested
        .connection
        .send_data(streams[0], &[1; 50_000], true, &mut tested.out)
        .unwrap();
    let sent: Vec<(usize, u8)> = tested
        .written()
        .iter()
        .filter(|frame| frame.kind == 0)
        .map(|frame| (frame.payload.len(), frame.flags))
        .collect();
    assert_eq!(sent, [(20_000, 0), (20_000, 0), (10_000, END_STREAM)]);
    let (mut tested, streams) = responding(1);
    assert_eq!(tested.connection.reserve(streams[0], 50_000), 50_000);
    let head = tested.connection.begin_data(streams[0], 16_385, false);
    assert_eq!(head, Err(SendError::NotReserved));
    let head = tested.connection.begin_data(streams[0], 16_384, true);
    assert_eq!(head, Ok([0, 0x40, 0, 0, END_STREAM, 0, 0, 0, 1]));
}

/// The increments that we announced, by stream.
fn increments(tested: &mut Tested) -> Vec<(u32, u32)> {
    let list = tested.written();
    list.iter()
        .filter(|frame| frame.kind == 8)
        .map(|frame| (frame.stream, frame.number()))
        .collect()
}

/// Feeds DATA and takes nothing of it.
fn feed_untaken(tested: &mut Tested, input: &[u8]) -> Option<Event> {
    let mut at = 0;
    let mut last = None;
    while at < input.len() {
        let step = tested.connection.receive(&input[at..], &mut tested.heads);
        at += step.consumed;
        if matches!(step.event, Event::Incomplete | Event::Error(_)) {
            return Some(step.event)
                .filter(|event| *event != Event::Incomplete)
                .or(last);
        }
        last = Some(step.event);
    }
    last
}

#[test]
fn a_body_gets_what_others_do_not_use() {
    let mut tested = Tested::server();
    tested.request(1, &POST, END_HEADERS);
    // As HAProxy.
    assert_eq!(increments(&mut tested), [(1, 1_409_024)]);
    tested.request(3, &GET, WHOLE);
    assert_eq!(increments(&mut tested), []);
    tested.request(5, &POST, END_HEADERS);
    assert_eq!(increments(&mut tested), [(5, 42 * 16_384)]);
    // With the first DATA the connection's window is raised as far as can be.
    tested.feed(&data(1, b"x", 0));
    assert_eq!(increments(&mut tested), [(0, (1 << 31) - 1 - 65_534)]);
}

#[test]
fn who_takes_nothing_gets_no_more() {
    let settings = H2Settings {
        receive_bytes_max: 3 * 16_384,
        ..H2Settings::default()
    };
    let mut tested = Tested::server_with(settings);
    tested.request(1, &POST, END_HEADERS);
    let announced: u32 = increments(&mut tested).iter().map(|(_, bytes)| bytes).sum();
    assert!(announced <= 2 * 16_384, "{announced}");
    let mut left = 16_384 + announced as usize;
    let stream = tested.connection.streams().next().unwrap();
    while left > 0 {
        let bytes = left.min(10_000);
        feed_untaken(&mut tested, &data(1, &vec![0; bytes], 0));
        left -= bytes;
    }
    assert!(
        increments(&mut tested)
            .iter()
            .all(|(stream, _)| *stream == 0)
    );
    let beyond = feed_untaken(&mut tested, &data(1, b"x", 0));
    assert!(
        matches!(beyond, Some(Event::StreamError { .. })),
        "{beyond:?}"
    );
    assert_eq!(tested.ends(), ["RST 1 3"]);
    tested.connection.finish(stream, ErrorCode::CANCEL);
    // Who takes them gets as many again.
    tested.request(3, &POST, END_HEADERS);
    tested.written();
    let stream = tested.connection.streams().next().unwrap();
    feed_untaken(&mut tested, &data(3, &[0; 16_384], 0));
    feed_untaken(&mut tested, &data(3, &[0; 8_000], 0));
    assert_eq!(increments(&mut tested), []);
    tested.connection.give_back(stream, 16_384);
    tested.connection.give_back(stream, 8_000);
    assert_eq!(increments(&mut tested), [(3, 16_384 + 8_000)]);
}

#[test]
fn before_our_settings_are_known_the_connection_limits_all() {
    let mut tested = Tested::fresh(crate::Role::Server, H2Settings::default());
    tested.feed(crate::PREFACE);
    tested.feed(&frame(4, 0, 0, &[]));
    tested.written();
    for stream in [1, 3, 5] {
        tested.request(stream, &POST, END_HEADERS);
    }
    // A client that does not know our windows may use 65,535 bytes in all.
    for stream in [1, 3] {
        feed_untaken(&mut tested, &data(stream, &[0; 16_384], 0));
        feed_untaken(&mut tested, &data(stream, &[0; 16_383], 0));
    }
    assert!(
        increments(&mut tested)
            .iter()
            .all(|(stream, _)| *stream != 0)
    );
    let beyond = feed_untaken(&mut tested, &data(5, &[0; 10], 0));
    assert!(matches!(beyond, Some(Event::Error(_))), "{beyond:?}");
    assert_eq!(tested.ends(), ["GOAWAY 3"]);
}

#[test]
fn padding_and_dropped_data_are_given_back() {
    let mut tested = Tested::server();
    tested.request(1, &POST, END_HEADERS);
    tested.written();
    let padded = [&[200][..], &[0; 200]].concat();
    for _ in 0..20_000 {
        tested.feed(&data(1, &padded, PADDED));
        tested.written();
    }
    assert_eq!(tested.connection.error(), None);
    let stream = tested.connection.streams().next().unwrap();
    tested.connection.finish(stream, ErrorCode::CANCEL);
    for _ in 0..200 {
        tested.feed(&data(1, &[0; 16_384], 0));
        tested.written();
    }
    assert_eq!(tested.connection.error(), None);
}
