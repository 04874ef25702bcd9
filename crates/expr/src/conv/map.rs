//! Converters that look a sample up in a map file, manual 7.3.1.

use crate::args::ArgKind::{Address, File, Int, Text};
use crate::args::{Arg, ArgValue};
use crate::byte_text::bytes_of_text;
use crate::conv::text::substitute;
use crate::conv::{Converter, args, row, text_of};
use crate::evaluation::Evaluation;
use crate::pattern::MapValue;
use crate::value::{Sample, SampleKind};

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("map", args(1, &[File, Text]), SampleKind::Str, SampleKind::Str)
        .examples("map(file,none)", "map")
        .implemented("the value in the map whose key is equal", look_up),
    row("map_beg", args(1, &[File, Text]), SampleKind::Str, SampleKind::Str)
        .examples("map_beg(file,none)", "map_beg")
        .implemented("the value in the map whose key begins it", look_up),
    row("map_beg_int", args(1, &[File, Int]), SampleKind::Str, SampleKind::Int)
        .examples("map_beg_int(file,0)", "map_beg_int(file,x)")
        .implemented("the number in the map whose key begins it", look_up),
    row("map_beg_ip", args(1, &[File, Address]), SampleKind::Str, SampleKind::Addr)
        .examples("map_beg_ip(file,192.0.2.1)", "map_beg_ip(file,x)")
        .implemented("the address in the map whose key begins it", look_up),
    row("map_beg_key", args(1, &[File]), SampleKind::Str, SampleKind::Str)
        .examples("map_beg_key(file)", "map_beg_key")
        .implemented("the key of the map that begins it", look_up),
    row("map_dir", args(1, &[File, Text]), SampleKind::Str, SampleKind::Str)
        .examples("map_dir(file,none)", "map_dir")
        .implemented("the value in the map whose key is one of its directories", look_up),
    row("map_dir_int", args(1, &[File, Int]), SampleKind::Str, SampleKind::Int)
        .examples("map_dir_int(file,0)", "map_dir_int(file,x)")
        .implemented("the number in the map whose key is one of its directories", look_up),
    row("map_dir_ip", args(1, &[File, Address]), SampleKind::Str, SampleKind::Addr)
        .examples("map_dir_ip(file,192.0.2.1)", "map_dir_ip(file,x)")
        .implemented("the address in the map whose key is one of its directories", look_up),
    row("map_dir_key", args(1, &[File]), SampleKind::Str, SampleKind::Str)
        .examples("map_dir_key(file)", "map_dir_key")
        .implemented("the key of the map that is one of its directories", look_up),
    row("map_dom", args(1, &[File, Text]), SampleKind::Str, SampleKind::Str)
        .examples("map_dom(file,none)", "map_dom")
        .implemented("the value in the map whose key is one of its domains", look_up),
    row("map_dom_int", args(1, &[File, Int]), SampleKind::Str, SampleKind::Int)
        .examples("map_dom_int(file,0)", "map_dom_int(file,x)")
        .implemented("the number in the map whose key is one of its domains", look_up),
    row("map_dom_ip", args(1, &[File, Address]), SampleKind::Str, SampleKind::Addr)
        .examples("map_dom_ip(file,192.0.2.1)", "map_dom_ip(file,x)")
        .implemented("the address in the map whose key is one of its domains", look_up),
    row("map_dom_key", args(1, &[File]), SampleKind::Str, SampleKind::Str)
        .examples("map_dom_key(file)", "map_dom_key")
        .implemented("the key of the map that is one of its domains", look_up),
    row("map_end", args(1, &[File, Text]), SampleKind::Str, SampleKind::Str)
        .examples("map_end(file,none)", "map_end")
        .implemented("the value in the map whose key ends it", look_up),
    row("map_end_int", args(1, &[File, Int]), SampleKind::Str, SampleKind::Int)
        .examples("map_end_int(file,0)", "map_end_int(file,x)")
        .implemented("the number in the map whose key ends it", look_up),
    row("map_end_ip", args(1, &[File, Address]), SampleKind::Str, SampleKind::Addr)
        .examples("map_end_ip(file,192.0.2.1)", "map_end_ip(file,x)")
        .implemented("the address in the map whose key ends it", look_up),
    row("map_end_key", args(1, &[File]), SampleKind::Str, SampleKind::Str)
        .examples("map_end_key(file)", "map_end_key")
        .implemented("the key of the map that ends it", look_up),
    row("map_int", args(1, &[File, Text]), SampleKind::Int, SampleKind::Str)
        .examples("map_int(file,none)", "map_int")
        .implemented("the value in the map of the number", look_up),
    row("map_int_int", args(1, &[File, Int]), SampleKind::Int, SampleKind::Int)
        .examples("map_int_int(file,0)", "map_int_int(file,x)")
        .implemented("the number in the map of the number", look_up),
    row("map_int_ip", args(1, &[File, Address]), SampleKind::Int, SampleKind::Addr)
        .examples("map_int_ip(file,192.0.2.1)", "map_int_ip(file,x)")
        .implemented("the address in the map of the number", look_up),
    row("map_int_key", args(1, &[File]), SampleKind::Int, SampleKind::Str)
        .examples("map_int_key(file)", "map_int_key")
        .implemented("the key of the map that is the number", look_up),
    row("map_ip", args(1, &[File, Text]), SampleKind::Addr, SampleKind::Str)
        .examples("map_ip(file,none)", "map_ip")
        .implemented("the value in the map of the network the address is in", look_up),
    row("map_ip_int", args(1, &[File, Int]), SampleKind::Addr, SampleKind::Int)
        .examples("map_ip_int(file,0)", "map_ip_int(file,x)")
        .implemented("the number in the map of the network the address is in", look_up),
    row("map_ip_ip", args(1, &[File, Address]), SampleKind::Addr, SampleKind::Addr)
        .examples("map_ip_ip(file,192.0.2.1)", "map_ip_ip(file,x)")
        .implemented("the address in the map of the network the address is in", look_up),
    row("map_ip_key", args(1, &[File]), SampleKind::Addr, SampleKind::Str)
        .examples("map_ip_key(file)", "map_ip_key")
        .implemented("the network of the map that the address is in", look_up),
    row("map_reg", args(1, &[File, Text]), SampleKind::Str, SampleKind::Str)
        .examples("map_reg(file,none)", "map_reg")
        .implemented("the value in the map whose expression matches", look_up),
    row("map_reg_int", args(1, &[File, Int]), SampleKind::Str, SampleKind::Int)
        .examples("map_reg_int(file,0)", "map_reg_int(file,x)")
        .implemented("the number in the map whose expression matches", look_up),
    row("map_reg_ip", args(1, &[File, Address]), SampleKind::Str, SampleKind::Addr)
        .examples("map_reg_ip(file,192.0.2.1)", "map_reg_ip(file,x)")
        .implemented("the address in the map whose expression matches", look_up),
    row("map_reg_key", args(1, &[File]), SampleKind::Str, SampleKind::Str)
        .examples("map_reg_key(file)", "map_reg_key")
        .implemented("the expression of the map that matches", look_up),
    row("map_regm", args(1, &[File, Text]), SampleKind::Str, SampleKind::Str)
        .examples("map_regm(file)", "map_regm")
        .implemented("the value whose expression matches, with its groups filled in", look_up_groups),
    row("map_str", args(1, &[File, Text]), SampleKind::Str, SampleKind::Str)
        .examples("map_str(file,none)", "map_str")
        .implemented("the value in the map whose key is equal", look_up),
    row("map_str_int", args(1, &[File, Int]), SampleKind::Str, SampleKind::Int)
        .examples("map_str_int(file,0)", "map_str_int(file,x)")
        .implemented("the number in the map whose key is equal", look_up),
    row("map_str_ip", args(1, &[File, Address]), SampleKind::Str, SampleKind::Addr)
        .examples("map_str_ip(file,192.0.2.1)", "map_str_ip(file,x)")
        .implemented("the address in the map whose key is equal", look_up),
    row("map_str_key", args(1, &[File]), SampleKind::Str, SampleKind::Str)
        .examples("map_str_key(file)", "map_str_key")
        .implemented("the key of the map that is equal", look_up),
    row("map_sub", args(1, &[File, Text]), SampleKind::Str, SampleKind::Str)
        .examples("map_sub(file,none)", "map_sub")
        .implemented("the value in the map whose key is in it", look_up),
    row("map_sub_int", args(1, &[File, Int]), SampleKind::Str, SampleKind::Int)
        .examples("map_sub_int(file,0)", "map_sub_int(file,x)")
        .implemented("the number in the map whose key is in it", look_up),
    row("map_sub_ip", args(1, &[File, Address]), SampleKind::Str, SampleKind::Addr)
        .examples("map_sub_ip(file,192.0.2.1)", "map_sub_ip(file,x)")
        .implemented("the address in the map whose key is in it", look_up),
    row("map_sub_key", args(1, &[File]), SampleKind::Str, SampleKind::Str)
        .examples("map_sub_key(file)", "map_sub_key")
        .implemented("the key of the map that is in it", look_up),
];

/// The value of a map converter whose key was not found: its default, when one was given.
fn default_value<'f>(args: &'f [Arg]) -> Option<Sample<'f>> {
    let arg = args.get(1).filter(|arg| !arg.is_absent())?;
    Some(match arg.value {
        ArgValue::Int(number) => Sample::Int(number),
        ArgValue::Ip(address) => Sample::ip(address),
        _ => Sample::str(arg.text.as_bytes()),
    })
}

fn sample_of_value<'f>(cx: &mut Evaluation<'f, '_>, value: &MapValue) -> Option<Sample<'f>> {
    Some(match value {
        MapValue::None => return None,
        MapValue::Str(text) => Sample::Str(cx.scratch.keep(&bytes_of_text(text))),
        MapValue::Int(number) => Sample::Int(*number),
        MapValue::Ip(address) => Sample::ip(*address),
    })
}

/// Any `map...` converter but `map_regm`. A map that was not linked has no key.
fn look_up<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let ArgValue::Map(slot) = &args.first()?.value else {
        return None;
    };
    let Some(handle) = slot.filled() else {
        return default_value(args);
    };
    handle.look_up(|index| {
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
            Some(hit) => sample_of_value(cx, hit.value),
            None => default_value(args),
        }
    })
}

/// `map_regm`: the value is a template for the groups of the expression that matched.
fn look_up_groups<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let ArgValue::Map(slot) = &args.first()?.value else {
        return None;
    };
    let text = text_of(input)?;
    let Some(handle) = slot.filled() else {
        return default_value(args);
    };
    let index = handle.load();
    let mut out = cx.scratch.open();
    let subject = cx.scratch.bytes(text);
    let hit = match index.find_groups(subject) {
        Some(hit) => match (hit.value, &hit.groups) {
            (MapValue::Str(template), Some(groups)) => {
                substitute(&bytes_of_text(template), subject, groups, &mut out);
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
        default_value(args)
    }
}
