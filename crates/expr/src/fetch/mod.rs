//! The catalogue of sample fetches, one row per word, a file per family.

mod constant;
mod developer;
mod http_exchange;
mod http_request;
mod http_response;
mod internal;
mod layer4;
mod layer6;
mod stick_counter;
mod stick_numbered;
mod stick_source;
mod tls_back;
mod tls_front;

use std::collections::HashMap;
use std::sync::OnceLock;

pub(crate) use crate::args::{ACL_NAMES, NONE, args};
use crate::args::{ArgKind, ArgSpec};
use crate::handlers::FetchFn;
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::Kind;

/// A sample fetch: one word of the language with all its sides.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    /// The word.
    pub word: &'static str,
    /// Its arguments.
    pub args: ArgSpec,
    /// The type of the sample.
    pub out: Kind,
    /// Where it may be asked.
    pub phases: Phases,
    /// What must be there for it to have a value.
    pub needs: Needs,
    pub(crate) handler: Option<FetchFn>,
}

impl Fetch {
    /// Whether the sample is evaluated, not only parsed.
    pub const fn is_served(&self) -> bool {
        self.handler.is_some()
    }

    /// The same row with other needs than its places tell.
    const fn needs(self, needs: Needs) -> Fetch {
        Fetch { needs, ..self }
    }
}

impl PartialEq for Fetch {
    fn eq(&self, other: &Fetch) -> bool {
        self.word == other.word
    }
}

/// A row. What it needs follows from the places where it may be asked; [`Fetch::needs`] says
/// otherwise.
const fn row(
    word: &'static str,
    args: ArgSpec,
    out: Kind,
    phases: Phases,
    handler: Option<FetchFn>,
) -> Fetch {
    Fetch {
        word,
        args,
        out,
        phases,
        needs: Needs::of(phases),
        handler,
    }
}

const FAMILIES: &[&[Fetch]] = &[
    constant::ROWS,
    developer::ROWS,
    http_exchange::ROWS,
    http_request::ROWS,
    http_response::ROWS,
    internal::ROWS,
    layer4::ROWS,
    layer6::ROWS,
    stick_counter::ROWS,
    stick_numbered::ROWS,
    stick_source::ROWS,
    tls_back::ROWS,
    tls_front::ROWS,
];

/// Every sample fetch, family by family.
pub fn fetches() -> impl Iterator<Item = &'static Fetch> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// What scripts register: `lua.` and a name, with any arguments. No name is known before the
/// scripts ran, so all are one row.
static LUA: Fetch = row(
    "lua.",
    args(0, &[ArgKind::Text; 12]),
    Kind::Str,
    Phases::ALWAYS,
    None,
);

/// The fetch of this name.
pub fn fetch(word: &str) -> Option<&'static Fetch> {
    if word
        .strip_prefix("lua.")
        .is_some_and(|name| !name.is_empty())
    {
        return Some(&LUA);
    }
    static BY_WORD: OnceLock<HashMap<&'static str, &'static Fetch>> = OnceLock::new();
    BY_WORD
        .get_or_init(|| fetches().map(|row| (row.word, row)).collect())
        .get(word)
        .copied()
}
