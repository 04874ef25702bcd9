//! Patterns that may stand anywhere in a subject: substrings, delimited portions, expressions.
//!
//! The first in the order of the list wins. A few are tried one after the other. Many are kept in
//! segments in the order of the list: a segment finds in one pass over the subject which of its
//! patterns have a text in it that they need, and only those are tried. What came later is tried
//! without a segment, until there is enough of it for one more.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use memchr::memmem;
use smallvec::SmallVec;

use super::MatchMethod;
use super::key_entries::Item;
use super::listed_regex::{ListedRegex, RegexWorkspace};
use super::needles::NeedleSet;
use super::parse::{is_directory_delimiter, is_domain_delimiter};
use super::search_cache::SearchCache;
use crate::groups::Groups;
use crate::required_text::TextChoice;

/// Below this many patterns one after the other is faster than a segment.
const SEGMENT_PATTERNS_MIN: usize = 16;

/// Above this many patterns making a segment takes tens of milliseconds: larger ones are made when
/// a list is read, not when an entry is added.
const LIVE_SEGMENT_PATTERNS_MAX: usize = 2048;

/// From so many expressions on, a list keeps them small.
const MANY_PATTERNS_MIN: usize = 64;

/// From so many patterns on that need no text, a filter over them says quickly that none matches.
const FILTER_PATTERNS_MIN: usize = 8;

/// Above this many a filter is no faster than they are, and takes long to make.
const FILTER_PATTERNS_MAX: usize = 1024;

/// From so many patterns on that a subject was compared with, its result is kept.
const COSTLY_TRIES_MIN: usize = 64;

/// One pattern as it is tried.
pub(super) enum SearchPattern {
    Bytes(Arc<[u8]>),
    Regex(ListedRegex),
}

/// Consecutive patterns of a list that are looked up together.
pub(crate) struct SearchSegment {
    /// The ids of its first and its last pattern.
    first: u64,
    last: u64,
    count: usize,
    needles: Option<NeedleSet<u64>>,
    /// Those that need no text, in order.
    always: Vec<u64>,
    /// A quick no for these.
    filter: Option<regex::bytes::RegexSet>,
}

/// Patterns in the order of the list.
#[derive(Default)]
pub(super) struct Search {
    list: BTreeMap<u64, (SearchPattern, Item)>,
    /// In order; together they cover the front of the list.
    segments: Vec<SearchSegment>,
    /// How many patterns no segment covers.
    uncovered: usize,
    shared: RegexWorkspace,
    cache: SearchCache,
}

impl Search {
    pub(super) fn push(&mut self, needle: SearchPattern, item: Item) {
        self.cache.clear();
        self.uncovered += 1;
        self.list.insert(item.id, (needle, item));
    }

    pub(super) fn remove(&mut self, id: u64) {
        self.cache.clear();
        let Some((pattern, _)) = self.list.remove(&id) else {
            return;
        };
        if let SearchPattern::Regex(regex) = &pattern {
            self.shared.release(regex);
        }
        // A segment may still name it.
        if self.covered_up_to().is_none_or(|last| id > last) {
            self.uncovered -= 1;
        }
    }

    pub(super) fn find_mut(&mut self, id: u64) -> Option<&mut Item> {
        self.list.get_mut(&id).map(|(_, item)| item)
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn patterns(&self) -> impl Iterator<Item = &SearchPattern> {
        self.list.values().map(|(pattern, _)| pattern)
    }

    fn covered_up_to(&self) -> Option<u64> {
        self.segments.last().map(|segment| segment.last)
    }

    /// A segment for [`Search::add_segment`], when it is time for one. It covers what no segment
    /// covers, and segments before it that are not larger.
    pub(super) fn new_segment(&self) -> Option<SearchSegment> {
        if self.uncovered < SEGMENT_PATTERNS_MIN {
            return None;
        }
        let mut count = self.uncovered;
        let mut from = self
            .covered_up_to()
            .map_or(Bound::Unbounded, Bound::Excluded);
        for segment in self.segments.iter().rev() {
            if segment.count > count || count + segment.count > LIVE_SEGMENT_PATTERNS_MAX {
                break;
            }
            count += segment.count;
            from = Bound::Included(segment.first);
        }
        Some(self.make_segment(from))
    }

    /// Makes one segment of all, whatever it takes.
    pub(super) fn build_segment(&mut self) {
        if self.list.len() >= SEGMENT_PATTERNS_MIN {
            let segment = self.make_segment(Bound::Unbounded);
            self.add_segment(segment);
        }
    }

    /// Puts in a segment that was made of the list as it stands.
    pub(super) fn add_segment(&mut self, segment: SearchSegment) {
        self.segments.retain(|known| known.last < segment.first);
        self.segments.push(segment);
        self.uncovered = 0;
    }

    fn make_segment(&self, from: Bound<u64>) -> SearchSegment {
        let entries = self.list.range((from, Bound::Unbounded));
        let entries: Vec<(u64, &SearchPattern)> =
            entries.map(|(id, (pattern, _))| (*id, pattern)).collect();
        let ends = entries.first().zip(entries.last());
        let (first, last) = ends.map_or((0, 0), |((first, _), (last, _))| (*first, *last));
        let mut always = Vec::new();
        let needles = NeedleSet::new(texts(&entries, &mut always));
        if needles.is_none() {
            always = entries.iter().map(|(id, _)| *id).collect();
        }
        SearchSegment {
            first,
            last,
            count: entries.len(),
            needles,
            filter: self.filter(&always),
            always,
        }
    }

    /// A filter over expressions that need no text.
    fn filter(&self, ids: &[u64]) -> Option<regex::bytes::RegexSet> {
        if !(FILTER_PATTERNS_MIN..=FILTER_PATTERNS_MAX).contains(&ids.len()) {
            return None;
        }
        let mut fold = false;
        let mut sources = Vec::with_capacity(ids.len());
        for id in ids {
            match &self.list.get(id)?.0 {
                SearchPattern::Regex(regex) => {
                    fold |= regex.ignores_case();
                    sources.push(regex.wide()?);
                }
                SearchPattern::Bytes(_) => return None,
            }
        }
        let mut builder = regex::bytes::RegexSetBuilder::new(sources);
        builder.case_insensitive(fold).unicode(false).build().ok()
    }

    pub(super) fn find(&self, subject: &[u8], method: MatchMethod) -> Option<&Item> {
        if let Some(known) = self.cache.get(subject) {
            return self.list.get(&known?).map(|(_, item)| item);
        }
        let many = self.list.len() >= MANY_PATTERNS_MIN;
        let found = self.search(subject, |pattern| {
            let is_match = match pattern {
                SearchPattern::Regex(regex) => regex.is_match(subject, many, &self.shared),
                SearchPattern::Bytes(bytes) => match method {
                    MatchMethod::Dir => has_portion(bytes, subject, is_directory_delimiter),
                    MatchMethod::Dom => has_portion(bytes, subject, is_domain_delimiter),
                    _ => memmem::find(subject, bytes).is_some(),
                },
            };
            is_match.then_some(())
        });
        found.map(|(item, ())| item)
    }

    pub(super) fn find_groups(&self, subject: &[u8]) -> Option<(&Item, Groups)> {
        let many = self.list.len() >= MANY_PATTERNS_MIN;
        let groups = |pattern: &SearchPattern| match pattern {
            SearchPattern::Regex(regex) => regex.groups(subject, many, &self.shared),
            SearchPattern::Bytes(..) => None,
        };
        if let Some(known) = self.cache.get(subject) {
            let (pattern, item) = self.list.get(&known?)?;
            return Some((item, groups(pattern)?));
        }
        self.search(subject, groups)
    }

    /// The first pattern in the order of the list that `try_one` says yes to. The result is kept
    /// where finding it takes much longer than looking it up.
    fn search<T>(
        &self,
        subject: &[u8],
        mut try_one: impl FnMut(&SearchPattern) -> Option<T>,
    ) -> Option<(&Item, T)> {
        let (mut tries, mut is_expression) = (0, false);
        let found = self.first_of(subject, |pattern| {
            tries += 1;
            is_expression = matches!(pattern, SearchPattern::Regex(_));
            try_one(pattern)
        });
        if tries >= COSTLY_TRIES_MIN || (is_expression && !self.segments.is_empty()) {
            let id = found.as_ref().map(|(item, _)| item.id);
            self.cache.put(subject, id);
        }
        found
    }

    fn first_of<T>(
        &self,
        subject: &[u8],
        mut try_one: impl FnMut(&SearchPattern) -> Option<T>,
    ) -> Option<(&Item, T)> {
        for segment in &self.segments {
            let mut named: SmallVec<[u64; 32]> = SmallVec::new();
            if let Some(needles) = &segment.needles {
                needles.find(subject, &mut |id| named.push(id));
            }
            named.sort_unstable();
            named.dedup();
            let is_none = |filter: &regex::bytes::RegexSet| !filter.is_match(subject);
            let always: &[u64] = match &segment.filter {
                Some(filter) if is_none(filter) => &[],
                _ => &segment.always,
            };
            for id in merged(&named, always) {
                if let Some((pattern, item)) = self.list.get(&id)
                    && let Some(found) = try_one(pattern)
                {
                    return Some((item, found));
                }
            }
        }
        let from = self
            .covered_up_to()
            .map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.list.range((from, Bound::Unbounded));
        rest.map(|(_, entry)| entry)
            .find_map(|(pattern, item)| Some((item, try_one(pattern)?)))
    }
}

/// The texts that patterns need, each with the ids of those that need it. Those that need none are
/// appended to `always`.
fn texts(entries: &[(u64, &SearchPattern)], always: &mut Vec<u64>) -> HashMap<Box<[u8]>, Vec<u64>> {
    let choices: Vec<Vec<TextChoice>> = entries
        .iter()
        .map(|(_, pattern)| pattern.choices())
        .collect();
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    for text in choices.iter().flatten().flatten() {
        *counts.entry(text).or_default() += 1;
    }
    let mut texts: HashMap<Box<[u8]>, Vec<u64>> = HashMap::new();
    for ((id, _), choices) in entries.iter().zip(&choices) {
        // The texts that the fewest have, and among those the longest, name the fewest in vain.
        let best = choices.iter().min_by_key(|choice| {
            let count: usize = choice.iter().filter_map(|text| counts.get(&**text)).sum();
            let shortest = choice.iter().map(|text| text.len()).min();
            (count, std::cmp::Reverse(shortest))
        });
        match best {
            Some(choice) => {
                for text in choice {
                    texts.entry(text.clone()).or_default().push(*id);
                }
            }
            None => always.push(*id),
        }
    }
    texts
}

impl SearchPattern {
    /// The choices of texts of which one must be in what it matches.
    pub(super) fn choices(&self) -> Vec<TextChoice> {
        match self {
            SearchPattern::Bytes(bytes) if bytes.is_empty() => Vec::new(),
            SearchPattern::Bytes(bytes) => vec![vec![bytes.to_ascii_lowercase().into()]],
            SearchPattern::Regex(regex) => regex.choices(),
        }
    }

    /// The choice with the longest texts.
    pub(super) fn best_choice(&self) -> Option<TextChoice> {
        let choices = self.choices().into_iter();
        choices.max_by_key(|choice| choice.iter().map(|text| text.len()).min())
    }
}

/// Both sorted lists in order.
fn merged(one: &[u64], other: &[u64]) -> impl Iterator<Item = u64> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(first), Some(second)) if first > second => other.next().copied(),
        (Some(_), _) => one.next().copied(),
        (None, _) => other.next().copied(),
    })
}

/// Whether the pattern stands in `subject` with a delimiter or an end on both sides.
fn has_portion(pattern: &[u8], subject: &[u8], is_delimiter: fn(u8) -> bool) -> bool {
    let length = pattern.len();
    if length == 0 {
        // A pattern of delimiters only. HAProxy compares with the byte behind the sample: it matches
        // behind a last delimiter where that is zero, and nowhere in a sample of the request itself.
        return subject.is_empty();
    }
    let mut from = 0;
    while let Some(found) = subject
        .get(from..)
        .and_then(|rest| memmem::find(rest, pattern))
    {
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

#[cfg(test)]
mod tests {
    use super::super::map_value::MapValue;
    use super::*;

    #[test]
    fn an_expression_that_is_removed_makes_room_for_another() {
        let mut search = Search::default();
        for id in 0..3 {
            let regex = ListedRegex::new(&format!("^{id}+$").into(), false).unwrap();
            let value = MapValue::None;
            search.push(SearchPattern::Regex(regex), Item { id, value });
        }
        // The third is not tried.
        let found = search.find(b"11", MatchMethod::Reg);
        assert_eq!(found.map(|item| item.id), Some(1));
        assert_eq!(search.shared.kept(), 2);
        for (id, kept) in [(2, 2), (1, 1), (1, 1), (0, 0)] {
            search.remove(id);
            assert_eq!(search.shared.kept(), kept);
        }
    }
}
