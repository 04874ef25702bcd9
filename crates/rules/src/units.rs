//! Times and sizes in configuration lines (manual, section 2.4 and 2.5).

use std::time::Duration;

use ballast_expr::ExpressionError;

/// The maximum of a timer in milliseconds: HAProxy's have 31 bits.
pub(crate) const DELAY_MS_MAX: u64 = (1 << 31) - 1;

/// A time: a number and one of `us`, `ms` (the default), `s`, `m`, `h`, `d`.
///
/// # Errors
/// With the byte range at fault.
pub fn parse_delay(text: &str) -> Result<Duration, ExpressionError> {
    let (number, unit, at) = split(text)?;
    let (micros, _) = match unit {
        "" => (1_000, ""),
        _ => leading_unit(unit).ok_or_else(|| unexpected(text, at))?,
    };
    let micros = number
        .checked_mul(micros)
        .filter(|all| *all <= DELAY_MS_MAX * 1_000);
    match micros {
        // A time above zero but below the resolution becomes one step.
        Some(micros @ 1..1_000) => Ok(Duration::from_millis(micros.div_ceil(1_000))),
        Some(micros) => Ok(Duration::from_micros(micros)),
        None => Err(ExpressionError::new(
            format!("timer overflow in '{text}' (maximum value is 2147483647 ms or ~24.8 days)"),
            0..text.len(),
        )),
    }
}

/// The microseconds of the unit that a suffix begins with, and what follows it.
fn leading_unit(suffix: &str) -> Option<(u64, &str)> {
    // `ms` before `m`.
    const UNITS: [(&str, u64); 6] = [
        ("us", 1),
        ("ms", 1_000),
        ("s", 1_000_000),
        ("m", 60_000_000),
        ("h", 3_600_000_000),
        ("d", 86_400_000_000),
    ];
    UNITS
        .iter()
        .find_map(|(unit, micros)| Some((*micros, suffix.strip_prefix(unit)?)))
}

/// The warning about what stands behind the unit of a time: it is not read, as in HAProxy, whose words
/// these are.
pub(crate) fn warning_of_delay(text: &str) -> Option<String> {
    let (_, unit, _) = split(text).ok()?;
    let found = leading_unit(unit)?.1.chars().next()?;
    Some(format!(
        "unexpected character '{found}' after the timer value '{text}', only (us=microseconds,\
         ms=milliseconds,s=seconds,m=minutes,h=hours,d=days) are supported. This will be reported \
         as an error in next versions."
    ))
}

/// A size: a number and `k`, `m` or `g`.
pub(crate) fn parse_size(text: &str) -> Result<u64, ExpressionError> {
    let (number, unit, at) = split(text)?;
    let shift = match unit {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        _ => return Err(unexpected(text, at)),
    };
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| ExpressionError::new(format!("size '{text}' is too large"), 0..text.len()))
}

/// A number as C's `strtoul` reads it: decimal, hexadecimal after `0x`, octal after `0`, negative for
/// its complement; its low 32 bits. `None` for any other text.
#[expect(clippy::cast_possible_truncation, reason = "HAProxy does so")]
pub(crate) fn parse_mark(text: &str) -> Option<u32> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let hexadecimal = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) => u64::from_str_radix(digits, 16),
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8),
        None => digits.parse(),
    };
    let number = number.ok()? as u32;
    Some(if negative {
        number.wrapping_neg()
    } else {
        number
    })
}

/// The number, its unit, and where the unit begins.
fn split(text: &str) -> Result<(u64, &str, usize), ExpressionError> {
    let at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    if at == 0 {
        return Err(unexpected(text, 0));
    }
    let number = text[..at]
        .parse()
        .map_err(|_| ExpressionError::new(format!("number too large in '{text}'"), 0..at))?;
    Ok((number, &text[at..], at))
}

fn unexpected(text: &str, at: usize) -> ExpressionError {
    match text[at..].chars().next() {
        Some(c) => {
            ExpressionError::new(format!("unexpected character '{c}'"), at..at + c.len_utf8())
        }
        None => ExpressionError::new("a number is missing", 0..0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read() {
        let ms = |text| parse_delay(text).map(|time| time.as_millis());
        assert_eq!(ms("10"), Ok(10));
        assert_eq!(ms("2s"), Ok(2_000));
        assert_eq!(ms("1us"), Ok(1));
        assert_eq!(ms("0"), Ok(0));
        assert_eq!(ms("5sec"), Ok(5_000));
        assert!(
            warning_of_delay("5sec")
                .unwrap()
                .contains("'e' after the timer value '5sec'")
        );
        assert_eq!(warning_of_delay("5ms"), None);
        assert!(ms("30d").is_err() && ms("").is_err() && ms("5x").is_err() && ms("-1").is_err());
        assert_eq!(parse_size("16k"), Ok(16_384));
        assert!(
            parse_size("99999999999999999999").is_err()
                && parse_size("18446744073709551615g").is_err()
        );
        assert_eq!(parse_mark("0xff"), Some(255));
        assert_eq!(parse_mark("010"), Some(8));
        assert_eq!(parse_mark("-1"), Some(u32::MAX));
        assert_eq!(parse_mark("4294967297"), Some(1));
        assert!(parse_mark("high").is_none() && parse_mark("").is_none());
    }
}
