//! The formats of times and sizes, which many keywords share.
//!
//! Source: HAProxy configuration manual, sections "Time format" and "Size format". Limits and
//! rounding are as observed in HAProxy.

use std::fmt;
use std::ops::Range;

/// A unit of time.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(missing_docs, reason = "each is the unit it names")]
pub enum TimeUnit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
}

impl TimeUnit {
    /// How many microseconds it is.
    #[must_use]
    pub fn microseconds(self) -> u64 {
        match self {
            Self::Microsecond => 1,
            Self::Millisecond => 1_000,
            Self::Second => 1_000_000,
            Self::Minute => 60_000_000,
            Self::Hour => 3_600_000_000,
            Self::Day => 86_400_000_000,
        }
    }

    /// Its suffix.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Microsecond => "us",
            Self::Millisecond => "ms",
            Self::Second => "s",
            Self::Minute => "m",
            Self::Hour => "h",
            Self::Day => "d",
        }
    }

    /// The unit that a suffix begins with, and what follows it.
    #[must_use]
    pub fn leading(suffix: &str) -> Option<(Self, &str)> {
        // `ms` before `m`.
        let all = [
            Self::Microsecond,
            Self::Millisecond,
            Self::Second,
            Self::Minute,
            Self::Hour,
            Self::Day,
        ];
        all.into_iter()
            .find_map(|unit| Some((unit, suffix.strip_prefix(unit.suffix())?)))
    }
}

/// Why a value is invalid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ValueError {
    /// The reason.
    pub kind: ValueErrorKind,
    /// The byte range in the text; see [`crate::Word::span_of`].
    pub at: Range<usize>,
}

/// Why a value is invalid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ValueErrorKind {
    /// There is no text.
    Empty,
    /// The value is above `max`, in the unit of the keyword (`None` for sizes).
    Overflow {
        /// The largest value.
        max: u64,
        /// The unit of `max`.
        unit: Option<TimeUnit>,
    },
    /// A character that is not allowed there.
    Unexpected(char),
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ValueErrorKind::Empty => f.write_str("expected a number, found nothing"),
            ValueErrorKind::Unexpected(found) => write!(f, "unexpected character {found:?}"),
            ValueErrorKind::Overflow { max, unit: None } => {
                write!(f, "value too large (maximum is {max})")
            }
            ValueErrorKind::Overflow {
                max,
                unit: Some(unit),
            } => {
                let (max, suffix) = (max, unit.suffix());
                write!(f, "timer overflow (maximum value is {max} {suffix})")
            }
        }
    }
}

impl std::error::Error for ValueError {}

/// The largest time, in the unit of the keyword: 24.8 days for the usual milliseconds.
const TIME_MAX: u64 = i32::MAX as u64;

/// A time, and what stood behind it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ParsedTime {
    /// In the unit of the keyword.
    pub count: u32,
    /// The first character behind the unit. It is not read (`5sec`), and the operator is told.
    pub trailing: Option<char>,
}

/// Parses a time: digits and one of `us ms s m h d`, or `unit` when there is none. The result is in
/// `unit`, rounded up, so that only zero becomes zero (`1us` is 1 ms), and is at most 2147483647. What
/// follows the unit is not read, as in HAProxy.
///
/// # Errors
///
/// When the text is empty, does not start with a digit, has another suffix, or is too large.
pub fn parse_time(text: &str, unit: TimeUnit) -> Result<ParsedTime, ValueError> {
    let (number, suffix) = leading_digits(text)?;
    let suffix_at = text.len() - suffix.len();
    let (written, rest) = match suffix {
        "" => (unit, ""),
        _ => TimeUnit::leading(suffix).ok_or_else(|| unexpected(suffix, suffix_at))?,
    };
    let overflow = || ValueError {
        kind: ValueErrorKind::Overflow {
            max: TIME_MAX,
            unit: Some(unit),
        },
        at: 0..text.len(),
    };
    let microseconds = number
        .and_then(|number| number.checked_mul(written.microseconds()))
        .ok_or_else(overflow)?;
    let value = microseconds.div_ceil(unit.microseconds());
    if value > TIME_MAX {
        return Err(overflow());
    }
    Ok(ParsedTime {
        count: u32::try_from(value).expect("TIME_MAX fits 32 bits"),
        trailing: rest.chars().next(),
    })
}

/// The warning about what stands behind the unit of a time; 3.2's words.
#[must_use]
pub fn trailing_after_time(text: &str, found: char) -> String {
    format!(
        "unexpected character '{found}' after the timer value '{text}', only (us=microseconds,\
         ms=milliseconds,s=seconds,m=minutes,h=hours,d=days) are supported. This will be reported \
         as an error in next versions."
    )
}

/// Parses a size: digits and one of `k m g` in either case (1024, 1024^2, 1024^3), at most `max`.
/// HAProxy's own limit is `u32::MAX`.
///
/// # Errors
///
/// When the text is empty, does not start with a digit, has another suffix, or is too large.
pub fn parse_size(text: &str, max: u64) -> Result<u64, ValueError> {
    let (number, suffix) = leading_digits(text)?;
    let suffix_at = text.len() - suffix.len();
    let factor: u64 = match suffix {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => {
            let known = suffix.starts_with(['k', 'K', 'm', 'M', 'g', 'G']);
            let skip = usize::from(known);
            return Err(unexpected(&suffix[skip..], suffix_at + skip));
        }
    };
    let overflow = || ValueError {
        kind: ValueErrorKind::Overflow { max, unit: None },
        at: 0..text.len(),
    };
    let size = number
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(overflow)?;
    if size > max {
        return Err(overflow());
    }
    Ok(size)
}

/// The leading number (`None` when it is over 64 bits) and the rest.
fn leading_digits(text: &str) -> Result<(Option<u64>, &str), ValueError> {
    let suffix = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if text.is_empty() {
        return Err(ValueError {
            kind: ValueErrorKind::Empty,
            at: 0..0,
        });
    }
    if suffix.len() == text.len() {
        return Err(unexpected(text, 0));
    }
    Ok((text[..text.len() - suffix.len()].parse().ok(), suffix))
}

fn unexpected(rest: &str, at: usize) -> ValueError {
    let found = rest.chars().next().unwrap_or('\0');
    ValueError {
        kind: ValueErrorKind::Unexpected(found),
        at: at..at + found.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Result<u32, ValueErrorKind> {
        parse_time(text, TimeUnit::Millisecond)
            .map(|time| time.count)
            .map_err(|error| error.kind)
    }

    #[test]
    fn times_have_units() {
        let values = [
            ("0", 0),
            ("10", 10),
            ("10ms", 10),
            ("10s", 10_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("24d", 2_073_600_000),
            ("2147483647", 2_147_483_647),
            ("0us", 0),
            ("1us", 1),
            ("1000us", 1),
            ("1001us", 2),
            ("1000000000000us", 1_000_000_000),
            ("007", 7),
        ];
        for (text, value) in values {
            assert_eq!(time(text), Ok(value), "{text}");
        }
        let seconds = |text| parse_time(text, TimeUnit::Second).map(|time| time.count);
        assert_eq!(seconds("1999ms"), Ok(2));
        assert_eq!(seconds("100d"), Ok(8_640_000));
    }

    #[test]
    fn bad_times_say_where() {
        let overflow = ValueErrorKind::Overflow {
            max: TIME_MAX,
            unit: Some(TimeUnit::Millisecond),
        };
        for text in [
            "25d",
            "2147483648",
            "597h",
            "35792m",
            "99999999999999999999",
        ] {
            assert_eq!(time(text), Err(overflow.clone()), "{text}");
        }
        let unexpected = [
            ("10x", 'x', 2),
            ("1.5s", '.', 1),
            ("-1", '-', 0),
            ("+5", '+', 0),
            ("s", 's', 0),
            ("10S", 'S', 2),
            ("0x10", 'x', 1),
            ("5 s", ' ', 1),
            ("5é", 'é', 1),
        ];
        for (text, found, at) in unexpected {
            let error = parse_time(text, TimeUnit::Millisecond).unwrap_err();
            assert_eq!(
                (error.kind, error.at.start),
                (ValueErrorKind::Unexpected(found), at),
                "{text}"
            );
        }
        assert_eq!(time(""), Err(ValueErrorKind::Empty));
    }

    #[test]
    fn what_follows_a_unit_is_not_read_and_told() {
        let values = [
            ("5s", 5_000, None),
            ("5sec", 5_000, Some('e')),
            ("5min", 300_000, Some('i')),
            ("5msec", 5, Some('e')),
            ("1h30m", 3_600_000, Some('3')),
            ("10msx", 10, Some('x')),
            ("5usx", 1, Some('x')),
            ("5s ", 5_000, Some(' ')),
        ];
        for (text, count, trailing) in values {
            let time = ParsedTime { count, trailing };
            assert_eq!(parse_time(text, TimeUnit::Millisecond), Ok(time), "{text}");
        }
    }

    #[test]
    fn sizes_have_binary_suffixes() {
        let max = u64::from(u32::MAX);
        let values = [
            ("10", 10),
            ("10k", 10_240),
            ("1M", 1 << 20),
            ("3g", 3 << 30),
            ("4294967295", max),
            ("0", 0),
        ];
        for (text, value) in values {
            assert_eq!(parse_size(text, max), Ok(value), "{text}");
        }
        for text in ["4g", "4294967296", "4194304k", "99999999999999999999g"] {
            let error = parse_size(text, max).unwrap_err();
            assert_eq!(
                error.kind,
                ValueErrorKind::Overflow { max, unit: None },
                "{text}"
            );
        }
        for (text, found, at) in [
            ("10kb", 'b', 3),
            ("10b", 'b', 2),
            ("1.5k", '.', 1),
            ("-1", '-', 0),
            ("1t", 't', 1),
        ] {
            let error = parse_size(text, max).unwrap_err();
            assert_eq!(
                (error.kind, error.at.start),
                (ValueErrorKind::Unexpected(found), at),
                "{text}"
            );
        }
        assert_eq!(parse_size("", max).unwrap_err().kind, ValueErrorKind::Empty);
    }
}
