//! Snapshots and messages between processes: whatever comes, no panic; and what is read comes
//! back when it is written again.
#![no_main]

use ballast_wire::handoff::{Message, read, read_pairs, write_pairs};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = read(input, |row| {
        assert_eq!(row.columns.len(), row.numbers.len());
    });
    let mut pairs = Vec::new();
    if read_pairs(input, |question, answer| pairs.push((question, answer))).is_ok() {
        let written = write_pairs(pairs.iter().copied());
        let mut again = Vec::new();
        read_pairs(&written, |question, answer| again.push((question, answer)))
            .expect("what was written is whole");
        assert_eq!(pairs, again);
    }
    if let Ok(message) = Message::decode(input) {
        let again = Message::decode(&message.encode());
        if input.len() <= ballast_wire::handoff::MESSAGE_BYTES_MAX - 2 {
            assert_eq!(again, Ok(message));
        } else {
            assert!(again.is_ok());
        }
    }
});
