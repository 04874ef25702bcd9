//! Patterns and maps: lists of strings, addresses, numbers and expressions that samples are
//! compared with (manual 7.1), kept in a store that the Runtime API may change while they are
//! being read.

mod adoption;
#[cfg(test)]
mod adoption_tests;
mod changed_rules;
mod entry;
mod error;
mod handle;
mod index;
mod key_entries;
mod key_map;
mod list;
mod listed_regex;
mod loaded;
mod map_value;
mod merge;
mod needles;
mod nets;
mod parse;
mod search;
mod search_cache;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod text;
mod union;

pub(crate) use changed_rules::ChangedRules;
pub use entry::{EntrySelector, PatternEntry};
pub use error::PatternError;
pub use handle::Handle;
pub use key_entries::EntryPair;
pub use list::{ListLookup, ListMatch, PatternRef, RuntimeEntries};
pub(crate) use map_value::MapValue;
pub use merge::merge;
pub(crate) use parse::{check, is_range};
pub use state::DiscardedEntries;
pub(crate) use store::Words;
pub use store::{ListChange, ListedPatterns, NamedList, Store};
pub use text::{WrittenEntries, parse_payload};
pub(crate) use union::PatternUnion;

use crate::value::SampleKind;

/// How a sample is compared with patterns (`-m`, manual 7.1).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum MatchMethod {
    /// Prefix.
    Beg,
    /// Bytes given in hexadecimal.
    Bin,
    /// The sample is true; patterns are ignored.
    Bool,
    /// A portion between slashes and question marks.
    Dir,
    /// A portion between dots, slashes, colons and question marks.
    Dom,
    /// Suffix.
    End,
    /// The sample exists; patterns are ignored.
    Found,
    /// An integer or a range of integers.
    Int,
    /// An address or a network.
    Ip,
    /// The length of the sample, compared as an integer.
    Len,
    /// A regular expression.
    Reg,
    /// Exactly equal.
    Str,
    /// Contained.
    Sub,
}

impl MatchMethod {
    /// Every method, in alphabetical order.
    pub const ALL: [MatchMethod; 13] = [
        MatchMethod::Beg,
        MatchMethod::Bin,
        MatchMethod::Bool,
        MatchMethod::Dir,
        MatchMethod::Dom,
        MatchMethod::End,
        MatchMethod::Found,
        MatchMethod::Int,
        MatchMethod::Ip,
        MatchMethod::Len,
        MatchMethod::Reg,
        MatchMethod::Str,
        MatchMethod::Sub,
    ];

    /// The word after `-m`.
    pub const fn text(self) -> &'static str {
        match self {
            MatchMethod::Beg => "beg",
            MatchMethod::Bin => "bin",
            MatchMethod::Bool => "bool",
            MatchMethod::Dir => "dir",
            MatchMethod::Dom => "dom",
            MatchMethod::End => "end",
            MatchMethod::Found => "found",
            MatchMethod::Int => "int",
            MatchMethod::Ip => "ip",
            MatchMethod::Len => "len",
            MatchMethod::Reg => "reg",
            MatchMethod::Str => "str",
            MatchMethod::Sub => "sub",
        }
    }

    /// The method of that name.
    pub fn parse(text: &str) -> Option<MatchMethod> {
        MatchMethod::ALL
            .into_iter()
            .find(|method| method.text() == text)
    }

    /// The method that a sample of type `kind` has without `-m`.
    pub const fn of_kind(kind: SampleKind) -> Option<MatchMethod> {
        match kind {
            SampleKind::Bool => Some(MatchMethod::Bool),
            SampleKind::Int => Some(MatchMethod::Int),
            SampleKind::Addr | SampleKind::Ipv4 | SampleKind::Ipv6 => Some(MatchMethod::Ip),
            SampleKind::Str | SampleKind::Meth => Some(MatchMethod::Str),
            SampleKind::Any | SampleKind::Same | SampleKind::Bin => None,
        }
    }

    /// The type a sample is cast to before it is compared.
    pub const fn takes(self) -> SampleKind {
        match self {
            MatchMethod::Found => SampleKind::Any,
            MatchMethod::Bool | MatchMethod::Int => SampleKind::Int,
            MatchMethod::Ip => SampleKind::Addr,
            MatchMethod::Bin => SampleKind::Bin,
            MatchMethod::Beg
            | MatchMethod::Dir
            | MatchMethod::Dom
            | MatchMethod::End
            | MatchMethod::Len
            | MatchMethod::Reg
            | MatchMethod::Str
            | MatchMethod::Sub => SampleKind::Str,
        }
    }

    /// Whether patterns are compared at all.
    pub const fn takes_patterns(self) -> bool {
        !matches!(self, MatchMethod::Bool | MatchMethod::Found)
    }

    /// Whether the case can be ignored.
    pub const fn can_fold(self) -> bool {
        !matches!(
            self,
            MatchMethod::Bin
                | MatchMethod::Bool
                | MatchMethod::Found
                | MatchMethod::Int
                | MatchMethod::Ip
                | MatchMethod::Len
        )
    }
}

/// What the values of a map are.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum MapKind {
    /// Integers.
    Int,
    /// Addresses.
    Ip,
    /// The keys themselves (`map_*_key`).
    Key,
    /// Not a map: a list for an ACL.
    List,
    /// Text.
    Str,
}
