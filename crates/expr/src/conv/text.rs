//! Cutting and joining of strings and addresses, manual 7.3.1.

use crate::args::ArgKind::{Int, Mask4, Mask6, Regex, Text, Var};
use crate::args::{Arg, ArgValue, bytes_arg, int_arg, text_arg};
use crate::conv::{Converter, NO_ARGS, args, named_var, rewritten, row, text_of};
use crate::evaluation::Evaluation;
use crate::groups::Groups;
use crate::search_limit::SearchLimit;
use crate::value::{Sample, SampleKind, v6_to_v4};
use crate::vars::VarName;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("add_item", args(2, &[Text, Var, Text]), SampleKind::Str, SampleKind::Str)
        .examples("add_item(;,txn.name,x)", "add_item")
        .implemented("appends a variable and a suffix, after a delimiter", add_item),
    row("bytes", args(1, &[Text, Text]), SampleKind::Bin, SampleKind::Bin)
        .examples("bytes(1,2)", "bytes(1,2,3)")
        .implemented("bytes from an offset on, as many as are asked", bytes),
    row("concat", args(1, &[Text, Var, Text]), SampleKind::Str, SampleKind::Str)
        .examples("concat(<,txn.name,>)", "concat(a,b,c,d)")
        .implemented("appends a text, a variable and a text", concat),
    row("cut_crlf", NO_ARGS, SampleKind::Str, SampleKind::Str)
        .implemented("the first line", cut_crlf),
    row("field", args(2, &[Int, Text, Int]), SampleKind::Str, SampleKind::Str)
        .examples("field(2,/)", "field(2)")
        .implemented(
            "the piece at an index between delimiters, each of which counts",
            |cx, args, input| cut_out(cx, args, input, true),
        ),
    row("has_ctl", args(0, &[Text]), SampleKind::Bin, SampleKind::Bool)
        .examples("has_ctl(0x100002401)", "has_ctl(1,2)")
        .implemented("whether a control character is in it", has_ctl),
    row("host_only", NO_ARGS, SampleKind::Str, SampleKind::Str)
        .implemented("the host of a Host value", host_only),
    row("ipmask", args(1, &[Mask4, Mask6]), SampleKind::Addr, SampleKind::Addr)
        .examples("ipmask(24,64)", "ipmask(x)")
        .implemented("an address with a mask of IPv4, and one of IPv6", ipmask),
    row("length", NO_ARGS, SampleKind::Str, SampleKind::Int)
        .implemented("how long it is, in bytes", length),
    row("lower", NO_ARGS, SampleKind::Str, SampleKind::Str)
        .implemented("in lower case", lower),
    row("ltrim", args(1, &[Text]), SampleKind::Str, SampleKind::Str)
        .examples("ltrim(x)", "ltrim(a,b)")
        .implemented("without these bytes at its beginning", ltrim),
    row("param", args(1, &[Text, Text]), SampleKind::Str, SampleKind::Str)
        .examples("param(id,&)", "param(a,b,c)")
        .implemented("a parameter of a list such as a query", param),
    row("port_only", NO_ARGS, SampleKind::Str, SampleKind::Int)
        .implemented("the port of a Host value, or 0", port_only),
    row("regsub", args(2, &[Regex, Text, Text]), SampleKind::Str, SampleKind::Str)
        .examples("regsub(a,b,g)", "regsub(a)")
        .implemented("what a regular expression matches replaced, all of it with g", regsub),
    row("reverse", NO_ARGS, SampleKind::Str, SampleKind::Str)
        .implemented("from its end to its beginning", reverse),
    row("reverse_dom", NO_ARGS, SampleKind::Str, SampleKind::Str),
    row("rtrim", args(1, &[Text]), SampleKind::Str, SampleKind::Str)
        .examples("rtrim(x)", "rtrim(a,b)")
        .implemented("without these bytes at its end", rtrim),
    row("upper", NO_ARGS, SampleKind::Str, SampleKind::Str)
        .implemented("in upper case", upper),
    row("word", args(2, &[Int, Text, Int]), SampleKind::Str, SampleKind::Str)
        .examples("word(2,/)", "word(2)")
        .implemented(
            "the piece at an index between delimiters, runs of which count once",
            |cx, args, input| cut_out(cx, args, input, false),
        ),
];

fn lower<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg], input: Sample<'f>) -> Option<Sample<'f>> {
    let text = cx
        .scratch
        .copy(text_of(input)?, <[u8]>::make_ascii_lowercase);
    Some(Sample::Str(text))
}

fn upper<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg], input: Sample<'f>) -> Option<Sample<'f>> {
    let text = cx
        .scratch
        .copy(text_of(input)?, <[u8]>::make_ascii_uppercase);
    Some(Sample::Str(text))
}

fn reverse<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg], input: Sample<'f>) -> Option<Sample<'f>> {
    let text = rewritten(cx, text_of(input)?, |bytes, out| {
        out.extend(bytes.iter().rev());
        Some(())
    })?;
    Some(Sample::Str(text))
}

fn length<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg], input: Sample<'f>) -> Option<Sample<'f>> {
    let length = cx.scratch.bytes(text_of(input)?).len();
    Some(Sample::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

/// An integer argument that may be the name of a variable (`bytes`, 3.x).
fn flexible_int(cx: &Evaluation<'_, '_>, args: &[Arg], position: usize) -> Option<i64> {
    let arg = args.get(position)?;
    match arg.text.parse() {
        Ok(number) => Some(number),
        Err(_) => {
            let name = VarName::parse(&arg.text).ok()?;
            cx.facts.var(&name)?.to_int()
        }
    }
}

fn bytes<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let from = usize::try_from(flexible_int(cx, args, 0)?).ok()?;
    let to = if args.get(1).is_none_or(Arg::is_absent) {
        usize::MAX
    } else {
        from.saturating_add(usize::try_from(flexible_int(cx, args, 1)?).ok()?)
    };
    Some(Sample::Bin(cx.scratch.part(text, from, to)))
}

fn ltrim<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let cut = bytes_arg(args, 0);
    let bytes = cx.scratch.bytes(text);
    let from = bytes
        .iter()
        .position(|byte| !cut.contains(byte))
        .unwrap_or(bytes.len());
    Some(Sample::Str(cx.scratch.part(text, from, usize::MAX)))
}

fn rtrim<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let cut = bytes_arg(args, 0);
    let bytes = cx.scratch.bytes(text);
    let to = bytes
        .iter()
        .rposition(|byte| !cut.contains(byte))
        .map_or(0, |at| at + 1);
    Some(Sample::Str(cx.scratch.part(text, 0, to)))
}

fn cut_crlf<'f>(
    cx: &mut Evaluation<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let bytes = cx.scratch.bytes(text);
    let to = memchr::memchr2(b'\r', b'\n', bytes).unwrap_or(bytes.len());
    Some(Sample::Str(cx.scratch.part(text, 0, to)))
}

/// Where the pieces wanted of `bytes` begin and end. `wide` counts every delimiter (`field`);
/// otherwise runs of delimiters separate once and ends are ignored (`word`).
fn pieces(
    bytes: &[u8],
    index: i64,
    delimiters: &[u8],
    count: i64,
    wide: bool,
) -> Option<(usize, usize)> {
    let is_delimiter = |byte: &u8| delimiters.contains(byte);
    let wanted = usize::try_from(index.unsigned_abs()).ok()?.checked_sub(1)?;
    let more = match usize::try_from(count).ok()? {
        0 => usize::MAX,
        count => count - 1,
    };
    // Counted from the end, everything is looked at backwards.
    let length = bytes.len();
    let at = |i: usize| {
        if index > 0 {
            &bytes[i]
        } else {
            &bytes[length - 1 - i]
        }
    };
    let end_of = |mut i: usize| {
        while i < length && !is_delimiter(at(i)) {
            i += 1;
        }
        i
    };
    let next_start = |mut i: usize| {
        if wide {
            return if i < length { Some(i + 1) } else { None };
        }
        while i < length && is_delimiter(at(i)) {
            i += 1;
        }
        (i < length).then_some(i)
    };
    let mut start = if wide { 0 } else { next_start(0)? };
    for _ in 0..wanted {
        start = next_start(end_of(start))?;
    }
    let mut end = end_of(start);
    for _ in 0..more {
        match next_start(end) {
            Some(next) => end = end_of(next),
            None => {
                // All that there is: what separates stays.
                end = length;
                break;
            }
        }
    }
    Some(if index > 0 {
        (start, end)
    } else {
        (length - end, length - start)
    })
}

fn cut_out<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
    wide: bool,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let delimiters = bytes_arg(args, 1);
    let count = int_arg(args, 2).unwrap_or(1).max(0);
    let bytes = cx.scratch.bytes(text);
    let (from, to) = pieces(bytes, int_arg(args, 0)?, delimiters, count, wide)?;
    Some(Sample::Str(cx.scratch.part(text, from, to)))
}

fn concat<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let value = named_var(cx, args, 1);
    let text = rewritten(cx, text_of(input)?, |bytes, out| {
        out.extend_from_slice(bytes);
        out.extend_from_slice(bytes_arg(args, 0));
        if let Some(value) = value {
            value.append_to(out);
        }
        out.extend_from_slice(bytes_arg(args, 2));
        Some(())
    })?;
    Some(Sample::Str(text))
}

fn add_item<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let value = named_var(cx, args, 1);
    let suffix = bytes_arg(args, 2);
    let text = rewritten(cx, text_of(input)?, |bytes, out| {
        out.extend_from_slice(bytes);
        let before = out.len();
        if let Some(value) = value {
            value.append_to(out);
        }
        out.extend_from_slice(suffix);
        // The delimiter stands only between two things.
        if before > 0 && out.len() > before {
            let delimiter = bytes_arg(args, 0);
            out.splice(before..before, delimiter.iter().copied());
        }
        Some(())
    })?;
    Some(Sample::Str(text))
}

fn regsub<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let ArgValue::Regex(regex) = &args.first()?.value else {
        return None;
    };
    let template = bytes_arg(args, 1);
    let global = text_arg(args, 2).contains('g');
    // Nearly all templates are plain text, and the groups are dear.
    let has_groups = memchr::memchr(b'\\', template).is_some();
    let text = rewritten(cx, text_of(input)?, |bytes, out| {
        if !has_groups && !global {
            let Some((start, end)) = regex.find(bytes) else {
                out.extend_from_slice(bytes);
                return Some(());
            };
            for part in [&bytes[..start], template, &bytes[end..]] {
                out.extend_from_slice(part);
            }
            return Some(());
        }
        let mut at = 0;
        let _shared = SearchLimit::share();
        while let Some(groups) = regex.groups(bytes, at) {
            let Some((start, end)) = groups[0] else { break };
            out.extend_from_slice(&bytes[at..start]);
            substitute(template, bytes, &groups, out);
            at = end;
            if start == end {
                // Nothing was consumed: one byte is, or the same place would match for ever.
                let Some(byte) = bytes.get(at) else { break };
                out.push(*byte);
                at += 1;
            }
            if !global || at > bytes.len() {
                break;
            }
        }
        out.extend_from_slice(bytes.get(at..).unwrap_or_default());
        Some(())
    })?;
    Some(Sample::Str(text))
}

/// Writes `template` with `\0` to `\9` replaced by what the groups hold and `\xHH` by a byte.
pub(super) fn substitute(template: &[u8], subject: &[u8], groups: &Groups, out: &mut Vec<u8>) {
    let mut rest = template;
    while let Some(slash) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..slash]);
        rest = &rest[slash + 1..];
        match rest {
            [digit @ b'0'..=b'9', after @ ..] => {
                if let Some((start, end)) = groups[usize::from(digit - b'0')] {
                    out.extend_from_slice(&subject[start..end]);
                }
                rest = after;
            }
            [b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
                out.push(digit(*high) << 4 | digit(*low));
                rest = after;
            }
            [other, after @ ..] => {
                out.push(*other);
                rest = after;
            }
            [] => out.push(b'\\'),
        }
    }
    out.extend_from_slice(rest);
}

fn ipmask<'f>(
    _: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    // An address that stands for one of IPv4 is masked as that.
    let input = match input {
        Sample::Ipv6(address) => v6_to_v4(&address).map_or(input, Sample::Ipv4),
        other => other,
    };
    match (input, args) {
        (
            Sample::Ipv4(address),
            [
                Arg {
                    value: ArgValue::Mask4(mask),
                    ..
                },
                ..,
            ],
        ) => Some(Sample::Ipv4((u32::from(address) & mask).into())),
        (
            Sample::Ipv6(address),
            [
                _,
                Arg {
                    value: ArgValue::Mask6(mask),
                    ..
                },
                ..,
            ],
        ) => Some(Sample::Ipv6((u128::from(address) & mask).into())),
        _ => None,
    }
}

/// Host and port of a `Host` value; brackets stay with the host.
fn split_host(bytes: &[u8]) -> (usize, Option<usize>) {
    let from = match bytes.first() {
        Some(b'[') => memchr::memchr(b']', bytes).map_or(0, |end| end + 1),
        _ => 0,
    };
    match memchr::memrchr(b':', &bytes[from..]) {
        Some(colon) => (from + colon, Some(from + colon + 1)),
        None => (bytes.len(), None),
    }
}

fn host_only<'f>(
    cx: &mut Evaluation<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let text = rewritten(cx, text, |bytes, out| {
        let (end, _) = split_host(bytes);
        out.extend(bytes[..end].iter().map(u8::to_ascii_lowercase));
        Some(())
    })?;
    Some(Sample::Str(text))
}

fn port_only<'f>(
    cx: &mut Evaluation<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let bytes = cx.scratch.bytes(text_of(input)?);
    // Summed up as HAProxy does it, which looks neither for digits nor for a bound.
    let port = split_host(bytes).1.map(|from| {
        bytes[from..].iter().fold(0_u32, |sum, byte| {
            sum.wrapping_mul(10)
                .wrapping_add(u32::from(*byte))
                .wrapping_sub(u32::from(b'0'))
        })
    });
    Some(Sample::Int(i64::from(port.unwrap_or(0))))
}

fn param<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let name = bytes_arg(args, 0);
    let delimiter = bytes_arg(args, 1).first().copied().unwrap_or(b'&');
    let text = text_of(input)?;
    let bytes = cx.scratch.bytes(text);
    let mut start = 0;
    let (from, to) = loop {
        let end = memchr::memchr(delimiter, &bytes[start..]).map_or(bytes.len(), |at| start + at);
        let piece = &bytes[start..end];
        if let Some(rest) = piece.strip_prefix(name) {
            match rest {
                [b'=', ..] => break (start + name.len() + 1, end),
                [] => break (end, end),
                _ => {}
            }
        }
        if end == bytes.len() {
            return None;
        }
        start = end + 1;
    };
    Some(Sample::Str(cx.scratch.part(text, from, to)))
}

/// A set of control characters: a bit for each below a space, and one for DEL.
pub(crate) fn control_mask(text: &str) -> Option<u64> {
    /// All of them.
    const ANY: u64 = 0x1_ffff_ffff;
    /// All but the tab.
    const DEFAULT: u64 = 0x1_ffff_fdff;
    /// Those that values of HTTP fields must not have: CR, LF and NUL.
    const HTTP: u64 = 0x2401;
    let number = match text {
        "" => DEFAULT,
        "any" => ANY,
        "http" => HTTP,
        _ => match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => text.parse().ok()?,
        },
    };
    (number <= ANY).then_some(number)
}

fn has_ctl<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let mask = control_mask(text_arg(args, 0))?;
    let bytes = cx.scratch.bytes(text_of(input)?);
    let found = bytes.iter().any(|byte| match byte {
        0x7f => mask & 1 << 32 != 0,
        0x00..0x20 => mask & 1 << byte != 0,
        _ => false,
    });
    Some(Sample::Bool(found))
}
