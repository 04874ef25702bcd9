//! What a configuration gives a list.

use std::sync::Arc;

use super::entry::ENTRIES_MAX;
use super::index::IndexShape;
use super::key_entries::EntryPair;
use super::text;
use crate::error::ExpressionError;

/// What the configuration gave a list: the common ancestor of its file's next state and of what
/// operators made of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum LoadedEntries {
    /// The contents of its file.
    File(Arc<Vec<u8>>),
    /// Words of an ACL line.
    Words(Vec<Arc<str>>),
}

impl LoadedEntries {
    /// The entries, each with the line it stands on (0 for words).
    pub(super) fn lines(&self, as_map: bool) -> Result<Vec<text::EntryLine>, ExpressionError> {
        match self {
            LoadedEntries::File(contents) => text::parse_file(contents, as_map),
            LoadedEntries::Words(words) => Ok(words
                .iter()
                .map(|word| text::EntryLine {
                    number: 0,
                    pair: (Arc::clone(word), None),
                })
                .collect()),
        }
    }

    /// Whether they can be loaded: what [`LoadedEntries::lines`] says.
    pub(super) fn check(&self, as_map: bool) -> Result<(), ExpressionError> {
        if let LoadedEntries::File(contents) = self
            && contents.iter().filter(|byte| **byte == b'\n').count() < ENTRIES_MAX
        {
            // There are no more entries than lines, and too many is all that is refused.
            return Ok(());
        }
        self.lines(as_map).map(drop)
    }

    /// The entries.
    pub(super) fn pairs(&self, as_map: bool) -> Vec<EntryPair> {
        // What was loaded once could be parsed then.
        let lines = self.lines(as_map).unwrap_or_default();
        lines.into_iter().map(|line| line.pair).collect()
    }
}

/// Whether all of what is to be loaded can be understood.
pub(super) fn check_lines(
    shape: IndexShape,
    lines: &[text::EntryLine],
) -> Result<(), ExpressionError> {
    for line in lines {
        let (key, value) = &line.pair;
        shape
            .parse(key, value.as_ref())
            .map_err(|error| match line.number {
                0 => error,
                number => ExpressionError {
                    message: format!("line {number}: {}", error.message),
                    ..error
                },
            })?;
    }
    Ok(())
}
