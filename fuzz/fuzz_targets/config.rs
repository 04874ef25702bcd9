//! Any bytes as a configuration: loading, printing and upgrading never fail.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ballast_config::fuzz_one(data));
