//! Records of `_getsocks`: whatever a process says of its sockets, no panic, and what is read is
//! what would be written.
#![no_main]

use ballast_wire::getsocks::{RECORD_BYTES_MAX, read, read_count, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let mut rest = input;
    if let Some((count, after)) = rest.split_first_chunk::<4>() {
        let _ = read_count(*count);
        rest = after;
    }
    while let Ok(Some((record, bytes))) = read(rest) {
        assert!(bytes > 0 && bytes <= RECORD_BYTES_MAX);
        let mut written = Vec::new();
        write(&record, &mut written).expect("what was read is short enough");
        // The last four bytes mean nothing and are written as zeroes.
        assert_eq!(written[..bytes - 4], rest[..bytes - 4]);
        rest = &rest[bytes..];
    }
});
