//! Constants, random numbers, variables and the other samples without data of an exchange: manual,
//! section 7.3.2.

use std::net::IpAddr;

use crate::args::ArgKind::{Int, Ipv4, Ipv6, Text, Var};
use crate::args::{Arg, ArgValue, bytes_arg, int_arg, text_arg};
use crate::condition_result::ConditionResult;
use crate::evaluation::Evaluation;
use crate::fetch::tls::LATER_THAN_3_2;
use crate::fetch::{ACL_NAMES, Fetch, NO_ARGS, args, row};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const ALWAYS: Phases = Phases::ALWAYS;
const RUNNING: Phases = Phases::RUNNING;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("acl", ACL_NAMES, SampleKind::Bool, ALWAYS)
        .examples("acl(TRUE,!FALSE)", "acl")
        .implemented("whether all of the ACLs hold, those after a ! not", acls_hold),
    row("always_false", NO_ARGS, SampleKind::Bool, ALWAYS)
        .implemented("always false", |_, _| Some(Sample::Bool(false))),
    row("always_true", NO_ARGS, SampleKind::Bool, ALWAYS)
        .implemented("always true", |_, _| Some(Sample::Bool(true))),
    row("bin", args(1, &[Text]), SampleKind::Bin, ALWAYS)
        .examples("bin(4142)", "bin(41,42)")
        .implemented("the bytes that a text writes in hexadecimal", binary),
    row("bool", args(1, &[Text]), SampleKind::Bool, ALWAYS)
        .examples("bool(true)", "bool")
        .implemented("a constant: true, false, or a number that is or is not 0", boolean),
    row("dump_all_vars", args(0, &[Text, Text, Text]), SampleKind::Str, ALWAYS)
        .refused(LATER_THAN_3_2),
    row("int", args(1, &[Int]), SampleKind::Int, ALWAYS)
        .examples("int(5)", "int(x)")
        .implemented("a constant integer", |_, args| int_arg(args, 0).map(Sample::Int)),
    row("ipv4", args(1, &[Ipv4]), SampleKind::Ipv4, ALWAYS)
        .examples("ipv4(192.0.2.1)", "ipv4(192.0.2)")
        .implemented("a constant IPv4 address", address),
    row("ipv6", args(1, &[Ipv6]), SampleKind::Ipv6, ALWAYS)
        .examples("ipv6(2001:db8::1)", "ipv6(x)")
        .implemented("a constant IPv6 address", address),
    row("meth", args(1, &[Text]), SampleKind::Meth, ALWAYS)
        .examples("meth(GET)", "meth(GET,x)")
        .implemented("a constant method", |_, args| Some(Sample::meth(bytes_arg(args, 0)))),
    row("rand", args(0, &[Int]), SampleKind::Int, ALWAYS)
        .examples("rand(100)", "rand(x)")
        .implemented("32 random bits, or a random number below the argument", rand),
    row("str", args(1, &[Text]), SampleKind::Str, ALWAYS)
        .examples("str(text)", "str(a,b)")
        .implemented("a constant text", |_, args| Some(Sample::str(bytes_arg(args, 0)))),
    row("uuid", args(0, &[Int]), SampleKind::Str, ALWAYS)
        .examples("uuid(7)", "uuid(x)")
        .implemented("a new UUID: version 4 (random), or 7 (by time)", uuid),
    row("var", args(1, &[Var, Text]), SampleKind::Any, ALWAYS)
        .examples("var(txn.name,none)", "var(name)")
        .implemented("a variable, or the default that is given", var),
    row("wait_end", NO_ARGS, SampleKind::Bool, RUNNING).needs(Needs::INSPECTION_END)
        .implemented("true when content inspection is over", wait_end),
];

/// Whether all of the named ACLs hold.
fn acls_hold<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let mut missing = Needs::NONE;
    for arg in args {
        let ArgValue::Acl(slot) = &arg.value else {
            continue;
        };
        let held = slot
            .filled()?
            .test(cx.facts, cx.scratch, cx.may_still_arrive);
        match held.negated_if(arg.text.starts_with('!')) {
            ConditionResult::Yes => {}
            ConditionResult::No => return Some(Sample::Bool(false)),
            ConditionResult::NotYet(needs) => missing = missing | needs,
        }
    }
    if missing.is_none() {
        return Some(Sample::Bool(true));
    }
    cx.note_missing(missing);
    None
}

fn boolean<'f>(_: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let text = text_arg(args, 0);
    let truth =
        text.eq_ignore_ascii_case("true") || text.parse::<i64>().is_ok_and(|number| number != 0);
    Some(Sample::Bool(truth))
}

fn binary<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let mut out = cx.scratch.open();
    for pair in bytes_arg(args, 0).chunks_exact(2) {
        let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
        out.push(digit(pair[0]) << 4 | digit(pair[1]));
    }
    Some(Sample::Bin(cx.scratch.close(out)))
}

fn address<'f>(_: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    match args.first()?.value {
        ArgValue::Ip(IpAddr::V4(v4)) => Some(Sample::Ipv4(v4)),
        ArgValue::Ip(IpAddr::V6(v6)) => Some(Sample::Ipv6(v6)),
        _ => None,
    }
}

/// No value before the end of inspection.
fn wait_end<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    (!cx.may_still_arrive.intersects(Needs::INSPECTION_END)).then_some(Sample::Bool(true))
}

fn rand<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let random = cx.facts.random() & 0xffff_ffff;
    Some(Sample::Int(match int_arg(args, 0) {
        Some(below) => {
            let below = u64::try_from(below).unwrap_or(0) & 0xffff_ffff;
            ((random * below) >> 32) as i64
        }
        None => random as i64,
    }))
}

/// RFC 9562.
fn uuid<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
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

fn var<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let ArgValue::Var(name) = &args.first()?.value else {
        return None;
    };
    if let Some(value) = cx.facts.var(name) {
        return Some(Sample::from_value(value));
    }
    args.get(1)
        .filter(|arg| !arg.is_absent())
        .map(|arg| Sample::str(arg.text.as_bytes()))
}
