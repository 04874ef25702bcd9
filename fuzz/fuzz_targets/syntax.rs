//! Any bytes as a configuration: the parser never fails and the tree gives the bytes back.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ballast_syntax::fuzz_one(data));
