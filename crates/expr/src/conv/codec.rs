//! Encodings and structured formats, manual 7.3.1.

use crate::args::ArgKind::{Int, Text};
use crate::args::{Arg, bytes_arg, int_arg, text_arg};
use crate::base64::{enbase64, unbase64};
use crate::conv::{Converter, NO_ARGS, args, rewritten, rewritten_whole, row, text_of};
use crate::evaluation::Evaluation;
use crate::value::{Sample, SampleKind};

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("b64dec", NO_ARGS, SampleKind::Str, SampleKind::Bin)
        .implemented("decodes base 64", |cx, _, input| decoded(cx, input, |bytes, out| unbase64(bytes, out, false))),
    row("base2", NO_ARGS, SampleKind::Bin, SampleKind::Str)
        .implemented("each byte as eight binary digits", |cx, _, input| encoded(cx, input, base2)),
    row("base64", NO_ARGS, SampleKind::Bin, SampleKind::Str)
        .implemented("encodes in base 64", |cx, _, input| encoded(cx, input, |bytes, out| enbase64(bytes, out, false))),
    row("be2dec", args(1, &[Text, Int, Int]), SampleKind::Bin, SampleKind::Str)
        .examples("be2dec(:,2)", "be2dec(:,x)")
        .implemented(
            "groups of bytes, the highest first, as decimal numbers",
            |cx, args, input| encoded(cx, input, |bytes, out| chunked_decimal(bytes, out, args, false)),
        ),
    row("be2hex", args(1, &[Text, Int, Int]), SampleKind::Bin, SampleKind::Str)
        .examples("be2hex(:,2)", "be2hex(:,x)")
        .implemented(
            "groups of bytes in hexadecimal",
            |cx, args, input| encoded(cx, input, |bytes, out| chunked_hex(bytes, out, args)),
        ),
    row("hex", NO_ARGS, SampleKind::Bin, SampleKind::Str)
        .implemented("each byte as two hexadecimal digits", |cx, _, input| encoded(cx, input, hex)),
    row("hex2i", NO_ARGS, SampleKind::Str, SampleKind::Int)
        .implemented("the number that hexadecimal digits write", hex2i),
    row("htonl", NO_ARGS, SampleKind::Int, SampleKind::Bin)
        .implemented("a number as four bytes, the highest first", htonl),
    row("json", args(1, &[Text]), SampleKind::Str, SampleKind::Str)
        .examples("json(utf8)", "json(utf8,x)")
        .implemented(
            "a text as it stands in JSON",
            |cx, args, input| encoded_whole(cx, input, |bytes, out| json_text(bytes, out, text_arg(args, 0))),
        ),
    row("le2dec", args(1, &[Text, Int, Int]), SampleKind::Bin, SampleKind::Str)
        .examples("le2dec(:,2)", "le2dec(:,x)")
        .implemented(
            "groups of bytes, the lowest first, as decimal numbers",
            |cx, args, input| encoded(cx, input, |bytes, out| chunked_decimal(bytes, out, args, true)),
        ),
    row("ub64dec", NO_ARGS, SampleKind::Str, SampleKind::Bin)
        .implemented("decodes base 64 for URLs", |cx, _, input| decoded(cx, input, |bytes, out| unbase64(bytes, out, true))),
    row("ub64enc", NO_ARGS, SampleKind::Bin, SampleKind::Str)
        .implemented(
            "encodes in base 64 for URLs",
            |cx, _, input| encoded(cx, input, |bytes, out| enbase64(bytes, out, true)),
        ),
    row("url_dec", args(0, &[Int]), SampleKind::Str, SampleKind::Str)
        .examples("url_dec(1)", "url_dec(x)")
        .implemented(
            "undoes percent encoding, and that of a form if asked",
            |cx, args, input| encoded(cx, input, |bytes, out| unescape_url(bytes, out, int_arg(args, 0).is_some_and(|form| form != 0))),
        ),
    row("url_enc", args(1, &[Text]), SampleKind::Str, SampleKind::Str)
        .examples("url_enc(query)", "url_enc(a,b)")
        .implemented("percent encoding of what is not plain in a URL", |cx, _, input| encoded_whole(cx, input, url_enc)),
];

const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";

fn push_hex(out: &mut Vec<u8>, byte: u8, digits: &[u8; 16]) {
    out.push(digits[usize::from(byte >> 4)]);
    out.push(digits[usize::from(byte & 15)]);
}

/// Writes text made from text or bytes.
fn encoded<'f>(
    cx: &mut Evaluation<'f, '_>,
    input: Sample<'f>,
    encode: impl FnOnce(&[u8], &mut Vec<u8>) -> Option<()>,
) -> Option<Sample<'f>> {
    rewritten(cx, text_of(input)?, encode).map(Sample::Str)
}

/// The same for what has no meaning in part.
fn encoded_whole<'f>(
    cx: &mut Evaluation<'f, '_>,
    input: Sample<'f>,
    encode: impl FnOnce(&[u8], &mut Vec<u8>) -> Option<()>,
) -> Option<Sample<'f>> {
    rewritten_whole(cx, text_of(input)?, encode).map(Sample::Str)
}

/// Writes bytes made from text.
fn decoded<'f>(
    cx: &mut Evaluation<'f, '_>,
    input: Sample<'f>,
    decode: impl FnOnce(&[u8], &mut Vec<u8>) -> Option<()>,
) -> Option<Sample<'f>> {
    rewritten(cx, text_of(input)?, decode).map(Sample::Bin)
}

fn hex(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    bytes.iter().for_each(|byte| push_hex(out, *byte, UPPER));
    Some(())
}

fn base2(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    for byte in bytes {
        out.extend((0..8).rev().map(|bit| b'0' + (byte >> bit & 1)));
    }
    Some(())
}

fn url_enc(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(*byte);
        } else {
            out.push(b'%');
            push_hex(out, *byte, UPPER);
        }
    }
    Some(())
}

/// Undoes percent encoding; a plus sign is a space in a form or after a question mark.
fn unescape_url(bytes: &[u8], out: &mut Vec<u8>, mut in_form: bool) -> Option<()> {
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' if in_form => out.push(b' '),
            b'%' => {
                let high = (*rest.next()? as char).to_digit(16)?;
                let low = (*rest.next()? as char).to_digit(16)?;
                // A text has no NUL.
                out.push(Some((high << 4 | low) as u8).filter(|byte| *byte != 0)?);
            }
            byte => {
                in_form |= *byte == b'?';
                out.push(*byte);
            }
        }
    }
    Some(())
}

fn hex2i<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg], input: Sample<'f>) -> Option<Sample<'f>> {
    let bytes = cx.scratch.bytes(text_of(input)?);
    let mut number: i64 = 0;
    for byte in bytes {
        let digit = (*byte as char).to_digit(16)?;
        number = number.wrapping_shl(4) | i64::from(digit);
    }
    Some(Sample::Int(number))
}

fn htonl<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg], input: Sample<'f>) -> Option<Sample<'f>> {
    let Sample::Int(number) = input else {
        return None;
    };
    Some(Sample::Bin(cx.scratch.keep(&(number as u32).to_be_bytes())))
}

/// JSON string contents (RFC 8259 section 7). The input is ASCII, or UTF-8. What is wrong with it
/// refuses the whole, or is left out (`s`); a character that takes more bytes than it must is right
/// with `p`. Characters beyond 16 bits are wrong, too.
fn json_text(bytes: &[u8], out: &mut Vec<u8>, encoding: &str) -> Option<()> {
    let Some(variant) = encoding.strip_prefix("utf8") else {
        bytes
            .iter()
            .for_each(|byte| json_char(out, u32::from(*byte)));
        return Some(());
    };
    let (takes_overlong, leaves_out) = (variant.contains('p'), variant.contains('s'));
    let mut rest = bytes;
    while !rest.is_empty() {
        let (length, code) = utf8_char(rest, takes_overlong);
        match code {
            Some(code) => json_char(out, code),
            None if leaves_out => {}
            None => return None,
        }
        rest = &rest[length..];
    }
    Some(())
}

/// How many bytes the first character of `bytes` takes, and its number if it is right.
fn utf8_char(bytes: &[u8], takes_overlong: bool) -> (usize, Option<u32>) {
    let first = bytes[0];
    let (length, bits, least) = match first {
        0x00..=0x7f => return (1, Some(u32::from(first))),
        0xc0..=0xdf => (2, first & 0x1f, 0x80),
        0xe0..=0xef => (3, first & 0x0f, 0x800),
        0xf0..=0xf7 => (4, first & 0x07, 0x1_0000),
        _ => return (1, None),
    };
    let mut code = u32::from(bits);
    for position in 1..length {
        match bytes.get(position) {
            Some(byte @ 0x80..=0xbf) => code = code << 6 | u32::from(byte & 0x3f),
            _ => return (position, None),
        }
    }
    let is_right = (takes_overlong || code >= least)
        && !matches!(code, 0xd800..=0xdfff | 0xfffe | 0xffff)
        && code <= 0xffff;
    (length, is_right.then_some(code))
}

fn json_char(out: &mut Vec<u8>, code: u32) {
    let short = match code {
        0x22 => Some(b'"'),
        0x5c => Some(b'\\'),
        0x2f => Some(b'/'),
        0x08 => Some(b'b'),
        0x0c => Some(b'f'),
        0x0a => Some(b'n'),
        0x0d => Some(b'r'),
        0x09 => Some(b't'),
        _ => None,
    };
    if let Some(letter) = short {
        out.extend_from_slice(&[b'\\', letter]);
    } else if (0x20..0x7f).contains(&code) {
        out.push(code as u8);
    } else {
        out.extend_from_slice(b"\\u");
        push_hex(out, (code >> 8) as u8, LOWER);
        push_hex(out, (code & 0xff) as u8, LOWER);
    }
}

/// Numbers of `chunk` bytes each, in decimal, with the separator between them.
fn chunked_decimal(bytes: &[u8], out: &mut Vec<u8>, args: &[Arg], little: bool) -> Option<()> {
    let size = usize::try_from(int_arg(args, 1).unwrap_or(0)).ok()?;
    let truncate = int_arg(args, 2).is_some_and(|flag| flag != 0);
    if size == 0 || size > 8 {
        return None;
    }
    for (at, chunk) in bytes.chunks(size).enumerate() {
        if truncate && chunk.len() < size {
            break;
        }
        if at > 0 {
            out.extend_from_slice(bytes_arg(args, 0));
        }
        let fold = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        let number = if little {
            chunk.iter().rev().fold(0, fold)
        } else {
            chunk.iter().fold(0, fold)
        };
        out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }
    Some(())
}

fn chunked_hex(bytes: &[u8], out: &mut Vec<u8>, args: &[Arg]) -> Option<()> {
    let size = usize::try_from(int_arg(args, 1).unwrap_or(1))
        .ok()
        .filter(|size| *size > 0)?;
    let truncate = int_arg(args, 2).is_some_and(|flag| flag != 0);
    for (at, chunk) in bytes.chunks(size).enumerate() {
        if truncate && chunk.len() < size {
            break;
        }
        if at > 0 {
            out.extend_from_slice(bytes_arg(args, 0));
        }
        chunk.iter().for_each(|byte| push_hex(out, *byte, UPPER));
    }
    Some(())
}
