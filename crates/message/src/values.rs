//! Lists in field values: `hdr()` sees the members where `fhdr()` sees the whole line.

use crate::words::{SHORT_TEXT_BYTES, contains_any};

/// Removes spaces and tabs (OWS, RFC 9110 section 5.6.3) from both ends.
pub fn trim_ows(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// Iterates over the comma-separated members of one field value. See [`comma_values`].
#[derive(Clone, Debug)]
pub struct CommaValues<'a> {
    rest: Option<&'a [u8]>,
}

/// Splits a field value at its commas as HAProxy's `hdr()` does: a comma within a quoted string
/// (with `\` escapes) does not split; members are trimmed of spaces and tabs; empty members are
/// included, so `a,,b` has three and an empty value has one.
pub fn comma_values(value: &[u8]) -> CommaValues<'_> {
    CommaValues { rest: Some(value) }
}

impl<'a> CommaValues<'a> {
    /// What follows the last member that was given: [`comma_values`] of it gives those after it. `None`
    /// after the last one.
    #[must_use]
    pub fn rest(&self) -> Option<&'a [u8]> {
        self.rest
    }
}

impl<'a> Iterator for CommaValues<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let (member, after) = match member_end(rest) {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        self.rest = after;
        Some(trim_ows(member))
    }
}

/// Position of the comma that ends the first member.
fn member_end(value: &[u8]) -> Option<usize> {
    // Lists are rare, and quotes more so.
    if value.len() <= SHORT_TEXT_BYTES && !contains_any(value, [b',', b'"']) {
        return None;
    }
    let mut at = memchr::memchr2(b',', b'"', value)?;
    if value[at] == b',' {
        return Some(at);
    }
    let mut quoted = false;
    while at < value.len() {
        match value[at] {
            b'"' => quoted = !quoted,
            b'\\' if quoted => at += 1,
            b',' if !quoted => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}
