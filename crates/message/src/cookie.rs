//! Cookies: the pairs of `Cookie` and `Set-Cookie` fields.

use crate::trim_ows;

/// One part of a `Cookie` or `Set-Cookie` field, usually `name=value`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CookiePair<'a> {
    /// The text before the first equals sign, without surrounding space.
    pub name: &'a [u8],
    /// The text after it, without surrounding space.
    pub value: &'a [u8],
    /// The whole part as received, with surrounding space.
    pub raw: &'a [u8],
    /// Whether there is an equals sign; without it there is no name.
    pub is_named: bool,
    /// The separator after it: a semicolon or a comma.
    pub separator: Option<u8>,
}

/// The parts of a field, in order, including empty ones. Commas separate as semicolons do (RFC
/// 2965, and HAProxy); within quotes neither does.
pub fn cookie_pairs(value: &[u8]) -> impl Iterator<Item = CookiePair<'_>> {
    let mut rest = value;
    std::iter::from_fn(move || take_pair(&mut rest))
}

/// Takes the first part off the front, with its separator.
fn take_pair<'a>(rest: &mut &'a [u8]) -> Option<CookiePair<'a>> {
    if rest.is_empty() {
        return None;
    }
    let end = separator(rest);
    let (raw, separator) = (&rest[..end], rest.get(end).copied());
    *rest = rest.get(end + 1..).unwrap_or_default();
    let equals = raw.iter().position(|&byte| byte == b'=');
    let (name, value) = raw.split_at(equals.unwrap_or(raw.len()));
    Some(CookiePair {
        name: trim_ows(name),
        value: trim_ows(value.get(1..).unwrap_or_default()),
        raw,
        is_named: equals.is_some(),
        separator,
    })
}

/// The cookies of a `Cookie` field, or with `sets` of a `Set-Cookie` field, as HAProxy's fetches
/// and captures see them: without parts that have no name, without the attributes of RFC 2965
/// (`$Version`), and without the attributes after a cookie that is set.
pub fn cookies(value: &[u8], sets: bool) -> Cookies<'_> {
    Cookies { rest: value, sets }
}

/// Iterates over the cookies of one field. See [`cookies`].
#[derive(Clone, Debug)]
pub struct Cookies<'a> {
    rest: &'a [u8],
    sets: bool,
}

impl<'a> Cookies<'a> {
    /// What follows the last cookie that was given: [`cookies`] of it gives those after it.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Cookies<'a> {
    type Item = CookiePair<'a>;

    fn next(&mut self) -> Option<CookiePair<'a>> {
        loop {
            let pair = take_pair(&mut self.rest)?;
            if !pair.is_named || matches!(pair.name.first(), None | Some(b'$')) {
                continue;
            }
            // The attributes go with the cookie, so that what is left begins with the next one.
            let mut separator = pair.separator;
            while self.sets && separator == Some(b';') {
                separator = take_pair(&mut self.rest).and_then(|attribute| attribute.separator);
            }
            return Some(pair);
        }
    }
}

fn separator(rest: &[u8]) -> usize {
    let mut quoted = false;
    for (at, &byte) in rest.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b';' | b',' if !quoted => return at,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(value: &str, sets: bool) -> String {
        cookies(value.as_bytes(), sets)
            .map(|pair| {
                [pair.name, pair.value]
                    .map(String::from_utf8_lossy)
                    .join("=")
            })
            .collect::<Vec<_>>()
            .join("|")
    }

    #[test]
    fn commas_and_semicolons_separate_outside_quotes() {
        for (value, expected) in [
            ("a=1,b=2;c=3, d = 4 ", "a=1|b=2|c=3|d=4"),
            ("a=\"1,2;3\"; b=4", "a=\"1,2;3\"|b=4"),
            ("a; =1; b=2;; ,c=3", "b=2|c=3"),
            ("$Version=1; a=1; $Path=/", "a=1"),
            ("a==1", "a==1"),
            ("", ""),
        ] {
            assert_eq!(named(value, false), expected, "{value}");
        }
    }

    #[test]
    fn attributes_of_what_is_set_are_no_cookies() {
        for (value, expected) in [
            ("a=1; Path=/; b=2", "a=1"),
            ("a=1; HttpOnly, b=2; Secure", "a=1|b=2"),
            ("a=1; expires=Wed, 09 Jun 2027 10:00:00 GMT", "a=1"),
            ("a; b=1, c=2", "b=1|c=2"),
        ] {
            assert_eq!(named(value, true), expected, "{value}");
        }
    }
}
