//! A file for `ballast upgrade`: rewritten, and with what is still refused of it.

use ballast_syntax::Severity;

use crate::machine::{EmptyMachine, StandInMachine};
use crate::table::REFUSED;
use crate::upgrade::{LineRewrite, UpgradeOutcome, rewritten};
use crate::{Options, load};

/// Rewrites one file.
#[must_use]
pub fn upgrade(name: &str, bytes: &[u8]) -> UpgradeOutcome {
    let mut result = rewritten(name, bytes);
    leave_what_is_refused(name, bytes, &mut result);
    result
}

/// Lists lines with words that are refused, and that no rewrite knows of: a file that has one is not rewritten.
fn leave_what_is_refused(name: &str, bytes: &[u8], result: &mut UpgradeOutcome) {
    let files = vec![(name.to_owned(), bytes.to_vec())];
    let loaded = load(files, &StandInMachine(EmptyMachine), Options::default());
    for diagnostic in &loaded.diagnostics {
        let Some(span) = diagnostic.span else {
            continue;
        };
        let is_refused = diagnostic.code == REFUSED && diagnostic.severity == Severity::Alert;
        let line = loaded.sources.locate(span).line;
        let mut known = result.changes.iter().chain(&result.left);
        if !is_refused || known.any(|rewrite| rewrite.line == line) {
            continue;
        }
        let text = String::from_utf8_lossy(bytes);
        let from = text.lines().nth(line.saturating_sub(1) as usize);
        result.left.push(LineRewrite {
            line,
            from: from.unwrap_or_default().to_owned(),
            to: String::new(),
            reason: diagnostic.message.clone(),
        });
    }
    result.left.sort_by_key(|left| left.line);
}
