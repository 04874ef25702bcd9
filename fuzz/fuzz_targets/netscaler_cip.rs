//! The NetScaler Client IP insertion protocol: whatever arrives, no panic, and a whole header is
//! within its bound and the same however it was cut.
#![no_main]

use ballast_wire::netscaler_cip::{CipParse, parse};
use libfuzzer_sys::fuzz_target;

const MAGIC: u32 = 0x1234_5678;
const HEADER_BYTES_MAX: usize = 1024;

fuzz_target!(|input: &[u8]| {
    let Ok(CipParse::Complete { bytes, .. }) = parse(input, MAGIC, HEADER_BYTES_MAX) else {
        return;
    };
    assert!(bytes <= input.len() && bytes <= HEADER_BYTES_MAX);
    for cut in 0..bytes {
        match parse(&input[..cut], MAGIC, HEADER_BYTES_MAX) {
            Ok(CipParse::Incomplete { bytes_needed }) => {
                assert!(bytes_needed > 0 && cut + bytes_needed <= bytes);
            }
            other => panic!("{cut} of {bytes}: {other:?}"),
        }
    }
    let whole = parse(input, MAGIC, HEADER_BYTES_MAX);
    assert_eq!(parse(&input[..bytes], MAGIC, HEADER_BYTES_MAX), whole);
});
