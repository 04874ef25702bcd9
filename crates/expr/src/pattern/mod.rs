//! Patterns and maps: lists of strings, addresses, numbers and expressions that samples are
//! compared with (manual 7.1), kept in a store that the Runtime API may change while they are
//! being read.

mod entry;
mod error;
mod few;
mod handle;
mod index;
mod list;
mod loaded;
mod map_value;
mod merge;
mod nets;
mod parse;
mod search;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod text;

pub use entry::{Entry, Which};
pub use error::PatternError;
pub use few::Pair;
pub use handle::Handle;
pub use list::{Hit, PatternRef, Probe, RuntimeEntries};
pub(crate) use map_value::MapValue;
pub use merge::merge;
pub(crate) use parse::{check, is_range};
pub use state::Discarded;
pub(crate) use store::Words;
pub use store::{ListChange, Listed, NamedList, Store};
pub use text::{WrittenEntries, parse_payload};

use crate::value::Kind;

/// How a sample is compared with patterns (`-m`, manual 7.1).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Method {
    /// Prefix.
    Beg,
    /// Bytes given in hexadecimal.
    Bin,
    /// The sample is true; patterns are ignored.
    Bool,
    /// A portion between slashes.
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

impl Method {
    /// Every method, in alphabetical order.
    pub const ALL: [Method; 13] = [
        Method::Beg,
        Method::Bin,
        Method::Bool,
        Method::Dir,
        Method::Dom,
        Method::End,
        Method::Found,
        Method::Int,
        Method::Ip,
        Method::Len,
        Method::Reg,
        Method::Str,
        Method::Sub,
    ];

    /// The word after `-m`.
    pub const fn text(self) -> &'static str {
        match self {
            Method::Beg => "beg",
            Method::Bin => "bin",
            Method::Bool => "bool",
            Method::Dir => "dir",
            Method::Dom => "dom",
            Method::End => "end",
            Method::Found => "found",
            Method::Int => "int",
            Method::Ip => "ip",
            Method::Len => "len",
            Method::Reg => "reg",
            Method::Str => "str",
            Method::Sub => "sub",
        }
    }

    /// The method of that name.
    pub fn parse(text: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.text() == text)
    }

    /// The method that a sample of type `kind` has without `-m`.
    pub const fn of_kind(kind: Kind) -> Option<Method> {
        match kind {
            Kind::Bool => Some(Method::Bool),
            Kind::Int => Some(Method::Int),
            Kind::Addr | Kind::Ipv4 | Kind::Ipv6 => Some(Method::Ip),
            Kind::Str | Kind::Meth => Some(Method::Str),
            Kind::Any | Kind::Same | Kind::Bin => None,
        }
    }

    /// The type a sample is cast to before it is compared.
    pub const fn takes(self) -> Kind {
        match self {
            Method::Found => Kind::Any,
            Method::Bool | Method::Int => Kind::Int,
            Method::Ip => Kind::Addr,
            Method::Bin => Kind::Bin,
            Method::Beg
            | Method::Dir
            | Method::Dom
            | Method::End
            | Method::Len
            | Method::Reg
            | Method::Str
            | Method::Sub => Kind::Str,
        }
    }

    /// Whether patterns are compared at all.
    pub const fn takes_patterns(self) -> bool {
        !matches!(self, Method::Bool | Method::Found)
    }

    /// Whether the case can be ignored.
    pub const fn can_fold(self) -> bool {
        !matches!(
            self,
            Method::Bin | Method::Bool | Method::Found | Method::Int | Method::Ip | Method::Len
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
