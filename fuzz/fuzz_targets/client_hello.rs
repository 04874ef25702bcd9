//! ClientHello: whatever arrives, no panic; a hello is incomplete until its last byte and the same
//! however many bytes follow it.
#![no_main]

use ballast_tls::hello::{HelloOutcome, parse_client_hello};
use ballast_tls::names::ClientKeys;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let HelloOutcome::Complete(hello) = parse_client_hello(input) else {
        return;
    };
    assert!(hello.raw_bytes() <= input.len());
    let _ = (
        hello.version_max(),
        hello.legacy_version(),
        hello.record_version(),
    );
    let _ = (hello.random(), hello.session_id(), hello.session_ticket());
    let _ = (
        hello.server_name(),
        hello.alpn().count(),
        ClientKeys::of(&hello, &[0x1301, 0xc02b]),
    );
    let inside: usize = hello
        .extensions()
        .map(|(_, content)| content.len() + 4)
        .sum();
    assert!(inside <= input.len());
    let whole = hello.raw_bytes();
    assert_eq!(
        parse_client_hello(&input[..whole]),
        HelloOutcome::Complete(hello)
    );
    assert_eq!(
        parse_client_hello(&input[..whole - 1]),
        HelloOutcome::Incomplete
    );
});
