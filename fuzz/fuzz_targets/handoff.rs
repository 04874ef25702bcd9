//! Snapshots and messages between processes: whatever comes, no panic; and what is read comes
//! back when it is written again.
#![no_main]

use ballast_wire::handoff::{Message, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = read(input, |row| {
        assert_eq!(row.columns.len(), row.numbers.len());
    });
    if let Ok(message) = Message::decode(input) {
        let again = Message::decode(&message.encode());
        if input.len() <= ballast_wire::handoff::MESSAGE_BYTES_MAX - 2 {
            assert_eq!(again, Ok(message));
        } else {
            assert!(again.is_ok());
        }
    }
});
