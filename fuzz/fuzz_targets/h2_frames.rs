//! Frames from a client: the same verdict in any pieces, little is left to the caller, and what is
//! forwarded is a head of HTTP/1.
#![no_main]

use std::collections::BTreeMap;

use ballast_h1::{H1Limits, HeadParse, HeadScan, parse_request, write_request_head};
use ballast_h2::{Event, H2Connection, H2Settings, IncomingHeads, PREFACE, Role};
use ballast_message::{BodyLength, Request};
use libfuzzer_sys::fuzz_target;

/// What is reported of an input that comes `step` bytes at a time.
fn reported(input: &[u8], step: usize) -> Vec<String> {
    let mut out = Vec::new();
    let mut connection = H2Connection::new(Role::Server, H2Settings::default(), &mut out);
    let mut heads = IncomingHeads::default();
    let mut said = Vec::new();
    let mut bodies: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let (mut at, mut end) = (0, 0);
    loop {
        let piece = &input[at..end];
        let received = connection.receive(piece, &mut heads);
        at += received.consumed;
        match received.event {
            Event::Incomplete if end == input.len() => break,
            Event::Incomplete => {
                assert!(end - at <= 8);
                end = (end + step).min(input.len());
            }
            Event::OutputFull => {}
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
                let body = bodies.entry(stream.number()).or_default();
                body.extend_from_slice(&piece[range]);
                said.extend(ends_stream.then(|| format!("end {stream}")));
            }
            Event::Request { stream, head, .. } => {
                said.push(format!(
                    "{stream} {head:?} {:?}",
                    forwarded(&heads.request, head.body)
                ));
            }
            Event::Trailers { stream } => said.push(format!("{stream} {:?}", heads.trailers.len())),
            event => said.push(format!("{event:?}")),
        }
        connection.write_owed(&mut out);
        assert!(out.len() < 20_000, "what is owed is bounded");
        out.clear();
    }
    said.extend(
        bodies
            .iter()
            .map(|(stream, body)| format!("{stream} {}", body.len())),
    );
    said
}

/// The head as it goes out over HTTP/1, which our own parser must take for one head.
fn forwarded(request: &Request, body: BodyLength) -> Vec<u8> {
    let mut out = Vec::new();
    write_request_head(request, &mut out);
    let lines = out.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines, request.fields().len() + 2, "nothing was smuggled in");
    assert!(!out.contains(&0));
    let limits = H1Limits {
        head_bytes_max: usize::MAX,
        lenient: true,
        ..H1Limits::default()
    };
    let mut again = Request::default();
    if let HeadParse::Complete(head) =
        parse_request(&out, &mut HeadScan::default(), &limits, &mut again)
    {
        assert_eq!(head.head_bytes, out.len());
        if let BodyLength::Known(bytes) = body {
            assert!(matches!(head.body, BodyLength::Known(other) if other == bytes));
        }
    }
    out
}

fuzz_target!(|data: &[u8]| {
    let [step, frames @ ..] = data else { return };
    let mut input = PREFACE.to_vec();
    // Empty SETTINGS, and an acknowledgement of ours.
    input.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    input.extend_from_slice(&[0, 0, 0, 4, 1, 0, 0, 0, 0]);
    input.extend_from_slice(frames);
    let whole = reported(&input, input.len());
    let pieces = reported(&input, usize::from(*step) + 1);
    assert_eq!(whole, pieces);
});
