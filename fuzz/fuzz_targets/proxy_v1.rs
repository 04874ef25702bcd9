//! Version 1 of the PROXY protocol: whatever arrives, no panic, and a whole
//! header is within its bound and the same however it was cut.
#![no_main]

use ballast_wire::proxy_header::ProxyHeaderParse;
use ballast_wire::proxy_v1::{HEADER_BYTES_MAX, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(ProxyHeaderParse::Complete { header, bytes }) = parse(input) else {
        return;
    };
    assert!(bytes <= input.len() && bytes <= HEADER_BYTES_MAX);
    let alone = parse(&input[..bytes]);
    assert_eq!(alone, Ok(ProxyHeaderParse::Complete { header, bytes }));
    for cut in 0..bytes {
        match parse(&input[..cut]) {
            Ok(ProxyHeaderParse::Incomplete { bytes_needed }) => {
                assert!(bytes_needed > 0 && cut + bytes_needed <= bytes);
            }
            other => panic!("{cut} of {bytes}: {other:?}"),
        }
    }
});
