//! Dates as HTTP writes them, RFC 9110 section 5.6.7: the present form and the two old ones.

use crate::calendar::{DAYS, MONTHS, secs_of};

/// The seconds since 1970 of the date that `text` begins with.
pub(super) fn parse(text: &[u8]) -> Option<i64> {
    fixed(text)
        .or_else(|| rfc850(text))
        .or_else(|| asctime(text))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn fixed(text: &[u8]) -> Option<i64> {
    let rest = short_day(text)?.strip_prefix(b", ")?;
    let (day, rest) = two_digits(rest)?;
    let (month, rest) = month(rest.strip_prefix(b" ")?)?;
    let (year, rest) = year(rest.strip_prefix(b" ")?)?;
    let (time, rest) = time(rest.strip_prefix(b" ")?)?;
    rest.starts_with(b" GMT")
        .then(|| secs_of((year, month, day), time))
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc850(text: &[u8]) -> Option<i64> {
    let mut days = DAYS.iter();
    let rest = days.find_map(|name| text.strip_prefix(name.as_bytes()))?;
    let (day, rest) = two_digits(rest.strip_prefix(b", ")?)?;
    let (month, rest) = month(rest.strip_prefix(b"-")?)?;
    let rest = rest.strip_prefix(b"-")?;
    let (year, rest) = match year(rest) {
        Some(full) => full,
        None => {
            let (short, rest) = two_digits(rest)?;
            // Two digits mean this century up to the year that HAProxy takes for the last.
            let century = if short <= SHORT_YEAR_MAX { 2000 } else { 1900 };
            (century + i64::from(short), rest)
        }
    };
    let (time, rest) = time(rest.strip_prefix(b" ")?)?;
    rest.starts_with(b" GMT")
        .then(|| secs_of((year, month, day), time))
}

/// The last year of two digits that lies in this century.
const SHORT_YEAR_MAX: u32 = 60;

/// `Sun Nov  6 08:49:37 1994`
fn asctime(text: &[u8]) -> Option<i64> {
    let rest = short_day(text)?.strip_prefix(b" ")?;
    let (month, rest) = month(rest)?;
    let rest = rest.strip_prefix(b" ")?;
    let (day, rest) = match rest {
        [b' ', digit @ b'0'..=b'9', rest @ ..] => (u32::from(digit - b'0'), rest),
        _ => two_digits(rest)?,
    };
    let (time, rest) = time(rest.strip_prefix(b" ")?)?;
    let (year, _) = year(rest.strip_prefix(b" ")?)?;
    Some(secs_of((year, month, day), time))
}

fn short_day(text: &[u8]) -> Option<&[u8]> {
    let mut days = DAYS.iter();
    days.find_map(|name| text.strip_prefix(&name.as_bytes()[..3]))
}

fn month(text: &[u8]) -> Option<(u32, &[u8])> {
    (1..).zip(MONTHS).find_map(|(number, name)| {
        let rest = text.strip_prefix(&name.as_bytes()[..3])?;
        Some((number, rest))
    })
}

fn two_digits(text: &[u8]) -> Option<(u32, &[u8])> {
    match text {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9', rest @ ..] => {
            Some((u32::from(tens - b'0') * 10 + u32::from(ones - b'0'), rest))
        }
        _ => None,
    }
}

fn year(text: &[u8]) -> Option<(i64, &[u8])> {
    let (century, rest) = two_digits(text)?;
    let (rest_of_it, rest) = two_digits(rest)?;
    Some((i64::from(century * 100 + rest_of_it), rest))
}

/// Hour, minute and second.
type TimeOfDay = (u32, u32, u32);

fn time(text: &[u8]) -> Option<(TimeOfDay, &[u8])> {
    let (hour, rest) = two_digits(text)?;
    let (minute, rest) = two_digits(rest.strip_prefix(b":")?)?;
    let (second, rest) = two_digits(rest.strip_prefix(b":")?)?;
    Some(((hour, minute, second), rest))
}
