//! Version 2 of the PROXY protocol: whatever arrives, no panic, and a whole
//! header is within its bound and the same however it was cut.
#![no_main]

use ballast_wire::proxy_header::ProxyHeaderParse;
use ballast_wire::proxy_v2::parse;
use libfuzzer_sys::fuzz_target;

const HEADER_BYTES_MAX: usize = 1024;

fuzz_target!(|input: &[u8]| {
    let Ok(ProxyHeaderParse::Complete { header, bytes }) = parse(input, HEADER_BYTES_MAX) else {
        return;
    };
    assert!(bytes <= input.len() && bytes <= HEADER_BYTES_MAX);
    let _ = header.endpoints();
    let values: usize = header.tlvs.iter().map(|(_, value)| value.len() + 3).sum();
    assert!(values <= bytes);
    if let Some(ssl) = header.tlvs.ssl() {
        let _ = (ssl.version(), ssl.common_name());
    }
    for cut in 0..bytes {
        match parse(&input[..cut], HEADER_BYTES_MAX) {
            Ok(ProxyHeaderParse::Incomplete { bytes_needed }) => {
                assert!(bytes_needed > 0 && cut + bytes_needed <= bytes);
            }
            other => panic!("{cut} of {bytes}: {other:?}"),
        }
    }
    let alone = parse(&input[..bytes], HEADER_BYTES_MAX);
    assert_eq!(alone, Ok(ProxyHeaderParse::Complete { header, bytes }));
});
