//! Bytes that escapes of PCRE2 stand for, and how a byte is written for our engines.

use std::fmt::Write;

/// Up to `most` octal digits at `at`.
pub(crate) fn octal(bytes: &[u8], at: &mut usize, most: usize) -> Result<u8, String> {
    let rest = bytes.get(*at..).unwrap_or_default();
    let is_octal = |byte: &&u8| matches!(byte, b'0'..=b'7');
    let length = rest.iter().take(most).take_while(is_octal).count();
    let value = rest[..length].iter().fold(0_u32, |value, digit| {
        (value * 8 + u32::from(digit - b'0')).min(0x1000)
    });
    *at += length;
    u8::try_from(value).map_err(|_| "octal value is greater than \\377".to_owned())
}

/// The byte that an escape without its backslash stands for, inside of a class or not.
pub(crate) fn escaped_byte(bytes: &[u8], at: &mut usize) -> Result<u8, String> {
    let Some(&byte) = bytes.get(*at) else {
        return Err("\\ at end of pattern".to_owned());
    };
    *at += 1;
    Ok(match byte {
        b'a' => 0x07,
        b'e' => 0x1b,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'0' => octal(bytes, at, 2)?,
        b'o' => braced(bytes, at, 8)?,
        b'x' if bytes.get(*at) == Some(&b'{') => braced(bytes, at, 16)?,
        b'x' => {
            let hex = |at: usize| {
                bytes
                    .get(at)
                    .and_then(|byte| char::from(*byte).to_digit(16))
            };
            if hex(*at).is_none() {
                return Err("\\x is not followed by hexadecimal digits".to_owned());
            }
            let mut value = 0;
            for _ in 0..2 {
                let Some(digit) = hex(*at) else { break };
                value = value * 16 + digit;
                *at += 1;
            }
            u8::try_from(value).expect("two hexadecimal digits are a byte")
        }
        b'c' => {
            let control = bytes.get(*at).filter(|byte| matches!(byte, b' '..=b'~'));
            *at += 1;
            control
                .ok_or("\\c is not followed by a printable character")?
                .to_ascii_uppercase()
                ^ 0x40
        }
        byte if byte.is_ascii_alphanumeric() => {
            return Err(format!("\\{} is not supported", char::from(byte)));
        }
        byte => byte,
    })
}

/// A number in braces.
fn braced(bytes: &[u8], at: &mut usize, base: u32) -> Result<u8, String> {
    let rest = bytes.get(*at..).unwrap_or_default();
    let number = rest
        .strip_prefix(b"{")
        .and_then(|inside| Some(&inside[..memchr::memchr(b'}', inside)?]))
        .ok_or("digits in braces are missing")?;
    *at += number.len() + 2;
    std::str::from_utf8(number)
        .ok()
        .and_then(|number| u8::try_from(u32::from_str_radix(number.trim(), base).ok()?).ok())
        .ok_or_else(|| "a number in braces is not that of a byte".to_owned())
}

/// Writes one byte as both engines read it as itself.
pub(crate) fn push_byte(out: &mut String, byte: u8) {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_') {
        out.push(char::from(byte));
    } else {
        let _ = write!(out, "\\x{byte:02X}");
    }
}
