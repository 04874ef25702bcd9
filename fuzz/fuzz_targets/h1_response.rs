//! Responses: the same verdict in any pieces, and what is forwarded is accepted again.
#![no_main]

use ballast_h1::{H1Limits, HeadParse, HeadScan, parse_response, write_response_head};
use ballast_message::{Method, Response};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [flags, bytes @ ..] = data else { return };
    let limits = H1Limits {
        lenient: flags & 1 == 1,
        ..H1Limits::default()
    };
    let method = match flags >> 1 & 3 {
        0 => Method::Head,
        1 => Method::Connect,
        _ => Method::Get,
    };
    let step = usize::from(flags >> 3) + 1;
    let mut whole = Response::default();
    let at_once = parse_response(bytes, &mut HeadScan::default(), &limits, method, &mut whole);

    let mut scan = HeadScan::default();
    let mut pieces = Response::default();
    let mut len = 0;
    let in_pieces = loop {
        len = (len + step).min(bytes.len());
        let parse = parse_response(&bytes[..len], &mut scan, &limits, method, &mut pieces);
        if parse != HeadParse::Incomplete || len == bytes.len() {
            break parse;
        }
    };
    match (at_once, in_pieces) {
        (HeadParse::Error(_), HeadParse::Error(_)) => {}
        (at_once, in_pieces) => assert_eq!(at_once, in_pieces),
    }
    let HeadParse::Complete(head) = at_once else {
        return;
    };
    let mut out = Vec::new();
    write_response_head(&whole, &mut out);
    let lines = out.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines, whole.fields().len() + 2);
    assert!(!out.contains(&0));
    let limits = H1Limits {
        head_bytes_max: usize::MAX,
        ..limits
    };
    let mut again = Response::default();
    match parse_response(&out, &mut HeadScan::default(), &limits, method, &mut again) {
        HeadParse::Complete(next) => {
            assert_eq!((next.body, next.head_bytes), (head.body, out.len()));
        }
        other => panic!("{other:?}"),
    }
});
