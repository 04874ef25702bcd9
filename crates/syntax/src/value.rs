//! The formats of times and sizes, which many keywords share.
//!
//! Source: HAProxy configuration manual, sections "Time format" and "Size format". Limits and
//! rounding are as observed in HAProxy.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

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

    /// The unit for a suffix.
    #[must_use]
    pub fn of(suffix: &str) -> Option<Self> {
        let all = [
            Self::Microsecond,
            Self::Millisecond,
            Self::Second,
            Self::Minute,
            Self::Hour,
            Self::Day,
        ];
        all.into_iter().find(|unit| unit.suffix() == suffix)
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

/// Parses a time: digits and one of `us ms s m h d`, or `unit` when there is none. The result is in
/// `unit`, rounded up, so that only zero becomes zero (`1us` is 1 ms), and is at most 2147483647.
///
/// # Errors
///
/// When the text is empty, does not start with a digit, has another suffix, or is too large.
pub fn parse_time(text: &str, unit: TimeUnit) -> Result<u32, ValueError> {
    let (number, suffix) = leading_digits(text)?;
    let suffix_at = text.len() - suffix.len();
    let written = match suffix {
        "" => unit,
        _ => TimeUnit::of(suffix).ok_or_else(|| unexpected_in_suffix(suffix, suffix_at))?,
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
    Ok(u32::try_from(value).expect("TIME_MAX fits 32 bits"))
}

/// Parses a time as [`parse_time`] does, rounding included, as a duration.
///
/// # Errors
///
/// As [`parse_time`].
pub fn parse_duration(text: &str, unit: TimeUnit) -> Result<Duration, ValueError> {
    let count = u64::from(parse_time(text, unit)?);
    Ok(Duration::from_micros(count * unit.microseconds()))
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

/// The first character of a suffix that is not a unit there.
fn unexpected_in_suffix(suffix: &str, at: usize) -> ValueError {
    let known = ["us", "ms", "s", "m", "h", "d"]
        .iter()
        .filter(|unit| suffix.starts_with(**unit));
    let skip = known.map(|unit| unit.len()).max().unwrap_or(0);
    unexpected(&suffix[skip..], at + skip)
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
        parse_time(text, TimeUnit::Millisecond).map_err(|error| error.kind)
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
        assert_eq!(parse_time("1999ms", TimeUnit::Second), Ok(2));
        assert_eq!(parse_time("100d", TimeUnit::Second), Ok(8_640_000));
        assert_eq!(
            parse_duration("5", TimeUnit::Second),
            Ok(Duration::from_secs(5))
        );
        assert_eq!(
            parse_duration("1500us", TimeUnit::Millisecond),
            Ok(Duration::from_millis(2))
        );
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
            ("10sx", 'x', 3),
            ("1h30m", '3', 2),
            ("10msx", 'x', 4),
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
