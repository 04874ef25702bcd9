//! JSON and CBOR: how values of log formats are encoded (manual 8.2.6).

use super::line_bytes::UPPER;

/// How a line or an item is encoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Encoding {
    /// Not at all.
    Plain,
    /// JSON (RFC 8259): what is not ASCII is escaped byte by byte, unless it is UTF-8 that may pass.
    Json {
        /// Sequences of UTF-8 pass.
        utf8: bool,
    },
    /// CBOR (RFC 8949).
    Cbor,
}

/// Appends the characters of a JSON string, without quotes.
pub(super) fn push_json(out: &mut Vec<u8>, bytes: &[u8], utf8: bool) {
    if !utf8 {
        bytes.iter().for_each(|byte| push_json_byte(out, *byte));
        return;
    }
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match u8::try_from(character) {
                // C1 controls are escaped as the character that they are.
                Ok(byte) if byte < 0xa0 => push_json_byte(out, byte),
                _ => {
                    let mut sequence = [0; 4];
                    out.extend_from_slice(character.encode_utf8(&mut sequence).as_bytes());
                }
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|byte| push_json_byte(out, *byte));
    }
}

fn push_json_byte(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        0x20..=0x7e => return out.push(byte),
        _ => {
            out.extend_from_slice(b"\\u00");
            return push_hex(out, byte);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

fn push_hex(out: &mut Vec<u8>, byte: u8) {
    out.push(UPPER[usize::from(byte >> 4)]);
    out.push(UPPER[usize::from(byte & 15)]);
}

/// Turns what `out` holds from `start` on into hexadecimal digits.
pub(super) fn to_hex(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    out.resize(start + 2 * length, 0);
    // From the end, so that nothing is overwritten before it is read.
    for at in (0..length).rev() {
        let byte = out[start + at];
        out[start + 2 * at] = UPPER[usize::from(byte >> 4)];
        out[start + 2 * at + 1] = UPPER[usize::from(byte & 15)];
    }
}

/// The null of CBOR.
pub(super) const CBOR_NULL: u8 = 0xf6;
/// The end of what was begun without a length.
pub(super) const CBOR_BREAK: u8 = 0xff;
/// A text in pieces.
pub(super) const CBOR_TEXT_PIECES: u8 = 0x7f;
/// Bytes in pieces.
pub(super) const CBOR_BYTES_PIECES: u8 = 0x5f;
/// A list without a length.
pub(super) const CBOR_LIST: u8 = 0x9f;
/// A map without a length.
pub(super) const CBOR_MAP: u8 = 0xbf;

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;

/// A type and an argument, in the shortest form (RFC 8949, section 3).
fn cbor_head(major: u8, argument: u64) -> ([u8; 9], usize) {
    let mut head = [0; 9];
    let first = major << 5;
    let bytes = argument.to_be_bytes();
    let wide = match argument {
        0..=23 => {
            head[0] = first | bytes[7];
            return (head, 1);
        }
        24..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    // 24 to 27 say how many bytes of the argument follow: 1, 2, 4 or 8.
    head[0] = first | (24 + u8::try_from(wide).unwrap_or(8).ilog2() as u8);
    head[1..=wide].copy_from_slice(&bytes[8 - wide..]);
    (head, 1 + wide)
}

fn push_head(out: &mut Vec<u8>, major: u8, argument: u64) {
    let (head, length) = cbor_head(major, argument);
    out.extend_from_slice(&head[..length]);
}

/// Appends an integer.
pub(super) fn push_cbor_int(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        push_head(out, NEGATIVE, !number as u64);
    } else {
        push_head(out, UNSIGNED, number as u64);
    }
}

/// Appends true or false.
pub(super) fn push_cbor_bool(out: &mut Vec<u8>, flag: bool) {
    out.push(0xf4 | u8::from(flag));
}

/// Appends a text.
pub(super) fn push_cbor_text(out: &mut Vec<u8>, text: &[u8]) {
    push_head(out, TEXT, text.len() as u64);
    out.extend_from_slice(text);
}

/// Appends bytes, as one piece of what may have several.
pub(super) fn push_cbor_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(CBOR_BYTES_PIECES);
    push_head(out, BYTES, bytes.len() as u64);
    out.extend_from_slice(bytes);
    out.push(CBOR_BREAK);
}

/// Makes a text of what `out` holds from `start` on.
pub(super) fn to_cbor_text(out: &mut Vec<u8>, start: usize) {
    let (head, length) = cbor_head(TEXT, (out.len() - start) as u64);
    out.splice(start..start, head[..length].iter().copied());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(bytes: &[u8], utf8: bool) -> String {
        let mut out = Vec::new();
        push_json(&mut out, bytes, utf8);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_is_printable_or_valid_utf8() {
        let bytes = b"A\x01\"\x7f\\/\xc3\xa9\xff\t\n\xe2\x82\xc2\x80\xc3";
        let plain = r#"A\u0001\"\u007F\\/\u00C3\u00A9\u00FF\t\n\u00E2\u0082\u00C2\u0080\u00C3"#;
        assert_eq!(json(bytes, false), plain);
        let utf8 = "A\\u0001\\\"\\u007F\\\\/\u{e9}\\u00FF\\t\\n\\u00E2\\u0082\\u0080\\u00C3";
        assert_eq!(json(bytes, true), utf8);
    }

    #[test]
    fn integers_of_cbor_are_as_short_as_can_be() {
        // RFC 8949, appendix A.
        for (number, wanted) in [
            (0, "00"),
            (23, "17"),
            (24, "1818"),
            (1000, "1903E8"),
            (1_000_000, "1A000F4240"),
            (1_000_000_000_000, "1B000000E8D4A51000"),
            (-1, "20"),
            (-1000, "3903E7"),
            (i64::MIN, "3B7FFFFFFFFFFFFFFF"),
        ] {
            let mut out = b"x".to_vec();
            push_cbor_int(&mut out, number);
            to_hex(&mut out, 1);
            assert_eq!(String::from_utf8(out).unwrap()[1..], *wanted, "{number}");
        }
    }
}
