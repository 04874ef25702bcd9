//! Lines and payloads of the Runtime API: however they are cut on their way, the same commands
//! come out, none longer than allowed, and nothing is read twice.
#![no_main]

use ballast_cli::{LineEvent, LineReader};
use ballast_expr::bytes_of_text;
use libfuzzer_sys::fuzz_target;

const LINE_BYTES_MAX: usize = 200;
const PAYLOAD_BYTES_MAX: usize = 500;

fn read(input: &[u8], size: usize) -> Vec<LineEvent> {
    let mut reader = LineReader::new(LINE_BYTES_MAX, PAYLOAD_BYTES_MAX);
    let mut found = Vec::new();
    for part in input.chunks(size) {
        reader.push(part);
        loop {
            match reader.next_line() {
                LineEvent::Nothing => break,
                last @ (LineEvent::LineTooLong | LineEvent::PayloadTooLong) => {
                    found.push(last);
                    return found;
                }
                other => found.push(other),
            }
        }
    }
    found
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, input)) = input.split_first() else {
        return;
    };
    let found = read(input, usize::from(size).max(1));
    assert_eq!(found, read(input, 1));
    for next in &found {
        let LineEvent::Line(line) = next else {
            continue;
        };
        assert!(!line.commands.is_empty());
        for given in &line.commands {
            assert!(bytes_of_text(&given.text).len() <= LINE_BYTES_MAX);
            assert!(
                given
                    .payload
                    .as_ref()
                    .is_none_or(|bytes| bytes.len() <= PAYLOAD_BYTES_MAX)
            );
            // Only a line end behind a backslash is part of a word.
            let is_escaped = input.windows(2).any(|pair| pair == b"\\\n");
            assert!(is_escaped || !given.words.iter().any(|word| word.contains('\n')));
        }
    }
});
