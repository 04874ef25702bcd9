//! The values of arguments.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::Bytes;

use crate::pace::Rate;

const RATE_MAX: f64 = 1e7;
const DURATION_MAX: Duration = Duration::from_secs(7 * 86_400);
/// A larger body is probably a typing error; it is held in memory.
pub(super) const BODY_BYTES_MAX: u64 = 64 << 20;

pub(super) fn number(name: &str, text: &str, min: u64, max: u64) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("{name} {text}: wants a number from {min} to {max}"))
}

pub(super) fn count(name: &str, text: String, min: u64, max: u64) -> Result<usize, String> {
    let number = number(name, &text, min, max)?;
    usize::try_from(number).map_err(|_| format!("{name} {text}: too much for this machine"))
}

pub(super) fn milliseconds(name: &str, text: &str) -> Result<Duration, String> {
    number(name, text, 1, 86_400_000).map(Duration::from_millis)
}

pub(super) fn rate(text: &str) -> Result<Rate, String> {
    text.parse()
        .ok()
        .filter(|rate| *rate > 0.0 && *rate <= RATE_MAX)
        .map(Rate)
        .ok_or_else(|| format!("--rate {text}: wants requests per second, at most {RATE_MAX}"))
}

/// `10`, `10s`, `500ms`, `2m`.
pub(super) fn duration(name: &str, text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        _ => 0.0,
    };
    digits
        .parse()
        .ok()
        .and_then(|number: f64| Duration::try_from_secs_f64(number * scale).ok())
        .filter(|duration| !duration.is_zero() && *duration <= DURATION_MAX)
        .ok_or_else(|| format!("{name} {text}: wants a time such as 500ms, 10s or 2m"))
}

/// `200,204,300-399`.
pub(super) fn statuses(text: &str) -> Result<Vec<RangeInclusive<u16>>, String> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = first.parse().ok()?..=last.parse().ok()?;
        let is_right = *range.start() >= 100 && *range.end() <= 999 && !range.is_empty();
        is_right.then_some(range)
    };
    text.split(',')
        .map(|part| range(part.trim()))
        .collect::<Option<_>>()
        .ok_or_else(|| format!("--expect-status {text}: wants statuses such as 200,301-308"))
}

pub(super) fn path(mut value: impl FnMut() -> Result<String, String>) -> Result<String, String> {
    let path = value()?;
    let is_right = !path.is_empty() && path.bytes().all(|byte| byte.is_ascii_graphic());
    is_right
        .then_some(path)
        .ok_or_else(|| "--path wants a path without spaces and line ends".to_owned())
}

pub(super) fn method(text: String) -> Result<String, String> {
    let is_right = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_right
        .then_some(text)
        .ok_or_else(|| "--method wants a word".to_owned())
}

pub(super) fn field(text: String) -> Result<String, String> {
    let is_right = text.find(':').is_some_and(|at| at > 0)
        && text.bytes().all(|byte| byte >= b' ' || byte == b'\t');
    is_right
        .then_some(text)
        .ok_or_else(|| "--header wants 'NAME: VALUE' on one line".to_owned())
}

/// A body: the text itself, or what is in the file behind `@`.
pub(super) fn body(text: String) -> Result<Bytes, String> {
    let Some(file) = text.strip_prefix('@') else {
        return Ok(text.into_bytes().into());
    };
    let wrong = |error: &dyn std::fmt::Display| format!("--body @{file}: {error}");
    let length = std::fs::metadata(file)
        .map_err(|error| wrong(&error))?
        .len();
    if length > BODY_BYTES_MAX {
        return Err(wrong(&format!("more than {BODY_BYTES_MAX} bytes")));
    }
    let bytes = std::fs::read(file).map_err(|error| wrong(&error))?;
    Ok(bytes.into())
}

/// A file of URLs: its lines.
pub(super) fn url_lines(file: &str) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("--urls {file}: {error}"))?;
    let lines: Vec<String> = crate::origin::lines(&text).map(str::to_owned).collect();
    if lines.is_empty() {
        return Err(format!("--urls {file}: no URL in it"));
    }
    Ok(lines)
}
