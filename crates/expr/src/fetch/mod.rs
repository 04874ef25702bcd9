//! The catalogue of sample fetches: a file per family, with the rows and what they do.

mod auth;
mod body;
mod connection;
mod constant;
mod cookie;
mod date;
mod developer;
mod distcc;
mod exchange;
mod header;
mod hello;
mod payload;
mod process;
pub(crate) mod proxy;
pub(crate) mod stick;
mod stick_counter;
mod stick_numbered;
mod stick_source;
pub(crate) mod tls;
mod tls_back;
mod tls_ciphers;
mod tls_front;
mod uri;

use std::collections::HashMap;
use std::sync::OnceLock;

pub use tls::{LATER_THAN_3_2, cipher_name, version_name};

pub(crate) use crate::args::{ACL_NAMES, NO_ARGS, args};
use crate::args::{Arg, ArgKind, ArgSpec};
use crate::effects::SideEffects;
use crate::evaluation::Evaluation;
use crate::facts::ExchangeNumbers;
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

/// Gives the sample of a fetch.
pub(crate) type FetchFn = for<'f> fn(&mut Evaluation<'f, '_>, &'f [Arg]) -> Option<Sample<'f>>;

/// A sample fetch: one word of the language with all its sides.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    /// The word.
    pub word: &'static str,
    /// Its arguments.
    pub args: ArgSpec,
    /// The type of the sample.
    pub out: SampleKind,
    /// Where it may be asked.
    pub phases: Phases,
    /// What must be there for it to have a value.
    pub needs: Needs,
    /// What evaluating it does beside giving a value.
    pub effects: SideEffects,
    /// What it is, in a few words; empty where it is not evaluated yet.
    pub help: &'static str,
    /// An expression that is accepted, and one that is refused; empty for a word that takes no
    /// arguments, which is its own good example.
    pub examples: (&'static str, &'static str),
    /// Why it is not evaluated, where that is for good; else empty.
    pub refusal: &'static str,
    pub(crate) handler: Option<FetchFn>,
}

impl Fetch {
    /// Whether the sample is evaluated, not only parsed.
    pub const fn is_implemented(&self) -> bool {
        self.handler.is_some()
    }

    /// The same row with other needs than its phases tell.
    const fn needs(self, needs: Needs) -> Fetch {
        Fetch { needs, ..self }
    }

    /// The same row with effects.
    const fn effects(self, effects: SideEffects) -> Fetch {
        Fetch { effects, ..self }
    }

    /// The same row with an expression that is accepted, and one that is refused.
    const fn examples(self, good: &'static str, bad: &'static str) -> Fetch {
        Fetch {
            examples: (good, bad),
            ..self
        }
    }

    /// The same row, which is not evaluated for a reason that stays.
    const fn refused(self, refusal: &'static str) -> Fetch {
        Fetch { refusal, ..self }
    }

    /// The same row, evaluated: what it is, and the function that gives it.
    const fn implemented(self, help: &'static str, handler: FetchFn) -> Fetch {
        Fetch {
            help,
            handler: Some(handler),
            ..self
        }
    }
}

impl PartialEq for Fetch {
    fn eq(&self, other: &Fetch) -> bool {
        self.word == other.word
    }
}

/// A row that is parsed; [`Fetch::implemented`] has it evaluated. What it needs follows from the phases
/// where it may be asked; [`Fetch::needs`] says otherwise.
const fn row(word: &'static str, args: ArgSpec, out: SampleKind, phases: Phases) -> Fetch {
    Fetch {
        word,
        args,
        out,
        phases,
        needs: Needs::of(phases),
        effects: SideEffects::NONE,
        help: "",
        examples: ("", ""),
        refusal: "",
        handler: None,
    }
}

fn int_sample<'f>(value: i64) -> Option<Sample<'f>> {
    Some(Sample::Int(value))
}

/// `None` where there is no exchange.
fn in_exchange(cx: &Evaluation<'_, '_>) -> Option<()> {
    cx.facts.is_in_exchange().then_some(())
}

/// A number of the exchange.
fn record_number<'f>(
    cx: &Evaluation<'f, '_>,
    of: fn(&ExchangeNumbers) -> i64,
) -> Option<Sample<'f>> {
    int_sample(of(cx.facts.numbers()?))
}

/// Of two words as near to one that is not known, the first is suggested.
const FAMILIES: &[&[Fetch]] = &[
    process::ROWS,
    constant::ROWS,
    date::ROWS,
    exchange::ROWS,
    header::ROWS,
    cookie::ROWS,
    uri::ROWS,
    auth::ROWS,
    body::ROWS,
    proxy::ROWS,
    connection::ROWS,
    payload::ROWS,
    distcc::ROWS,
    hello::ROWS,
    stick_counter::ROWS,
    stick_numbered::ROWS,
    stick_source::ROWS,
    tls_back::ROWS,
    tls_front::ROWS,
    developer::ROWS,
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
    SampleKind::Str,
    Phases::ALWAYS,
)
.effects(SideEffects::ANY);

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
