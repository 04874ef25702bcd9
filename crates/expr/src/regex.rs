//! Regular expressions in the dialect of configuration files (PCRE).
//!
//! Most patterns run on a linear-time engine. Look-around and back-references, which it lacks,
//! fall to a backtracking engine with a bounded number of steps; a pattern that exceeds them
//! does not match.

use std::fmt;
use std::sync::{Arc, Mutex};

use crate::error::Error;

/// Steps a backtracking pattern may take on one subject.
const BACKTRACK_STEPS_MAX: usize = 100_000;
/// Bytes one compiled pattern may take.
const COMPILED_BYTES_MAX: usize = 16 << 20;
/// Sub-expressions whose positions are reported (PCRE's `\0` to `\9`).
const GROUPS_MAX: usize = 10;

/// A compiled regular expression; equal when source and flags are.
#[derive(Clone)]
pub struct Regex {
    source: Arc<str>,
    fold: bool,
    engine: Arc<RegexEngine>,
}

enum RegexEngine {
    /// With memory for the positions of one match, so that a match allocates nothing.
    Linear(
        regex::bytes::Regex,
        Mutex<Option<regex::bytes::CaptureLocations>>,
    ),
    Backtracking(fancy_regex::Regex),
}

/// Positions of the groups of one match: where the whole and each of the first nine groups
/// begin and end, for those that took part.
pub type Groups = [Option<(usize, usize)>; GROUPS_MAX];

impl Regex {
    /// Compiles `source`; `fold` ignores the case (`-i`).
    ///
    /// # Errors
    /// When the pattern is not valid in either engine.
    pub fn new(source: &str, fold: bool) -> Result<Regex, Error> {
        let engine = match linear(source, fold) {
            Ok(linear) => {
                let positions = linear.capture_locations();
                RegexEngine::Linear(linear, Mutex::new(Some(positions)))
            }
            Err(first) => match backtracking(source, fold) {
                Ok(backtracking) => RegexEngine::Backtracking(backtracking),
                Err(_) => {
                    return Err(Error::new(
                        format!(
                            "regex '{source}' is invalid: {}",
                            last_line(&first.to_string())
                        ),
                        0..source.len(),
                    ));
                }
            },
        };
        Ok(Regex {
            source: source.into(),
            fold,
            engine: Arc::new(engine),
        })
    }

    /// The pattern as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the case is ignored.
    pub const fn ignores_case(&self) -> bool {
        self.fold
    }

    /// Whether the pattern is found in `subject`.
    pub fn is_match(&self, subject: &[u8]) -> bool {
        match &*self.engine {
            RegexEngine::Linear(regex, _) => regex.is_match(subject),
            RegexEngine::Backtracking(regex) => std::str::from_utf8(subject)
                .is_ok_and(|subject| regex.is_match(subject).unwrap_or(false)),
        }
    }

    /// The first match from byte `at` on, with its groups.
    pub fn groups(&self, subject: &[u8], at: usize) -> Option<Groups> {
        let mut groups = [None; GROUPS_MAX];
        match &*self.engine {
            RegexEngine::Linear(regex, spare) => {
                if regex.captures_len() == 1 {
                    let found = regex.find_at(subject, at)?;
                    groups[0] = Some((found.start(), found.end()));
                    return Some(groups);
                }
                // Another worker may be using the memory: then this match brings its own.
                let taken = spare.try_lock().ok().and_then(|mut spare| spare.take());
                let mut positions = taken.unwrap_or_else(|| regex.capture_locations());
                let found = regex
                    .captures_read_at(&mut positions, subject, at)
                    .is_some();
                for (number, slot) in groups.iter_mut().enumerate() {
                    *slot = positions.get(number);
                }
                if let Ok(mut spare) = spare.try_lock() {
                    *spare = Some(positions);
                }
                if !found {
                    return None;
                }
            }
            RegexEngine::Backtracking(regex) => {
                let subject = std::str::from_utf8(subject).ok()?;
                if !subject.is_char_boundary(at) {
                    return None;
                }
                let captures = regex.captures_from_pos(subject, at).ok()??;
                for (slot, group) in groups.iter_mut().zip(captures.iter()) {
                    *slot = group.map(|group| (group.start(), group.end()));
                }
            }
        }
        Some(groups)
    }
}

fn linear(source: &str, fold: bool) -> Result<regex::bytes::Regex, regex::Error> {
    let build = |source: &str| {
        regex::bytes::RegexBuilder::new(source)
            .case_insensitive(fold)
            .unicode(false)
            .size_limit(COMPILED_BYTES_MAX)
            .build()
    };
    build(source).or_else(|error| match relaxed(source) {
        Some(relaxed) => build(&relaxed).map_err(|_| error),
        None => Err(error),
    })
}

fn backtracking(source: &str, fold: bool) -> Result<fancy_regex::Regex, fancy_regex::Error> {
    let build = |source: &str| {
        fancy_regex::RegexBuilder::new(source)
            .case_insensitive(fold)
            .backtrack_limit(BACKTRACK_STEPS_MAX)
            .delegate_size_limit(COMPILED_BYTES_MAX)
            .build()
    };
    build(source).or_else(|error| match relaxed(source) {
        Some(relaxed) => build(&relaxed).map_err(|_| error),
        None => Err(error),
    })
}

/// Rewrites what PCRE takes and our engines refuse: needless escapes (`\_`, `\/`, `\e`), a
/// literal `{`, a literal `[` inside a class.
pub(crate) fn relaxed(source: &str) -> Option<String> {
    let chars: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len() + 8);
    let mut class_at: Option<usize> = None;
    let mut i = 0;
    while let Some(&c) = chars.get(i) {
        let next = chars.get(i + 1).copied();
        match (c, next) {
            ('\\', Some('Q')) => {
                // Everything up to the end mark stands for itself.
                let rest = &chars[i + 2..];
                let end = rest.windows(2).position(|w| w == ['\\', 'E']);
                let literal: String = rest[..end.unwrap_or(rest.len())].iter().collect();
                out.push_str(&regex::escape(&literal));
                i += 1 + literal.chars().count() + if end.is_some() { 2 } else { 0 };
            }
            ('\\', Some(escaped)) => {
                relax_escape(&mut out, escaped);
                i += 1;
            }
            ('[', _) if class_at.is_some() => {
                match (next, chars[i..].windows(2).position(|w| w == [':', ']'])) {
                    (Some(':'), Some(end)) => {
                        out.extend(&chars[i..i + end + 2]);
                        i += end + 1;
                    }
                    _ => out.push_str("\\["),
                }
            }
            ('[', _) => {
                class_at = Some(i);
                out.push('[');
                if next == Some('^') {
                    out.push('^');
                    i += 1;
                }
                if chars.get(i + 1) == Some(&']') {
                    out.push_str("\\]");
                    i += 1;
                }
            }
            (']', _) if class_at.is_some() => {
                class_at = None;
                out.push(']');
            }
            ('&' | '~' | '-', Some(twin)) if class_at.is_some() && twin == c => {
                out.push('\\');
                out.push(c);
            }
            (']', _) => out.push_str("\\]"),
            // Up to a number of times.
            ('{', Some(',')) if class_at.is_none() && counts_up_to(&chars[i + 1..]) => {
                out.push_str("{0");
            }
            ('{', _) if class_at.is_none() && !counts(&chars[i + 1..]) => out.push_str("\\{"),
            ('}', _) if class_at.is_none() && !ends_in_open_count(&out) => out.push_str("\\}"),
            _ => out.push(c),
        }
        i += 1;
    }
    (out != source).then_some(out)
}

fn relax_escape(out: &mut String, escaped: char) {
    match escaped {
        'e' => out.push_str("\\x1b"),
        'h' => out.push_str("[ \\t]"),
        'R' => out.push_str("(?:\\r\\n|\\n|\\r)"),
        'Z' => out.push_str("\\z"),
        c if c.is_ascii_alphanumeric() => {
            out.push('\\');
            out.push(c);
        }
        c if c.is_ascii_punctuation() && !matches!(c, '_' | '<' | '>') => {
            out.push('\\');
            out.push(c);
        }
        c => out.push(c),
    }
}

/// Whether what follows a `{` is a repetition count.
fn counts(rest: &[char]) -> bool {
    let Some(end) = rest.iter().position(|c| *c == '}') else {
        return false;
    };
    let inside = &rest[..end];
    inside.first().is_some_and(char::is_ascii_digit)
        && inside.iter().all(|c| c.is_ascii_digit() || *c == ',')
        && inside.iter().filter(|c| **c == ',').count() <= 1
}

/// Whether what follows a `{` is a comma and a number, which PCRE2 reads as `{0,number}`.
fn counts_up_to(rest: &[char]) -> bool {
    let digits = rest.iter().skip(1).take_while(|c| c.is_ascii_digit());
    let count = digits.count();
    count > 0 && rest.get(count + 1) == Some(&'}')
}

/// Whether the text written so far ends in an open repetition count.
fn ends_in_open_count(out: &str) -> bool {
    match out.rfind('{') {
        Some(0) => false,
        Some(at) => {
            !out[..at].ends_with('\\')
                && out[at + 1..]
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, ',' | '_'))
        }
        None => false,
    }
}

/// Engine messages span lines; the last holds the cause.
fn last_line(message: &str) -> &str {
    message
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .trim()
}

impl PartialEq for Regex {
    fn eq(&self, other: &Regex) -> bool {
        self.source == other.source && self.fold == other.fold
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Regex({:?}{})",
            self.source,
            if self.fold { ", -i" } else { "" }
        )
    }
}
