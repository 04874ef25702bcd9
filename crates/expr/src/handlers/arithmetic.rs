//! Integers and booleans.

use super::{text_arg, text_of};
use crate::args::{Arg, ArgValue};
use crate::eval::Cx;
use crate::value::Sample;

/// The second operand: a constant or the value of a variable.
fn operand(cx: &Cx<'_, '_>, args: &[Arg]) -> Option<i64> {
    match &args.first()?.value {
        ArgValue::Int(number) => Some(*number),
        ArgValue::Var(name) => cx.facts.var(name)?.to_int(),
        _ => None,
    }
}

macro_rules! binary {
    ($($name:ident => $handler:expr;)*) => {$(
        pub(crate) fn $name<'f>(
            cx: &mut Cx<'f, '_>,
            args: &'f [Arg],
            input: Sample<'f>,
        ) -> Option<Sample<'f>> {
            let Sample::Int(left) = input else { return None };
            let handler: fn(i64, i64) -> i64 = $handler;
            Some(Sample::Int(handler(left, operand(cx, args)?)))
        }
    )*};
}

binary! {
    add => i64::saturating_add;
    sub => i64::saturating_sub;
    mul => i64::saturating_mul;
    // Dividing by zero gives the largest number, its remainder is zero.
    div => |left, right| if right == 0 { i64::MAX } else { left.saturating_div(right) };
    rem => |left, right| left.checked_rem(right).unwrap_or(0);
    and => |left, right| left & right;
    or => |left, right| left | right;
    xor => |left, right| left ^ right;
}

macro_rules! unary {
    ($($name:ident => $handler:expr;)*) => {$(
        pub(crate) fn $name<'f>(
            _: &mut Cx<'f, '_>,
            _: &'f [Arg],
            input: Sample<'f>,
        ) -> Option<Sample<'f>> {
            let Sample::Int(number) = input else { return None };
            let handler: fn(i64) -> Sample<'static> = $handler;
            Some(handler(number))
        }
    )*};
}

unary! {
    neg => |number| Sample::Int(number.wrapping_neg());
    cpl => |number| Sample::Int(!number);
    not => |number| Sample::Bool(number == 0);
    boolean => |number| Sample::Bool(number != 0);
    odd => |number| Sample::Bool(number & 1 == 1);
    even => |number| Sample::Bool(number & 1 == 0);
}

pub(crate) fn iif<'f>(
    _: &mut Cx<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let Sample::Bool(truth) = input else {
        return None;
    };
    Some(Sample::held(text_arg(args, usize::from(!truth)).as_bytes()))
}

/// The variable whose name is the text of the argument.
pub(super) fn named_var<'f>(
    cx: &Cx<'f, '_>,
    args: &'f [Arg],
    position: usize,
) -> Option<crate::value::Value<'f>> {
    match &args.get(position)?.value {
        ArgValue::Var(name) => cx.facts.var(name),
        _ => None,
    }
}

/// The difference of the first bytes that differ, or of the lengths.
pub(crate) fn strcmp<'f>(
    cx: &mut Cx<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let value = named_var(cx, args, 0)?;
    let mut other = cx.scratch.open();
    value.append_to(&mut other);
    let left = cx.scratch.bytes(text_of(input)?);
    let difference = left
        .iter()
        .zip(&other)
        .find(|(a, b)| a != b)
        .map_or(left.len() as i64 - other.len() as i64, |(a, b)| {
            i64::from(*a) - i64::from(*b)
        });
    cx.scratch.discard(other);
    Some(Sample::Int(difference))
}

/// Equality in a time that depends on the lengths only.
pub(crate) fn secure_memcmp<'f>(
    cx: &mut Cx<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let value = named_var(cx, args, 0)?;
    let mut other = cx.scratch.open();
    value.append_to(&mut other);
    let left = cx.scratch.bytes(text_of(input)?);
    let differing = left.iter().zip(&other).fold(0, |sum, (a, b)| sum | (a ^ b));
    let equal = left.len() == other.len() && std::hint::black_box(differing) == 0;
    cx.scratch.discard(other);
    Some(Sample::Bool(equal))
}
