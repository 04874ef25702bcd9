//! One pattern: from text to what is compared.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::MatchMethod;
use super::listed_regex::ListedRegex;
use crate::byte_text::{bytes_of_text, expression_of_text};
use crate::error::ExpressionError;
use crate::hex::unhex;
use crate::mask::{mask4, mask6};
use crate::pcre::Pcre;

/// A pattern ready to be compared.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Bytes(Arc<[u8]>),
    Range(Range),
    V4 { net: u32, mask: u32 },
    V6 { net: u128, mask: u128 },
    Regex(ListedRegex),
}

/// An inclusive range of integers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Range {
    pub(super) low: i64,
    pub(super) high: i64,
}

impl Range {
    const ALL: Range = Range {
        low: i64::MIN,
        high: i64::MAX,
    };
}

pub(super) fn parse(
    text: &Arc<str>,
    method: MatchMethod,
    fold: bool,
) -> Result<Pattern, ExpressionError> {
    let whole = 0..text.len();
    Ok(match method {
        MatchMethod::Int | MatchMethod::Len => {
            let range = parse_range(text).ok_or_else(|| {
                let what = if is_range(text) {
                    "valid number range"
                } else {
                    "number"
                };
                ExpressionError::new(format!("'{text}' is not a {what}"), whole)
            })?;
            // HAProxy compares lengths without a sign: below a negative number is any.
            let is_any = method == MatchMethod::Len && range.high < 0;
            Pattern::Range(if is_any { Range::ALL } else { range })
        }
        MatchMethod::Ip => parse_net(text).ok_or_else(|| {
            ExpressionError::new(
                format!("'{text}' is not a valid IPv4 or IPv6 address"),
                whole,
            )
        })?,
        MatchMethod::Reg => Pattern::Regex(match expression_of_text(text) {
            Cow::Borrowed(_) => ListedRegex::new(text, fold)?,
            Cow::Owned(expression) => ListedRegex::new(&Arc::from(expression), fold)?,
        }),
        MatchMethod::Bin => Pattern::Bytes(unhex(text).map(Arc::from).ok_or_else(|| {
            ExpressionError::new(
                format!("'{text}': an even number of hexadecimal digits must be given"),
                whole,
            )
        })?),
        MatchMethod::Dir => Pattern::Bytes(trimmed(text, is_directory_delimiter).into()),
        MatchMethod::Dom => Pattern::Bytes(trimmed(text, is_domain_delimiter).into()),
        MatchMethod::Beg
        | MatchMethod::Bool
        | MatchMethod::End
        | MatchMethod::Found
        | MatchMethod::Str
        | MatchMethod::Sub => {
            // The very bytes of the entry where it is text, not a copy.
            Pattern::Bytes(match bytes_of_text(text) {
                Cow::Borrowed(_) => Arc::clone(text).into(),
                Cow::Owned(bytes) => bytes.into(),
            })
        }
    })
}

/// Whether `text` is a pattern for `method`.
pub(crate) fn check(text: &str, method: MatchMethod, fold: bool) -> Result<(), ExpressionError> {
    if method == MatchMethod::Reg {
        Pcre::check_pattern(text, fold)?;
    }
    parse(&Arc::from(text), method, fold).map(|_| ())
}

/// What ends a portion of `-m dir`.
pub(super) fn is_directory_delimiter(byte: u8) -> bool {
    matches!(byte, b'/' | b'?')
}

/// What ends a portion of `-m dom`.
pub(super) fn is_domain_delimiter(byte: u8) -> bool {
    matches!(byte, b'.' | b':' | b'/' | b'?')
}

fn trimmed(text: &str, is_delimiter: fn(u8) -> bool) -> Vec<u8> {
    let bytes = &*bytes_of_text(text);
    let Some(start) = bytes.iter().position(|byte| !is_delimiter(*byte)) else {
        return Vec::new();
    };
    let end = bytes
        .iter()
        .rposition(|byte| !is_delimiter(*byte))
        .map_or(start, |at| at + 1);
    bytes[start..end].to_vec()
}

/// `5`, `5:`, `:5`, `5:7`; dotted pairs (`3.1`) count as 16 bits each. HAProxy takes the first `:`
/// or `-` of a pattern as what parts a range: `5-7` is `5:7`, `-5` is `:5`, `--` is `:0`. Only what
/// follows it may be negative: `:-5`.
fn parse_range(text: &str) -> Option<Range> {
    match text.split_once(SEPARATORS) {
        None => {
            let number = parse_number(text)?;
            Some(Range {
                low: number,
                high: number,
            })
        }
        Some((low, high)) => {
            if low.is_empty() && high.is_empty() {
                return None;
            }
            let range = Range {
                low: if low.is_empty() {
                    i64::MIN
                } else {
                    parse_number(low)?
                },
                high: match high.strip_prefix('-') {
                    _ if high.is_empty() => i64::MAX,
                    Some("") => 0,
                    Some(digits) => -parse_number(digits)?,
                    None => parse_number(high)?,
                },
            };
            (range.low <= range.high).then_some(range)
        }
    }
}

/// What parts the ends of a range.
const SEPARATORS: [char; 2] = [':', '-'];

/// Whether a pattern is a range, which no operator applies to.
pub(crate) fn is_range(text: &str) -> bool {
    text.contains(SEPARATORS)
}

/// A number without a sign.
fn parse_number(text: &str) -> Option<i64> {
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    match text.split_once('.') {
        None => text.parse().ok(),
        Some((major, minor)) => Some(
            (i64::from(major.parse::<u16>().ok()?) << 16) + i64::from(minor.parse::<u16>().ok()?),
        ),
    }
}

/// An address or a network: IPv4 may leave out zero bytes in the middle (`10.12/8`).
pub(super) fn parse_net(text: &str) -> Option<Pattern> {
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (text, None),
    };
    if address.contains(':') {
        let net = u128::from(address.parse::<Ipv6Addr>().ok()?);
        let mask = match mask {
            Some(mask) => mask6(mask)?,
            None => u128::MAX,
        };
        return Some(Pattern::V6 {
            net: net & mask,
            mask,
        });
    }
    let net = u32::from(parse_short_v4(address)?);
    let mask = match mask {
        Some(mask) => mask4(mask)?,
        None => u32::MAX,
    };
    Some(Pattern::V4 {
        net: net & mask,
        mask,
    })
}

/// One to four numbers, as addresses were written before CIDR: the last stands for all the bytes
/// that are left, and one with a zero before it is octal.
fn parse_short_v4(text: &str) -> Option<Ipv4Addr> {
    let mut value = 0_u32;
    let mut parts = text.split('.').peekable();
    for bytes_left in (1..=4_u32).rev() {
        let number = parse_c_number(parts.next()?)?;
        let is_last = parts.peek().is_none();
        let bits = 8 * if is_last { bytes_left } else { 1 };
        if u64::from(number) >> bits != 0 {
            return None;
        }
        if is_last {
            return Some(Ipv4Addr::from(value | number));
        }
        value |= number << (8 * (bytes_left - 1));
    }
    None
}

/// A number without a sign, octal after a zero.
fn parse_c_number(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match text.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u32::from_str_radix(octal, 8).ok(),
        _ => text.parse().ok(),
    }
}

pub(super) fn parse_ip(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}
