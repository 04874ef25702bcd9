//! Compiled pattern lists: changed entry by entry, read by every request.
//!
//! Which pattern wins when several match is observable through maps: HAProxy gives the longest
//! prefix for `beg` and `ip`, and the first in file order elsewhere. The structures here keep
//! that while answering in time that does not grow with the list where that is possible.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::key_entries::{EntriesByKey, Item, KeyEntries, push, remove};
use super::map_value::MapValue;
use super::nets::{NetworkIndex, is_prefix4, is_prefix6};
use super::parse::{self, Pattern, Range};
use super::search::{Search, SearchPattern, SearchSegment};
use super::union::PatternUnion;
use super::{MapKind, MatchMethod};
use crate::error::ExpressionError;
use crate::groups::Groups;
use crate::value::v6_to_v4;

/// What was matched: the entry's value and, for expressions, the groups.
pub(crate) struct IndexMatch<'a> {
    pub(crate) id: u64,
    pub(crate) value: &'a MapValue,
    pub(crate) groups: Option<Groups>,
}

/// A key and its value, understood by one index.
pub(crate) struct ParsedEntry {
    pattern: Pattern,
    value: MapValue,
}

/// What an index is for: how it compares, and what its values are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct IndexShape {
    pub(crate) method: MatchMethod,
    pub(crate) fold: bool,
    pub(crate) kind: MapKind,
}

/// A compiled list.
pub(crate) struct Index {
    pub(crate) shape: IndexShape,
    look: IndexLookup,
}

enum IndexLookup {
    Exact(EntriesByKey<Arc<[u8]>>),
    AffixIndex(AffixIndex),
    Search(Search),
    Ranges {
        single: EntriesByKey<i64>,
        ranges: Vec<(Range, Item)>,
    },
    NetworkIndex(NetworkIndex),
}

/// Prefixes or suffixes, hashed, with the lengths that occur and how many keys have them.
#[derive(Default)]
struct AffixIndex {
    keys: EntriesByKey<Arc<[u8]>>,
    lengths: BTreeMap<usize, usize>,
}

impl IndexShape {
    /// Understands an entry.
    pub(crate) fn parse(
        self,
        key: &Arc<str>,
        value: Option<&Arc<str>>,
    ) -> Result<ParsedEntry, ExpressionError> {
        Ok(ParsedEntry {
            pattern: self.pattern(key)?,
            value: self.value(key, value)?,
        })
    }

    fn pattern(self, key: &Arc<str>) -> Result<Pattern, ExpressionError> {
        Ok(match parse::parse(key, self.method, self.fold)? {
            Pattern::Bytes(bytes) if self.fold => Pattern::Bytes(bytes.to_ascii_lowercase().into()),
            other => other,
        })
    }

    /// Understands the value of an entry.
    pub(crate) fn value(
        self,
        key: &Arc<str>,
        value: Option<&Arc<str>>,
    ) -> Result<MapValue, ExpressionError> {
        let text = value.map_or("", |value| value);
        let unfit = || ExpressionError::new(format!("unable to parse '{text}'"), 0..0);
        Ok(match self.kind {
            MapKind::List => MapValue::None,
            MapKind::Key => MapValue::Str(Arc::clone(key)),
            MapKind::Str => MapValue::Str(value.map_or_else(|| Arc::from(""), Arc::clone)),
            MapKind::Int => MapValue::Int(text.parse().map_err(|_| unfit())?),
            MapKind::Ip => MapValue::Ip(parse::parse_ip(text).ok_or_else(unfit)?),
        })
    }
}

impl Index {
    /// An index that matches nothing yet.
    pub(crate) fn new(shape: IndexShape) -> Index {
        let look = match shape.method {
            MatchMethod::Str | MatchMethod::Bin | MatchMethod::Bool | MatchMethod::Found => {
                IndexLookup::Exact(EntriesByKey::default())
            }
            MatchMethod::Beg | MatchMethod::End => IndexLookup::AffixIndex(AffixIndex::default()),
            MatchMethod::Sub | MatchMethod::Dir | MatchMethod::Dom | MatchMethod::Reg => {
                IndexLookup::Search(Search::default())
            }
            MatchMethod::Int | MatchMethod::Len => IndexLookup::Ranges {
                single: EntriesByKey::default(),
                ranges: Vec::new(),
            },
            MatchMethod::Ip => IndexLookup::NetworkIndex(NetworkIndex::default()),
        };
        Index { shape, look }
    }

    /// Adds an entry; its id is greater than all before.
    pub(crate) fn insert(&mut self, id: u64, parsed: ParsedEntry) {
        let item = Item {
            id,
            value: parsed.value,
        };
        match (&mut self.look, parsed.pattern) {
            (IndexLookup::Exact(keys), Pattern::Bytes(bytes)) => push(keys, bytes, item),
            (IndexLookup::AffixIndex(affix), Pattern::Bytes(bytes)) => {
                if !affix.keys.contains_key(&bytes) {
                    *affix.lengths.entry(bytes.len()).or_default() += 1;
                }
                push(&mut affix.keys, bytes, item);
            }
            (IndexLookup::Search(search), Pattern::Bytes(bytes)) => {
                search.push(SearchPattern::Bytes(bytes), item);
            }
            (IndexLookup::Search(search), Pattern::Regex(regex)) => {
                search.push(SearchPattern::Regex(regex), item);
            }
            (IndexLookup::Ranges { single, ranges }, Pattern::Range(range)) => {
                if range.low == range.high {
                    push(single, range.low, item);
                } else {
                    ranges.push((range, item));
                }
            }
            (IndexLookup::NetworkIndex(nets), Pattern::V4 { net, mask }) => {
                nets.push4(net, mask, item)
            }
            (IndexLookup::NetworkIndex(nets), Pattern::V6 { net, mask }) => {
                nets.push6(net, mask, item)
            }
            // The parser gives each method its own kind of pattern.
            _ => {}
        }
    }

    /// Takes an entry out. What was never understood is not there.
    pub(crate) fn remove(&mut self, id: u64, key: &Arc<str>) {
        if let IndexLookup::Search(search) = &mut self.look {
            // By its id, so that an expression is not compiled to be thrown away.
            return search.remove(id);
        }
        let Ok(pattern) = self.shape.pattern(key) else {
            return;
        };
        match (&mut self.look, pattern) {
            (IndexLookup::Exact(keys), Pattern::Bytes(bytes)) => {
                remove(keys, &bytes, id);
            }
            (IndexLookup::AffixIndex(affix), Pattern::Bytes(bytes)) => {
                if remove(&mut affix.keys, &bytes, id)
                    && let Some(count) = affix.lengths.get_mut(&bytes.len())
                {
                    *count -= 1;
                    if *count == 0 {
                        affix.lengths.remove(&bytes.len());
                    }
                }
            }
            (IndexLookup::Ranges { single, ranges }, Pattern::Range(range)) => {
                remove(single, &range.low, id);
                ranges.retain(|(_, item)| item.id != id);
            }
            (IndexLookup::NetworkIndex(nets), Pattern::V4 { net, mask }) => {
                nets.remove4(net, mask, id)
            }
            (IndexLookup::NetworkIndex(nets), Pattern::V6 { net, mask }) => {
                nets.remove6(net, mask, id)
            }
            _ => {}
        }
    }

    /// Gives an entry another value.
    pub(crate) fn set(&mut self, id: u64, key: &Arc<str>, value: MapValue) {
        let item = if let IndexLookup::Search(search) = &mut self.look {
            search.find_mut(id)
        } else {
            let Ok(pattern) = self.shape.pattern(key) else {
                return;
            };
            match (&mut self.look, pattern) {
                (IndexLookup::Exact(keys), Pattern::Bytes(bytes)) => keys
                    .get_mut(&bytes)
                    .and_then(|entries| entries.find_mut(id)),
                (IndexLookup::AffixIndex(affix), Pattern::Bytes(bytes)) => affix
                    .keys
                    .get_mut(&bytes)
                    .and_then(|entries| entries.find_mut(id)),
                (IndexLookup::Ranges { single, .. }, Pattern::Range(range))
                    if range.low == range.high =>
                {
                    single
                        .get_mut(&range.low)
                        .and_then(|entries| entries.find_mut(id))
                }
                (IndexLookup::Ranges { ranges, .. }, Pattern::Range(_)) => ranges
                    .iter_mut()
                    .map(|(_, item)| item)
                    .find(|item| item.id == id),
                (IndexLookup::NetworkIndex(nets), Pattern::V4 { net, mask }) => {
                    nets.find_mut4(net, mask, id)
                }
                (IndexLookup::NetworkIndex(nets), Pattern::V6 { net, mask }) => {
                    nets.find_mut6(net, mask, id)
                }
                _ => None,
            }
        };
        if let Some(item) = item {
            item.value = value;
        }
    }

    /// A segment for [`Index::add_segment`], when it is time for one. Making it takes a while, and
    /// nobody needs to wait for it.
    pub(crate) fn new_segment(&self) -> Option<SearchSegment> {
        match &self.look {
            IndexLookup::Search(search) => search.new_segment(),
            _ => None,
        }
    }

    /// Makes what helps to look up in many entries, however long it takes.
    pub(crate) fn build_segment(&mut self) {
        if let IndexLookup::Search(search) = &mut self.look {
            search.build_segment();
        }
    }

    /// Puts in a segment made of the entries as they are.
    pub(crate) fn add_segment(&mut self, segment: SearchSegment) {
        if let IndexLookup::Search(search) = &mut self.look {
            search.add_segment(segment);
        }
    }

    /// How many keys it holds.
    pub(crate) fn len(&self) -> usize {
        match &self.look {
            IndexLookup::Exact(keys) => keys.len(),
            IndexLookup::AffixIndex(affix) => affix.keys.len(),
            IndexLookup::Search(search) => search.len(),
            IndexLookup::Ranges { single, ranges } => single.len() + ranges.len(),
            IndexLookup::NetworkIndex(nets) => nets.len(),
        }
    }

    /// Whether a union of lists finds out quickly that this one does not match.
    pub(crate) fn is_united(&self) -> bool {
        match &self.look {
            IndexLookup::Search(search) => search
                .patterns()
                .all(|pattern| pattern.best_choice().is_some()),
            _ => true,
        }
    }

    /// Adds all patterns to a union of lists.
    pub(crate) fn join(&self, union: &mut PatternUnion, owner: u32) {
        match &self.look {
            IndexLookup::Exact(keys) => keys.keys().for_each(|key| union.add_whole(key, owner)),
            IndexLookup::AffixIndex(affix) if self.shape.method == MatchMethod::End => {
                let keys = affix.keys.keys();
                keys.for_each(|key| union.add_suffix(key, owner));
            }
            IndexLookup::AffixIndex(affix) => {
                let keys = affix.keys.keys();
                keys.for_each(|key| union.add_prefix(key, owner));
            }
            IndexLookup::Search(search) => {
                let patterns = search.patterns();
                patterns.for_each(|pattern| union.add_texts(pattern.best_choice(), owner));
            }
            IndexLookup::Ranges { single, ranges } => {
                let of_length = self.shape.method == MatchMethod::Len;
                let single = single.keys().map(|number| (*number, *number));
                let ranges = ranges.iter().map(|(range, _)| (range.low, range.high));
                single
                    .chain(ranges)
                    .for_each(|range| union.add_number(range, of_length, owner));
            }
            IndexLookup::NetworkIndex(nets) => {
                nets.each4(|net, mask| union.add_v4(net, mask, owner));
                nets.each6(|net, mask| union.add_v6(net, mask, owner));
            }
        }
    }

    /// The entry that wins for a text, among a few words, which are compared with it as it is; `None`
    /// where the index holds more, or others than words.
    fn find_among_few(&self, subject: &[u8]) -> Option<Option<&Item>> {
        let IndexShape { method, fold, .. } = self.shape;
        match &self.look {
            IndexLookup::Exact(keys) => Some(find_in_row(keys.row()?, subject, fold)),
            IndexLookup::AffixIndex(affix) => {
                let row = affix.keys.row()?;
                let at_end = method == MatchMethod::End;
                Some(find_affix_in_row(row, subject, at_end, fold))
            }
            _ => None,
        }
    }

    /// Whether a text matches one of a few words; `None` as for [`Index::find_among_few`].
    #[inline]
    pub(crate) fn is_among_few(&self, subject: &[u8]) -> Option<bool> {
        let fold = self.shape.fold;
        match &self.look {
            IndexLookup::Exact(keys) => Some(find_in_row(keys.row()?, subject, fold).is_some()),
            IndexLookup::AffixIndex(affix) => {
                let mut row = affix.keys.row()?.iter();
                let at_end = self.shape.method == MatchMethod::End;
                Some(row.any(|(key, _)| has_affix(subject, key, at_end, fold)))
            }
            _ => None,
        }
    }

    /// Looks bytes up; `spare` is memory for a copy in lower case.
    pub(crate) fn find_bytes(&self, subject: &[u8], spare: &mut Vec<u8>) -> Option<IndexMatch<'_>> {
        let IndexShape { method, fold, .. } = self.shape;
        if let Some(item) = self.find_among_few(subject) {
            return item.map(found);
        }
        let folding = fold && method != MatchMethod::Reg;
        let subject = if folding {
            spare.clear();
            spare.extend(subject.iter().map(u8::to_ascii_lowercase));
            &spare[..]
        } else {
            subject
        };
        let item = match &self.look {
            IndexLookup::Exact(keys) => keys.get(subject)?.first(),
            IndexLookup::AffixIndex(affix) => affix.find(subject, method == MatchMethod::End, fold),
            IndexLookup::Search(search) => search.find(subject, method),
            IndexLookup::Ranges { .. } if method == MatchMethod::Len => {
                return self.find_int(i64::try_from(subject.len()).unwrap_or(i64::MAX));
            }
            IndexLookup::Ranges { .. } | IndexLookup::NetworkIndex(_) => None,
        };
        item.map(found)
    }

    /// As [`Index::find_bytes`] for expressions, with the groups of the one that matched.
    pub(crate) fn find_groups(&self, subject: &[u8]) -> Option<IndexMatch<'_>> {
        let IndexLookup::Search(search) = &self.look else {
            return None;
        };
        let (item, groups) = search.find_groups(subject)?;
        Some(IndexMatch {
            groups: Some(groups),
            ..found(item)
        })
    }

    /// Looks an integer up.
    pub(crate) fn find_int(&self, number: i64) -> Option<IndexMatch<'_>> {
        let IndexLookup::Ranges { single, ranges } = &self.look else {
            return None;
        };
        let exact = single.get(&number).and_then(KeyEntries::first);
        let within = ranges
            .iter()
            .find(|(range, _)| (range.low..=range.high).contains(&number))
            .map(|(_, item)| item);
        let item = exact.into_iter().chain(within).min_by_key(|item| item.id)?;
        Some(found(item))
    }

    /// Looks an address up; longest prefix first.
    pub(crate) fn find_ip(&self, address: IpAddr) -> Option<IndexMatch<'_>> {
        let IndexLookup::NetworkIndex(nets) = &self.look else {
            return None;
        };
        let item = match address {
            IpAddr::V4(v4) => nets.find4(v4).or_else(|| nets.find6(v4.to_ipv6_mapped())),
            IpAddr::V6(v6) => nets
                .find6(v6)
                .or_else(|| v6_to_v4(&v6).and_then(|v4| nets.find4(v4))),
        };
        item.map(found)
    }

    /// Whether HAProxy would keep this key in a tree: told by `get map` and `get acl`.
    pub(crate) fn is_in_tree(&self, key: &str) -> bool {
        match self.shape.method {
            MatchMethod::Str | MatchMethod::Beg => !self.shape.fold,
            MatchMethod::Ip => match parse::parse_net(key) {
                Some(Pattern::V4 { mask, .. }) => is_prefix4(mask),
                Some(Pattern::V6 { mask, .. }) => is_prefix6(mask),
                _ => false,
            },
            _ => false,
        }
    }
}

fn found(item: &Item) -> IndexMatch<'_> {
    IndexMatch {
        id: item.id,
        value: &item.value,
        groups: None,
    }
}

/// Whether bytes are those of a key; with `fold`, whose key is in lower case, in any case.
#[inline]
fn is_key(bytes: &[u8], key: &[u8], fold: bool) -> bool {
    // Most differ in the first byte: no need to call for the rest.
    let (Some(first), Some(wanted)) = (bytes.first(), key.first()) else {
        return bytes.len() == key.len();
    };
    match fold {
        true => first.eq_ignore_ascii_case(wanted) && bytes.eq_ignore_ascii_case(key),
        false => first == wanted && bytes == key,
    }
}

/// Whether a text begins, or ends, with a key.
#[inline]
fn has_affix(subject: &[u8], key: &[u8], at_end: bool, fold: bool) -> bool {
    let Some(before) = subject.len().checked_sub(key.len()) else {
        return false;
    };
    let part = match at_end {
        true => &subject[before..],
        false => &subject[..key.len()],
    };
    is_key(part, key, fold)
}

fn find_in_row<'k>(row: &'k [EntriesOfKey], subject: &[u8], fold: bool) -> Option<&'k Item> {
    let length = subject.len();
    let mut hits = row.iter();
    let (_, entries) = hits.find(|(key, _)| key.len() == length && is_key(subject, key, fold))?;
    entries.first()
}

/// The prefix, or the suffix, that wins: the first in order, or the longest prefix, as
/// [`AffixIndex::find`] says.
fn find_affix_in_row<'k>(
    row: &'k [EntriesOfKey],
    subject: &[u8],
    at_end: bool,
    fold: bool,
) -> Option<&'k Item> {
    let mut best: Option<(usize, &Item)> = None;
    for (key, entries) in row {
        if !has_affix(subject, key, at_end, fold) {
            continue;
        }
        let length = key.len();
        let Some(item) = entries.first() else {
            continue;
        };
        let wins = best.is_none_or(|(longest, first)| match at_end || fold {
            true => item.id < first.id,
            false => length > longest,
        });
        if wins {
            best = Some((length, item));
        }
    }
    best.map(|(_, item)| item)
}

/// A key and its entries.
type EntriesOfKey = (Arc<[u8]>, KeyEntries);

impl AffixIndex {
    fn find(&self, subject: &[u8], at_end: bool, first: bool) -> Option<&Item> {
        let lengths = self.lengths.range(..=subject.len()).rev();
        let mut hits = lengths.filter_map(|(length, _)| {
            let part = if at_end {
                &subject[subject.len() - length..]
            } else {
                &subject[..*length]
            };
            self.keys.get(part).and_then(KeyEntries::first)
        });
        // The tree of prefixes gives the longest; lists give the first in order.
        if at_end || first {
            hits.min_by_key(|item| item.id)
        } else {
            hits.next()
        }
    }
}
