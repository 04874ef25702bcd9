//! Regular expressions, a line, and what they are searched for in, the rest: whatever both are, no panic, a
//! bounded search, and the same answer to each way of asking.
#![no_main]

use ballast_expr::{Regex, SearchLimit};
use libfuzzer_sys::fuzz_target;

/// Far fewer than in operation: many inputs are tried.
const STEPS_MAX: u64 = 20_000;

fuzz_target!(|input: &[u8]| {
    SearchLimit::set_steps_max(Some(STEPS_MAX));
    let line_end = input.iter().position(|byte| *byte == b'\n');
    let (source, subject) = input.split_at(line_end.unwrap_or(input.len()));
    let Ok(source) = std::str::from_utf8(source) else {
        return;
    };
    let subject = subject.get(1..).unwrap_or_default();
    for fold in [false, true] {
        let Ok(regex) = Regex::new(source, fold) else {
            continue;
        };
        let exhausted = SearchLimit::exhausted_total();
        let groups = regex.groups(subject, 0);
        let is_match = regex.is_match(subject);
        if SearchLimit::exhausted_total() == exhausted {
            assert_eq!(groups.is_some(), is_match);
        }
        for (start, end) in groups.iter().flatten().flatten() {
            assert!(start <= end && *end <= subject.len());
        }
    }
});
