//! Any bytes as a configuration that is edited: edits never fail badly and leave the rest alone.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ballast_edit::fuzz_one(data));
