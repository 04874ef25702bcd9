//! Values out of JSON documents, manual 7.3.1.

use std::io::Write as _;

use crate::args::ArgKind::Text;
use crate::args::{Arg, bytes_arg, text_arg};
use crate::conv::json_walk::{JsonValue, find};
use crate::conv::{Converter, args, row, text_of};
use crate::evaluation::Evaluation;
use crate::scratch::SampleText;
use crate::value::{Sample, SampleKind};

/// The rows of this family.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("json_query", args(1, &[Text, Text]), SampleKind::Str, SampleKind::Any)
        .examples("json_query($.a,int)", "json_query($.a,bool)")
        .implemented("the value that a path leads to in a JSON document", json_query),
];

fn json_query<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    query(cx, args, text_of(input)?)
}

/// The value that the path of the arguments leads to in `document`.
pub(super) fn query<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    document: SampleText<'f>,
) -> Option<Sample<'f>> {
    let bytes = cx.scratch.bytes(document);
    match find(bytes, bytes_arg(args, 0))? {
        JsonValue::Null | JsonValue::Object => None,
        JsonValue::Bool(flag) => Some(Sample::Bool(flag)),
        JsonValue::Array(range) => Some(Sample::Str(cx.scratch.part(
            document,
            range.start,
            range.end,
        ))),
        JsonValue::Text(range) => {
            if memchr::memchr(b'\\', &bytes[range.clone()]).is_none() {
                let text = cx.scratch.part(document, range.start, range.end);
                return Some(Sample::Str(text));
            }
            let mut out = cx.scratch.open();
            let done = unescape(&cx.scratch.bytes(document)[range], &mut out);
            let text = cx.scratch.close(out);
            done.map(|()| Sample::Str(text))
        }
        JsonValue::Number(range) if text_arg(args, 1) == "int" => {
            integer(&bytes[range.start..]).map(Sample::Int)
        }
        JsonValue::Number(range) => {
            let number = float(&bytes[range]);
            let mut out = cx.scratch.open();
            push_general(&mut out, number);
            Some(Sample::Str(cx.scratch.close(out)))
        }
    }
}

/// Undoes the escapes that HAProxy knows: `\u` up to 255, which it takes for a byte, and no `\/`.
fn unescape(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = match &rest[at + 1..] {
            [b'u', b'0', b'0', high, low, rest @ ..] => {
                let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or(0) as u8;
                let byte = digit(*high) << 4 | digit(*low);
                if byte == 0 {
                    return None;
                }
                out.push(byte);
                rest
            }
            [escaped, rest @ ..] => {
                out.push(match escaped {
                    b'"' | b'\\' => *escaped,
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    _ => return None,
                });
                rest
            }
            [] => return None,
        };
    }
    out.extend_from_slice(rest);
    Some(())
}

/// The integer that a number begins with: octal after a 0, hexadecimal after `0x`. None at either end
/// of 64 bits, and beyond.
fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (radix, digits) = match digits {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        [b'0', ..] => (8, digits),
        _ => (10, digits),
    };
    let mut sum: i64 = 0;
    for digit in digits
        .iter()
        .map_while(|byte| (*byte as char).to_digit(radix))
    {
        sum = sum
            .checked_mul(i64::from(radix))?
            .checked_add(i64::from(digit))?;
    }
    let number = if negative { -sum } else { sum };
    (sum != i64::MAX).then_some(number)
}

/// The value of a number as the walker cuts it out.
fn float(text: &[u8]) -> f64 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    // An exponent without digits is none, and a point at the end spoils the number in HAProxy.
    let text = text.trim_end_matches(['e', 'E', '+', '-']);
    if text.ends_with('.') {
        return 0.0;
    }
    text.parse().unwrap_or(0.0)
}

/// Appends a number with six significant digits, as `%g` of printf(3) does.
fn push_general(out: &mut Vec<u8>, number: f64) {
    /// Significant digits.
    const DIGITS: i32 = 6;
    // Writing to a Vec cannot fail.
    if number.is_infinite() {
        let _ = write!(out, "{number}");
        return;
    }
    let mut buffer = [0; 32];
    let mut rest = &mut buffer[..];
    let _ = write!(rest, "{number:.*e}", DIGITS as usize - 1);
    let left = rest.len();
    let scientific = &buffer[..buffer.len() - left];
    let at = memchr::memchr(b'e', scientific).unwrap_or(scientific.len());
    let exponent = std::str::from_utf8(scientific.get(at + 1..).unwrap_or_default());
    let exponent: i32 = exponent
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let start = out.len();
    if (-4..DIGITS).contains(&exponent) {
        let _ = write!(out, "{number:.*}", (DIGITS - 1 - exponent) as usize);
        trim_zeros(out, start);
    } else {
        out.extend_from_slice(&scientific[..at]);
        trim_zeros(out, start);
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
    }
}

/// Removes zeros at the end of a fraction, and a point that nothing follows.
fn trim_zeros(out: &mut Vec<u8>, start: usize) {
    if !out[start..].contains(&b'.') {
        return;
    }
    while out.last() == Some(&b'0') {
        out.pop();
    }
    if out.last() == Some(&b'.') {
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_printf_writes_them() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (99_999.95, "99999.9"),
            (999_999.5, "1e+06"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (1.5e300, "1.5e+300"),
            (123.456_789, "123.457"),
            (f64::INFINITY, "inf"),
        ];
        for (number, expected) in cases {
            let mut out = Vec::new();
            push_general(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
