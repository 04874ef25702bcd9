//! Any text as a log format; what parses is written out.
#![no_main]

use ballast_expr::{Facts, LogFormat, Scratch, Time, Usage};
use libfuzzer_sys::fuzz_target;

struct World<'a>(&'a [u8]);

impl Facts for World<'_> {
    fn now(&self) -> Time {
        Time {
            secs: 1_700_000_000,
            micros: 1,
        }
    }
    fn random(&self) -> u64 {
        7
    }
    fn request_line(&self) -> Option<&[u8]> {
        Some(self.0)
    }
    fn request_captures(&self) -> usize {
        2
    }
    fn request_capture(&self, _: usize) -> Option<&[u8]> {
        Some(self.0)
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for usage in [Usage::Http, Usage::Log, Usage::Text, Usage::UniqueId] {
        match LogFormat::parse(text, usage) {
            Ok(format) => {
                let mut out = Vec::new();
                format.render(&World(data), &mut Scratch::new(), &mut out);
            }
            Err(error) => assert!(error.range.end <= text.len()),
        }
    }
});
