//! ClientHello: whatever arrives, no panic; a hello is incomplete until its last byte and the same
//! however many bytes follow it; a name that is hidden from rustls comes back as it was.
#![no_main]

use ballast_tls::hello::{HelloOutcome, parse_client_hello};
use ballast_tls::hidden_name::{hide_server_name, restore};
use ballast_tls::names::ClientKeys;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut records = input.to_vec();
    let is_whole = hide_server_name(&mut records);
    assert!(is_whole || records == input);
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
    if records != input {
        let HelloOutcome::Complete(hidden) = parse_client_hello(&records) else {
            panic!("a hello becomes something else");
        };
        assert_eq!(hidden.server_name(), None);
        assert_eq!(*restore(&hidden.to_message()), *hello.to_message());
        let mut again = records.clone();
        assert!(hide_server_name(&mut again));
        assert_eq!(again, records);
    }
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
