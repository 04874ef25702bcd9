//! What the words of the catalogues do.

pub(crate) mod address;
pub(crate) mod arithmetic;
pub(crate) mod auth;
pub(crate) mod codec;
pub(crate) mod constant;
pub(crate) mod cookie;
pub(crate) mod date;
pub(crate) mod digest;
pub(crate) mod exchange;
pub(crate) mod header;
pub(crate) mod hello;
pub(crate) mod map;
pub(crate) mod payload;
pub(crate) mod proxy;
pub(crate) mod sha;
pub(crate) mod text;
pub(crate) mod uri;

use crate::args::{Arg, ArgValue};
use crate::eval::Cx;
use crate::scratch::Text;
use crate::value::Sample;

/// Gives the sample of a fetch.
pub(crate) type FetchFn = for<'f> fn(&mut Cx<'f, '_>, &'f [Arg]) -> Option<Sample<'f>>;

/// Applies a converter to a sample already cast to what it takes.
pub(crate) type ConvFn = for<'f> fn(&mut Cx<'f, '_>, &'f [Arg], Sample<'f>) -> Option<Sample<'f>>;

/// The integer argument at `position`, when given.
fn int_arg(args: &[Arg], position: usize) -> Option<i64> {
    match args.get(position).map(|arg| &arg.value) {
        Some(ArgValue::Int(number)) => Some(*number),
        _ => None,
    }
}

/// The text of the argument at `position`; empty when it was left out.
fn text_arg(args: &[Arg], position: usize) -> &str {
    args.get(position).map_or("", |arg| arg.text.as_str())
}

/// The bytes of a text, binary or method sample.
fn text_of<'f>(sample: Sample<'f>) -> Option<Text<'f>> {
    match sample {
        Sample::Str(text) | Sample::Bin(text) | Sample::Meth(text) => Some(text),
        Sample::Bool(_) | Sample::Int(_) | Sample::Ipv4(_) | Sample::Ipv6(_) => None,
    }
}

/// Writes a new text made from the bytes of `input`.
fn rewritten<'f>(
    cx: &mut Cx<'f, '_>,
    input: Text<'f>,
    write: impl FnOnce(&[u8], &mut Vec<u8>) -> Option<()>,
) -> Option<Text<'f>> {
    let mut out = cx.scratch.open();
    let done = write(cx.scratch.bytes(input), &mut out);
    let text = cx.scratch.close(out);
    done.map(|()| text)
}
