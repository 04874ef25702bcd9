//! Session tickets: no panic on any ticket, and no ticket but our own is opened.
#![no_main]

use ballast_tls::tickets::TicketKeys;
use libfuzzer_sys::fuzz_target;

const CONTEXT: [u8; 32] = [1; 32];

fuzz_target!(|input: &[u8]| {
    // The keys are known, so that the name of a key is found by chance.
    let keys = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB\n".repeat(3);
    let keys = TicketKeys::read(keys.as_bytes()).expect("three keys");
    assert_eq!(keys.decrypt(&CONTEXT, input), None);
    let _ = TicketKeys::read(input);
    let _ = keys.push(&String::from_utf8_lossy(input));
    let keys = TicketKeys::random();
    let ticket = keys.encrypt(&CONTEXT, input).expect("sealed");
    assert_eq!(keys.decrypt(&CONTEXT, &ticket).as_deref(), Some(input));
    assert_eq!(keys.decrypt(&[2; 32], &ticket), None);
});
