//! Messages of FIX, the Financial Information eXchange, manual 7.3.1.

use crate::args::ArgKind::FixTag;
use crate::args::{Arg, int_arg};
use crate::conv::{Converter, NO_ARGS, args, row, text_of};
use crate::evaluation::Evaluation;
use crate::fix_message::{CHECK_SUM, field_at, validity};
use crate::value::{Sample, SampleKind};

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("fix_is_valid", NO_ARGS, SampleKind::Bin, SampleKind::Bool)
        .implemented("whether it begins with a valid FIX message", is_valid),
    row("fix_tag_value", args(1, &[FixTag]), SampleKind::Bin, SampleKind::Bin)
        .examples("fix_tag_value(MsgType)", "fix_tag_value(x)")
        .implemented("the value of a tag of a FIX message", tag_value),
];

fn is_valid<'f>(
    cx: &mut Evaluation<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    validity(cx.scratch.bytes(text_of(input)?)).map(Sample::Bool)
}

fn tag_value<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let wanted = int_arg(args, 0)?;
    let message = cx.scratch.bytes(text);
    let mut at = 0;
    loop {
        let field = field_at(message, at).ok()?;
        if field.tag == wanted {
            let has_value = field.from < field.to;
            return has_value.then(|| Sample::Bin(cx.scratch.part(text, field.from, field.to)));
        }
        if field.tag == CHECK_SUM {
            return None;
        }
        at = field.to + 1;
    }
}
