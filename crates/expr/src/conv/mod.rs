//! The catalogue of converters: a file per family, with the rows and what they do.

mod arithmetic;
mod assign;
mod codec;
mod crypto;
mod date_text;
pub(crate) mod digest;
mod fix;
mod forwarded;
pub(crate) mod internal;
mod json;
mod json_walk;
mod jwt;
mod language;
mod map;
pub(crate) mod mqtt;
mod mqtt_message;
mod packet;
mod protobuf;
mod stick;
pub(crate) mod text;
mod time;

pub use forwarded::is_forwarded_element;

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::args::{Arg, ArgKind, ArgSpec, ArgValue};
pub(crate) use crate::args::{NO_ARGS, args};
use crate::effects::SideEffects;
use crate::evaluation::Evaluation;
use crate::needs::Needs;
use crate::scratch::SampleText;
use crate::value::{Sample, SampleKind, Value};

/// Applies a converter to a sample already cast to what it takes.
pub(crate) type ConverterFn =
    for<'f> fn(&mut Evaluation<'f, '_>, &'f [Arg], Sample<'f>) -> Option<Sample<'f>>;

/// A converter: one word of the language with all its sides.
#[derive(Clone, Copy, Debug)]
pub struct Converter {
    /// The word.
    pub word: &'static str,
    /// Its arguments.
    pub args: ArgSpec,
    /// The type it takes; others are cast.
    pub takes: SampleKind,
    /// The type it gives.
    pub out: SampleKind,
    /// What must be there beside its input.
    pub needs: Needs,
    /// What evaluating it does beside giving a value.
    pub effects: SideEffects,
    /// What it does, in a few words; empty where it is not evaluated yet.
    pub help: &'static str,
    /// The converter as it is accepted, and as it is refused; empty for a word that takes no
    /// arguments, which is its own good example.
    pub examples: (&'static str, &'static str),
    pub(crate) handler: Option<ConverterFn>,
}

impl Converter {
    /// Whether the converter is evaluated, not only parsed.
    pub const fn is_implemented(&self) -> bool {
        self.handler.is_some()
    }

    /// The same row with needs.
    const fn needs(self, needs: Needs) -> Converter {
        Converter { needs, ..self }
    }

    /// The same row with effects.
    const fn effects(self, effects: SideEffects) -> Converter {
        Converter { effects, ..self }
    }

    /// The same row with the converter as it is accepted, and as it is refused.
    const fn examples(self, good: &'static str, bad: &'static str) -> Converter {
        Converter {
            examples: (good, bad),
            ..self
        }
    }

    /// The same row, evaluated: what it does, and the function that does it.
    const fn implemented(self, help: &'static str, handler: ConverterFn) -> Converter {
        Converter {
            help,
            handler: Some(handler),
            ..self
        }
    }
}

impl PartialEq for Converter {
    fn eq(&self, other: &Converter) -> bool {
        self.word == other.word
    }
}

/// A row that is parsed; [`Converter::implemented`] has it evaluated.
const fn row(word: &'static str, args: ArgSpec, takes: SampleKind, out: SampleKind) -> Converter {
    Converter {
        word,
        args,
        takes,
        out,
        needs: Needs::NONE,
        effects: SideEffects::NONE,
        help: "",
        examples: ("", ""),
        handler: None,
    }
}

/// The bytes of a text, binary or method sample.
fn text_of<'f>(sample: Sample<'f>) -> Option<SampleText<'f>> {
    match sample {
        Sample::Str(text) | Sample::Bin(text) | Sample::Meth(text) => Some(text),
        Sample::Bool(_) | Sample::Int(_) | Sample::Ipv4(_) | Sample::Ipv6(_) => None,
    }
}

/// Writes a new text made from the bytes of `input`, cut to what a buffer holds, as in HAProxy.
fn rewritten<'f>(
    cx: &mut Evaluation<'f, '_>,
    input: SampleText<'f>,
    write: impl FnOnce(&[u8], &mut Vec<u8>) -> Option<()>,
) -> Option<SampleText<'f>> {
    let mut out = cx.scratch.open();
    let done = write(cx.scratch.bytes(input), &mut out);
    out.truncate(cx.facts.data_bytes_max());
    let text = cx.scratch.close(out);
    done.map(|()| text)
}

/// The same for a text of which a part has no meaning: there is none that a buffer does not hold.
fn rewritten_whole<'f>(
    cx: &mut Evaluation<'f, '_>,
    input: SampleText<'f>,
    write: impl FnOnce(&[u8], &mut Vec<u8>) -> Option<()>,
) -> Option<SampleText<'f>> {
    let bytes_max = cx.facts.data_bytes_max();
    rewritten(cx, input, |bytes, out| {
        write(bytes, out)?;
        (out.len() <= bytes_max).then_some(())
    })
}

/// The variable whose name is the text of the argument.
fn named_var<'f>(cx: &Evaluation<'f, '_>, args: &'f [Arg], position: usize) -> Option<Value<'f>> {
    match &args.get(position)?.value {
        ArgValue::Var(name) => cx.facts.var(name),
        _ => None,
    }
}

const FAMILIES: &[&[Converter]] = &[
    arithmetic::ROWS,
    assign::ROWS,
    codec::ROWS,
    crypto::ROWS,
    digest::ROWS,
    fix::ROWS,
    forwarded::ROWS,
    internal::ROWS,
    json::ROWS,
    jwt::ROWS,
    language::ROWS,
    map::ROWS,
    mqtt::ROWS,
    packet::ROWS,
    protobuf::ROWS,
    stick::ROWS,
    text::ROWS,
    time::ROWS,
];

/// Every converter, family by family.
pub fn converters() -> impl Iterator<Item = &'static Converter> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// What scripts register: `lua.` and a name, with any arguments.
static LUA: Converter = row(
    "lua.",
    args(0, &[ArgKind::Text; 12]),
    SampleKind::Str,
    SampleKind::Str,
)
.effects(SideEffects::ANY);

/// The converter of this name.
pub fn converter(word: &str) -> Option<&'static Converter> {
    if word
        .strip_prefix("lua.")
        .is_some_and(|name| !name.is_empty())
    {
        return Some(&LUA);
    }
    static BY_WORD: OnceLock<HashMap<&'static str, &'static Converter>> = OnceLock::new();
    BY_WORD
        .get_or_init(|| converters().map(|row| (row.word, row)).collect())
        .get(word)
        .copied()
}
