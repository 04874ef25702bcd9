//! Constants, the process, chance and variables.

use std::net::IpAddr;

use super::{int_arg, text_arg};
use crate::args::{Arg, ArgValue};
use crate::eval::Cx;
use crate::needs::Needs;
use crate::scratch::Text;
use crate::value::Sample;

pub(crate) fn always_true<'f>(_: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Bool(true))
}

pub(crate) fn always_false<'f>(_: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Bool(false))
}

pub(crate) fn boolean<'f>(_: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let text = text_arg(args, 0);
    let truth =
        text.eq_ignore_ascii_case("true") || text.parse::<i64>().is_ok_and(|number| number != 0);
    Some(Sample::Bool(truth))
}

pub(crate) fn integer<'f>(_: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    int_arg(args, 0).map(Sample::Int)
}

pub(crate) fn string<'f>(_: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::held(text_arg(args, 0).as_bytes()))
}

pub(crate) fn meth<'f>(_: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Meth(Text::Held(text_arg(args, 0).as_bytes())))
}

pub(crate) fn binary<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let mut out = cx.scratch.open();
    for pair in text_arg(args, 0).as_bytes().chunks_exact(2) {
        let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
        out.push(digit(pair[0]) << 4 | digit(pair[1]));
    }
    Some(Sample::Bin(cx.scratch.close(out)))
}

pub(crate) fn address<'f>(_: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    match args.first()?.value {
        ArgValue::Ip(IpAddr::V4(v4)) => Some(Sample::Ipv4(v4)),
        ArgValue::Ip(IpAddr::V6(v6)) => Some(Sample::Ipv6(v6)),
        _ => None,
    }
}

pub(crate) fn env<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let value = cx.facts.process().env(text_arg(args, 0))?;
    Some(Sample::held(value))
}

pub(crate) fn hostname<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::held(cx.facts.process().hostname().as_bytes()))
}

/// One process, whose number is 1: several went away in HAProxy 2.5.
pub(crate) fn one<'f>(_: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Int(1))
}

pub(crate) fn pid<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Int(cx.facts.process().pid()))
}

pub(crate) fn thread<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Int(cx.facts.process().thread()))
}

pub(crate) fn uptime<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Int(cx.facts.process().uptime_secs()))
}

pub(crate) fn act_conn<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Int(cx.facts.process().connections()))
}

pub(crate) fn stopping<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Bool(cx.facts.process().is_stopping()))
}

/// True once content inspection is over; before, nothing is known.
pub(crate) fn wait_end<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    (!cx.more.meets(Needs::INSPECTION_END)).then_some(Sample::Bool(true))
}

/// 32 random bits, or a number below the argument.
pub(crate) fn rand<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let random = cx.facts.random() & 0xffff_ffff;
    Some(Sample::Int(match int_arg(args, 0) {
        Some(below) => {
            let below = u64::try_from(below).unwrap_or(0) & 0xffff_ffff;
            ((random * below) >> 32) as i64
        }
        None => random as i64,
    }))
}

/// A UUID: version 4 (random), or 7 (RFC 9562, by time) when asked.
pub(crate) fn uuid<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let mut bits = (u128::from(cx.facts.random()) << 64) | u128::from(cx.facts.random());
    let version: u128 = match int_arg(args, 0).unwrap_or(4) {
        4 => 4,
        7 => {
            let now = cx.facts.now();
            let ms = now.secs as u128 * 1000 + u128::from(now.micros / 1000);
            bits = (bits & ((1 << 80) - 1)) | (ms << 80);
            7
        }
        _ => return None,
    };
    bits = (bits & !(0xf << 76)) | (version << 76);
    bits = (bits & !(0x3 << 62)) | (0x2 << 62);
    let mut out = cx.scratch.open();
    for nibble in (0..32).rev() {
        let digit = ((bits >> (nibble * 4)) & 0xf) as u32;
        out.push(char::from_digit(digit, 16).unwrap_or('0') as u8);
        if matches!(nibble, 24 | 20 | 16 | 12) {
            out.push(b'-');
        }
    }
    Some(Sample::Str(cx.scratch.close(out)))
}

pub(crate) fn var<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let ArgValue::Var(name) = &args.first()?.value else {
        return None;
    };
    if let Some(value) = cx.facts.var(name) {
        return Some(Sample::from_value(value));
    }
    args.get(1)
        .filter(|arg| !arg.is_absent())
        .map(|arg| Sample::held(arg.text.as_bytes()))
}
