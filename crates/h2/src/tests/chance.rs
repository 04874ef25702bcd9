//! Properties that must hold for any input, and two connections that talk in any pieces.

use std::collections::BTreeMap;

use ballast_message::HeadLimits;
use proptest::collection::vec;
use proptest::prelude::*;

use super::appendix_c::List;
use super::peer::*;
use crate::hpack::{FieldIndexing, HpackDecoder, HpackEncoder};
use crate::{ErrorCode, Event, H2Connection, H2Settings, IncomingHeads, PREFACE, Role, StreamId};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Frames that are valid, nearly valid, or anything.
fn frame_bytes() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop::sample::select(vec![0_u32, 1, 1, 1, 3, 3, 5, 2, 7]);
    let flags = prop::sample::select(vec![0_u8, 1, 4, 5, 5, 8, 0x25, 0xff]);
    let payload = prop_oneof![
        4 => Just(block(&GET)),
        2 => Just(block(&POST)),
        1 => Just(block(&[("x-t", "1")])),
        1 => Just(vec![0, 0, 0, 1]),
        1 => Just(vec![0, 0, 0, 0]),
        1 => Just(vec![0; 8]),
        1 => Just(vec![0, 4, 0, 0, 0, 9]),
        2 => vec![any::<u8>(), any::<u8>()].prop_map(|bytes| bytes.repeat(3)),
        1 => vec(any::<u8>(), 0..40),
    ];
    prop_oneof![
        8 => (0_u8..11, flags, stream, payload)
            .prop_map(|(kind, flags, stream, payload)| frame(kind, flags, stream, &payload)),
        1 => vec(any::<u8>(), 0..12),
    ]
}

/// What a server reports of an input that comes `step` bytes at a time: DATA by its bytes, because
/// pieces differ.
fn reported(input: &[u8], step: usize) -> (Vec<String>, Vec<Written>) {
    let mut out = Vec::new();
    let mut connection = H2Connection::new(Role::Server, H2Settings::default(), &mut out);
    let mut heads = IncomingHeads::default();
    let mut said: Vec<String> = Vec::new();
    let mut body: BTreeMap<StreamId, Vec<u8>> = BTreeMap::new();
    let (mut at, mut end) = (0, 0);
    loop {
        let piece = &input[at..end];
        let received = connection.receive(piece, &mut heads);
        at += received.consumed;
        match received.event {
            Event::Incomplete => {
                assert!(end - at <= 8, "little is left to the caller: {}", end - at);
                if end == input.len() {
                    break;
                }
                end = (end + step).min(input.len());
            }
            Event::OutputFull => connection.write_owed(&mut out),
            Event::Error(error) => {
                said.push(format!("error {error}"));
                break;
            }
            Event::Data {
                stream,
                range,
                ends_stream,
            } => {
                connection.give_back(stream, range.len());
                body.entry(stream)
                    .or_default()
                    .extend_from_slice(&piece[range]);
                if ends_stream {
                    said.push(format!("end {stream}"));
                }
            }
            Event::Request { stream, head, .. } => {
                said.push(format!(
                    "{stream} {} {head:?}",
                    request_text(&heads.request)
                ));
            }
            Event::Trailers { stream } => {
                said.push(format!("{stream} {}", fields_text(&heads.trailers)));
            }
            event => said.push(format!("{event:?}")),
        }
        connection.write_owed(&mut out);
    }
    connection.write_owed(&mut out);
    // A body that is cut by an error is reported as far as it came, which differs.
    said.extend(
        body.iter()
            .map(|(stream, bytes)| format!("{stream}: {}", bytes.len())),
    );
    (said, frames(&out))
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn split_anywhere_is_the_same(frames in vec(frame_bytes(), 0..12), step in 1_usize..30) {
        let mut input = PREFACE.to_vec();
        input.extend(frame(4, 0, 0, &[]));
        input.extend(frames.concat());
        let (whole, written) = reported(&input, input.len());
        let (pieces, written_in_pieces) = reported(&input, step);
        prop_assert_eq!(&whole, &pieces);
        // The order of what is owed may differ; what is reset and why does not.
        let ends = |list: &[Written]| -> Vec<Written> {
            list.iter().filter(|frame| matches!(frame.kind, 3 | 7)).cloned().collect()
        };
        prop_assert_eq!(ends(&written), ends(&written_in_pieces));
    }

    #[test]
    fn any_bytes_are_judged(bytes in vec(any::<u8>(), 0..600)) {
        let mut tested = Tested::client();
        let get = request("GET", "http://a.b/", &[]);
        tested.connection.send_request(&get, None, true, &mut tested.out).unwrap();
        let mut at = 0;
        loop {
            let step = tested.connection.receive(&bytes[at..], &mut tested.heads);
            at += step.consumed;
            match step.event {
                Event::Incomplete | Event::Error(_) => break,
                Event::OutputFull => tested.connection.write_owed(&mut tested.out),
                _ => {}
            }
        }
        tested.written();
    }
}

/// Fields of a list: names and values that repeat now and then.
fn field_list() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>, FieldIndexing)>> {
    let name = prop_oneof![
        prop::sample::select(vec![
            ":method",
            ":path",
            "server",
            "date",
            "cookie",
            "x-a",
            "x-b",
            "content-type",
        ])
        .prop_map(|name| name.as_bytes().to_vec()),
        vec(any::<u8>(), 1..20),
    ];
    let value = prop_oneof![
        prop::sample::select(vec!["GET", "/", "", "one", "text/html"])
            .prop_map(|value| value.as_bytes().to_vec()),
        vec(any::<u8>(), 0..60),
        (1_usize..4000).prop_map(|len| vec![b'v'; len]),
    ];
    let indexing = prop::sample::select(vec![
        FieldIndexing::Incremental,
        FieldIndexing::Without,
        FieldIndexing::Never,
    ]);
    vec((name, value, indexing), 0..12)
}

proptest! {
    #![proptest_config(config(800))]

    #[test]
    fn what_is_encoded_is_decoded(
        lists in vec((field_list(), prop::option::of(0_usize..6000)), 1..10),
    ) {
        let mut encoder = HpackEncoder::new(4096);
        let mut decoder = HpackDecoder::new(8192);
        for (fields, limit) in lists {
            if let Some(limit) = limit {
                encoder.set_size_limit(limit);
            }
            let mut encoded = Vec::new();
            encoder.begin(&mut encoded);
            for (name, value, indexing) in &fields {
                encoder.encode_as(*indexing, name, value, &mut encoded);
            }
            let mut got = List::default();
            decoder.decode(&encoded, &mut got).unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let expected: Vec<_> =
                fields.iter().map(|(name, value, _)| (text(name), text(value))).collect();
            prop_assert_eq!(got.0, expected);
        }
    }

    #[test]
    fn any_block_is_judged(blocks in vec(vec(any::<u8>(), 0..200), 1..4)) {
        let mut decoder = HpackDecoder::new(4096);
        for bytes in blocks {
            let mut list = List::default();
            if decoder.decode(&bytes, &mut list).is_err() {
                break;
            }
        }
    }
}

// === two connections ===

/// One end: a connection, what it has to write, and the bodies it has to send and has received.
struct End {
    connection: H2Connection,
    heads: IncomingHeads,
    out: Vec<u8>,
    input: Vec<u8>,
    /// What is left to send on each stream.
    to_send: BTreeMap<StreamId, usize>,
    received: BTreeMap<StreamId, usize>,
    ended: Vec<StreamId>,
    /// Bytes received and not taken yet.
    untaken: BTreeMap<StreamId, usize>,
}

impl End {
    fn new(role: Role, settings: H2Settings) -> End {
        let mut out = Vec::new();
        End {
            connection: H2Connection::new(role, settings, &mut out),
            heads: IncomingHeads::new(HeadLimits::default()),
            out,
            input: Vec::new(),
            to_send: BTreeMap::new(),
            received: BTreeMap::new(),
            ended: Vec::new(),
            untaken: BTreeMap::new(),
        }
    }

    /// Sends as much as is allowed.
    fn send(&mut self, bytes_max: usize) {
        while self.connection.next_turn().is_some() {}
        let streams: Vec<StreamId> = self.to_send.keys().copied().collect();
        for stream in streams {
            let left = self.to_send[&stream];
            let allowed = self.connection.reserve(stream, left.min(bytes_max));
            if allowed == 0 && left > 0 {
                continue;
            }
            let body = vec![stream.number() as u8; allowed];
            let is_last = allowed == left;
            self.connection
                .send_data(stream, &body, is_last, &mut self.out)
                .unwrap();
            if is_last {
                self.to_send.remove(&stream);
            } else {
                self.to_send.insert(stream, left - allowed);
            }
        }
    }

    /// Takes what was received, or half of it.
    fn take(&mut self, is_slow: bool) {
        for (stream, bytes) in &mut self.untaken {
            let taken = if is_slow { bytes.div_ceil(2) } else { *bytes };
            self.connection.give_back(*stream, taken);
            *bytes -= taken;
        }
    }

    fn receive(&mut self, bytes: &[u8], body_bytes: usize) {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut at = 0;
        loop {
            let piece = &input[at..];
            let step = self.connection.receive(piece, &mut self.heads);
            at += step.consumed;
            match step.event {
                Event::Incomplete => break,
                Event::OutputFull => self.connection.write_owed(&mut self.out),
                Event::Request {
                    stream,
                    ends_stream,
                    ..
                } => {
                    let answer = response(200, &[("server", "test"), ("x", "y")]);
                    self.connection
                        .send_response(stream, &answer, false, &mut self.out)
                        .unwrap();
                    self.to_send.insert(stream, body_bytes);
                    if ends_stream {
                        self.ended.push(stream);
                    }
                }
                Event::Response {
                    stream,
                    head,
                    ends_stream,
                } => {
                    assert!(!head.interim);
                    if ends_stream {
                        self.ended.push(stream);
                    }
                }
                Event::Data {
                    stream,
                    range,
                    ends_stream,
                } => {
                    let expected = stream.number() as u8;
                    assert!(piece[range.clone()].iter().all(|byte| *byte == expected));
                    *self.received.entry(stream).or_default() += range.len();
                    *self.untaken.entry(stream).or_default() += range.len();
                    if ends_stream {
                        self.ended.push(stream);
                    }
                }
                Event::WindowOpened | Event::Settings => {}
                event => panic!("{event:?}"),
            }
        }
        self.input = input[at..].to_vec();
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn two_connections_carry_bodies_both_ways(
        count in 1_usize..8,
        up in 0_usize..120_000,
        down in 0_usize..120_000,
        pieces in vec(1_usize..5_000, 1..6),
        window in 1_u32..70_000,
        is_slow: bool,
    ) {
        let settings = H2Settings {
            initial_window_bytes: window,
            receive_bytes_max: window.max(16_384) * 4,
            ..H2Settings::default()
        };
        let mut client = End::new(Role::Client, settings);
        let mut server = End::new(Role::Server, H2Settings::default());
        for at in 0..count {
            let post = request("POST", "http://a.b/", &[("user-agent", "test")]);
            let stream = client
                .connection
                .send_request(&post, None, false, &mut client.out)
                .unwrap();
            client.to_send.insert(stream, up + at);
        }
        let mut sizes = pieces.iter().cycle();
        for _ in 0..200_000 {
            client.send(9_000);
            server.send(20_000);
            client.take(is_slow);
            server.take(is_slow);
            client.connection.write_owed(&mut client.out);
            server.connection.write_owed(&mut server.out);
            let size = *sizes.next().unwrap();
            let to_server: Vec<u8> = client.out.drain(..size.min(client.out.len())).collect();
            server.receive(&to_server, down);
            let to_client: Vec<u8> = server.out.drain(..size.min(server.out.len())).collect();
            client.receive(&to_client, 0);
            if client.ended.len() == count && server.ended.len() == count {
                break;
            }
        }
        prop_assert_eq!(client.ended.len(), count);
        for (at, stream) in client.connection.streams().enumerate() {
            prop_assert_eq!(client.received.get(&stream).copied().unwrap_or(0), down);
            prop_assert_eq!(server.received.get(&stream).copied().unwrap_or(0), up + at);
            prop_assert!(client.connection.is_closed(stream));
            prop_assert!(server.connection.is_closed(stream));
        }
        for end in [&mut client, &mut server] {
            let streams: Vec<StreamId> = end.connection.streams().collect();
            for stream in streams {
                end.connection.finish(stream, ErrorCode::CANCEL);
            }
            prop_assert_eq!(end.connection.stream_count(), 0);
            // A first window below 65,535 is one, as in HAProxy.
            prop_assert!(end.connection.counters().glitches <= 1);
        }
    }
}
