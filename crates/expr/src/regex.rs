//! Regular expressions in the dialect of configuration files (PCRE).
//!
//! Most patterns run on a linear-time engine. Look-around and back-references, which it lacks,
//! are left to [`backtrack`](crate::backtrack), with a number of steps for each search; one that
//! does not suffice is counted, and the pattern does not match, as beyond PCRE2's limits.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use regex_syntax::hir::{HirKind, Look};

use crate::backtrack::Program;
use crate::byte_text::expression_of_text;
use crate::error::ExpressionError;
use crate::groups::Groups;
use crate::pcre::Pcre;
use crate::search_limit::SearchLimit;

/// Bytes one compiled pattern may take.
const COMPILED_BYTES_MAX: usize = 16 << 20;

/// A compiled regular expression; equal when source and flags are.
#[derive(Clone)]
pub struct Regex {
    source: Arc<str>,
    fold: bool,
    engine: Arc<RegexEngine>,
}

enum RegexEngine {
    Linear(Box<Linear>),
    Backtracking(Box<Program>),
}

struct Linear {
    regex: regex::bytes::Regex,
    /// The expression is `^` and this text, which is compared without the engine.
    prefix: Option<Box<[u8]>>,
    /// Memory for the positions of one match, so that a match allocates nothing.
    spare: Mutex<Option<regex::bytes::CaptureLocations>>,
    /// For subjects that end in a newline, where `$` has two places to match; made for the first.
    before_newline: Option<OnceLock<Option<Program>>>,
}

impl Regex {
    /// Compiles `source`; `fold` ignores the case (`-i`).
    ///
    /// # Errors
    /// When the pattern is not valid in either engine.
    pub fn new(source: &str, fold: bool) -> Result<Regex, ExpressionError> {
        let pcre = Pcre::read(&expression_of_text(source), fold)?;
        let invalid = |cause: String| {
            let message = format!("regex '{source}' is invalid: {}", last_line(&cause));
            ExpressionError::new(message, 0..source.len())
        };
        let engine = if pcre.backtracks() {
            let program = Program::compile(pcre.marked(), fold).map_err(invalid)?;
            RegexEngine::Backtracking(Box::new(program))
        } else {
            let text = pcre.without_newline();
            let regex = linear(&text, fold).map_err(invalid)?;
            RegexEngine::Linear(Box::new(Linear {
                prefix: anchored_literal(&text, fold),
                spare: Mutex::new(Some(regex.capture_locations())),
                before_newline: pcre.has_end().then(OnceLock::new),
                regex,
            }))
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
        match (&*self.engine, self.backtracking_for(subject)) {
            (RegexEngine::Linear(linear), None) => linear.is_match(subject),
            _ => self.groups(subject, 0).is_some(),
        }
    }

    /// The first match from byte `at` on, with its groups.
    pub fn groups(&self, subject: &[u8], at: usize) -> Option<Groups> {
        let program = match (self.backtracking_for(subject), &*self.engine) {
            (None, RegexEngine::Linear(linear)) => return linear.groups(subject, at),
            (Some(program), _) => program,
            (None, RegexEngine::Backtracking(program)) => program,
        };
        let found = SearchLimit::within(|steps| program.search(subject, at, steps));
        found.unwrap_or_else(|_| {
            SearchLimit::count_exhausted(&self.source);
            None
        })
    }

    /// Where in `subject` the expression matches first: from, and up to.
    pub(crate) fn find(&self, subject: &[u8]) -> Option<(usize, usize)> {
        match (&*self.engine, self.backtracking_for(subject)) {
            (RegexEngine::Linear(linear), None) => linear.find(subject),
            _ => self.groups(subject, 0)?[0],
        }
    }

    /// The program to search for, where `subject` ends in a newline that `$` may match before.
    fn backtracking_for(&self, subject: &[u8]) -> Option<&Program> {
        if subject.last() != Some(&b'\n') {
            return None;
        }
        let RegexEngine::Linear(linear) = &*self.engine else {
            return None;
        };
        let made = linear.before_newline.as_ref()?.get_or_init(|| {
            let pcre = Pcre::read(&expression_of_text(&self.source), self.fold).ok()?;
            Program::compile(pcre.marked(), self.fold).ok()
        });
        made.as_ref()
    }
}

impl Linear {
    fn is_match(&self, subject: &[u8]) -> bool {
        match &self.prefix {
            Some(prefix) => subject.starts_with(prefix),
            None => self.regex.is_match(subject),
        }
    }

    fn find(&self, subject: &[u8]) -> Option<(usize, usize)> {
        if let Some(prefix) = &self.prefix {
            return subject.starts_with(prefix).then_some((0, prefix.len()));
        }
        let found = self.regex.find(subject)?;
        Some((found.start(), found.end()))
    }

    fn groups(&self, subject: &[u8], at: usize) -> Option<Groups> {
        let mut groups = Groups::default();
        if self.regex.captures_len() == 1 {
            let found = self.regex.find_at(subject, at)?;
            groups[0] = Some((found.start(), found.end()));
            return Some(groups);
        }
        // Another worker may be using the memory: then this match brings its own.
        let taken = self
            .spare
            .try_lock()
            .ok()
            .and_then(|mut spare| spare.take());
        let mut positions = taken.unwrap_or_else(|| self.regex.capture_locations());
        let found = self
            .regex
            .captures_read_at(&mut positions, subject, at)
            .is_some();
        for (number, slot) in groups.iter_mut().enumerate() {
            *slot = positions.get(number);
        }
        if let Ok(mut spare) = self.spare.try_lock() {
            *spare = Some(positions);
        }
        found.then_some(groups)
    }
}

/// The text of an expression that is `^` and a plain text.
fn anchored_literal(text: &str, fold: bool) -> Option<Box<[u8]>> {
    let mut parser = regex_syntax::ParserBuilder::new()
        .case_insensitive(fold)
        .unicode(false)
        .utf8(false)
        .build();
    let parsed = parser.parse(text).ok()?;
    let HirKind::Concat(parts) = parsed.kind() else {
        return None;
    };
    match parts.as_slice() {
        [start, literal] => match (start.kind(), literal.kind()) {
            (HirKind::Look(Look::Start), HirKind::Literal(text)) => Some(text.0.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn linear(text: &str, fold: bool) -> Result<regex::bytes::Regex, String> {
    regex::bytes::RegexBuilder::new(text)
        .case_insensitive(fold)
        .unicode(false)
        .size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|error| error.to_string())
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

#[cfg(test)]
#[path = "regex_tests.rs"]
mod tests;
