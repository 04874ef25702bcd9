//! Real configurations: each is reproduced byte for byte, and none is refused for its syntax.

use std::path::Path;

use ballast_syntax::{Env, FixedFacts, HaproxyVersion, Severity, parse};

#[test]
fn real_configurations_come_back() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let Ok(entries) = std::fs::read_dir(&corpus) else {
        eprintln!(
            "SKIPPED: real_configurations_come_back: there is no ../shared/corpus beside the repository"
        );
        return;
    };
    let facts = FixedFacts {
        version: HaproxyVersion::release(3, 5, 0),
        ..FixedFacts::default()
    };
    let mut count = 0;
    let mut refused = Vec::new();
    for entry in entries {
        let path = entry.expect("the directory can be read").path();
        if path.extension().is_none_or(|extension| extension != "cfg") {
            continue;
        }
        let bytes = std::fs::read(&path).expect("the file can be read");
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let document = parse([(name.clone(), bytes.clone())], Env::new(), &facts);
        let file = document.sources.files().next().expect("the file was added");
        assert!(document.reassemble(file) == bytes, "{name} must come back");
        assert!(document.sections.len() > 1, "{name} has sections");
        count += 1;
        for found in &document.diagnostics {
            let line = found
                .span
                .map_or(0, |span| document.sources.locate(span).line);
            println!(
                "{name}:{line}: {} {}: {}",
                found.severity.word(),
                found.code,
                found.message
            );
        }
        // A file without a final newline is refused as a whole (HAProxy 3.2), whatever its syntax.
        let is_refused = document.diagnostics.iter().any(|found| {
            found.severity == Severity::Alert && found.code != "missing-final-newline"
        });
        if is_refused {
            refused.push(name);
        }
    }
    assert!(count > 0, "the corpus holds configurations");
    assert!(refused.is_empty(), "refused for their form: {refused:?}");
}
