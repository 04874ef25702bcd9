//! Pattern files and payloads: from text to entries and back.
//!
//! Source: manual 7.1 ("-f") and 7.3.1 ("map"); management manual, "add map".

use std::sync::Arc;

use super::entry::ENTRIES_MAX;
use super::key_entries::EntryPair;
use crate::byte_text::text_of_bytes;
use crate::error::ExpressionError;

/// A line that holds an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct EntryLine {
    /// From 1.
    pub(super) number: usize,
    pub(super) pair: EntryPair,
}

/// The entries of a file: one a line, a sharp first makes a comment, blank lines are nothing,
/// leading blanks are cut; a map's value follows the key after blanks and loses trailing ones.
pub(super) fn parse_file(contents: &[u8], as_map: bool) -> Result<Vec<EntryLine>, ExpressionError> {
    let mut entries = Vec::new();
    for (number, line) in (1..).zip(contents.split(|byte| *byte == b'\n')) {
        if line.first() == Some(&b'#') {
            continue;
        }
        let text = text_of_bytes(line);
        let text = text.trim_start_matches([' ', '\t']);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.is_empty() {
            continue;
        }
        let pair = if as_map {
            // A key alone has an empty value.
            let (key, value) = key_and_value(text);
            (Arc::from(key), Some(Arc::from(value)))
        } else {
            (Arc::from(text), None)
        };
        if entries.len() >= ENTRIES_MAX {
            return Err(ExpressionError::new("too many entries", 0..0));
        }
        entries.push(EntryLine { number, pair });
    }
    Ok(entries)
}

fn key_and_value(text: &str) -> (&str, &str) {
    let (key, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    (key, rest.trim_matches([' ', '\t', '\r']))
}

/// The entries of a payload of `add map`: a key and a value a line, with blanks between as in a
/// map file; nothing is a comment.
///
/// # Errors
/// The key that has no value.
pub fn parse_payload(payload: &str) -> Result<Vec<(&str, &str)>, &str> {
    let lines = payload
        .split('\n')
        .map(|line| line.trim_start_matches([' ', '\t']));
    let lines = lines.map(|line| line.strip_suffix('\r').unwrap_or(line));
    lines
        .filter(|line| !line.is_empty())
        .map(|line| match key_and_value(line) {
            (key, "") => Err(key),
            both => Ok(both),
        })
        .collect()
}

/// Entries as a file holds them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WrittenEntries {
    /// What the file is to hold, as a text of bytes. Reading it gives the entries again.
    pub text: String,
    /// Keys of entries that no line can hold: with a blank in a map's key, with blanks around,
    /// or with nothing in them. The Runtime API can make such.
    pub left_out: Vec<Arc<str>>,
}

/// Writes entries down, a line each.
pub(super) fn to_text<'e>(
    entries: impl Iterator<Item = (&'e Arc<str>, Option<&'e Arc<str>>)>,
) -> WrittenEntries {
    let mut written = WrittenEntries::default();
    for (key, value) in entries {
        let unfit = match value {
            Some(value) => {
                value.trim_matches([' ', '\t', '\r']).len() < value.len()
                    || value.contains('\n')
                    || key.contains([' ', '\t'])
            }
            None => key.starts_with([' ', '\t']) || key.ends_with('\r'),
        };
        if unfit || key.is_empty() || key.contains('\n') {
            written.left_out.push(Arc::clone(key));
            continue;
        }
        if key.starts_with('#') {
            // A sharp makes a comment of its line only where it stands first.
            written.text.push(' ');
        }
        written.text.push_str(key);
        if let Some(value) = value {
            written.text.push(' ');
            written.text.push_str(value);
        }
        written.text.push('\n');
    }
    written
}
