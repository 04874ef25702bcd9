//! Patterns that must be tried one after the other: substrings, delimited portions, expressions.
//!
//! The first in the order of the list wins. When there are many, a filter over all that were
//! there when it was made says quickly that none of them can match; what came later is tried
//! without. A filter is remade when those have grown to a share of the list, so that adding one
//! pattern after the other costs in sum a small multiple of building once.

use std::sync::Arc;

use memchr::memmem;

use super::MatchMethod;
use super::key_entries::Item;
use super::parse::is_domain_delimiter;
use crate::regex::{Groups, Regex};

/// Below this many patterns one after the other is faster than a filter over all.
const FILTER_PATTERNS_MIN: usize = 8;

/// Above this many patterns making a filter takes tens of milliseconds: it is made when a list
/// is read, not when an entry is added.
const LIVE_FILTER_PATTERNS_MAX: usize = 1024;

/// One pattern as it is tried.
pub(super) enum SearchPattern {
    Bytes(Box<memmem::Finder<'static>>, Arc<[u8]>),
    Regex(Regex),
}

/// A quick no for the first patterns of a list.
pub(crate) enum PatternFilter {
    Any(regex::bytes::Regex),
    Set(regex::bytes::RegexSet),
}

impl PatternFilter {
    fn may_match(&self, subject: &[u8]) -> bool {
        match self {
            PatternFilter::Any(filter) => filter.is_match(subject),
            PatternFilter::Set(filter) => filter.is_match(subject),
        }
    }
}

/// Patterns in the order of the list.
pub(super) struct Search {
    list: Vec<(SearchPattern, Item)>,
    filter: Option<PatternFilter>,
    /// So many of the first patterns are behind the filter.
    covered: usize,
    /// So many were looked at when a filter was last made or found impossible.
    judged: usize,
}

impl Search {
    pub(super) const fn new() -> Search {
        Search {
            list: Vec::new(),
            filter: None,
            covered: 0,
            judged: 0,
        }
    }

    pub(super) fn push(&mut self, needle: SearchPattern, item: Item) {
        self.list.push((needle, item));
    }

    fn place(&self, id: u64) -> Option<usize> {
        self.list
            .binary_search_by_key(&id, |(_, item)| item.id)
            .ok()
    }

    pub(super) fn remove(&mut self, id: u64) {
        let Some(at) = self.place(id) else { return };
        self.list.remove(at);
        // The filter then lets through more than it must, which is no harm.
        self.covered -= usize::from(at < self.covered);
        self.judged -= usize::from(at < self.judged);
    }

    pub(super) fn find_mut(&mut self, id: u64) -> Option<&mut Item> {
        let at = self.place(id)?;
        self.list.get_mut(at).map(|(_, item)| item)
    }

    /// A filter, when it is time for a new one: `None` inside when none can be made.
    pub(super) fn new_filter(&self) -> Option<Option<PatternFilter>> {
        let fresh = self.list.len() - self.judged;
        let is_due = fresh >= FILTER_PATTERNS_MIN + self.judged / 4;
        if !is_due || self.list.len() > LIVE_FILTER_PATTERNS_MAX {
            return None;
        }
        Some(self.make_filter())
    }

    /// Makes the filter, whatever it takes.
    pub(super) fn build_filters(&mut self) {
        if self.list.len() >= FILTER_PATTERNS_MIN {
            let filter = self.make_filter();
            self.filter_with(filter);
        }
    }

    fn make_filter(&self) -> Option<PatternFilter> {
        let mut alternatives = Vec::with_capacity(self.list.len());
        let mut fold = false;
        let mut regexes = false;
        for (needle, _) in &self.list {
            match needle {
                // What is empty is found everywhere, and no filter can say no.
                SearchPattern::Bytes(_, bytes) if bytes.is_empty() => return None,
                SearchPattern::Bytes(_, bytes) => alternatives.push(literal(bytes)),
                SearchPattern::Regex(regex) => {
                    regexes = true;
                    fold |= regex.ignores_case();
                    alternatives.push(regex.source().to_owned());
                }
            }
        }
        if regexes {
            let mut builder = regex::bytes::RegexSetBuilder::new(&alternatives);
            let built = builder.case_insensitive(fold).unicode(false).build();
            return built.ok().map(PatternFilter::Set);
        }
        let mut builder = regex::bytes::RegexBuilder::new(&alternatives.join("|"));
        builder.unicode(false).build().ok().map(PatternFilter::Any)
    }

    /// Puts a filter in that was made of the list as it stands.
    pub(super) fn filter_with(&mut self, filter: Option<PatternFilter>) {
        self.judged = self.list.len();
        self.covered = if filter.is_some() { self.list.len() } else { 0 };
        self.filter = filter;
    }

    /// Those that have to be tried.
    fn candidates(&self, subject: &[u8]) -> &[(SearchPattern, Item)] {
        let skipped = match &self.filter {
            Some(filter) if !filter.may_match(subject) => self.covered,
            _ => 0,
        };
        self.list.get(skipped..).unwrap_or_default()
    }

    pub(super) fn find(&self, subject: &[u8], method: MatchMethod) -> Option<&Item> {
        self.candidates(subject)
            .iter()
            .find(|(needle, _)| match needle {
                SearchPattern::Regex(regex) => regex.is_match(subject),
                SearchPattern::Bytes(finder, bytes) => match method {
                    MatchMethod::Dir => has_portion(finder, bytes, subject, |byte| byte == b'/'),
                    MatchMethod::Dom => has_portion(finder, bytes, subject, is_domain_delimiter),
                    _ => finder.find(subject).is_some(),
                },
            })
            .map(|(_, item)| item)
    }

    pub(super) fn find_groups(&self, subject: &[u8]) -> Option<(&Item, Groups)> {
        self.candidates(subject)
            .iter()
            .find_map(|(needle, item)| match needle {
                SearchPattern::Regex(regex) => Some((item, regex.groups(subject, 0)?)),
                SearchPattern::Bytes(..) => None,
            })
    }
}

/// Bytes as an expression that matches them.
fn literal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 4);
    for byte in bytes {
        text.push_str("\\x");
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// Whether the pattern stands in `subject` with a delimiter or an end on both sides.
fn has_portion(
    finder: &memmem::Finder<'_>,
    pattern: &[u8],
    subject: &[u8],
    is_delimiter: fn(u8) -> bool,
) -> bool {
    let length = pattern.len();
    if length == 0 {
        // Nothing between two delimiters: any subject has it only when it is empty too.
        return subject.is_empty();
    }
    let mut from = 0;
    while let Some(found) = subject.get(from..).and_then(|rest| finder.find(rest)) {
        let start = from + found;
        let end = start + length;
        let free_before = start == 0 || is_delimiter(subject[start - 1]);
        let free_after = subject.get(end).is_none_or(|byte| is_delimiter(*byte));
        if free_before && free_after {
            return true;
        }
        from = start + 1;
    }
    false
}
