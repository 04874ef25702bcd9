//! The `map` converters.

use super::text::substitute;
use super::text_of;
use crate::args::{Arg, ArgValue};
use crate::eval::Cx;
use crate::pattern::MapValue;
use crate::value::Sample;

/// The value of a map converter whose key was not found: its default, when one was given.
fn default<'f>(args: &'f [Arg]) -> Option<Sample<'f>> {
    let arg = args.get(1).filter(|arg| !arg.is_absent())?;
    Some(match arg.value {
        ArgValue::Int(number) => Sample::Int(number),
        ArgValue::Ip(address) => Sample::ip(address),
        _ => Sample::held(arg.text.as_bytes()),
    })
}

fn found<'f>(cx: &mut Cx<'f, '_>, value: &MapValue) -> Option<Sample<'f>> {
    Some(match value {
        MapValue::None => return None,
        MapValue::Str(bytes) => Sample::Str(cx.scratch.keep(bytes.as_bytes())),
        MapValue::Int(number) => Sample::Int(*number),
        MapValue::Ip(address) => Sample::ip(*address),
    })
}

/// Any `map...` converter but `map_regm`. A map that was not linked has no key.
pub(crate) fn look_up<'f>(
    cx: &mut Cx<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let ArgValue::Map(slot) = &args.first()?.value else {
        return None;
    };
    let Some(handle) = slot.filled() else {
        return default(args);
    };
    let index = handle.load();
    let hit = match input {
        Sample::Int(number) => index.find_int(number),
        Sample::Ipv4(address) => index.find_ip(address.into()),
        Sample::Ipv6(address) => index.find_ip(address.into()),
        Sample::Bool(flag) => index.find_int(i64::from(flag)),
        Sample::Str(text) | Sample::Bin(text) | Sample::Meth(text) => {
            // Maps never ignore the case, so no copy is made.
            index.find_bytes(cx.scratch.bytes(text), &mut Vec::new())
        }
    };
    match hit {
        Some(hit) => found(cx, hit.value),
        None => default(args),
    }
}

/// `map_regm`: the value is a template for the groups of the expression that matched.
pub(crate) fn look_up_groups<'f>(
    cx: &mut Cx<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let ArgValue::Map(slot) = &args.first()?.value else {
        return None;
    };
    let text = text_of(input)?;
    let Some(handle) = slot.filled() else {
        return default(args);
    };
    let index = handle.load();
    let mut out = cx.scratch.open();
    let subject = cx.scratch.bytes(text);
    let hit = match index.find_groups(subject) {
        Some(hit) => match (hit.value, &hit.groups) {
            (MapValue::Str(template), Some(groups)) => {
                substitute(template.as_bytes(), subject, groups, &mut out);
                true
            }
            _ => false,
        },
        None => false,
    };
    let made = cx.scratch.close(out);
    if hit {
        Some(Sample::Str(made))
    } else {
        default(args)
    }
}
