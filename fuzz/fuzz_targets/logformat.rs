//! Any text as a log format; what parses is written out.
#![no_main]

use ballast_expr::{CaptureFacts, ExchangeFacts, Facts, LogFormat, Scratch, Side, Time, Usage};
use libfuzzer_sys::fuzz_target;

struct World<'a> {
    line: &'a [u8],
    captures: [Vec<u8>; 2],
}

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
    fn exchange(&self) -> &dyn ExchangeFacts {
        self
    }
    fn captures(&self, _: Side) -> CaptureFacts<'_> {
        CaptureFacts {
            slot_count: self.captures.len(),
            slots: &self.captures,
            cookie: self.line,
        }
    }
}

impl ExchangeFacts for World<'_> {
    fn request_line(&self) -> Option<&[u8]> {
        Some(self.line)
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
                let world = World {
                    line: data,
                    captures: [data.to_vec(), data.to_vec()],
                };
                format.render(&world, &mut Scratch::new(), &mut out);
            }
            Err(error) => assert!(error.range.end <= text.len()),
        }
    }
});
