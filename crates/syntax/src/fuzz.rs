//! The body of the fuzz target: any bytes, and what must be true of the result.

use crate::{Env, FixedFacts, Parser, TimeUnit, evaluate_condition, parse_size, parse_time};

/// Parses `data` as one file, then as two, and as a condition and a value, and checks invariants:
/// the tree gives the bytes back, each span lies within its line, sections within their file.
///
/// # Panics
///
/// When an invariant is violated.
pub fn fuzz_one(data: &[u8]) {
    let env: Env = [("A", "a"), ("LIST", " x  y "), ("EMPTY", "")]
        .into_iter()
        .collect();
    let facts = FixedFacts::default();
    let middle = data.len() / 2;
    let mut parser = Parser::new(env.clone(), &facts);
    let parts = [&data[..middle], &data[middle..], data];
    let files = parts.map(|part| parser.add_file("fuzz.cfg", part.to_vec()));
    let document = parser.finish();

    for (part, file) in parts.into_iter().zip(files) {
        let file = file.expect("a fuzzed input is within the bounds of a file");
        assert!(
            document.reassemble(file) == part,
            "the tree must give the bytes back"
        );
    }
    for line in document.lines() {
        for word in &line.words {
            let (span, len) = (word.span(), word.text().len());
            assert!(line.span.start <= span.start && span.end <= line.end.start);
            for at in [0, len / 2, len] {
                let inside = word.span_of(at..len);
                assert!(span.start <= inside.start && inside.end <= span.end);
            }
        }
    }
    // Editing a section leaves all others unchanged.
    let mut ends = [0; 3];
    for section in document.sections_of_proxies() {
        let (file, bytes) = (section.file, section.bytes);
        assert!(ends[file] <= bytes.start && bytes.start < bytes.end);
        assert!(bytes.end <= parts[file].len());
        ends[file] = bytes.end;
    }
    for diagnostic in &document.diagnostics {
        if let Some(span) = diagnostic.span {
            assert!(span.range().end <= document.sources.bytes(span.file).len());
            assert!(document.sources.locate(span).line > 0);
        }
    }

    let text = String::from_utf8_lossy(data);
    let _ = evaluate_condition(&text, &env, &facts);
    let _ = parse_time(&text, TimeUnit::Millisecond);
    let _ = parse_size(&text, u64::MAX);
}
