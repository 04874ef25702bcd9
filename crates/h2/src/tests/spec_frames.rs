//! Rules of RFC 9113 about frames and the connection, by the numbers of h2spec: what a server must
//! do with each.

use super::peer::*;
use crate::{ErrorCode, Event, H2Error, H2Settings, PREFACE, Role};

/// A name, frames, and the resets and GOAWAY that we write for them.
type Row<'r> = (&'r str, Vec<Vec<u8>>, &'r [&'r str]);

/// Feeds the frames of each row to a server.
pub(super) fn check(rows: &[Row<'_>]) {
    for (name, input, expected) in rows {
        let mut tested = Tested::server();
        for bytes in input {
            tested.feed(bytes);
        }
        assert_eq!(tested.ends(), *expected, "{name}: {:?}", tested.events);
        let ended = expected.iter().any(|end| end.starts_with("GOAWAY"));
        assert_eq!(tested.connection.error().is_some(), ended, "{name}");
        if !ended {
            // The connection is of use still, its table too.
            tested.request(101, &GET, WHOLE);
            assert_eq!(tested.requests.last().unwrap(), "GET /|host: a.b", "{name}");
        }
    }
}

fn get() -> Vec<u8> {
    block(&GET)
}

#[test]
fn h2spec_3_5_the_preface() {
    let mut tested = Tested::fresh(Role::Server, H2Settings::default());
    for byte in PREFACE {
        tested.feed(&[*byte]);
    }
    tested.feed(&frame(4, 0, 0, &[]));
    assert_eq!(tested.events, [Event::Settings]);
    for wrong in [
        &b"PRI * HTTP/2.0\r\n\r\nXX"[..],
        b"GET / HTTP/1.1\r\n",
        b"\x16\x03\x01",
    ] {
        let mut tested = Tested::fresh(Role::Server, H2Settings::default());
        tested.feed(wrong);
        assert_eq!(tested.events, [Event::Error(H2Error::PrefaceInvalid)]);
    }
    for first in [
        frame(6, 0, 0, &[0; 8]),
        frame(4, ACK, 0, &[]),
        headers(1, &get(), WHOLE),
    ] {
        let mut tested = Tested::fresh(Role::Server, H2Settings::default());
        tested.feed(PREFACE);
        tested.feed(&first);
        assert_eq!(tested.events, [Event::Error(H2Error::SettingsMissing)]);
    }
}

#[test]
fn h2spec_4_1_and_5_5_unknown_frames_and_flags_are_ignored() {
    let mut reserved = frame(6, 0, 0, &[7; 8]);
    reserved[5] |= 0x80;
    check(&[
        ("4.1/1 unknown type", vec![frame(0x77, 0, 0, b"any")], &[]),
        (
            "4.1/2 undefined flags",
            vec![frame(6, 0xfe, 0, &[7; 8])],
            &[],
        ),
        ("4.1/3 reserved bit", vec![reserved], &[]),
        (
            "5.5/1 extension on a stream",
            vec![frame(0x77, 0, 9, b"any")],
            &[],
        ),
        (
            "5.5/2 extension within a header block",
            vec![headers(1, &get(), 0), frame(0x77, 0, 1, b"any")],
            &["GOAWAY 1"],
        ),
    ]);
}

#[test]
fn h2spec_4_2_the_size_of_frames() {
    let body = vec![0; 16_384];
    let long = vec![0; 16_385];
    check(&[
        (
            "4.2/1 the largest",
            vec![
                headers(1, &block(&POST), END_HEADERS),
                data(1, &body, END_STREAM),
            ],
            &[],
        ),
        (
            "4.2/2 DATA too large",
            vec![
                headers(1, &block(&POST), END_HEADERS),
                data(1, &long, END_STREAM),
            ],
            &["GOAWAY 6"],
        ),
        (
            "4.2/3 HEADERS too large",
            vec![headers(1, &long, WHOLE)],
            &["GOAWAY 6"],
        ),
        (
            "unknown too large",
            vec![frame(0x77, 0, 0, &long)],
            &["GOAWAY 6"],
        ),
    ]);
}

#[test]
fn h2spec_4_3_header_blocks() {
    check(&[
        (
            "4.3/1 invalid block",
            vec![headers(1, b"\x40", WHOLE)],
            &["GOAWAY 9"],
        ),
        (
            "4.3/2 PRIORITY within",
            vec![
                headers(1, &get(), END_STREAM),
                frame(2, 0, 1, &[0, 0, 0, 3, 1]),
            ],
            &["GOAWAY 1"],
        ),
        (
            "4.3/3 HEADERS of another stream within",
            vec![headers(1, &get(), END_STREAM), headers(3, &get(), WHOLE)],
            &["GOAWAY 1"],
        ),
    ]);
}

#[test]
fn h2spec_5_3_1_dependencies_on_oneself() {
    let own = [&[0, 0, 0, 1, 16][..], &get()].concat();
    let other = [&[0x80, 0, 0, 9, 16][..], &get()].concat();
    check(&[
        (
            "5.3.1/1",
            vec![headers(1, &own, WHOLE | PRIORITY)],
            &["GOAWAY 1"],
        ),
        (
            "5.3.1/2",
            vec![frame(2, 0, 1, &[0, 0, 0, 1, 16])],
            &["GOAWAY 1"],
        ),
        (
            "another is fine",
            vec![headers(1, &other, WHOLE | PRIORITY)],
            &[],
        ),
        (
            "too short",
            vec![headers(1, &[0; 3], WHOLE | PRIORITY)],
            &["GOAWAY 6"],
        ),
    ]);
}

#[test]
fn h2spec_6_1_data() {
    let post = headers(1, &block(&POST), END_HEADERS);
    check(&[
        ("6.1/1 stream 0", vec![data(0, b"x", 0)], &["GOAWAY 1"]),
        ("6.1/2 no stream", vec![data(1, b"x", 0)], &["GOAWAY 1"]),
        (
            "6.1/3 padding",
            vec![post.clone(), data(1, b"\x05abc", PADDED)],
            &["GOAWAY 1"],
        ),
        (
            "no length of padding",
            vec![post.clone(), data(1, b"", PADDED)],
            &["GOAWAY 6"],
        ),
        (
            "all padding",
            vec![post, data(1, b"\x03\0\0\0", PADDED | END_STREAM)],
            &[],
        ),
    ]);
}

#[test]
fn h2spec_6_2_headers() {
    let padded = [&[2][..], &get(), &[0; 2]].concat();
    check(&[
        (
            "6.2/1 PRIORITY before the end",
            vec![headers(1, &get(), END_STREAM), frame(2, 0, 3, &[0; 5])],
            &["GOAWAY 1"],
        ),
        (
            "6.2/2 another stream before the end",
            vec![headers(1, &get(), END_STREAM), headers(3, &get(), WHOLE)],
            &["GOAWAY 1"],
        ),
        (
            "6.2/3 stream 0",
            vec![headers(0, &get(), WHOLE)],
            &["GOAWAY 1"],
        ),
        (
            "6.2/4 padding",
            vec![headers(1, b"\xff\x82", WHOLE | PADDED)],
            &["GOAWAY 1"],
        ),
        ("padded", vec![headers(1, &padded, WHOLE | PADDED)], &[]),
    ]);
}

#[test]
fn h2spec_6_3_priority() {
    check(&[
        (
            "6.3/1 stream 0",
            vec![frame(2, 0, 0, &[0; 5])],
            &["GOAWAY 1"],
        ),
        ("6.3/2 length", vec![frame(2, 0, 1, &[0; 4])], &["GOAWAY 6"]),
        ("idle", vec![frame(2, 0, 9, &[0, 0, 0, 0, 16])], &[]),
    ]);
}

#[test]
fn h2spec_6_4_rst_stream() {
    check(&[
        ("6.4/1 stream 0", vec![rst(0, 8)], &["GOAWAY 1"]),
        ("6.4/2 idle", vec![rst(1, 8)], &["GOAWAY 1"]),
        (
            "6.4/3 length",
            vec![
                headers(1, &block(&POST), END_HEADERS),
                frame(3, 0, 1, &[0; 3]),
            ],
            &["GOAWAY 6"],
        ),
    ]);
}

#[test]
fn h2spec_6_5_settings() {
    check(&[
        (
            "6.5/1 ACK with payload",
            vec![frame(4, ACK, 0, &[0; 6])],
            &["GOAWAY 6"],
        ),
        (
            "6.5/2 on a stream",
            vec![frame(4, 0, 1, &[])],
            &["GOAWAY 1"],
        ),
        ("6.5/3 length", vec![frame(4, 0, 0, &[0; 3])], &["GOAWAY 6"]),
        ("6.5.2/1 push", vec![settings(&[(2, 2)])], &["GOAWAY 1"]),
        (
            "6.5.2/2 window",
            vec![settings(&[(4, 1 << 31)])],
            &["GOAWAY 3"],
        ),
        (
            "6.5.2/3 frame too small",
            vec![settings(&[(5, 16_383)])],
            &["GOAWAY 1"],
        ),
        (
            "6.5.2/4 frame too large",
            vec![settings(&[(5, 1 << 24)])],
            &["GOAWAY 1"],
        ),
        ("6.5.2/5 unknown", vec![settings(&[(0xff, 1)])], &[]),
        (
            "ACK that nobody waits for",
            vec![frame(4, ACK, 0, &[])],
            &[],
        ),
    ]);
    // 6.5.3/2: each is acknowledged.
    let mut tested = Tested::server();
    tested.feed(&settings(&[(3, 100)]));
    tested.feed(&settings(&[]));
    let acks = tested.written();
    let is_ack = |frame: &Written| (frame.kind, frame.flags, frame.stream) == (4, ACK, 0);
    assert!(acks.len() == 2 && acks.iter().all(is_ack), "{acks:?}");
}

#[test]
fn h2spec_6_7_ping() {
    check(&[
        (
            "6.7/2 an answer nobody waits for",
            vec![frame(6, ACK, 0, &[1; 8])],
            &[],
        ),
        (
            "6.7/3 on a stream",
            vec![frame(6, 0, 1, &[1; 8])],
            &["GOAWAY 1"],
        ),
        ("6.7/4 length", vec![frame(6, 0, 0, &[1; 6])], &["GOAWAY 6"]),
    ]);
    let mut tested = Tested::server();
    tested.feed(&frame(6, 0, 0, b"12345678"));
    let answer = tested.written();
    assert_eq!((answer[0].kind, answer[0].flags), (6, ACK));
    assert_eq!(answer[0].payload, b"12345678");
    // 6.7/2: what we asked ourselves is reported.
    tested.feed(&frame(6, ACK, 0, b"abcdefgh"));
    let payload = *b"abcdefgh";
    assert_eq!(tested.events, [Event::PingReply { payload }]);
}

#[test]
fn h2spec_6_8_and_7_go_away_and_codes() {
    check(&[
        (
            "6.8/1 on a stream",
            vec![frame(7, 0, 1, &[0; 8])],
            &["GOAWAY 1"],
        ),
        ("length", vec![frame(7, 0, 0, &[0; 4])], &["GOAWAY 6"]),
        (
            "7/1 unknown code, debug data",
            vec![frame(7, 0, 0, b"\0\0\0\0\0\0\0\xffwhy, oh why")],
            &[],
        ),
        (
            "7/2 unknown code",
            vec![headers(1, &block(&POST), END_HEADERS), rst(1, 0xff)],
            &[],
        ),
    ]);
    let mut tested = Tested::server();
    tested.feed(&frame(7, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 11]));
    let code = ErrorCode::ENHANCE_YOUR_CALM;
    let expected = Event::GoAway {
        last_stream: 3,
        code,
    };
    assert_eq!(tested.events, [expected]);
    assert_eq!(tested.connection.peer_go_away(), Some((3, code)));
}

#[test]
fn h2spec_6_10_continuation() {
    let whole = get();
    let (first, rest) = whole.split_at(9);
    let (second, third) = rest.split_at(4);
    let cut = headers(1, first, END_STREAM);
    check(&[
        (
            "6.10/1 several",
            vec![
                cut.clone(),
                frame(9, 0, 1, second),
                frame(9, END_HEADERS, 1, third),
            ],
            &[],
        ),
        (
            "6.10/2 another frame after one",
            vec![cut.clone(), frame(9, 0, 1, second), data(1, b"x", 0)],
            &["GOAWAY 1"],
        ),
        (
            "6.10/3 stream 0",
            vec![cut.clone(), frame(9, 4, 0, rest)],
            &["GOAWAY 1"],
        ),
        (
            "6.10/4 after END_HEADERS",
            vec![headers(1, &whole, WHOLE), frame(9, 4, 1, rest)],
            &["GOAWAY 1"],
        ),
        (
            "6.10/5 after the last one",
            vec![cut.clone(), frame(9, 4, 1, rest), frame(9, 4, 1, rest)],
            &["GOAWAY 1"],
        ),
        (
            "6.10/6 after DATA",
            vec![
                headers(1, &block(&POST), END_HEADERS),
                data(1, b"x", 0),
                frame(9, 4, 1, rest),
            ],
            &["GOAWAY 1"],
        ),
        (
            "of another stream",
            vec![cut, frame(9, 4, 3, rest)],
            &["GOAWAY 1"],
        ),
    ]);
}

#[test]
fn h2spec_8_2_push_promise() {
    let promise = [&[0, 0, 0, 2][..], &get()].concat();
    check(&[(
        "8.2/1",
        vec![frame(5, END_HEADERS, 1, &promise)],
        &["GOAWAY 1"],
    )]);
}

#[test]
fn h2spec_hpack_sections() {
    let with = |bytes: &[u8]| vec![headers(1, &[&get(), bytes].concat(), WHOLE)];
    let before = |bytes: &[u8]| vec![headers(1, &[bytes, &get()].concat(), WHOLE)];
    check(&[
        ("hpack/2.3.3/1 no such index", with(&[0xc6]), &["GOAWAY 9"]),
        (
            "hpack/2.3.3/2 no such name",
            with(&[0x7f, 0, 1, b'a']),
            &["GOAWAY 9"],
        ),
        (
            "hpack/4.2/1 update at the end",
            with(&[0x20]),
            &["GOAWAY 9"],
        ),
        (
            "hpack/5.2/1 padding over 7 bits",
            with(&[0, 1, b'a', 0x82, 0x1f, 0xff]),
            &["GOAWAY 9"],
        ),
        (
            "hpack/5.2/2 padding of zeros",
            with(&[0, 1, b'a', 0x81, 0x18]),
            &["GOAWAY 9"],
        ),
        (
            "hpack/5.2/3 end of string",
            with(&[0, 0x85, 0xf2, 0xff, 0xff, 0xff, 0xff, 1, b'a']),
            &["GOAWAY 9"],
        ),
        ("hpack/6.1/1 index 0", with(&[0x80]), &["GOAWAY 9"]),
        (
            "hpack/6.3/1 above the limit",
            before(&[0x3f, 0xe2, 0x1f]),
            &["GOAWAY 9"],
        ),
        (
            "updates at the beginning",
            before(&[0x20, 0x3f, 0xe1, 0x1f]),
            &[],
        ),
    ]);
}
