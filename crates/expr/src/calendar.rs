//! Calendar dates from seconds since 1970 and back, and `strftime`.

use crate::facts::Time;
use crate::number_text::pair;

/// A date and a time of day.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CalendarTime {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: u32,
    /// 1 to 31.
    pub(crate) day: u32,
    pub(crate) hour: u32,
    pub(crate) minute: u32,
    pub(crate) second: u32,
    /// 0 is Sunday.
    pub(crate) weekday: u32,
    /// 0 is the first of January.
    pub(crate) yearday: u32,
    /// Seconds that the moment is ahead of UTC.
    pub(crate) offset_secs: i32,
}

pub(crate) const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Seconds beyond which a date is no longer told (year 9999 and its mirror).
const SECS_MAX: i64 = 253_402_300_799;

impl CalendarTime {
    /// The moment `secs` seconds after 1970 in UTC, told `offset_secs` ahead.
    pub(crate) fn at(secs: i64, offset_secs: i32) -> CalendarTime {
        let local = secs.clamp(-SECS_MAX, SECS_MAX) + i64::from(offset_secs);
        let days = local.div_euclid(86_400);
        let rest = local.rem_euclid(86_400) as u32;
        // Years start in March here, so that the leap day ends them.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = (day_of_year - (153 * march_month + 2) / 5 + 1) as u32;
        let month = if march_month < 10 {
            march_month + 3
        } else {
            march_month - 9
        } as u32;
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let first = days_from_civil(year, 1, 1);
        CalendarTime {
            year,
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: (days + 4).rem_euclid(7) as u32,
            yearday: (days - first) as u32,
            offset_secs,
        }
    }

    pub(crate) fn day_name(&self) -> &'static str {
        DAYS[self.weekday as usize % 7]
    }

    pub(crate) fn month_name(&self) -> &'static str {
        MONTHS[(self.month as usize + 11) % 12]
    }
}

/// Seconds from 1970 to a moment in UTC. A day, an hour, a minute or a second beyond its end runs on
/// into the next month, day, hour or minute.
pub(crate) fn secs_of(date: (i64, u32, u32), time: (u32, u32, u32)) -> i64 {
    let (year, month, day) = date;
    let (hour, minute, second) = time;
    let of_day = hour * 3600 + minute * 60 + second;
    days_from_civil(year, month, 1) * 86_400 + (i64::from(day) - 1) * 86_400 + i64::from(of_day)
}

fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Appends a second as logs show it: `21/Nov/2026:09:40:07`.
pub(crate) fn push_log_date(out: &mut Vec<u8>, secs: i64, offset_secs: i32) {
    let date = CalendarTime::at(secs, offset_secs);
    out.extend_from_slice(&pair(date.day));
    out.push(b'/');
    out.extend_from_slice(&date.month_name().as_bytes()[..3]);
    out.push(b'/');
    padded(out, date.year, 4, b'0');
    for number in [date.hour, date.minute, date.second] {
        out.push(b':');
        out.extend_from_slice(&pair(number));
    }
}

/// Appends `number` with at least `width` digits.
pub(crate) fn padded(out: &mut Vec<u8>, number: i64, width: usize, pad: u8) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number.unsigned_abs());
    if number < 0 {
        out.push(b'-');
    }
    out.extend(std::iter::repeat_n(pad, width.saturating_sub(digits.len())));
    out.extend_from_slice(digits.as_bytes());
}

/// Appends `+hhmm`.
pub(crate) fn zone(out: &mut Vec<u8>, offset_secs: i32) {
    out.push(if offset_secs < 0 { b'-' } else { b'+' });
    let minutes = i64::from(offset_secs.unsigned_abs() / 60);
    padded(out, minutes / 60, 2, b'0');
    padded(out, minutes % 60, 2, b'0');
}

/// Appends the moment as `format` says, in the C locale; `%N` gives the fraction of the second
/// that `time` has, in `fraction_digits` digits.
pub(crate) fn strftime(
    out: &mut Vec<u8>,
    format: &str,
    moment: &CalendarTime,
    time: Time,
    has_fraction: bool,
) {
    let mut chars = format.chars();
    let mut utf8 = [0; 4];
    while let Some(c) = chars.next() {
        if c != '%' {
            out.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
            continue;
        }
        if has_fraction && let Some(rest) = fraction(out, chars.as_str(), time) {
            chars = rest.chars();
            continue;
        }
        match chars.next() {
            Some(letter) => one(out, letter, moment, time, 0),
            None => out.push(b'%'),
        }
    }
}

/// Nanoseconds, as `N` with a number of digits before it writes them; gives what follows it. All nine
/// are written where there is no number or a larger one.
fn fraction<'t>(out: &mut Vec<u8>, text: &'t str, time: Time) -> Option<&'t str> {
    /// Digits of nanoseconds.
    const DIGITS: usize = 9;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (width, rest) = text.split_at(digits);
    let rest = rest.strip_prefix('N')?;
    let width = if width.is_empty() {
        DIGITS
    } else {
        width
            .parse()
            .map_or(DIGITS, |width: usize| width.min(DIGITS))
    };
    let start = out.len();
    padded(out, i64::from(time.micros) * 1000, DIGITS, b'0');
    out.truncate(start + width);
    Some(rest)
}

fn all(out: &mut Vec<u8>, format: &str, moment: &CalendarTime, time: Time, depth: u8) {
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        match (c, depth) {
            ('%', 0) => {
                if let Some(letter) = chars.next() {
                    one(out, letter, moment, time, 1);
                }
            }
            (c, _) => out.push(c as u8),
        }
    }
}

/// One conversion. Combined ones are written by their parts, one level deep.
fn one(out: &mut Vec<u8>, letter: char, m: &CalendarTime, time: Time, depth: u8) {
    let hour12 = i64::from((m.hour + 11) % 12 + 1);
    match letter {
        'a' => out.extend_from_slice(&m.day_name().as_bytes()[..3]),
        'A' => out.extend_from_slice(m.day_name().as_bytes()),
        'b' | 'h' => out.extend_from_slice(&m.month_name().as_bytes()[..3]),
        'B' => out.extend_from_slice(m.month_name().as_bytes()),
        'c' if depth == 0 => all(out, "%a %b %e %H:%M:%S %Y", m, time, 0),
        'C' => padded(out, m.year.div_euclid(100), 2, b'0'),
        'd' => padded(out, i64::from(m.day), 2, b'0'),
        'D' | 'x' if depth == 0 => all(out, "%m/%d/%y", m, time, 0),
        'e' => padded(out, i64::from(m.day), 2, b' '),
        'F' if depth == 0 => all(out, "%Y-%m-%d", m, time, 0),
        'g' => padded(out, iso_week(m).0.rem_euclid(100), 2, b'0'),
        'G' => padded(out, iso_week(m).0, 1, b'0'),
        'H' => padded(out, i64::from(m.hour), 2, b'0'),
        'I' => padded(out, hour12, 2, b'0'),
        'j' => padded(out, i64::from(m.yearday) + 1, 3, b'0'),
        'k' => padded(out, i64::from(m.hour), 2, b' '),
        'l' => padded(out, hour12, 2, b' '),
        'm' => padded(out, i64::from(m.month), 2, b'0'),
        'M' => padded(out, i64::from(m.minute), 2, b'0'),
        'n' => out.push(b'\n'),
        'p' => out.extend_from_slice(if m.hour < 12 { b"AM" } else { b"PM" }),
        'P' => out.extend_from_slice(if m.hour < 12 { b"am" } else { b"pm" }),
        'r' if depth == 0 => all(out, "%I:%M:%S %p", m, time, 0),
        'R' if depth == 0 => all(out, "%H:%M", m, time, 0),
        's' => padded(out, time.secs, 1, b'0'),
        'S' => padded(out, i64::from(m.second), 2, b'0'),
        't' => out.push(b'\t'),
        'T' | 'X' if depth == 0 => all(out, "%H:%M:%S", m, time, 0),
        'u' => padded(out, i64::from((m.weekday + 6) % 7) + 1, 1, b'0'),
        'U' => padded(out, i64::from((m.yearday + 7 - m.weekday) / 7), 2, b'0'),
        'V' => padded(out, iso_week(m).1, 2, b'0'),
        'w' => padded(out, i64::from(m.weekday), 1, b'0'),
        'W' => padded(
            out,
            i64::from((m.yearday + 7 - (m.weekday + 6) % 7) / 7),
            2,
            b'0',
        ),
        'y' => padded(out, m.year.rem_euclid(100), 2, b'0'),
        'Y' => padded(out, m.year, 1, b'0'),
        'z' => zone(out, m.offset_secs),
        'Z' if m.offset_secs == 0 => out.extend_from_slice(b"GMT"),
        'Z' => zone(out, m.offset_secs),
        '%' => out.push(b'%'),
        other => {
            let mut utf8 = [0; 4];
            out.push(b'%');
            out.extend_from_slice(other.encode_utf8(&mut utf8).as_bytes());
        }
    }
}

/// Year and number of the ISO 8601 week.
fn iso_week(m: &CalendarTime) -> (i64, i64) {
    let monday_based = i64::from((m.weekday + 6) % 7);
    let week = (i64::from(m.yearday) - monday_based + 10) / 7;
    let weeks_in = |year: i64| {
        let last = CalendarTime::at(days_from_civil(year, 12, 31) * 86_400, 0);
        // A year has 53 weeks when it ends on a Thursday, or on a Friday in a leap year.
        let leap = last.yearday == 365;
        if last.weekday == 4 || (leap && last.weekday == 5) {
            53
        } else {
            52
        }
    };
    match week {
        0 => (m.year - 1, weeks_in(m.year - 1)),
        week if week > weeks_in(m.year) => (m.year + 1, 1),
        week => (m.year, week),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(secs: i64, format: &str) -> String {
        let mut out = Vec::new();
        strftime(
            &mut out,
            format,
            &CalendarTime::at(secs, 0),
            Time {
                secs,
                micros: 42_000,
            },
            true,
        );
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn known_dates() {
        assert_eq!(shown(0, "%a %F %T"), "Thu 1970-01-01 00:00:00");
        assert_eq!(
            shown(784_111_777, "%A, %d %B %Y %H:%M:%S"),
            "Sunday, 06 November 1994 08:49:37"
        );
        assert_eq!(
            shown(951_782_400, "%F %j %G-W%V"),
            "2000-02-29 060 2000-W09"
        );
        assert_eq!(
            shown(1_230_768_000, "%F %G-W%V %U %W %u"),
            "2009-01-01 2009-W01 00 00 4"
        );
        assert_eq!(shown(-1, "%c.%3N"), "Wed Dec 31 23:59:59 1969.042");
        assert_eq!(shown(0, "%N %1N %12N"), "042000000 0 042000000");
        assert_eq!(
            shown(1_483_228_799, "%D %I:%M %p %%"),
            "12/31/16 11:59 PM %"
        );
    }

    proptest! {
        #[test]
        fn a_log_date_is_as_core_writes_it(
            secs: i64,
            near in -5_000_000_000_i64..500_000_000_000,
            ahead in -50_400_i32..50_400,
        ) {
            for secs in [secs, near] {
                let date = CalendarTime::at(secs, ahead);
                let sign = if date.year < 0 { "-" } else { "" };
                let expected = format!(
                    "{:02}/{}/{sign}{:04}:{:02}:{:02}:{:02}",
                    date.day,
                    &date.month_name()[..3],
                    date.year.abs(),
                    date.hour,
                    date.minute,
                    date.second
                );
                let mut out = Vec::new();
                push_log_date(&mut out, secs, ahead);
                prop_assert_eq!(out, expected.into_bytes());
            }
        }
    }
}
