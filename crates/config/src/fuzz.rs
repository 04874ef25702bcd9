//! The body of the fuzz target: any text, and what must be true of the result.

use ballast_syntax::Severity;

use crate::{
    EmptyMachine, Options, StandInMachine, TextOptions, diagnostics_text, json_lines, load, upgrade,
};

/// Loads `data` as a configuration, with and without stand-ins, prints everything, and upgrades it.
///
/// # Panics
///
/// When an invariant is violated.
pub fn fuzz_one(data: &[u8]) {
    let files = || vec![("fuzz.cfg".to_owned(), data.to_vec())];
    for loaded in [
        load(files(), &EmptyMachine, Options::default()),
        load(files(), &StandInMachine(EmptyMachine), Options::default()),
    ] {
        let options = TextOptions {
            least: Severity::Diag,
            ..TextOptions::default()
        };
        let shown = diagnostics_text(&loaded, options);
        assert!(loaded.diagnostics.is_empty() || !shown.is_empty());
        for line in json_lines(&loaded).lines() {
            let object: Result<serde_json::Value, _> = serde_json::from_str(line);
            assert!(object.is_ok(), "each line is an object");
        }
        for server in loaded.config.backends.iter().flat_map(|back| &back.servers) {
            assert!(server.id > 0, "every server has a number");
        }
    }
    let upgraded = upgrade("fuzz.cfg", data);
    if upgraded.changes.is_empty() {
        assert!(upgraded.text == data, "without changes nothing changes");
    }
}
