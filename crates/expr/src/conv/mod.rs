//! The catalogue of converters, one row per word, a file per family.

mod arithmetic;
mod codec;
mod digest;
mod internal;
mod map;
mod packet;
mod stick;
mod text;
mod time;

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::args::{ArgKind, ArgSpec};
pub(crate) use crate::args::{NONE, args};
use crate::handlers::ConvFn;
use crate::needs::Needs;
use crate::value::Kind;

/// A converter: one word of the language with all its sides.
#[derive(Clone, Copy, Debug)]
pub struct Conv {
    /// The word.
    pub word: &'static str,
    /// Its arguments.
    pub args: ArgSpec,
    /// The type it takes; others are cast.
    pub takes: Kind,
    /// The type it gives.
    pub out: Kind,
    /// What must be there beside its input.
    pub needs: Needs,
    pub(crate) handler: Option<ConvFn>,
}

impl Conv {
    /// Whether the converter is evaluated, not only parsed.
    pub const fn is_served(&self) -> bool {
        self.handler.is_some()
    }

    /// The same row with needs.
    const fn needs(self, needs: Needs) -> Conv {
        Conv { needs, ..self }
    }
}

impl PartialEq for Conv {
    fn eq(&self, other: &Conv) -> bool {
        self.word == other.word
    }
}

const fn row(
    word: &'static str,
    args: ArgSpec,
    takes: Kind,
    out: Kind,
    handler: Option<ConvFn>,
) -> Conv {
    Conv {
        word,
        args,
        takes,
        out,
        needs: Needs::NONE,
        handler,
    }
}

const FAMILIES: &[&[Conv]] = &[
    arithmetic::ROWS,
    codec::ROWS,
    digest::ROWS,
    internal::ROWS,
    map::ROWS,
    packet::ROWS,
    stick::ROWS,
    text::ROWS,
    time::ROWS,
];

/// Every converter, family by family.
pub fn convs() -> impl Iterator<Item = &'static Conv> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// What scripts register: `lua.` and a name, with any arguments.
static LUA: Conv = row(
    "lua.",
    args(0, &[ArgKind::Text; 12]),
    Kind::Str,
    Kind::Str,
    None,
);

/// The converter of this name.
pub fn conv(word: &str) -> Option<&'static Conv> {
    if word
        .strip_prefix("lua.")
        .is_some_and(|name| !name.is_empty())
    {
        return Some(&LUA);
    }
    static BY_WORD: OnceLock<HashMap<&'static str, &'static Conv>> = OnceLock::new();
    BY_WORD
        .get_or_init(|| convs().map(|row| (row.word, row)).collect())
        .get(word)
        .copied()
}
