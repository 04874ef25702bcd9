//! Fields of Protocol Buffers messages and of gRPC bodies, manual 7.3.1.

use crate::args::ArgKind::{ProtobufField, ProtobufType};
use crate::args::{Arg, ArgValue};
use crate::conv::{Converter, args, row, text_of};
use crate::evaluation::Evaluation;
use crate::protobuf::{Field, look_up};
use crate::scratch::SampleText;
use crate::value::{Sample, SampleKind};

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("protobuf", args(1, &[ProtobufField, ProtobufType]), SampleKind::Bin, SampleKind::Bin)
        .examples("protobuf(48.59.1,int32)", "protobuf(1,string)")
        .implemented("a field of a Protocol Buffers message", protobuf),
    row("ungrpc", args(1, &[ProtobufField, ProtobufType]), SampleKind::Bin, SampleKind::Bin)
        .examples("ungrpc(48.59.1,int32)", "ungrpc(x)")
        .implemented("a field of a message in the body of a gRPC call", ungrpc),
];

/// A field as a sample: its bytes, or the number that the second argument reads.
fn sample_of<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    text: SampleText<'f>,
    field: &Field,
) -> Option<Sample<'f>> {
    match args.get(1).map(|arg| &arg.value) {
        Some(ArgValue::ProtobufNumber(number)) => {
            Some(Sample::Int(number.read(field, cx.scratch.bytes(text))?))
        }
        _ => Some(Sample::Bin(cx.scratch.part(text, field.from, field.to))),
    }
}

fn protobuf<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let ArgValue::ProtobufPath(path) = &args.first()?.value else {
        return None;
    };
    let message = cx.scratch.bytes(text);
    let field = look_up(message, 0, message.len(), path)?;
    sample_of(cx, args, text, &field)
}

/// What stands before a message in a gRPC body: whether it is compressed, and its length.
const GRPC_HEAD_BYTES: usize = 5;

fn ungrpc<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let ArgValue::ProtobufPath(path) = &args.first()?.value else {
        return None;
    };
    let body = cx.scratch.bytes(text);
    let mut at = 0;
    // The field of the first message that has it.
    loop {
        let head = body.get(at..)?.first_chunk::<GRPC_HEAD_BYTES>()?;
        let [_, length @ ..] = *head;
        let from = at + GRPC_HEAD_BYTES;
        let to = from.checked_add(usize::try_from(u32::from_be_bytes(length)).ok()?)?;
        if to > body.len() {
            return None;
        }
        if let Some(field) = look_up(body, from, to, path) {
            return sample_of(cx, args, text, &field);
        }
        at = to;
    }
}
