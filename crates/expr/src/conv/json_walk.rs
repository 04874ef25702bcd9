//! Looking for one value in a JSON document, without building the document.
//!
//! The document is read once, up to the value. What stands behind it is not looked at, as in HAProxy.

use std::ops::Range;

/// How deep arrays and objects may be nested.
const DEPTH_MAX: usize = 20;

/// A value of a document: its type, and where it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum JsonValue {
    /// With its brackets.
    Array(Range<usize>),
    Bool(bool),
    Null,
    Number(Range<usize>),
    Object,
    /// Between the quotes, with its escapes.
    Text(Range<usize>),
}

/// The document ends early, is nested too deep, or is none.
#[derive(Debug)]
struct Malformed;

/// The value that `path` leads to: `$`, then `.name`, `[number]` and `[*]`. A dot within a name has a
/// backslash before it.
pub(super) fn find(document: &[u8], path: &[u8]) -> Option<JsonValue> {
    let path = path.strip_prefix(b"$")?;
    let mut walker = Walker {
        document,
        at: 0,
        depth: 0,
    };
    walker.find(path).ok()?
}

/// One step of a path.
enum PathStep<'p> {
    /// A member of an object, with backslashes.
    Name(&'p [u8]),
    /// An element of an array.
    Index(usize),
    /// Any element of an array: the first in which the rest is found.
    Any,
    /// No value is there.
    Never,
}

/// The first step of a path, and the rest.
fn first_step(path: &[u8]) -> (PathStep<'_>, &[u8]) {
    match path {
        [b'.', rest @ ..] => {
            let mut end = 0;
            while let Some(byte) = rest.get(end) {
                match byte {
                    b'\\' => end += 2,
                    b'.' | b'[' => break,
                    _ => end += 1,
                }
            }
            let (name, rest) = rest.split_at(end.min(rest.len()));
            (PathStep::Name(name), rest)
        }
        [b'[', rest @ ..] => {
            let end = memchr::memchr(b']', rest).unwrap_or(rest.len());
            let (inside, after) = rest.split_at(end);
            let after = after.get(1..).unwrap_or_default();
            if inside == b"*" {
                return (PathStep::Any, after);
            }
            if inside.first().is_some_and(|byte| !byte.is_ascii_digit()) {
                return (PathStep::Never, after);
            }
            let digits = inside.iter().take_while(|byte| byte.is_ascii_digit());
            let index = digits.fold(0_usize, |sum, digit| {
                sum.saturating_mul(10)
                    .saturating_add(usize::from(digit - b'0'))
            });
            (PathStep::Index(index), after)
        }
        _ => (PathStep::Never, &[]),
    }
}

/// Whether the name of a path, with backslashes before its dots, is `key`.
fn is_named(name: &[u8], key: &[u8]) -> bool {
    let mut name = name.iter();
    let mut key = key.iter();
    loop {
        let wanted = match name.next() {
            Some(b'\\') => name.next(),
            other => other,
        };
        match (wanted, key.next()) {
            (None, None) => return true,
            (wanted, byte) if wanted == byte => {}
            _ => return false,
        }
    }
}

struct Walker<'d> {
    document: &'d [u8],
    at: usize,
    depth: usize,
}

impl Walker<'_> {
    fn peek(&self) -> Option<u8> {
        self.document.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        self.skip_space();
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(Malformed)
    }

    /// Opens an array or an object; gives whether it is empty, and closed again.
    fn open(&mut self, end: u8) -> Result<bool, Malformed> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Malformed);
        }
        self.at += 1;
        self.skip_space();
        let is_empty = self.peek() == Some(end);
        if is_empty {
            self.at += 1;
            self.depth -= 1;
        }
        Ok(is_empty)
    }

    /// What follows an element: a comma, or the end.
    fn goes_on(&mut self, end: u8) -> Result<bool, Malformed> {
        self.skip_space();
        let byte = self.peek().ok_or(Malformed)?;
        self.at += 1;
        if byte == b',' {
            return Ok(true);
        }
        if byte != end {
            return Err(Malformed);
        }
        self.depth -= 1;
        Ok(false)
    }

    /// The value that `path` leads to, from the value that begins here on. The walker stands behind
    /// that value if there is none.
    fn find(&mut self, path: &[u8]) -> Result<Option<JsonValue>, Malformed> {
        if path.is_empty() {
            return self.value().map(Some);
        }
        self.skip_space();
        let (step, rest) = first_step(path);
        match (self.peek().ok_or(Malformed)?, step) {
            (b'{', PathStep::Name(name)) => self.find_member(name, rest),
            (b'[', PathStep::Index(index)) => self.find_element(Some(index), rest),
            (b'[', PathStep::Any) => self.find_element(None, rest),
            _ => self.value().map(|_| None),
        }
    }

    fn find_member(&mut self, name: &[u8], rest: &[u8]) -> Result<Option<JsonValue>, Malformed> {
        if self.open(b'}')? {
            return Ok(None);
        }
        // Of members with one name the first is meant.
        let mut seen = false;
        loop {
            let key = self.member_name()?;
            if !seen && is_named(name, &self.document[key]) {
                seen = true;
                if let Some(found) = self.find(rest)? {
                    return Ok(Some(found));
                }
            } else {
                self.value()?;
            }
            if !self.goes_on(b'}')? {
                return Ok(None);
            }
        }
    }

    fn find_element(
        &mut self,
        index: Option<usize>,
        rest: &[u8],
    ) -> Result<Option<JsonValue>, Malformed> {
        if self.open(b']')? {
            return Ok(None);
        }
        let mut number = 0;
        loop {
            if index.is_none_or(|index| index == number) {
                if let Some(found) = self.find(rest)? {
                    return Ok(Some(found));
                }
            } else {
                self.value()?;
            }
            number += 1;
            if !self.goes_on(b']')? {
                return Ok(None);
            }
        }
    }

    fn member_name(&mut self) -> Result<Range<usize>, Malformed> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(Malformed);
        }
        let key = self.text()?;
        self.expect(b':')?;
        Ok(key)
    }

    /// The value that begins here; the walker stands behind it afterwards.
    fn value(&mut self) -> Result<JsonValue, Malformed> {
        self.skip_space();
        let from = self.at;
        match self.peek().ok_or(Malformed)? {
            b'"' => Ok(JsonValue::Text(self.text()?)),
            b'{' => {
                if !self.open(b'}')? {
                    loop {
                        self.member_name()?;
                        self.value()?;
                        if !self.goes_on(b'}')? {
                            break;
                        }
                    }
                }
                Ok(JsonValue::Object)
            }
            b'[' => {
                if !self.open(b']')? {
                    loop {
                        self.value()?;
                        if !self.goes_on(b']')? {
                            break;
                        }
                    }
                }
                Ok(JsonValue::Array(from..self.at))
            }
            b'-' | b'0'..=b'9' => {
                self.at += 1;
                self.number();
                Ok(JsonValue::Number(from..self.at))
            }
            b't' => self.word(b"true", JsonValue::Bool(true)),
            b'f' => self.word(b"false", JsonValue::Bool(false)),
            b'n' => self.word(b"null", JsonValue::Null),
            _ => Err(Malformed),
        }
    }

    fn word(&mut self, word: &[u8], value: JsonValue) -> Result<JsonValue, Malformed> {
        if !self.document[self.at..].starts_with(word) {
            return Err(Malformed);
        }
        self.at += word.len();
        Ok(value)
    }

    /// What follows the first character of a number.
    fn number(&mut self) {
        self.digits();
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits();
        }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    /// The text whose quote is here, without its quotes.
    fn text(&mut self) -> Result<Range<usize>, Malformed> {
        let from = self.at + 1;
        let mut at = from;
        loop {
            let rest = self.document.get(at..).ok_or(Malformed)?;
            let step = memchr::memchr2(b'"', b'\\', rest).ok_or(Malformed)?;
            at += step;
            if self.document[at] == b'"' {
                self.at = at + 1;
                return Ok(from..at);
            }
            at += 2;
        }
    }
}
