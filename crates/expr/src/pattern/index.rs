//! Compiled pattern lists: built once per change, read by every request.
//!
//! Which pattern wins when several match is observable through maps: HAProxy gives the longest
//! prefix for `beg` and `ip`, and the first in file order elsewhere. The structures here keep
//! that while answering in time that does not grow with the list where that is possible.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use memchr::memmem;

use super::parse::{self, Pattern, Range, is_domain_delimiter};
use super::store::Entry;
use super::{MapKind, Method};
use crate::error::Error;
use crate::regex::{Groups, Regex};
use crate::value::v6_to_v4;

type Map<K> = HashMap<K, u32, foldhash::fast::RandomState>;

/// Below this many patterns one after the other is faster than a filter over all.
const FILTER_PATTERNS_MIN: usize = 8;

/// The value beside a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MapValue {
    None,
    Str(Box<[u8]>),
    Int(i64),
    Ip(IpAddr),
}

/// What was matched: the entry's value and, for expressions, the groups.
pub(crate) struct Found<'a> {
    pub(crate) value: &'a MapValue,
    pub(crate) groups: Option<Groups>,
}

/// A compiled list.
pub(crate) struct Index {
    method: Method,
    fold: bool,
    look: Look,
    values: Vec<MapValue>,
}

enum Look {
    Exact(Map<Box<[u8]>>),
    Affix(Affix),
    Search(Search),
    Ranges {
        single: Map<i64>,
        ranges: Vec<(Range, u32)>,
    },
    Nets(Nets),
    Regexes {
        list: Vec<Regex>,
        filter: Option<regex::bytes::RegexSet>,
    },
}

/// Prefixes or suffixes, hashed, with the lengths that occur, longest first.
struct Affix {
    keys: Map<Box<[u8]>>,
    lengths: Vec<usize>,
}

/// Substrings and delimited portions: in order, behind a filter when there are many.
struct Search {
    list: Vec<memmem::Finder<'static>>,
    folded: Vec<Box<[u8]>>,
    filter: Option<regex::bytes::Regex>,
}

#[derive(Default)]
struct Nets {
    v4: Vec<(u32, Map<u32>)>,
    v6: Vec<(u128, Map<u128>)>,
    /// Masks that are no prefix: compared one by one after the rest.
    odd4: Vec<(u32, u32, u32)>,
    odd6: Vec<(u128, u128, u32)>,
}

impl Index {
    /// Compiles the entries of one version of a list.
    pub(crate) fn build<'e>(
        entries: impl Iterator<Item = &'e Entry>,
        method: Method,
        fold: bool,
        kind: MapKind,
    ) -> Result<Index, Error> {
        let mut patterns = Vec::new();
        let mut values = Vec::new();
        for entry in entries {
            let at_line = |error: Error| match entry.line {
                0 => error,
                line => Error {
                    message: format!("line {line}: {}", error.message),
                    ..error
                },
            };
            patterns.push(parse::parse(&entry.key, method, fold).map_err(at_line)?);
            values.push(map_value(entry, kind).map_err(at_line)?);
        }
        Ok(Index {
            method,
            fold,
            look: Look::build(patterns, method, fold),
            values,
        })
    }

    /// An index that matches nothing.
    pub(crate) fn empty(method: Method, fold: bool) -> Index {
        Index {
            method,
            fold,
            look: Look::build(Vec::new(), method, fold),
            values: Vec::new(),
        }
    }

    fn found(&self, at: u32) -> Option<Found<'_>> {
        let value = self.values.get(at as usize)?;
        Some(Found {
            value,
            groups: None,
        })
    }

    /// Looks bytes up; `spare` is memory for a copy in lower case.
    pub(crate) fn find_bytes(&self, subject: &[u8], spare: &mut Vec<u8>) -> Option<Found<'_>> {
        let folding = self.fold && !matches!(self.look, Look::Regexes { .. });
        let subject = if folding {
            spare.clear();
            spare.extend(subject.iter().map(u8::to_ascii_lowercase));
            &spare[..]
        } else {
            subject
        };
        match &self.look {
            Look::Exact(keys) => self.found(*keys.get(subject)?),
            Look::Affix(affix) => {
                self.found(affix.find(subject, self.method == Method::End, self.fold)?)
            }
            Look::Search(search) => self.found(search.find(subject, self.method)?),
            Look::Ranges { .. } if self.method == Method::Len => {
                self.find_int(i64::try_from(subject.len()).unwrap_or(i64::MAX))
            }
            Look::Regexes { list, filter } => {
                if filter
                    .as_ref()
                    .is_some_and(|filter| !filter.is_match(subject))
                {
                    return None;
                }
                let at = list.iter().position(|regex| regex.is_match(subject))?;
                self.found(u32::try_from(at).ok()?)
            }
            Look::Ranges { .. } | Look::Nets(_) => None,
        }
    }

    /// As [`Index::find_bytes`] for expressions, with the groups of the one that matched.
    pub(crate) fn find_groups(&self, subject: &[u8]) -> Option<Found<'_>> {
        let Look::Regexes { list, filter } = &self.look else {
            return None;
        };
        if filter
            .as_ref()
            .is_some_and(|filter| !filter.is_match(subject))
        {
            return None;
        }
        list.iter().enumerate().find_map(|(at, regex)| {
            let groups = regex.groups(subject, 0)?;
            Some(Found {
                value: self.values.get(at)?,
                groups: Some(groups),
            })
        })
    }

    /// Looks an integer up.
    pub(crate) fn find_int(&self, number: i64) -> Option<Found<'_>> {
        let Look::Ranges { single, ranges } = &self.look else {
            return None;
        };
        let exact = single.get(&number).copied();
        let within = ranges
            .iter()
            .find(|(range, _)| (range.low..=range.high).contains(&number))
            .map(|(_, at)| *at);
        self.found(exact.into_iter().chain(within).min()?)
    }

    /// Looks an address up; longest prefix first.
    pub(crate) fn find_ip(&self, address: IpAddr) -> Option<Found<'_>> {
        let Look::Nets(nets) = &self.look else {
            return None;
        };
        let at = match address {
            IpAddr::V4(v4) => nets.find4(v4).or_else(|| nets.find6(v4.to_ipv6_mapped())),
            IpAddr::V6(v6) => nets
                .find6(v6)
                .or_else(|| v6_to_v4(&v6).and_then(|v4| nets.find4(v4))),
        };
        self.found(at?)
    }
}

fn map_value(entry: &Entry, kind: MapKind) -> Result<MapValue, Error> {
    let text = entry.value.as_deref().unwrap_or_default();
    Ok(match kind {
        MapKind::List => MapValue::None,
        MapKind::Key => MapValue::Str(entry.key.as_bytes().into()),
        MapKind::Str => MapValue::Str(text.as_bytes().into()),
        MapKind::Int => MapValue::Int(
            text.parse()
                .map_err(|_| Error::new(format!("the value '{text}' is not an integer"), 0..0))?,
        ),
        MapKind::Ip => MapValue::Ip(
            parse::parse_ip(text)
                .ok_or_else(|| Error::new(format!("the value '{text}' is not an address"), 0..0))?,
        ),
    })
}

impl Look {
    fn build(patterns: Vec<Pattern>, method: Method, fold: bool) -> Look {
        match method {
            Method::Str | Method::Bin | Method::Bool | Method::Found => {
                Look::Exact(keyed(patterns, fold))
            }
            Method::Beg | Method::End => {
                let keys: Map<Box<[u8]>> = keyed(patterns, fold);
                let mut lengths: Vec<usize> = keys.keys().map(|key| key.len()).collect();
                lengths.sort_unstable_by(|a, b| b.cmp(a));
                lengths.dedup();
                Look::Affix(Affix { keys, lengths })
            }
            Method::Sub | Method::Dir | Method::Dom => Look::Search(Search::build(patterns, fold)),
            Method::Int | Method::Len => ranges(patterns),
            Method::Ip => Look::Nets(Nets::build(patterns)),
            Method::Reg => regexes(patterns),
        }
    }
}

fn folded(bytes: Vec<u8>, fold: bool) -> Vec<u8> {
    if fold {
        bytes.to_ascii_lowercase()
    } else {
        bytes
    }
}

fn keyed(patterns: Vec<Pattern>, fold: bool) -> Map<Box<[u8]>> {
    let mut keys = Map::default();
    for (at, pattern) in (0u32..).zip(patterns) {
        if let Pattern::Bytes(bytes) = pattern {
            first_wins(&mut keys, folded(bytes, fold).into_boxed_slice(), at);
        }
    }
    keys
}

fn first_wins<K: Eq + Hash>(keys: &mut Map<K>, key: K, at: u32) {
    keys.entry(key).or_insert(at);
}

fn ranges(patterns: Vec<Pattern>) -> Look {
    let mut single = Map::default();
    let mut ranges = Vec::new();
    for (at, pattern) in (0u32..).zip(patterns) {
        match pattern {
            Pattern::Range(range) if range.low == range.high => {
                first_wins(&mut single, range.low, at);
            }
            Pattern::Range(range) => ranges.push((range, at)),
            _ => {}
        }
    }
    Look::Ranges { single, ranges }
}

fn regexes(patterns: Vec<Pattern>) -> Look {
    let list: Vec<Regex> = patterns
        .into_iter()
        .filter_map(|pattern| match pattern {
            Pattern::Regex(regex) => Some(regex),
            _ => None,
        })
        .collect();
    let filter = (list.len() >= FILTER_PATTERNS_MIN)
        .then(|| {
            let fold = list.iter().any(Regex::ignores_case);
            regex::bytes::RegexSetBuilder::new(list.iter().map(Regex::source))
                .case_insensitive(fold)
                .unicode(false)
                .build()
                .ok()
        })
        .flatten();
    Look::Regexes { list, filter }
}

impl Affix {
    fn find(&self, subject: &[u8], at_end: bool, first: bool) -> Option<u32> {
        let hits = self
            .lengths
            .iter()
            .filter(|length| **length <= subject.len())
            .filter_map(|length| {
                let part = if at_end {
                    &subject[subject.len() - length..]
                } else {
                    &subject[..*length]
                };
                self.keys.get(part).copied()
            });
        // The tree of prefixes gives the longest; lists give the first in order.
        if at_end || first {
            hits.min()
        } else {
            { hits }.next()
        }
    }
}

impl Search {
    fn build(patterns: Vec<Pattern>, fold: bool) -> Search {
        let keys: Vec<Box<[u8]>> = patterns
            .into_iter()
            .filter_map(|pattern| match pattern {
                Pattern::Bytes(bytes) => Some(folded(bytes, fold).into_boxed_slice()),
                _ => None,
            })
            .collect();
        let filter = (keys.len() >= FILTER_PATTERNS_MIN && keys.iter().all(|key| !key.is_empty()))
            .then(|| {
                let alternatives: Vec<String> = keys
                    .iter()
                    .map(|key| key.iter().map(|byte| format!("\\x{byte:02x}")).collect())
                    .collect();
                regex::bytes::RegexBuilder::new(&alternatives.join("|"))
                    .unicode(false)
                    .build()
                    .ok()
            })
            .flatten();
        let list = keys
            .iter()
            .map(|key| memmem::Finder::new(key).into_owned())
            .collect();
        Search {
            list,
            folded: keys,
            filter,
        }
    }

    fn find(&self, subject: &[u8], method: Method) -> Option<u32> {
        if self
            .filter
            .as_ref()
            .is_some_and(|filter| !filter.is_match(subject))
        {
            return None;
        }
        let at = (0..self.list.len()).position(|at| match method {
            Method::Dir => self.has_portion(at, subject, |byte| byte == b'/'),
            Method::Dom => self.has_portion(at, subject, is_domain_delimiter),
            _ => self.list[at].find(subject).is_some(),
        })?;
        u32::try_from(at).ok()
    }

    /// Whether the pattern stands in `subject` with a delimiter or an end on both sides.
    fn has_portion(&self, at: usize, subject: &[u8], is_delimiter: fn(u8) -> bool) -> bool {
        let length = self.folded[at].len();
        if length == 0 {
            // Nothing between two delimiters: any subject has it only when it is empty too.
            return subject.is_empty();
        }
        let mut from = 0;
        while let Some(found) = subject
            .get(from..)
            .and_then(|rest| self.list[at].find(rest))
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
}

impl Nets {
    fn build(patterns: Vec<Pattern>) -> Nets {
        let mut nets = Nets::default();
        let mut v4: HashMap<u32, Map<u32>> = HashMap::new();
        let mut v6: HashMap<u128, Map<u128>> = HashMap::new();
        for (at, pattern) in (0u32..).zip(patterns) {
            match pattern {
                Pattern::V4 { net, mask } if mask.leading_ones() + mask.trailing_zeros() >= 32 => {
                    first_wins(v4.entry(mask).or_default(), net, at);
                }
                Pattern::V4 { net, mask } => nets.odd4.push((net, mask, at)),
                Pattern::V6 { net, mask } if mask.leading_ones() + mask.trailing_zeros() >= 128 => {
                    first_wins(v6.entry(mask).or_default(), net, at);
                }
                Pattern::V6 { net, mask } => nets.odd6.push((net, mask, at)),
                _ => {}
            }
        }
        nets.v4 = v4.into_iter().collect();
        nets.v4
            .sort_unstable_by_key(|(mask, _)| std::cmp::Reverse(*mask));
        nets.v6 = v6.into_iter().collect();
        nets.v6
            .sort_unstable_by_key(|(mask, _)| std::cmp::Reverse(*mask));
        nets
    }

    fn find4(&self, address: Ipv4Addr) -> Option<u32> {
        let bits = u32::from(address);
        let by_prefix = self
            .v4
            .iter()
            .find_map(|(mask, nets)| nets.get(&(bits & mask)).copied());
        by_prefix.or_else(|| {
            self.odd4
                .iter()
                .find(|(net, mask, _)| bits & mask == *net)
                .map(|(_, _, at)| *at)
        })
    }

    fn find6(&self, address: Ipv6Addr) -> Option<u32> {
        let bits = u128::from(address);
        let by_prefix = self
            .v6
            .iter()
            .find_map(|(mask, nets)| nets.get(&(bits & mask)).copied());
        by_prefix.or_else(|| {
            self.odd6
                .iter()
                .find(|(net, mask, _)| bits & mask == *net)
                .map(|(_, _, at)| *at)
        })
    }
}
