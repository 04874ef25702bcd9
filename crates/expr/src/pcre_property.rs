//! Unicode properties of bytes, as PCRE2 knows them without UTF: a byte stands for the character of that
//! number.

use crate::byte_set::ByteSet;

/// The general categories of the characters below 256: where each run of one begins.
#[rustfmt::skip] // A table.
const RUNS: &[(u8, &str)] = &[
    (0x00, "Cc"), (0x20, "Zs"), (0x21, "Po"), (0x24, "Sc"), (0x25, "Po"), (0x28, "Ps"),
    (0x29, "Pe"), (0x2a, "Po"), (0x2b, "Sm"), (0x2c, "Po"), (0x2d, "Pd"), (0x2e, "Po"),
    (0x30, "Nd"), (0x3a, "Po"), (0x3c, "Sm"), (0x3f, "Po"), (0x41, "Lu"), (0x5b, "Ps"),
    (0x5c, "Po"), (0x5d, "Pe"), (0x5e, "Sk"), (0x5f, "Pc"), (0x60, "Sk"), (0x61, "Ll"),
    (0x7b, "Ps"), (0x7c, "Sm"), (0x7d, "Pe"), (0x7e, "Sm"), (0x7f, "Cc"), (0xa0, "Zs"),
    (0xa1, "Po"), (0xa2, "Sc"), (0xa6, "So"), (0xa7, "Po"), (0xa8, "Sk"), (0xa9, "So"),
    (0xaa, "Lo"), (0xab, "Pi"), (0xac, "Sm"), (0xad, "Cf"), (0xae, "So"), (0xaf, "Sk"),
    (0xb0, "So"), (0xb1, "Sm"), (0xb2, "No"), (0xb4, "Sk"), (0xb5, "Ll"), (0xb6, "Po"),
    (0xb8, "Sk"), (0xb9, "No"), (0xba, "Lo"), (0xbb, "Pf"), (0xbc, "No"), (0xbf, "Po"),
    (0xc0, "Lu"), (0xd7, "Sm"), (0xd8, "Lu"), (0xdf, "Ll"), (0xf7, "Sm"), (0xf8, "Ll"),
];

/// General categories that no character below 256 is in.
const ABSENT: [&str; 12] = [
    "cn", "co", "cs", "lm", "lt", "m", "mc", "me", "mn", "nl", "zl", "zp",
];

/// The bytes with a property (`Lu`, `L`, `Any` ...), and whether the property is negated (`^Lu`).
/// `fold` ignores the case. `None` for what is no general category: scripts, for one.
pub(crate) fn property(name: &[u8], fold: bool) -> Option<(ByteSet, bool)> {
    let name = name.trim_ascii();
    let negated = name.first() == Some(&b'^');
    let name: String = name[usize::from(negated)..]
        .iter()
        .filter(|byte| !matches!(byte, b' ' | b'_' | b'-'))
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect();
    let is_letter = |byte| matches!(category(byte), "Ll" | "Lu");
    let first_is = |byte, letters: &str| category(byte).starts_with(|c| letters.contains(c));
    let set = match name.as_str() {
        "any" => ByteSet::of(|_| true),
        "l&" | "lc" => ByteSet::of(is_letter),
        "ll" | "lt" | "lu" if fold => ByteSet::of(is_letter),
        "xan" => ByteSet::of(|byte| first_is(byte, "LN")),
        "xwd" => ByteSet::of(|byte| first_is(byte, "LN") || byte == b'_'),
        "xsp" | "xps" => {
            ByteSet::of(|byte| first_is(byte, "Z") || matches!(byte, 0x09..=0x0d | 0x85))
        }
        absent if ABSENT.contains(&absent) => ByteSet::of(|_| false),
        name => {
            let is_in = |category: &str| {
                category.eq_ignore_ascii_case(name) || category[..1].eq_ignore_ascii_case(name)
            };
            if !RUNS.iter().any(|(_, category)| is_in(category)) {
                return None;
            }
            ByteSet::of(|byte| is_in(category(byte)))
        }
    };
    Some((set, negated))
}

fn category(byte: u8) -> &'static str {
    let after = RUNS.partition_point(|(first, _)| *first <= byte);
    RUNS[after.saturating_sub(1)].1
}

/// Reads what follows `\p` or `\P`: a letter, or a name in braces.
///
/// # Errors
/// When the name has no end, or is none that is known.
pub(crate) fn read(bytes: &[u8], at: &mut usize, fold: bool) -> Result<(ByteSet, bool), String> {
    let rest = bytes.get(*at..).unwrap_or_default();
    let name = match rest {
        [b'{', inside @ ..] => {
            let end = memchr::memchr(b'}', inside).ok_or("\\p{ has no end")?;
            *at += end + 2;
            &inside[..end]
        }
        [letter, ..] => {
            *at += 1;
            std::slice::from_ref(letter)
        }
        [] => return Err("\\p is not followed by a property".to_owned()),
    };
    property(name, fold).ok_or_else(|| {
        format!(
            "\\p{{{}}} is not supported: expressions are about bytes; name a general category, as \
             \\p{{L}}, or a class of bytes",
            String::from_utf8_lossy(name)
        )
    })
}
