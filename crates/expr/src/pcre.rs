//! Reads an expression as PCRE2 does without UTF, and writes the same for our engines.
//!
//! What is written uses only what both engines read alike: classes are sets of bytes, literals are
//! bytes, and the flags `m`, `s`, `x` and `U` are worked into the text. What has no equivalent is
//! refused by name.

use std::collections::HashSet;
use std::fmt::Write;

use crate::byte_set::ByteSet;
use crate::error::ExpressionError;
use crate::pcre_class::{class, class_of_letter};
use crate::pcre_escape::{escaped_byte, octal, push_byte};
use crate::pcre_property;

/// Stands in the written text for the end of the subject, or before a newline that ends it.
pub(crate) const END: char = '\u{1}';
/// The beginning of a line, as it is written.
const LINE_START: &str = "(?m:^)";
/// Groups within groups, at most.
const DEPTH_MAX: usize = 128;

/// An expression that was read.
#[derive(Debug)]
pub(crate) struct Pcre {
    text: String,
    has_end: bool,
    backtracks: bool,
}

impl Pcre {
    /// Reads `source`; `fold` ignores the case.
    ///
    /// # Errors
    /// When the expression is not valid, or has no equivalent here.
    pub(crate) fn read(source: &str, fold: bool) -> Result<Pcre, ExpressionError> {
        Pcre::read_with(source, fold, true)
    }

    /// Checks `source` as the pattern of an ACL, in which only groups with a name can be referred to.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn check_pattern(source: &str, fold: bool) -> Result<(), ExpressionError> {
        Pcre::read_with(source, fold, false).map(drop)
    }

    fn read_with(source: &str, fold: bool, captures: bool) -> Result<Pcre, ExpressionError> {
        let read = |groups| {
            let mut reader = Reader::new(source, fold, groups);
            reader.flags.captures = captures;
            reader.run().map(|()| reader).map_err(|cause| {
                let message = format!("regex '{source}' is invalid: {cause}");
                ExpressionError::new(message, 0..source.len())
            })
        };
        // Whether `\10` is a group or an octal number depends on how many groups there are.
        let mut reader = read(usize::MAX)?;
        if reader.has_references {
            reader = read(reader.groups)?;
        }
        Ok(Pcre {
            // No line begins behind a newline that ends the subject.
            has_end: reader.out.contains(END) || reader.out.contains(LINE_START),
            text: reader.out,
            backtracks: reader.backtracks,
        })
    }

    /// Whether a newline that ends the subject is not like another one: the match may leave it over, or
    /// would find a line behind it.
    pub(crate) const fn has_end(&self) -> bool {
        self.has_end
    }

    /// Whether only a backtracking engine has what it takes.
    pub(crate) const fn backtracks(&self) -> bool {
        self.backtracks
    }

    /// The text for subjects that do not end in a newline.
    pub(crate) fn without_newline(&self) -> String {
        self.text.replace(END, "\\z")
    }

    /// The text for any subject, in which [`END`] stands for itself.
    pub(crate) fn marked(&self) -> &str {
        &self.text
    }

    /// A text for a linear engine that matches whatever the expression does, and maybe more.
    pub(crate) fn wide(&self) -> String {
        self.text.replace(END, "(?m:$)")
    }
}

#[derive(Clone, Copy)]
struct Flags {
    fold: bool,
    lines: bool,
    dot_all: bool,
    blanks: bool,
    lazy: bool,
    /// Plain parentheses have a number.
    captures: bool,
}

struct Reader<'s> {
    bytes: &'s [u8],
    at: usize,
    out: String,
    flags: Flags,
    /// Flags to return to at the end of each open group.
    open: Vec<Flags>,
    groups: usize,
    groups_known: usize,
    has_references: bool,
    names: HashSet<String>,
    backtracks: bool,
    /// Whether what was written last can be repeated.
    repeatable: bool,
}

impl Flags {
    /// As an expression begins.
    const NONE: Flags = Flags {
        fold: false,
        lines: false,
        dot_all: false,
        blanks: false,
        lazy: false,
        captures: true,
    };
}

type Read<T = ()> = Result<T, String>;

/// What PCRE2 has and we have not, and what to write instead.
fn unsupported(construct: &str, instead: &str) -> String {
    format!("{construct} is not supported: {instead}")
}

fn recursion() -> String {
    unsupported(
        "recursion, as in (?R), (?1) or \\g<1>,",
        "write out as many levels as there may be",
    )
}

impl<'s> Reader<'s> {
    fn new(source: &'s str, fold: bool, groups_known: usize) -> Reader<'s> {
        Reader {
            bytes: source.as_bytes(),
            at: 0,
            out: String::with_capacity(source.len() + 16),
            flags: Flags {
                fold,
                ..Flags::NONE
            },
            open: Vec::new(),
            groups: 0,
            groups_known,
            has_references: false,
            names: HashSet::new(),
            backtracks: false,
            repeatable: false,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, text: &str) -> bool {
        let is_next = self.bytes[self.at..].starts_with(text.as_bytes());
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    fn run(&mut self) -> Read {
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' => self.escape()?,
                b'[' if self.take("[:<:]]") => self.place("(?:\\b{start})"),
                b'[' if self.take("[:>:]]") => self.place("(?:\\b{end})"),
                b'[' => {
                    let (negated, set) = class(self.bytes, &mut self.at, self.flags.fold)?;
                    self.set(&set, negated);
                }
                b'(' => self.group()?,
                b')' => {
                    self.flags = self.open.pop().ok_or("unmatched closing parenthesis")?;
                    self.item(")");
                }
                b'|' => {
                    self.out.push('|');
                    self.repeatable = false;
                }
                b'.' => self.item(if self.flags.dot_all {
                    "(?s:.)"
                } else {
                    "[^\\x0A]"
                }),
                b'^' => self.place(if self.flags.lines {
                    LINE_START
                } else {
                    "(?:\\A)"
                }),
                b'$' if self.flags.lines => self.place("(?m:$)"),
                b'$' => self.end(),
                b'*' | b'+' | b'?' => self.repeat(&char::from(byte).to_string())?,
                b'{' => match self.count() {
                    Some(count) => self.repeat(&count)?,
                    None => self.literal(b'{'),
                },
                b' ' | b'\t' | b'\n' | b'\x0b' | b'\x0c' | b'\r' if self.flags.blanks => {}
                b'#' if self.flags.blanks => {
                    let rest = &self.bytes[self.at..];
                    self.at += memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
                }
                byte => self.literal(byte),
            }
        }
        if self.open.is_empty() {
            Ok(())
        } else {
            Err("missing closing parenthesis".to_owned())
        }
    }

    fn item(&mut self, text: &str) {
        self.out.push_str(text);
        self.repeatable = true;
    }

    fn literal(&mut self, byte: u8) {
        push_byte(&mut self.out, byte);
        self.repeatable = true;
    }

    /// A place, which cannot be repeated.
    fn place(&mut self, text: &str) {
        self.out.push_str(text);
        self.repeatable = false;
    }

    fn end(&mut self) {
        self.place("(?:\u{1})");
    }

    fn set(&mut self, set: &ByteSet, negated: bool) {
        set.write(negated, &mut self.out);
        self.repeatable = true;
    }

    /// A count after its brace, if it is one.
    fn count(&mut self) -> Option<String> {
        let rest = &self.bytes[self.at..];
        let end = memchr::memchr(b'}', rest)?;
        let inside = std::str::from_utf8(&rest[..end]).ok()?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let trimmed = |text: &'s str| text.trim_matches([' ', '\t']);
        let inside = trimmed(inside);
        let parts = inside.split_once(',');
        let count = match parts.map(|(least, most)| (trimmed(least), trimmed(most))) {
            None if is_number(inside) => format!("{{{inside}}}"),
            Some((least, "")) if is_number(least) => format!("{{{least},}}"),
            Some(("", most)) if is_number(most) => format!("{{0,{most}}}"),
            Some((least, most)) if is_number(least) && is_number(most) => {
                format!("{{{least},{most}}}")
            }
            _ => return None,
        };
        self.at += end + 1;
        Some(count)
    }

    /// Whether a count follows here.
    fn is_count(&mut self) -> bool {
        let at = self.at;
        self.at += 1;
        let is_count = self.count().is_some();
        self.at = at;
        is_count
    }

    fn repeat(&mut self, times: &str) -> Read {
        if !self.repeatable {
            return Err("quantifier does not follow a repeatable item".to_owned());
        }
        let mut numbers = times.split(|c: char| !c.is_ascii_digit());
        let is_too_big = |number: &str| number.parse().map_or(true, |number: u32| number > 65_535);
        if numbers.any(|number| !number.is_empty() && is_too_big(number)) {
            return Err("number too big in {} quantifier".to_owned());
        }
        self.out.push_str(times);
        if self.take("+") {
            self.backtracks = true;
            self.out.push('+');
        } else if self.take("?") != self.flags.lazy {
            self.out.push('?');
        }
        self.repeatable = false;
        Ok(())
    }

    fn group(&mut self) -> Read {
        if self.open.len() >= DEPTH_MAX {
            return Err("parentheses are too deeply nested".to_owned());
        }
        let before = self.flags;
        self.repeatable = false;
        if self.take("*") {
            return self.verb();
        }
        if !self.take("?") {
            self.groups += usize::from(self.flags.captures);
            self.out
                .push_str(if self.flags.captures { "(" } else { "(?:" });
            self.open.push(before);
            return Ok(());
        }
        if self.take("#") {
            let rest = &self.bytes[self.at..];
            let end = memchr::memchr(b')', rest).ok_or("missing ) after (?# comment")?;
            self.at += end + 1;
            self.repeatable = true;
            return Ok(());
        }
        for look in ["=", "!", "<=", "<!", ">"] {
            if self.take(look) {
                self.backtracks = true;
                let _ = write!(self.out, "(?{look}");
                self.open.push(before);
                return Ok(());
            }
        }
        for (begin, end) in [("P<", b'>'), ("<", b'>'), ("'", b'\'')] {
            if self.take(begin) {
                let name = self.name(end)?;
                if name.starts_with(|first: char| first.is_ascii_digit()) {
                    return Err("subpattern name must start with a non-digit".to_owned());
                }
                if !self.names.insert(name.clone()) {
                    return Err("two named subpatterns have the same name".to_owned());
                }
                self.groups += 1;
                let _ = write!(self.out, "(?P<{name}>");
                self.open.push(before);
                return Ok(());
            }
        }
        if self.take("P=") {
            let name = self.name(b')')?;
            return self.named_reference(&name);
        }
        if self.take("(") {
            return self.condition(before);
        }
        self.option_group(before)
    }

    /// What follows `(?(`: the number of a group, and branches.
    fn condition(&mut self, before: Flags) -> Read {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(unsupported(
                "a condition other than the number of a group, as in (?(1)a|b),",
                "write two branches that look ahead: (?=x)a|(?!x)b",
            ));
        }
        let number = self.name(b')')?;
        let group = number.parse().unwrap_or(usize::MAX);
        self.has_references = true;
        if group == 0 || group > self.groups_known {
            return Err(format!("reference to non-existent group {number}"));
        }
        self.backtracks = true;
        let _ = write!(self.out, "(?({group})");
        self.open.push(before);
        Ok(())
    }

    /// What follows `(*`: only the verb that fails has an equivalent.
    fn verb(&mut self) -> Read {
        if self.take("FAIL)") || self.take("F)") {
            self.backtracks = true;
            self.place("(?!)");
            return Ok(());
        }
        let rest = &self.bytes[self.at..];
        let end = memchr::memchr2(b')', b':', rest).unwrap_or(rest.len());
        let verb = format!("(*{})", String::from_utf8_lossy(&rest[..end]));
        Err(unsupported(
            &verb,
            "leave it out, or write it as a group: (?=...), (?!...), (?>...)",
        ))
    }

    /// Flags, as `(?i)` or `(?i:`, and what is refused.
    fn option_group(&mut self, before: Flags) -> Read {
        match self.bytes[self.at..] {
            [b'|', ..] => {
                return Err(unsupported(
                    "(?|, a group whose branches share numbers,",
                    "give each branch groups of its own",
                ));
            }
            [b'R' | b'&' | b'0'..=b'9', ..] | [b'P', b'>', ..] | [b'+' | b'-', b'0'..=b'9', ..] => {
                return Err(recursion());
            }
            [b'C', ..] => return Err(unsupported("a callout, (?C),", "leave it out")),
            [b'J', ..] => {
                return Err(unsupported(
                    "(?J), names that stand twice,",
                    "give each group a name of its own",
                ));
            }
            _ => {}
        }
        let mut on = true;
        if self.take("^") {
            self.flags = Flags {
                lazy: self.flags.lazy,
                ..Flags::NONE
            };
        }
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'-' if on => on = false,
                b'i' => self.flags.fold = on,
                b'm' => self.flags.lines = on,
                b'n' => self.flags.captures = !on,
                b's' => self.flags.dot_all = on,
                b'x' if self.peek() == Some(b'x') => {
                    return Err(unsupported(
                        "(?xx), blanks within classes,",
                        "write (?x), and classes without blanks",
                    ));
                }
                b'x' => self.flags.blanks = on,
                b'U' => self.flags.lazy = on,
                b')' | b':' => {
                    let sign = match (self.flags.fold, before.fold) {
                        (true, false) => "i",
                        (false, true) => "-i",
                        _ => "",
                    };
                    if byte == b':' {
                        let _ = write!(self.out, "(?{sign}:");
                        self.open.push(before);
                    } else if !sign.is_empty() {
                        let _ = write!(self.out, "(?{sign})");
                    }
                    return Ok(());
                }
                _ => break,
            }
        }
        Err("unrecognized character after (?".to_owned())
    }

    fn name(&mut self, end: u8) -> Read<String> {
        let rest = &self.bytes[self.at..];
        let length = memchr::memchr(end, rest).ok_or("a name has no end")?;
        let name = &rest[..length];
        self.at += length + 1;
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if name.is_empty() || !name.iter().all(is_word) {
            return Err("a name has other than letters and digits".to_owned());
        }
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    fn named_reference(&mut self, name: &str) -> Read {
        self.backtracks = true;
        self.item(&format!("\\k<{name}>"));
        Ok(())
    }

    fn reference(&mut self, group: usize) -> Read {
        self.has_references = true;
        if group == 0 || group > self.groups_known {
            return Err(format!("reference to non-existent group {group}"));
        }
        self.backtracks = true;
        // The group keeps a digit that follows apart.
        self.item(&format!("(?:\\{group})"));
        Ok(())
    }

    /// What follows a backslash outside of classes.
    fn escape(&mut self) -> Read {
        let Some(byte) = self.peek() else {
            return Err("\\ at end of pattern".to_owned());
        };
        self.at += 1;
        match byte {
            b'b' => self.place("(?:\\b)"),
            b'B' => self.place("(?:\\B)"),
            b'A' => self.place("(?:\\A)"),
            b'z' => self.place("(?:\\z)"),
            b'Z' => self.end(),
            b'G' | b'K' => {
                self.backtracks = true;
                let _ = write!(self.out, "\\{}", char::from(byte));
                self.repeatable = false;
            }
            b'R' => {
                self.backtracks = true;
                self.item("(?>\\x0D\\x0A|[\\x0A-\\x0D\\x85])");
            }
            // One character: those that would join it are not below 256.
            b'X' => {
                self.backtracks = true;
                self.item("(?>\\x0D\\x0A|(?s:.))");
            }
            b'p' | b'P' => {
                let (set, negated) =
                    pcre_property::read(self.bytes, &mut self.at, self.flags.fold)?;
                self.set(&set, negated != (byte == b'P'));
            }
            // `\N{U+41}` is a character, `\N{2}` is two that are no newline.
            b'N' if self.peek() != Some(b'{') || self.is_count() => self.item("[^\\x0A]"),
            b'C' => self.item("(?s:.)"),
            b'Q' => {
                let rest = &self.bytes[self.at..];
                let end = memchr::memmem::find(rest, b"\\E");
                for byte in &rest[..end.unwrap_or(rest.len())] {
                    self.literal(*byte);
                }
                self.at += end.map_or(rest.len(), |end| end + 2);
            }
            b'E' => {}
            b'1'..=b'9' => self.digits()?,
            b'k' => {
                let end = match self.peek() {
                    Some(b'<') => b'>',
                    Some(b'{') => b'}',
                    Some(b'\'') => b'\'',
                    _ => return Err("\\k is not followed by a name".to_owned()),
                };
                self.at += 1;
                let name = self.name(end)?;
                self.named_reference(&name)?;
            }
            b'g' => self.g_reference()?,
            _ => {
                self.at -= 1;
                match class_of_letter(byte) {
                    Some((set, negated)) => {
                        self.at += 1;
                        self.set(&set, negated);
                    }
                    None => {
                        let literal = escaped_byte(self.bytes, &mut self.at)?;
                        self.literal(literal);
                    }
                }
            }
        }
        Ok(())
    }

    /// A group's number, or a byte in octal digits.
    fn digits(&mut self) -> Read {
        self.at -= 1;
        let rest = &self.bytes[self.at..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = decimal(&rest[..length]);
        self.has_references = true;
        if number < 10 || number <= self.groups_known.min(self.groups) {
            self.at += length;
            return self.reference(number);
        }
        if rest[0] >= b'8' {
            self.at += 1;
            self.literal(rest[0]);
            return Ok(());
        }
        let byte = octal(self.bytes, &mut self.at, 3)?;
        self.literal(byte);
        Ok(())
    }

    fn g_reference(&mut self) -> Read {
        let braced = self.take("{");
        let back = self.take("-");
        let rest = &self.bytes[self.at..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            if braced && !back {
                let name = self.name(b'}')?;
                return self.named_reference(&name);
            }
            return Err(recursion());
        }
        let number = decimal(&rest[..length]);
        self.at += length;
        if braced && !self.take("}") {
            return Err("\\g{ has no end".to_owned());
        }
        let group = if back {
            (self.groups + 1).saturating_sub(number)
        } else {
            number
        };
        self.reference(group)
    }
}

fn decimal(digits: &[u8]) -> usize {
    digits.iter().fold(0_usize, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(usize::from(digit - b'0'))
    })
}
