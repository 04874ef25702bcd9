//! Hostile clients: the work and the memory that each flood of frames costs are bounded.

use super::peer::*;
use crate::{
    ErrorCode, Event, H2Connection, H2Error, H2Settings, HeadError, IncomingHeads, PREFACE, Role,
};

/// Steps that the connection takes for an input while nobody reads what it owes, and what became of
/// it.
struct Unread {
    consumed: usize,
    steps: usize,
    last: Event,
}

/// Feeds without ever writing.
fn feed_unread(connection: &mut H2Connection, input: &[u8]) -> Unread {
    let mut heads = IncomingHeads::default();
    let mut unread = Unread {
        consumed: 0,
        steps: 0,
        last: Event::Incomplete,
    };
    loop {
        let step = connection.receive(&input[unread.consumed..], &mut heads);
        unread.consumed += step.consumed;
        unread.steps += 1;
        unread.last = step.event;
        match unread.last {
            Event::Incomplete | Event::OutputFull | Event::Error(_) => return unread,
            _ => {}
        }
    }
}

#[test]
fn a_peer_that_does_not_read_is_not_read() {
    let refused = |stream: u32| headers(stream, &block(&[("x", "y")]), WHOLE);
    for (name, input) in [
        ("PING", frame(6, 0, 0, &[1; 8]).repeat(10_000)),
        ("SETTINGS", settings(&[(4, 65_535)]).repeat(10_000)),
        (
            "refused heads",
            (0..10_000).flat_map(|at| refused(2 * at + 1)).collect(),
        ),
    ] {
        let mut tested = Tested::server();
        let unread = feed_unread(&mut tested.connection, &input);
        assert_eq!(unread.last, Event::OutputFull, "{name}");
        assert!(unread.consumed < 10_000, "{name}");
        let again = feed_unread(&mut tested.connection, &input[unread.consumed..]);
        assert_eq!((again.consumed, again.steps), (0, 1), "{name}");
        // It owes little, and goes on when that is written.
        tested.connection.write_owed(&mut tested.out);
        assert!(tested.out.len() < 1_000, "{name}: {}", tested.out.len());
        let more = feed_unread(&mut tested.connection, &input[unread.consumed..]);
        assert!(more.consumed > 0, "{name}");
    }
}

#[test]
fn frames_that_say_nothing_report_nothing() {
    let mut tested = Tested::server();
    tested.request(1, &POST, END_HEADERS);
    for (name, input) in [
        ("PRIORITY", frame(2, 0, 3, &[0, 0, 0, 0, 16]).repeat(20_000)),
        ("WINDOW_UPDATE", window_update(0, 1).repeat(20_000)),
        (
            "WINDOW_UPDATE of a stream",
            window_update(1, 1).repeat(20_000),
        ),
        ("empty DATA", data(1, b"", 0).repeat(20_000)),
        ("padding", data(1, &[3, 0, 0, 0], PADDED).repeat(20_000)),
        ("unknown", frame(0x77, 0, 0, b"any").repeat(20_000)),
        ("answers to no PING", Vec::new()),
    ] {
        let unread = feed_unread(&mut tested.connection, &input);
        assert_eq!(unread.consumed, input.len(), "{name}");
        // One step for all: nothing above learns of it.
        assert_eq!(
            (unread.steps, unread.last),
            (1, Event::Incomplete),
            "{name}"
        );
        tested.written();
    }
}

#[test]
fn rapid_reset_gets_no_more_than_its_streams() {
    let mut tested = Tested::server();
    let (mut served, mut refused) = (0, 0);
    for at in 0..5_000_u32 {
        let stream = 2 * at + 1;
        tested.feed(&[headers(stream, &block(&GET), WHOLE), rst(stream, 8)].concat());
        for event in std::mem::take(&mut tested.events) {
            match event {
                Event::Request { .. } => served += 1,
                Event::StreamError { error, .. } => {
                    assert_eq!(error, H2Error::TooManyStreams);
                    refused += 1;
                }
                _ => {}
            }
        }
        tested.written();
    }
    // Their exchanges have not ended: no more than 100 are at work.
    assert_eq!((served, refused), (100, 4_900));
    assert_eq!(tested.connection.stream_count(), 100);
    assert_eq!(tested.connection.counters().glitches, 5_000);
    assert_eq!(tested.connection.counters().resets, 5_000);
}

#[test]
fn header_blocks_end_somewhere() {
    // Empty CONTINUATION frames without end.
    let mut input = headers(1, &block(&GET), END_STREAM);
    input.extend(frame(9, 0, 1, b"").repeat(100_000));
    let mut tested = Tested::server();
    let unread = feed_unread(&mut tested.connection, &input);
    assert_eq!(unread.last, Event::Error(H2Error::ContinuationFlood));
    assert_eq!(tested.ends(), ["GOAWAY 11"]);
    // Full ones.
    let mut input = headers(1, &block(&GET), END_STREAM);
    input.extend(frame(9, 0, 1, &block(&[("a", "b")]).repeat(100)).repeat(1_000));
    let mut tested = Tested::server();
    let unread = feed_unread(&mut tested.connection, &input);
    assert_eq!(unread.last, Event::Error(H2Error::HeaderBlockTooLong));
    assert_eq!(tested.ends(), ["GOAWAY 2"]);
}

/// A head with an entry of nearly the whole table, and its index so many times.
fn bomb(name: &str, value: &str, count: usize) -> Vec<u8> {
    let mut bomb = block(if name == "x" { &GET } else { &POST });
    bomb.push(0x40);
    bomb.extend_from_slice(&block(&[(name, value)])[1..]);
    bomb.resize(bomb.len() + count, 0xbe);
    bomb
}

#[test]
fn an_hpack_bomb_ends_its_connection() {
    // A block of 16 kB says 48 MB.
    let bomb = bomb("x", &"v".repeat(4_000), 12_000);
    let mut tested = Tested::server();
    let unread = feed_unread(&mut tested.connection, &headers(1, &bomb, WHOLE));
    assert_eq!(unread.last, Event::Error(H2Error::HeaderBlockTooLong));
    assert_eq!(tested.ends(), ["GOAWAY 2"]);
}

#[test]
fn a_list_that_is_too_long_ends_its_stream() {
    let bomb = bomb("x", &"v".repeat(4_000), 12);
    let mut tested = Tested::server();
    for at in 0..15 {
        tested.feed(&headers(2 * at + 1, &bomb, WHOLE));
        assert_eq!(tested.ends(), [format!("RST {} 1", 2 * at + 1)]);
    }
    let mut next = block(&GET);
    next.push(0xbe);
    tested.feed(&headers(31, &next, WHOLE));
    assert_eq!(tested.requests.len(), 1, "the table is right");
    assert_eq!(
        tested.requests[0].len(),
        "GET /|host: a.b|x: ".len() + 4_000
    );
}

#[test]
fn fields_that_are_dropped_count_too() {
    // A long list of lengths, or a long host, in the table: an index of one byte makes us look at it.
    let length = "5,".repeat(1_900) + "5";
    let host = "a".repeat(3_900);
    for (name, value) in [("content-length", &length), ("host", &host)] {
        let bomb = bomb(name, value, 12);
        let mut tested = Tested::server();
        tested.feed(&headers(1, &bomb, END_HEADERS));
        let Some(Event::StreamError { error, .. }) = tested.events.first() else {
            panic!("{:?}", tested.events);
        };
        assert_eq!(*error, H2Error::Head(HeadError::TooLong), "{name}");
    }
}

#[test]
fn settings_of_many_parameters_are_applied_once() {
    let mut tested = Tested::server();
    for at in 0..100 {
        tested.request(2 * at + 1, &GET, WHOLE);
    }
    let list: Vec<(u16, u32)> = (0..2_700).map(|at| (4, 65_535 - at % 2)).collect();
    for _ in 0..50 {
        tested.feed(&settings(&list));
    }
    // Each reduction is a glitch, as in HAProxy; the windows change once for each frame.
    assert_eq!(tested.connection.counters().glitches, 50 * 1_350);
    assert_eq!(tested.connection.error(), None);
}

#[test]
fn what_is_kept_of_former_streams_is_little() {
    let mut tested = Tested::server_with(H2Settings {
        stream_count_max: 0,
        ..H2Settings::default()
    });
    for at in 0..20_000_u32 {
        tested.feed(&headers(2 * at + 1, &block(&POST), END_HEADERS));
        let stream = tested.connection.streams().next().unwrap();
        tested.connection.finish(stream, ErrorCode::CANCEL);
        tested.events.clear();
        tested.requests.clear();
        tested.written();
    }
    assert_eq!(tested.connection.stream_count(), 0);
    assert!(tested.connection.release().is_some(), "of one at a time");
    // Late frames of a stream that nobody remembers end that stream once more, and nothing else.
    tested.feed(&data(1, b"late", 0));
    assert_eq!(tested.ends(), ["RST 1 5"]);
}

#[test]
fn memory_goes_from_an_idle_connection_to_a_busy_one() {
    let settings = H2Settings {
        stream_count_max: 0,
        ..H2Settings::default()
    };
    let (mut one, mut other) = (Tested::server_with(settings), Tested::server_with(settings));
    let open = |tested: &mut Tested, count: u32, begin: u32| {
        for at in begin..begin + count {
            tested.feed(&headers(2 * at + 1, &block(&POST), END_HEADERS));
        }
        assert!(tested.connection.release().is_none(), "it is busy");
        let ids: Vec<_> = tested.connection.streams().collect();
        assert_eq!(ids.len(), count as usize);
        for id in ids {
            tested.connection.finish(id, ErrorCode::CANCEL);
        }
    };
    assert!(one.connection.is_released() && one.connection.release().is_none());
    open(&mut one, 20, 0);
    let memory = one.connection.release().unwrap();
    assert!(one.connection.is_released());
    other.connection.resume(memory);
    assert!(!other.connection.is_released());
    open(&mut other, 30, 0);
    // It uses its own.
    open(&mut one, 3, 20);
    let memory = other.connection.release().unwrap();
    one.connection.resume(memory);
    open(&mut one, 5, 23);
    // What many streams needed at once is not kept.
    open(&mut other, 200, 30);
    assert!(other.connection.release().is_none());
    assert!(other.connection.is_released());
}

#[test]
fn one_turn_takes_only_so_many_frames() {
    let post: Vec<u8> = (0..10)
        .flat_map(|at| headers(2 * at + 1, &block(&POST), END_HEADERS))
        .collect();
    let resets: Vec<u8> = (0..10).flat_map(|at| rst(2 * at + 1, 8)).collect();
    let input = [post, resets].concat();
    for (frame_count_max, reset_count_max, expected) in [(8, 0, 3), (0, 1, 11), (0, 4, 3)] {
        let mut out = Vec::new();
        let settings = H2Settings {
            frame_count_max,
            reset_count_max,
            ..H2Settings::default()
        };
        let mut connection = H2Connection::new(Role::Server, settings, &mut out);
        let input = [PREFACE.as_slice(), &frame(4, 0, 0, &[]), &input].concat();
        let mut heads = IncomingHeads::default();
        let (mut at, mut turns) = (0, 1);
        loop {
            let step = connection.receive(&input[at..], &mut heads);
            at += step.consumed;
            match step.event {
                Event::Incomplete => break,
                Event::TurnOver => {
                    let again = connection.receive(&input[at..], &mut heads);
                    assert_eq!((again.consumed, again.event), (0, Event::TurnOver));
                    connection.begin_turn();
                    turns += 1;
                }
                _ => {}
            }
        }
        assert_eq!(at, input.len());
        assert_eq!(connection.counters().resets, 10);
        assert_eq!(turns, expected, "{frame_count_max} {reset_count_max}");
    }
}

#[test]
fn heads_that_are_too_long_end_the_connection() {
    let mut tested = Tested::server();
    let value = "v".repeat(4_000);
    let fields: Vec<(&str, &str)> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| (*name, value.as_str()))
        .collect();
    let long: Vec<(&str, &str)> = GET.iter().copied().chain(fields).collect();
    for at in 0..15 {
        tested.request(2 * at + 1, &long, WHOLE);
        let stream = tested.connection.streams().next();
        assert_eq!(stream, None, "it was refused at its head");
    }
    assert_eq!(tested.connection.error(), None);
    tested.request(31, &long, WHOLE);
    let error = tested.connection.error();
    assert_eq!(error, Some(H2Error::HeadFlood));
}

#[test]
fn an_idle_connection_is_small() {
    assert!(size_of::<H2Connection>() <= 1024);
    assert!(size_of::<crate::stream::Stream>() <= 192);
}
