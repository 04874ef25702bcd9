//! What is wrong with an expression, and where in its words.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;

use crate::config_line::ConfigLine;

/// A refusal of a word of an expression. The fault is the operator's; nothing was built.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExpressionError {
    /// The cause in one sentence, without location.
    pub message: String,
    /// Index of the offending word among the words handed in (0 when there was one).
    pub word: usize,
    /// Byte range inside that word, never past its end.
    pub range: Range<usize>,
    /// The nearest right word ("did you mean").
    pub hint: Option<String>,
    /// The line it stands on, where the words are not at hand any more (when linking).
    pub config_line: Option<ConfigLine>,
}

impl ExpressionError {
    /// An error over `range` of the first word.
    pub fn new(message: impl Into<String>, range: Range<usize>) -> ExpressionError {
        ExpressionError {
            message: message.into(),
            word: 0,
            range,
            hint: None,
            config_line: None,
        }
    }

    /// An error at a word that is none of those that may stand there. It names the word, those that
    /// are allowed where they are few enough to be read, and the nearest of them. `what` is the kind
    /// of word.
    pub fn unknown<'a>(
        what: &str,
        word: &str,
        range: Range<usize>,
        known: impl IntoIterator<Item = &'a str>,
    ) -> ExpressionError {
        let known: Vec<&str> = known.into_iter().collect();
        let hint = nearest(word, known.iter().copied());
        let allowed = allowed(&known, hint.is_some());
        ExpressionError::new(format!("unknown {what} '{word}'{allowed}"), range).with_hint(hint)
    }

    /// The same error with a suggestion.
    #[must_use]
    pub fn with_hint(mut self, hint: Option<String>) -> ExpressionError {
        self.hint = hint;
        self
    }

    /// The same error in another word.
    #[must_use]
    pub fn in_word(mut self, word: usize) -> ExpressionError {
        self.word = word;
        self
    }

    /// The same error pointing at something there is: what is missing after the last word is
    /// shown at that word.
    #[must_use]
    pub(crate) fn within(mut self, words: &[&str]) -> ExpressionError {
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
    pub fn moved_right(mut self, by: usize) -> ExpressionError {
        self.range = self.range.start + by..self.range.end + by;
        self
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " (did you mean '{hint}'?)"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ExpressionError {}

/// The candidate nearest to `word`, when one is near enough to be meant: of another case, a few
/// letters apart, or one a beginning of the other.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let distance_max = match word.len() {
        0 => return None,
        1..=2 => 0,
        3..=5 => 1,
        6..=64 => 3,
        _ => return None,
    };
    let word = word.to_ascii_lowercase();
    let mut near: Option<(Remoteness, &str)> = None;
    let mut beginning: Option<&str> = None;
    let mut longer = Vec::new();
    for candidate in candidates {
        // Most differ by more letters than may differ, and are not looked at further.
        if word.len().abs_diff(candidate.len()) <= distance_max {
            let lower = candidate.to_ascii_lowercase();
            let distance = strsim::osa_distance(&word, &lower);
            if distance <= distance_max {
                let remoteness = remoteness(distance, &word, &lower);
                if near.is_none_or(|(least, _)| remoteness < least) {
                    near = Some((remoteness, candidate));
                }
            }
        }
        if near.is_some() || word.len() < PREFIX_BYTES_MIN || candidate.len() < PREFIX_BYTES_MIN {
            continue;
        }
        if begins_with(&word, candidate) && candidate.len() * 3 >= word.len() {
            beginning = [beginning, Some(candidate)]
                .into_iter()
                .flatten()
                .max_by_key(|one| one.len());
        } else if begins_with(candidate, &word) && longer.len() < 2 {
            longer.push(candidate);
        }
    }
    let only = match longer[..] {
        [one] => Some(one),
        _ => None,
    };
    let found = near.map(|(_, candidate)| candidate);
    found.or(beginning).or(only).map(str::to_owned)
}

/// How far a candidate is from a word: by letters to change, then whether other letters are needed, then
/// by how much of the beginning is right; the longer of two that remain alike is meant.
type Remoteness = (usize, bool, Reverse<usize>, Reverse<usize>);

fn remoteness(distance: usize, word: &str, candidate: &str) -> Remoteness {
    let sorted = |text: &str| {
        let mut letters: Vec<u8> = text.bytes().collect();
        letters.sort_unstable();
        letters
    };
    let pairs = word.bytes().zip(candidate.bytes());
    let common = pairs.take_while(|(one, other)| one == other).count();
    let has_others = sorted(word) != sorted(candidate);
    (
        distance,
        has_others,
        Reverse(common),
        Reverse(candidate.len()),
    )
}

/// The shortest beginning that says anything.
const PREFIX_BYTES_MIN: usize = 3;

fn begins_with(text: &str, start: &str) -> bool {
    let head = text.as_bytes().get(..start.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
}

/// So many words are listed in a message; more are not read by anybody.
const LISTED_MAX: usize = 80;

/// So many are listed although one of them is suggested.
const LISTED_BESIDE_HINT_MAX: usize = 16;

/// The words that may stand in a place, as the end of a sentence (`: use 'a', 'b' or 'c'`); nothing
/// where they are too many.
fn allowed(known: &[&str], has_hint: bool) -> String {
    let max = if has_hint {
        LISTED_BESIDE_HINT_MAX
    } else {
        LISTED_MAX
    };
    match known {
        [] => String::new(),
        [only] => format!(": use '{only}'"),
        [others @ .., last] if known.len() <= max => {
            let others: Vec<String> = others.iter().map(|word| format!("'{word}'")).collect();
            format!(": use {} or '{last}'", others.join(", "))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_of_another_case_or_a_few_letters_apart_or_a_beginning() {
        const KNOWN: [&str; 8] = [
            "str", "reg", "sess", "lower", "url_dec", "path_beg", "X", "res",
        ];
        for (word, wanted) in [
            ("STR", Some("str")),
            ("x", Some("X")),
            ("srt", Some("str")),
            ("regex", Some("reg")),
            ("session", Some("sess")),
            ("lwoer", Some("lower")),
            ("url_decode", Some("url_dec")),
            ("path_begin", Some("path_beg")),
            ("low", Some("lower")),
            ("rse", Some("res")),
            ("rge", Some("reg")),
            ("st", None),
            ("international", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, KNOWN).as_deref(), wanted, "{word}");
        }
    }

    #[test]
    fn an_unknown_word_is_named_with_what_is_allowed() {
        let error = ExpressionError::unknown("time unit", "sec", 0..3, ["s", "ms", "us"]);
        assert_eq!(
            error.to_string(),
            "unknown time unit 'sec': use 's', 'ms' or 'us'"
        );
        let error = ExpressionError::unknown("flag", "G", 0..1, ["g"]);
        assert_eq!(
            error.to_string(),
            "unknown flag 'G': use 'g' (did you mean 'g'?)"
        );
        let many: Vec<String> = (0..100).map(|number| format!("word{number}")).collect();
        let error = ExpressionError::unknown("word", "zzz", 0..3, many.iter().map(String::as_str));
        assert_eq!(error.to_string(), "unknown word 'zzz'");
    }
}
