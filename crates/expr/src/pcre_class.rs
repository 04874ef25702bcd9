//! Classes of PCRE2 expressions, as sets of bytes.

use crate::byte_set::ByteSet;
use crate::pcre_escape::{escaped_byte, octal};
use crate::pcre_property;

/// The set that an escape such as `\d` stands for, and whether it is negated.
pub(crate) fn class_of_letter(letter: u8) -> Option<(ByteSet, bool)> {
    let set = match letter.to_ascii_lowercase() {
        b'd' => ByteSet::of(|byte| byte.is_ascii_digit()),
        b's' => ByteSet::of(|byte| matches!(byte, b' ' | 0x09..=0x0d)),
        b'w' => ByteSet::of(|byte| byte.is_ascii_alphanumeric() || byte == b'_'),
        b'h' => ByteSet::of(|byte| matches!(byte, b' ' | b'\t' | 0xa0)),
        b'v' => ByteSet::of(|byte| matches!(byte, 0x0a..=0x0d | 0x85)),
        _ => return None,
    };
    Some((set, letter.is_ascii_uppercase()))
}

/// Reads a class after its bracket: the set, and whether the class is what is not in it.
///
/// # Errors
/// When the class has no end, or has what is not known.
pub(crate) fn class(bytes: &[u8], at: &mut usize, fold: bool) -> Result<(bool, ByteSet), String> {
    let mut set = ByteSet::of(|_| false);
    let negated = bytes.get(*at) == Some(&b'^');
    *at += usize::from(negated);
    let begin = *at;
    let mut quoted = false;
    // The byte that a hyphen could make a range of.
    let mut last: Option<u8> = None;
    let mut is_range = false;
    // A hyphen behind a set makes no range of it.
    let mut after_set = false;
    loop {
        let Some(&byte) = bytes.get(*at) else {
            return Err("missing terminating ] for character class".to_owned());
        };
        let member = match byte {
            b'\\' if bytes[*at..].starts_with(b"\\E") => {
                quoted = false;
                *at += 2;
                continue;
            }
            b'\\' if !quoted && bytes[*at..].starts_with(b"\\Q") => {
                quoted = true;
                *at += 2;
                continue;
            }
            b']' if !quoted && *at != begin => {
                *at += 1;
                break;
            }
            b'-' if !quoted && after_set && bytes.get(*at + 1) != Some(&b']') => {
                return Err("invalid range in character class".to_owned());
            }
            b'-' if !quoted && last.is_some() && !is_range => {
                is_range = true;
                *at += 1;
                continue;
            }
            _ if quoted => {
                *at += 1;
                Member::Byte(byte)
            }
            _ => member(bytes, at, fold)?,
        };
        after_set = matches!(member, Member::Set(..));
        match (member, last) {
            (Member::Byte(byte), Some(first)) if is_range => {
                if byte < first {
                    return Err("range out of order in character class".to_owned());
                }
                set.add_range(first, byte);
                last = None;
            }
            (Member::Byte(byte), _) => {
                set.add_range(byte, byte);
                last = Some(byte);
            }
            (Member::Set(..), _) if is_range => {
                return Err("invalid range in character class".to_owned());
            }
            (Member::Set(more, negated), _) => {
                set.add(&more, negated);
                last = None;
            }
        }
        is_range = false;
    }
    if is_range {
        set.add_range(b'-', b'-');
    }
    Ok((negated, set))
}

enum Member {
    Byte(u8),
    Set(Box<ByteSet>, bool),
}

fn member(bytes: &[u8], at: &mut usize, fold: bool) -> Result<Member, String> {
    let rest = &bytes[*at..];
    match rest {
        [b'[', b':', b'<' | b'>', b':', b']', ..] => {
            return Err("unknown POSIX class name".to_owned());
        }
        [b'[', b':', inside @ ..] => {
            if let Some((name, negated, length)) = posix_name(inside) {
                *at += length + 2;
                return posix(name, fold)
                    .map(|set| Member::Set(Box::new(set), negated))
                    .ok_or_else(|| "unknown POSIX class name".to_owned());
            }
        }
        [b'[', mark @ (b'.' | b'='), inside @ ..] => {
            let ends = memchr::memmem::find(inside, &[*mark, b']']);
            if ends.is_some_and(|end| !inside[..end].contains(&b']')) {
                return Err("POSIX collating elements are not supported".to_owned());
            }
        }
        [b'\\', escaped, ..] => {
            *at += 1;
            if let Some((set, negated)) = class_of_letter(*escaped) {
                *at += 1;
                return Ok(Member::Set(Box::new(set), negated));
            }
            if let b'p' | b'P' = escaped {
                *at += 1;
                let (set, negated) = pcre_property::read(bytes, at, fold)?;
                return Ok(Member::Set(Box::new(set), negated != (*escaped == b'P')));
            }
            return match escaped {
                b'b' => {
                    *at += 1;
                    Ok(Member::Byte(0x08))
                }
                b'1'..=b'7' => octal(bytes, at, 3).map(Member::Byte),
                b'8' | b'9' => {
                    *at += 1;
                    Ok(Member::Byte(*escaped))
                }
                _ => escaped_byte(bytes, at).map(Member::Byte),
            };
        }
        _ => {}
    }
    *at += 1;
    rest.first()
        .map(|byte| Member::Byte(*byte))
        .ok_or_else(|| "missing terminating ] for character class".to_owned())
}

/// A name up to `:]`, whether it is negated, and how long that is.
fn posix_name(inside: &[u8]) -> Option<(&[u8], bool, usize)> {
    let negated = inside.first() == Some(&b'^');
    let name = &inside[usize::from(negated)..];
    let length = name
        .iter()
        .take_while(|byte| byte.is_ascii_lowercase())
        .count();
    name[length..]
        .starts_with(b":]")
        .then(|| (&name[..length], negated, usize::from(negated) + length + 2))
}

fn posix(name: &[u8], fold: bool) -> Option<ByteSet> {
    Some(match name {
        b"alnum" => ByteSet::of(|byte| byte.is_ascii_alphanumeric()),
        b"alpha" => ByteSet::of(|byte| byte.is_ascii_alphabetic()),
        b"lower" | b"upper" if fold => ByteSet::of(|byte| byte.is_ascii_alphabetic()),
        b"lower" => ByteSet::of(|byte| byte.is_ascii_lowercase()),
        b"upper" => ByteSet::of(|byte| byte.is_ascii_uppercase()),
        b"ascii" => ByteSet::of(|byte| byte.is_ascii()),
        b"blank" => ByteSet::of(|byte| matches!(byte, b' ' | b'\t')),
        b"cntrl" => ByteSet::of(|byte| byte.is_ascii_control()),
        b"digit" => ByteSet::of(|byte| byte.is_ascii_digit()),
        b"graph" => ByteSet::of(|byte| byte.is_ascii_graphic()),
        b"print" => ByteSet::of(|byte| matches!(byte, b' '..=b'~')),
        b"punct" => ByteSet::of(|byte| byte.is_ascii_punctuation()),
        b"space" => ByteSet::of(|byte| matches!(byte, b' ' | 0x09..=0x0d)),
        b"word" => ByteSet::of(|byte| byte.is_ascii_alphanumeric() || byte == b'_'),
        b"xdigit" => ByteSet::of(|byte| byte.is_ascii_hexdigit()),
        _ => return None,
    })
}
