//! The bytes of texts in lines: which are escaped, and the parts of a request line.

use super::AliasId;

pub(super) const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// What stands before the first NUL: HAProxy ends texts there.
pub(super) fn until_nul(bytes: &[u8]) -> &[u8] {
    memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end])
}

pub(super) fn hex_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.push(UPPER[usize::from(byte >> 4)]);
        out.push(UPPER[usize::from(byte & 15)]);
    }
}

pub(super) fn hex_number(out: &mut Vec<u8>, number: u64, digits: usize) {
    let wide = (64 - number.leading_zeros() as usize)
        .div_ceil(4)
        .max(digits);
    for nibble in (0..wide).rev() {
        out.push(UPPER[(number >> (4 * nibble) & 15) as usize]);
    }
}

/// The part of a request line that an alias names; `<BADREQ>` where it is missing. A line that was cut
/// before its version has the one of lines without a version, as in HAProxy.
pub(super) fn line_part(line: &[u8], id: AliasId) -> &[u8] {
    const BAD: &[u8] = b"<BADREQ>";
    const NO_VERSION: &[u8] = b"HTTP/0.9";
    if id == AliasId::RequestLine {
        return line;
    }
    let Some(first) = memchr::memchr(b' ', line) else {
        return if id == AliasId::Query { b"" } else { BAD };
    };
    let last = memchr::memrchr(b' ', line).filter(|last| *last > first);
    let uri = &line[first + 1..last.unwrap_or(line.len())];
    let mark = memchr::memchr(b'?', uri);
    match id {
        AliasId::Method => &line[..first],
        AliasId::Uri => uri,
        AliasId::Path => &uri[..mark.unwrap_or(uri.len())],
        AliasId::PathOnly => {
            let path = &uri[..mark.unwrap_or(uri.len())];
            match memchr::memmem::find(path, b"://") {
                Some(scheme) if !path.starts_with(b"/") => {
                    let rest = &path[scheme + 3..];
                    &rest[memchr::memchr(b'/', rest).unwrap_or(rest.len())..]
                }
                _ if path.starts_with(b"/") => path,
                // An authority (CONNECT), or an asterisk.
                _ => b"",
            }
        }
        AliasId::Query => &uri[mark.unwrap_or(uri.len())..],
        AliasId::HttpVersion => last
            .map(|last| &line[last + 1..])
            .filter(|version| !version.is_empty())
            .unwrap_or(NO_VERSION),
        _ => line,
    }
}

/// Bytes that stand behind a backslash where that is asked for.
#[inline]
pub(super) fn is_escaped(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | b']')
}

/// Bytes that a header made by rules cannot carry: control characters but the tab
/// (RFC 9110 section 5.5).
#[inline]
pub(super) fn is_refused_in_http(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\t'
}

/// Bytes that would make a logged URI ambiguous.
#[inline]
pub(super) fn is_refused_in_uri(byte: u8) -> bool {
    !(0x20..0x7f).contains(&byte) || matches!(byte, b'"' | b'#')
}

/// Bytes that would make a logged header ambiguous.
#[inline]
pub(super) fn is_refused_in_header(byte: u8) -> bool {
    !(0x20..0x7f).contains(&byte) || matches!(byte, b'"' | b'#' | b'{' | b'|' | b'}')
}
