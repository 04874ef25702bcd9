//! crt-list files: no panic, and every line that is read has a certificate.
#![no_main]

use ballast_config::certificate_list;
use ballast_model::FileBases;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let Ok(list) = certificate_list("list", &text, &FileBases::default()) else {
        return;
    };
    for line in list.lines {
        assert!(!line.certificate.path.is_empty());
    }
});
