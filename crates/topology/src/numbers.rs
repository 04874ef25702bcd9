//! How numbers and their sets are written in the `global` section.
//!
//! HAProxy reads them with C's functions, and accepts what these accept.

use crate::set::{CpuSet, PROCESSORS_MAX};

/// Numbers from 1 to 64: thread groups, or threads of a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NumberSet(u64);

/// The largest number of a [`NumberSet`].
const NUMBER_MAX: u32 = 64;

impl NumberSet {
    /// All numbers.
    pub const ALL: Self = Self(u64::MAX);

    /// Whether a number is in it.
    #[must_use]
    pub fn contains(self, number: usize) -> bool {
        (1..=64).contains(&number) && self.0 >> (number - 1) & 1 == 1
    }

    /// How many numbers are in it.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether none is in it.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many smaller numbers are in it.
    #[must_use]
    pub fn rank(self, number: usize) -> usize {
        (1..number).filter(|&one| self.contains(one)).count()
    }

    fn of_range(first: u32, last: u32) -> Self {
        let set = (first..=last).map(|number| 1 << (number - 1));
        Self(set.fold(0, |all, bit: u64| all | bit))
    }
}

/// The number that a text begins with, in the way of `strtol`, and the rest of the text. `None` when
/// it begins with none. What is too large becomes the largest.
pub(crate) fn parse_prefix(text: &str) -> Option<(i64, &str)> {
    let trimmed = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (is_negative, digits) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let (number, rest) = digits.split_at(end.unwrap_or(digits.len()));
    if number.is_empty() {
        return None;
    }
    let number = number.bytes().fold(0_i64, |value, digit| {
        let digit = i64::from(digit - b'0');
        let next = match is_negative {
            true => value
                .checked_mul(10)
                .and_then(|value| value.checked_sub(digit)),
            false => value
                .checked_mul(10)
                .and_then(|value| value.checked_add(digit)),
        };
        next.unwrap_or(if is_negative { i64::MIN } else { i64::MAX })
    });
    Some((number, rest))
}

/// The number that a text is, in the way of `strtol`.
pub(crate) fn parse_long(text: &str) -> Option<i64> {
    parse_prefix(text)
        .filter(|(_, rest)| rest.is_empty())
        .map(|(number, _)| number)
}

/// `all | odd | even | number[-[number]]`, with numbers from 1 to 64.
///
/// # Errors
/// HAProxy's message without the keyword.
pub(crate) fn parse_numbers(text: &str) -> Result<NumberSet, String> {
    match text {
        "all" => return Ok(NumberSet::ALL),
        "odd" => return Ok(NumberSet(0x5555_5555_5555_5555)),
        "even" => return Ok(NumberSet(0xAAAA_AAAA_AAAA_AAAA)),
        _ => {}
    }
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (first, Some(last)),
        None => (text, None),
    };
    if !is_number(first) || !last.is_none_or(is_number) {
        return Err(format!("'{text}' is not a valid number/range."));
    }
    // Numbers have 32 bits there: what is above starts again from 0.
    let value = |digits: &str| {
        let value = parse_prefix(digits).map_or(0, |(value, _)| value);
        u32::try_from(value & i64::from(u32::MAX)).unwrap_or(u32::MAX)
    };
    let first = value(first);
    let last = match last {
        None => first,
        Some("") => NUMBER_MAX,
        Some(digits) => value(digits),
    };
    let (first, last) = (first.min(last), first.max(last));
    if first == 0 || last > NUMBER_MAX {
        return Err(format!(
            "'{text}' is not a valid number/range. It supports numbers from 1 to {NUMBER_MAX}.\n"
        ));
    }
    Ok(NumberSet::of_range(first, last))
}

/// Processors: numbers from 0 and ranges, with commas between them. What follows a number up to the
/// next comma is ignored, and a part without digits is 0.
///
/// # Errors
/// HAProxy's message without the keyword.
pub(crate) fn parse_cpus(text: &str) -> Result<CpuSet, String> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("'{text}' is not a CPU range."));
    }
    let mut cpus = CpuSet::EMPTY;
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = rest.split_once(',').unwrap_or((rest, ""));
        let end = part.find(|c: char| !c.is_ascii_digit());
        let (digits, range) = part.split_at(end.unwrap_or(part.len()));
        let first = cpu_number(digits);
        let last = match range.strip_prefix('-') {
            Some("") => PROCESSORS_MAX - 1,
            Some(last) => cpu_number(last),
            None => first,
        };
        if first.max(last) >= PROCESSORS_MAX {
            return Err(format!(
                "supports CPU numbers from 0 to {}.",
                PROCESSORS_MAX - 1
            ));
        }
        cpus = cpus.union(&CpuSet::range(first.min(last), first.max(last)));
        rest = after;
    }
    Ok(cpus)
}

/// The digits that a text begins with, as a number; 0 when there are none.
fn cpu_number(text: &str) -> usize {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold(0, |value: usize, digit| {
        let digit = usize::from(digit - b'0');
        value.saturating_mul(10).saturating_add(digit)
    })
}
