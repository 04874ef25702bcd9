//! State files: whatever they hold, no panic, and no row but of a file that begins with a
//! version.
#![no_main]

use ballast_wire::server_state::{StateFormatError, rows};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let lines = input.iter().filter(|byte| **byte == b'\n').count();
    let Ok(found) = rows(input) else {
        return;
    };
    for row in found {
        match row {
            Ok(row) => match row.values() {
                Ok(saved) => assert!(saved.weight_user <= 256 && saved.operational <= 3),
                Err(invalid) => assert!(!invalid.to_string().is_empty()),
            },
            Err(StateFormatError::Row { line }) => assert!(line >= 1 && line <= lines),
            Err(StateFormatError::Version) => panic!("the version was read before"),
        }
    }
});
