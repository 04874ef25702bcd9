//! Requests: the same verdict in any pieces, and what is forwarded is accepted again.
#![no_main]

use ballast_h1::{H1Limits, HeadParse, HeadScan, parse_request, write_request_head};
use ballast_message::Request;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [flags, bytes @ ..] = data else { return };
    let limits = H1Limits {
        lenient: flags & 1 == 1,
        ..H1Limits::default()
    };
    let step = usize::from(flags >> 1) + 1;
    let mut whole = Request::default();
    let at_once = parse_request(bytes, &mut HeadScan::default(), &limits, &mut whole);

    let mut scan = HeadScan::default();
    let mut pieces = Request::default();
    let mut len = 0;
    let in_pieces = loop {
        len = (len + step).min(bytes.len());
        let parse = parse_request(&bytes[..len], &mut scan, &limits, &mut pieces);
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
    write_request_head(&whole, &mut out);
    // One line feed per field, the start line and the empty line: nothing was smuggled in.
    let lines = out.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines, whole.fields().len() + 2);
    assert!(!out.contains(&0));
    // What we forward may be longer than what we took by the spaces after colons.
    let limits = H1Limits {
        head_bytes_max: usize::MAX,
        ..limits
    };
    let mut again = Request::default();
    match parse_request(&out, &mut HeadScan::default(), &limits, &mut again) {
        HeadParse::Complete(next) => {
            assert_eq!((next.body, next.head_bytes), (head.body, out.len()));
        }
        other => panic!("{other:?}"),
    }
});
