//! Integers and booleans, manual 7.3.1.

use crate::args::ArgKind::{IntOrVar, Text, Var};
use crate::args::{Arg, ArgValue, bytes_arg};
use crate::conv::{Converter, NO_ARGS, args, named_var, row, text_of};
use crate::evaluation::Evaluation;
use crate::value::{Sample, SampleKind};

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("add", args(1, &[IntOrVar]), SampleKind::Int, SampleKind::Int)
        .examples("add(1)", "add(1,x)")
        .implemented("adds a number or a variable", |cx, args, input| calculate(cx, args, input, i64::saturating_add)),
    row("and", args(1, &[IntOrVar]), SampleKind::Int, SampleKind::Int)
        .examples("and(255)", "and(255,x)")
        .implemented(
            "bitwise and with a number or a variable",
            |cx, args, input| calculate(cx, args, input, |left, right| left & right),
        ),
    row("bool", NO_ARGS, SampleKind::Int, SampleKind::Bool)
        .implemented("true unless 0", |_, _, input| Some(Sample::Bool(integer(input)? != 0))),
    row("cpl", NO_ARGS, SampleKind::Int, SampleKind::Int)
        .implemented("bitwise complement", |_, _, input| Some(Sample::Int(!integer(input)?))),
    row("div", args(1, &[IntOrVar]), SampleKind::Int, SampleKind::Int)
        .examples("div(2)", "div(2,x)")
        .implemented(
            "divides by a number or a variable; by 0 gives the largest number",
            |cx, args, input| calculate(cx, args, input, div),
        ),
    row("even", NO_ARGS, SampleKind::Int, SampleKind::Bool)
        .implemented("whether the number is even", |_, _, input| Some(Sample::Bool(integer(input)? & 1 == 0))),
    row("iif", args(2, &[Text, Text]), SampleKind::Bool, SampleKind::Str)
        .examples("iif(yes,no)", "iif(yes)")
        .implemented("one text if true, the other if not", iif),
    row("mod", args(1, &[IntOrVar]), SampleKind::Int, SampleKind::Int)
        .examples("mod(2)", "mod(2,x)")
        .implemented(
            "the remainder after dividing by a number or a variable; by 0 gives 0",
            |cx, args, input| calculate(cx, args, input, rem),
        ),
    row("mul", args(1, &[IntOrVar]), SampleKind::Int, SampleKind::Int)
        .examples("mul(2)", "mul(2,x)")
        .implemented(
            "multiplies by a number or a variable",
            |cx, args, input| calculate(cx, args, input, i64::saturating_mul),
        ),
    row("neg", NO_ARGS, SampleKind::Int, SampleKind::Int)
        .implemented("turns the sign", |_, _, input| Some(Sample::Int(integer(input)?.saturating_neg()))),
    row("not", NO_ARGS, SampleKind::Int, SampleKind::Bool)
        .implemented("true if 0", |_, _, input| Some(Sample::Bool(integer(input)? == 0))),
    row("odd", NO_ARGS, SampleKind::Int, SampleKind::Bool)
        .implemented("whether the number is odd", |_, _, input| Some(Sample::Bool(integer(input)? & 1 == 1))),
    row("or", args(1, &[IntOrVar]), SampleKind::Int, SampleKind::Int)
        .examples("or(1)", "or(1,x)")
        .implemented(
            "bitwise or with a number or a variable",
            |cx, args, input| calculate(cx, args, input, |left, right| left | right),
        ),
    row("strcmp", args(1, &[Var]), SampleKind::Str, SampleKind::Int)
        .examples("strcmp(txn.name)", "strcmp")
        .implemented("compares with a variable: below, above or equal 0", strcmp),
    row("sub", args(1, &[IntOrVar]), SampleKind::Int, SampleKind::Int)
        .examples("sub(1)", "sub(1,x)")
        .implemented("subtracts a number or a variable", |cx, args, input| calculate(cx, args, input, i64::saturating_sub)),
    row("xor", args(1, &[IntOrVar]), SampleKind::Int, SampleKind::Int)
        .examples("xor(1)", "xor(1,x)")
        .implemented(
            "bitwise exclusive or with a number or a variable",
            |cx, args, input| calculate(cx, args, input, |left, right| left ^ right),
        ),
];

/// The second operand: a constant or the value of a variable.
fn operand(cx: &Evaluation<'_, '_>, args: &[Arg]) -> Option<i64> {
    match &args.first()?.value {
        ArgValue::Int(number) => Some(*number),
        ArgValue::Var(name) => cx.facts.var(name)?.to_int(),
        _ => None,
    }
}

fn integer(input: Sample<'_>) -> Option<i64> {
    match input {
        Sample::Int(number) => Some(number),
        _ => None,
    }
}

fn calculate<'f>(
    cx: &Evaluation<'f, '_>,
    args: &[Arg],
    input: Sample<'f>,
    with: fn(i64, i64) -> i64,
) -> Option<Sample<'f>> {
    Some(Sample::Int(with(integer(input)?, operand(cx, args)?)))
}

fn div(left: i64, right: i64) -> i64 {
    if right == 0 {
        i64::MAX
    } else {
        left.saturating_div(right)
    }
}

fn rem(left: i64, right: i64) -> i64 {
    left.checked_rem(right).unwrap_or(0)
}

fn iif<'f>(_: &mut Evaluation<'f, '_>, args: &'f [Arg], input: Sample<'f>) -> Option<Sample<'f>> {
    let Sample::Bool(truth) = input else {
        return None;
    };
    Some(Sample::str(bytes_arg(args, usize::from(!truth))))
}

/// The difference of the first bytes that differ, or of the lengths.
fn strcmp<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let value = named_var(cx, args, 0)?;
    let mut other = cx.scratch.open();
    value.append_to(&mut other);
    // A text ends at a NUL.
    if let Some(end) = memchr::memchr(0, &other) {
        other.truncate(end);
    }
    let left = cx.scratch.bytes(text_of(input)?);
    let difference = left
        .iter()
        .zip(&other)
        .find(|(a, b)| a != b)
        .map_or(left.len().cmp(&other.len()) as i64, |(a, b)| {
            i64::from(*a) - i64::from(*b)
        });
    cx.scratch.discard(other);
    Some(Sample::Int(difference))
}
