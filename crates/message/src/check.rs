//! Checks of names, values, targets and hosts that apply to every HTTP version.

use std::borrow::Cow;

use crate::words::{SHORT_TEXT_BYTES, contains_any, contains_blank_or};

/// Which bytes are allowed in a token (RFC 9110 section 5.6.2). A table, because tokens are scanned
/// byte by byte up to the first other byte; the other classes are plain comparisons, which the
/// compiler vectorises.
static TOKEN: [bool; 256] = token_table();

const fn token_table() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0_usize;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "the loop stays below 256")]
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        byte += 1;
    }
    table
}

/// Examines every byte without stopping at the first bad one: valid input is the common case.
#[inline]
fn all(bytes: &[u8], valid: impl Fn(u8) -> bool) -> bool {
    bytes.iter().fold(true, |all, byte| all & valid(*byte))
}

/// Whether a byte is allowed in a token.
#[inline]
pub fn is_token_byte(byte: u8) -> bool {
    TOKEN[byte as usize]
}

/// Whether these bytes are a token (RFC 9110 section 5.6.2): a method, a field name.
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && all(bytes, is_token_byte)
}

/// Whether these bytes name one protocol as `Upgrade` does: a name, and a version after a slash (RFC 9110
/// section 7.8).
pub fn is_upgrade_protocol(bytes: &[u8]) -> bool {
    match memchr::memchr(b'/', bytes) {
        Some(slash) => is_token(&bytes[..slash]) && is_token(&bytes[slash + 1..]),
        None => is_token(bytes),
    }
}

/// Whether these bytes are a valid field name.
pub fn is_field_name(bytes: &[u8]) -> bool {
    is_token(bytes)
}

/// Whether these bytes are a valid field value: visible bytes, space, tab and bytes above 0x7f (RFC
/// 9110 section 5.5); no control characters.
pub fn is_field_value(bytes: &[u8]) -> bool {
    all(bytes, |byte| {
        (byte == b'\t') | ((byte >= 0x20) & (byte != 0x7f))
    })
}

/// As [`is_field_value`], but accepts every byte that cannot end a line or a string: all but NUL,
/// CR and LF. Used for `option accept-invalid-http-request`.
pub fn is_field_value_lenient(bytes: &[u8]) -> bool {
    if bytes.len() > SHORT_TEXT_BYTES {
        return memchr::memchr3(0, b'\r', b'\n', bytes).is_none();
    }
    !contains_any(bytes, [0, b'\r', b'\n'])
}

/// The part of a head that a composed text goes into: it decides which bytes are escaped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HeadText {
    /// A field's name.
    Name,
    /// A field's value, or a reason phrase: only a line end ends it.
    FieldValue,
    /// A method, or a part of a target: a space ends it too.
    Token,
}

impl HeadText {
    /// Whether the byte must be escaped: it would end the part, or begin another.
    fn must_escape(self, byte: u8) -> bool {
        match self {
            Self::Name => byte <= b' ' || byte == 0x7f || byte == b':',
            Self::FieldValue => matches!(byte, 0 | b'\r' | b'\n'),
            Self::Token => byte <= b' ' || byte == 0x7f,
        }
    }

    /// Whether no byte of a text must be escaped.
    #[inline]
    pub(crate) fn is_clean(self, bytes: &[u8]) -> bool {
        match self {
            Self::FieldValue => is_field_value_lenient(bytes),
            Self::Name => !contains_blank_or(bytes, [b':']),
            Self::Token => !contains_blank_or(bytes, []),
        }
    }

    /// Escapes a text before it is put into a head: `%` and two hexadecimal digits for each byte
    /// that would end the part, as in HAProxy's log formats. So no value, wherever it came from, can
    /// begin another field or another message. Every composed text goes through here.
    pub(crate) fn escape(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        if self.is_clean(bytes) {
            return Cow::Borrowed(bytes);
        }
        let mut escaped = Vec::with_capacity(bytes.len() + 8);
        for byte in bytes {
            if self.must_escape(*byte) {
                escaped.extend_from_slice(&[b'%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
            } else {
                escaped.push(*byte);
            }
        }
        Cow::Owned(escaped)
    }
}

fn hex_digit(number: u8) -> u8 {
    b"0123456789ABCDEF"[usize::from(number & 15)]
}

/// Whether these bytes are a valid request target: visible ASCII without `#`, which begins a
/// fragment and is never sent (RFC 9112 section 3.2).
pub fn is_target(bytes: &[u8]) -> bool {
    !bytes.is_empty() && all(bytes, |byte| (byte > 0x20) & (byte < 0x7f) & (byte != b'#'))
}

/// As [`is_target`], but also accepts `#` and bytes above 0x7f.
pub fn is_target_lenient(bytes: &[u8]) -> bool {
    !bytes.is_empty() && all(bytes, |byte| (byte > 0x20) & (byte != 0x7f))
}

/// The bytes that HAProxy accepts in a host: visible ASCII without the characters that delimit
/// other parts of a URI, and without the comma, which would make it a list. A table, because hosts are
/// short.
static HOST: [bool; 256] = host_table();

const fn host_table() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0x21_u8;
    while byte < 0x7f {
        table[byte as usize] =
            !matches!(byte, b'#' | b',' | b'/' | b'?' | b'@' | b'[' | b'\\' | b']');
        byte += 1;
    }
    table
}

#[inline]
fn is_host_byte(byte: u8) -> bool {
    HOST[byte as usize]
}

/// Whether these bytes are a valid `Host`: `host[:port]`, with an IPv6 address in brackets. It may
/// be empty (RFC 9112 section 3.2); the port need not be a number.
pub fn is_host(bytes: &[u8]) -> bool {
    let (inner, after) = match bytes {
        [b'[', rest @ ..] => match memchr::memchr(b']', rest) {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => return false,
        },
        _ => (bytes, &b""[..]),
    };
    all(inner, is_host_byte)
        && all(after, is_host_byte)
        && matches!(after.first(), None | Some(b':'))
}

/// Whether these bytes are a valid authority of a target: a host as in [`is_host`], after optional
/// user information, which is not checked.
pub fn is_authority(bytes: &[u8]) -> bool {
    let start = memchr::memrchr(b'@', bytes).map_or(0, |at| at + 1);
    is_host(&bytes[start..])
}

/// Splits `[user@]host[:port]` into host and port (without the colon); the user is dropped. The
/// port is what follows the last colon, a number or not. `None` when a bracket is not closed, or
/// followed by something other than a port.
pub fn parse_authority(authority: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let start = memchr::memrchr(b'@', authority).map_or(0, |at| at + 1);
    let rest = &authority[start..];
    let host_len = if rest.first() == Some(&b'[') {
        memchr::memchr(b']', rest)? + 1
    } else {
        memchr::memrchr(b':', rest).unwrap_or(rest.len())
    };
    let (host, after) = rest.split_at(host_len);
    match after {
        [] => Some((host, None)),
        [b':', port @ ..] => Some((host, Some(port))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_has_a_name_and_may_have_a_version() {
        for valid in ["websocket", "foo/1.0", "h2c"] {
            assert!(is_upgrade_protocol(valid.as_bytes()), "{valid}");
        }
        for invalid in ["", "a/", "/1", "a/1/2", "a b", "a,b", " a"] {
            assert!(!is_upgrade_protocol(invalid.as_bytes()), "{invalid}");
        }
    }
}
