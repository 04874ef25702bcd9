//! A unified diff of a file and its rewritten lines.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Unchanged lines shown around a change.
const CONTEXT_LINES: u32 = 3;

/// The diff; `new_lines` maps old line numbers to their replacements.
#[must_use]
pub(super) fn unified(name: &str, source: &str, new_lines: &BTreeMap<u32, Vec<String>>) -> String {
    let old: Vec<&str> = source.lines().collect();
    let last = u32::try_from(old.len()).unwrap_or(u32::MAX);
    let adds_end = !source.is_empty() && !source.ends_with('\n');
    let mut changed: Vec<u32> = new_lines.keys().copied().collect();
    if adds_end && changed.last() != Some(&last) {
        changed.push(last);
    }
    if changed.is_empty() {
        return String::new();
    }
    let mut out = format!("--- {name}\n+++ {name}\n");
    let mut shift: i64 = 0;
    let mut at = 0;
    while at < changed.len() {
        let mut end = at;
        while end + 1 < changed.len() && changed[end + 1] - changed[end] <= 2 * CONTEXT_LINES {
            end += 1;
        }
        let from = changed[at].saturating_sub(CONTEXT_LINES).max(1);
        let to = (changed[end] + CONTEXT_LINES).min(last);
        let mut body = String::new();
        let mut added: i64 = 0;
        for number in from..=to {
            let line = old[number as usize - 1].trim_end_matches('\r');
            let is_cut = adds_end && number == last;
            let new = new_lines.get(&number);
            if new.is_none() && !is_cut {
                let _ = writeln!(body, " {line}");
                added += 1;
                continue;
            }
            let _ = writeln!(body, "-{line}");
            if is_cut {
                body.push_str("\\ No newline at end of file\n");
            }
            let same = [line.to_owned()];
            for text in new.map_or(&same[..], Vec::as_slice) {
                let _ = writeln!(body, "+{text}");
                added += 1;
            }
        }
        let count = i64::from(to - from) + 1;
        let start = i64::from(from) + shift;
        let _ = writeln!(out, "@@ -{from},{count} +{start},{added} @@");
        out.push_str(&body);
        shift += added - count;
        at = end + 1;
    }
    out
}
