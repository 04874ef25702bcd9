//! Converters that change variables and captures, manual 7.3.1.

use crate::args::ArgKind::{self, Int, Var};
use crate::args::{Arg, ArgValue, int_arg};
use crate::conv::{Converter, args, row, text_of};
use crate::effects::SideEffects;
use crate::evaluation::Evaluation;
use crate::facts::Side;
use crate::value::{Sample, SampleKind};

/// The arguments of `set-var`: a variable, and up to four conditions.
const SET_VAR: &[ArgKind] = &[
    Var,
    ArgKind::SetCondition,
    ArgKind::SetCondition,
    ArgKind::SetCondition,
    ArgKind::SetCondition,
];

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("capture-req", args(1, &[Int]), SampleKind::Str, SampleKind::Str)
        .effects(SideEffects::CAPTURES)
        .examples("capture-req(0)", "capture-req(x)")
        .implemented("puts it into a slot of captures from the request", |cx, args, input| capture(cx, args, input, Side::Client)),
    row("capture-res", args(1, &[Int]), SampleKind::Str, SampleKind::Str)
        .effects(SideEffects::CAPTURES)
        .examples("capture-res(0)", "capture-res(x)")
        .implemented("puts it into a slot of captures from the response", |cx, args, input| capture(cx, args, input, Side::Server)),
    row("set-var", args(1, SET_VAR), SampleKind::Any, SampleKind::Any)
        .effects(SideEffects::VARIABLES)
        .examples("set-var(txn.name,ifnotset)", "set-var(txn.name,ifx)")
        .implemented("puts it into a variable if the conditions hold, else there is no value", set_var),
    row("unset-var", args(1, &[Var]), SampleKind::Any, SampleKind::Any)
        .effects(SideEffects::VARIABLES)
        .examples("unset-var(txn.name)", "unset-var(name)")
        .implemented("takes the value of a variable away", unset_var),
];

fn set_var<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let ArgValue::Var(name) = &args.first()?.value else {
        return None;
    };
    let value = input.value(cx.scratch);
    let now = cx.facts.var(name);
    let may = args[1..].iter().all(|arg| match arg.value {
        ArgValue::SetCondition(condition) => condition.holds(name, now, value),
        _ => true,
    });
    if !may {
        return None;
    }
    cx.facts.assign(name, Some(value));
    Some(input)
}

fn unset_var<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let ArgValue::Var(name) = &args.first()?.value else {
        return None;
    };
    cx.facts.assign(name, None);
    Some(input)
}

fn capture<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
    sent_by: Side,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let slot = usize::try_from(int_arg(args, 0)?).ok()?;
    let bytes = cx.scratch.bytes(text);
    cx.facts.capture(sent_by, slot, bytes).then_some(input)
}
