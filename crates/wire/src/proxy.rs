//! The PROXY protocol: the real client address of a connection.
//!
//! A proxy in front of us sends it in a header before the first byte of data, in a text format
//! (version 1) or a binary format (version 2); see the protocol's text, `proxy-protocol.txt`.
//! Parsing is incremental and tolerates any fragmentation, as section 2 recommends, and fails at
//! the first byte that cannot belong to a header.

use crate::proxy_header::{ProxyHeaderError, ProxyHeaderParse};
use crate::{proxy_v1, proxy_v2};

/// Parses a header of either version at the beginning of `input`.
///
/// `header_bytes_max` limits what a version 2 header may announce; a listener passes the size of
/// its buffer.
///
/// # Errors
/// As soon as `input` cannot be the beginning of a header.
pub fn parse(
    input: &[u8],
    header_bytes_max: usize,
) -> Result<ProxyHeaderParse<'_>, ProxyHeaderError> {
    match input.first() {
        None => Ok(ProxyHeaderParse::Incomplete {
            bytes_needed: proxy_v1::HEADER_BYTES_MIN,
        }),
        Some(b'P') => proxy_v1::parse(input),
        Some(_) => proxy_v2::parse(input, header_bytes_max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy_header::ProxyCommand;

    #[test]
    fn the_version_is_told_from_the_first_byte() {
        let Ok(ProxyHeaderParse::Complete { header, bytes }) = parse(b"PROXY UNKNOWN\r\nx", 536)
        else {
            panic!("a version 1 header");
        };
        assert_eq!((header.version, bytes), (1, 15));
        assert_eq!(header.endpoints(), None);
        let v2 = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
        let Ok(ProxyHeaderParse::Complete { header, bytes }) = parse(v2, 536) else {
            panic!("a version 2 header");
        };
        assert_eq!((header.version, bytes), (2, 16));
        assert_eq!(header.command, ProxyCommand::Local);
        assert_eq!(
            parse(b"GET / HTTP/1.1\r\n", 536),
            Err(ProxyHeaderError::Signature)
        );
        assert_eq!(
            parse(b"", 536),
            Ok(ProxyHeaderParse::Incomplete { bytes_needed: 8 })
        );
    }
}
