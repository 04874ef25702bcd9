//! crt-list files: no panic, and every line that is read has a file.
#![no_main]

use ballast_tls::crt_list::parse_crt_list;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    for line in parse_crt_list(input).unwrap_or_default() {
        assert!(!line.file.is_empty());
        assert_eq!(line.filters.is_some(), !line.filter_words.is_empty());
    }
});
