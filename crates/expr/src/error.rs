//! What is wrong with an expression, and where in its words.

use std::fmt;
use std::ops::Range;

use crate::place::Place;

/// A refusal of a word of an expression. The fault is the operator's; nothing was built.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Error {
    /// The cause in one sentence, without location.
    pub message: String,
    /// Index of the offending word among the words handed in (0 when there was one).
    pub word: usize,
    /// Byte range inside that word, never past its end.
    pub range: Range<usize>,
    /// The nearest right word ("did you mean").
    pub hint: Option<String>,
    /// The line it stands on, where the words are not at hand any more (when linking).
    pub place: Option<Place>,
}

impl Error {
    /// An error over `range` of the first word.
    pub fn new(message: impl Into<String>, range: Range<usize>) -> Error {
        Error {
            message: message.into(),
            word: 0,
            range,
            hint: None,
            place: None,
        }
    }

    /// The same error with a suggestion.
    #[must_use]
    pub fn with_hint(mut self, hint: Option<String>) -> Error {
        self.hint = hint;
        self
    }

    /// The same error in another word.
    #[must_use]
    pub fn in_word(mut self, word: usize) -> Error {
        self.word = word;
        self
    }

    /// The same error pointing at something there is: what is missing after the last word is
    /// shown at that word.
    #[must_use]
    pub(crate) fn within(mut self, words: &[&str]) -> Error {
        let Some(last) = words.len().checked_sub(1) else {
            return self;
        };
        if self.word > last {
            self.word = last;
            self.range = 0..words[last].len();
        }
        self.range.end = self.range.end.min(words[self.word].len());
        self.range.start = self.range.start.min(self.range.end);
        self
    }

    /// The same error moved `by` bytes to the right, for text cut out of a longer word.
    #[must_use]
    pub fn shifted(mut self, by: usize) -> Error {
        self.range = self.range.start + by..self.range.end + by;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " (did you mean '{hint}'?)"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// The candidate nearest to `word`, when one is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let distance_max = match word.len() {
        0..=2 => return None,
        3..=5 => 1,
        6..=64 => 3,
        _ => return None,
    };
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= distance_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}
