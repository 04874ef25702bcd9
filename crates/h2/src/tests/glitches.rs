//! Glitches: what HAProxy 3.2 counts for `fc_glitches`, event by event.

use super::peer::*;

/// The glitches that an input leads to.
fn glitches(input: &[Vec<u8>]) -> u32 {
    let mut tested = Tested::server();
    tested.feed(&input.concat());
    assert_eq!(tested.connection.error(), None);
    tested.connection.counters().glitches
}

fn continued(count: usize) -> Vec<Vec<u8>> {
    let mut input = vec![headers(1, &block(&GET), END_STREAM)];
    input.extend((1..count).map(|_| frame(9, 0, 1, b"")));
    input.push(frame(9, END_HEADERS, 1, b""));
    input
}

#[test]
fn floods_that_haproxy_does_not_count() {
    let post = headers(1, &block(&POST), END_HEADERS);
    for (name, input) in [
        ("PING", vec![frame(6, 0, 0, &[1; 8]); 500]),
        ("SETTINGS", vec![settings(&[(4, 65_535)]); 500]),
        (
            "table size",
            vec![[settings(&[(1, 0)]), settings(&[(1, 4096)])].concat(); 100],
        ),
        ("PRIORITY", vec![frame(2, 0, 3, &[0, 0, 0, 0, 16]); 500]),
        ("WINDOW_UPDATE", vec![window_update(0, 1); 500]),
        (
            "empty DATA",
            [vec![post], vec![data(1, b"", 0); 500]].concat(),
        ),
    ] {
        assert_eq!(glitches(&input), 0, "{name}");
    }
}

#[test]
fn what_haproxy_counts() {
    let get = headers(1, &block(&GET), WHOLE);
    let post = headers(1, &block(&POST), END_HEADERS);
    let rapid: Vec<Vec<u8>> = (0..20)
        .flat_map(|at| [headers(2 * at + 1, &block(&GET), WHOLE), rst(2 * at + 1, 8)])
        .collect();
    for (name, input, expected) in [
        ("smaller windows", vec![settings(&[(4, 0)]); 3], 1),
        (
            "alternating windows",
            vec![[settings(&[(4, 9)]), settings(&[(4, 10)])].concat(); 50],
            50,
        ),
        ("a smaller window", vec![settings(&[(4, 65_534)])], 1),
        (
            "and back in one frame",
            vec![settings(&[(4, 5), (4, 65_536)])],
            1,
        ),
        ("twice in one frame", vec![settings(&[(4, 5), (4, 4)])], 2),
        ("a reset", vec![post.clone(), rst(1, 8)], 1),
        ("a reset without error", vec![post.clone(), rst(1, 0)], 1),
        ("a reset twice", vec![post.clone(), rst(1, 8), rst(1, 8)], 1),
        ("rapid reset", rapid, 20),
        (
            "DATA after a reset",
            vec![post.clone(), rst(1, 8), data(1, b"x", 1)],
            2,
        ),
        ("DATA after the end", vec![get, data(1, b"x", 1)], 1),
        ("an increment of zero", vec![post, window_update(1, 0)], 1),
        ("4 CONTINUATION", continued(4), 0),
        ("5 CONTINUATION", continued(5), 1),
        ("16 CONTINUATION", continued(16), 1),
        ("17 CONTINUATION", continued(17), 2),
        ("33 CONTINUATION", continued(33), 3),
        ("48 CONTINUATION", continued(48), 3),
        ("49 CONTINUATION", continued(49), 4),
    ] {
        assert_eq!(glitches(&input), expected, "{name}");
    }
}

#[test]
fn a_client_that_changes_its_mind_is_not_odd() {
    let mut tested = Tested::server();
    tested.feed(&headers(1, &block(&POST), END_HEADERS));
    tested.feed(&rst(1, 8));
    assert_eq!(tested.connection.counters().glitches, 0);
}

/// Event by event as HAProxy 3.2 counts them in `show stat`; it counts the first SETTINGS twice.
#[test]
fn what_is_counted_for_statistics() {
    let mut tested = Tested::server();
    let mut was = tested.connection.counters();
    let mut counted = |bytes: &[u8]| {
        tested.feed(bytes);
        let now = tested.connection.counters();
        let difference = [
            now.headers - was.headers,
            now.data - was.data,
            now.settings - was.settings,
            now.resets - was.resets,
            now.go_aways - was.go_aways,
            now.connection_errors - was.connection_errors,
            now.stream_errors - was.stream_errors,
            now.resets_sent - was.resets_sent,
            now.go_aways_sent - was.go_aways_sent,
            now.bad_heads - was.bad_heads,
        ];
        was = now;
        difference
    };
    let (get, post) = (block(&GET), block(&POST));
    let bad = block(&[(":method", "GET"), (":path", "/"), ("Bad", "x")]);
    for (name, bytes, expected) in [
        (
            "a request",
            headers(1, &get, WHOLE),
            [1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        (
            "an upload",
            headers(3, &post, END_HEADERS),
            [1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        (
            "its data",
            data(3, b"xx", 0),
            [0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
        ("its reset", rst(3, 8), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
        ("settings", settings(&[]), [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]),
        ("a ping", frame(6, 0, 0, &[1; 8]), [0; 10]),
        (
            "a bad head",
            headers(5, &bad, WHOLE),
            [1, 0, 0, 0, 0, 0, 1, 1, 0, 1],
        ),
        (
            "late data",
            data(1, b"xx", 0),
            [0, 0, 0, 0, 0, 0, 0, 1, 0, 0],
        ),
        (
            "a goodbye",
            frame(7, 0, 0, &[0; 8]),
            [0, 0, 0, 0, 1, 0, 0, 0, 0, 0],
        ),
        (
            "data of no stream",
            data(0, b"xx", 0),
            [0, 0, 0, 0, 0, 1, 0, 0, 1, 0],
        ),
    ] {
        assert_eq!(counted(&bytes), expected, "{name}");
    }
}
