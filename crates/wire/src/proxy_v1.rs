//! PROXY protocol version 1: one line of text.
//!
//! Stricter than HAProxy 2.6, which accepts `1.2.3`, `01.2.3.4` and port 65536: section 2.1 forbids
//! them, and two readers that parse an address differently open a way around an access rule. More
//! lenient in one case: text after `UNKNOWN ` is ignored, as the same section requires.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::proxy_header::{
    Addresses, ProxyCommand, ProxyHeader, ProxyHeaderError, ProxyHeaderParse, ProxyTransport, Tlvs,
};

/// The longest line with its CRLF, in bytes (section 2.1, worst case).
pub const HEADER_BYTES_MAX: usize = 107;

/// How many bytes are needed to recognise the version (section 2.2).
pub const HEADER_BYTES_MIN: usize = 8;

/// Parses a version 1 header at the beginning of `input`.
///
/// # Errors
/// As soon as `input` cannot be the beginning of a header.
pub fn parse(input: &[u8]) -> Result<ProxyHeaderParse<'_>, ProxyHeaderError> {
    let known = input.len().min(SIGNATURE.len());
    if input[..known] != SIGNATURE[..known] {
        return Err(ProxyHeaderError::Signature);
    }
    let window = &input[..input.len().min(HEADER_BYTES_MAX)];
    let Some(end) = window.iter().position(|&b| b == b'\r' || b == b'\n') else {
        return incomplete(window.len(), HEADER_BYTES_MIN.max(window.len() + 2));
    };
    if window[end] == b'\n' {
        return Err(ProxyHeaderError::Signature);
    }
    match window.get(end + 1) {
        None => return incomplete(window.len(), window.len() + 1),
        Some(b'\n') => {}
        Some(_) => return Err(ProxyHeaderError::Signature),
    }
    let line = window[..end]
        .strip_prefix(SIGNATURE)
        .ok_or(ProxyHeaderError::Signature)?;
    let header = ProxyHeader {
        version: 1,
        command: ProxyCommand::Proxy,
        addresses: addresses(line)?,
        tlvs: Tlvs::default(),
    };
    Ok(ProxyHeaderParse::Complete {
        header,
        bytes: end + 2,
    })
}

fn incomplete<'a>(
    bytes_have: usize,
    bytes_least: usize,
) -> Result<ProxyHeaderParse<'a>, ProxyHeaderError> {
    if bytes_have >= HEADER_BYTES_MAX {
        return Err(ProxyHeaderError::TooLong);
    }
    Ok(ProxyHeaderParse::Incomplete {
        bytes_needed: bytes_least - bytes_have,
    })
}

fn addresses(line: &[u8]) -> Result<Addresses<'static>, ProxyHeaderError> {
    if line == UNKNOWN || line.starts_with(b"UNKNOWN ") {
        return Ok(Addresses::Unknown);
    }
    let line = std::str::from_utf8(line).map_err(|_| ProxyHeaderError::Address)?;
    let mut words = line.split(' ');
    let (Some(family), Some(source), Some(destination), Some(from), Some(to), None) = (
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
    ) else {
        return Err(ProxyHeaderError::Address);
    };
    let (source, destination) = match family {
        "TCP4" => (v4(source)?, v4(destination)?),
        "TCP6" => (v6(source)?, v6(destination)?),
        _ => return Err(ProxyHeaderError::Family),
    };
    Ok(Addresses::Ip {
        transport: ProxyTransport::Stream,
        source: SocketAddr::new(source, port(from)?),
        destination: SocketAddr::new(destination, port(to)?),
    })
}

fn v4(word: &str) -> Result<IpAddr, ProxyHeaderError> {
    // The standard parser rejects leading zeroes and missing parts, as it must.
    let address: Ipv4Addr = word.parse().map_err(|_| ProxyHeaderError::Address)?;
    Ok(IpAddr::V4(address))
}

fn v6(word: &str) -> Result<IpAddr, ProxyHeaderError> {
    let address: Ipv6Addr = word.parse().map_err(|_| ProxyHeaderError::Address)?;
    Ok(IpAddr::V6(address))
}

fn port(word: &str) -> Result<u16, ProxyHeaderError> {
    let digits = word.bytes().all(|b| b.is_ascii_digit());
    if !digits || (word.len() > 1 && word.starts_with('0')) {
        return Err(ProxyHeaderError::Address);
    }
    word.parse().map_err(|_| ProxyHeaderError::Address)
}

const SIGNATURE: &[u8] = b"PROXY ";
const UNKNOWN: &[u8] = b"UNKNOWN";

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(input: &[u8]) -> Result<Option<(String, String)>, ProxyHeaderError> {
        match parse(input)? {
            ProxyHeaderParse::Complete { header, bytes } => {
                assert_eq!(bytes, input.len());
                Ok(header
                    .endpoints()
                    .map(|(a, b)| (a.to_string(), b.to_string())))
            }
            ProxyHeaderParse::Incomplete { .. } => panic!("incomplete: {input:?}"),
        }
    }

    #[test]
    fn good_lines() {
        let some = |a: &str, b: &str| Ok(Some((a.to_owned(), b.to_owned())));
        assert_eq!(
            ends(b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n"),
            some("192.168.0.1:56324", "192.168.0.11:443")
        );
        assert_eq!(
            ends(b"PROXY TCP4 1.2.3.4 5.6.7.8 0 65535\r\n"),
            some("1.2.3.4:0", "5.6.7.8:65535")
        );
        assert_eq!(
            ends(b"PROXY TCP6 ::1 2001:db8::2 11 22\r\n"),
            some("[::1]:11", "[2001:db8::2]:22")
        );
        assert_eq!(
            ends(b"PROXY TCP6 ::FFFF:1.2.3.4 2001:DB8::2 11 22\r\n"),
            some("[::ffff:1.2.3.4]:11", "[2001:db8::2]:22")
        );
        assert_eq!(ends(b"PROXY UNKNOWN\r\n"), Ok(None));
        assert_eq!(ends(b"PROXY UNKNOWN abc def\r\n"), Ok(None));
    }

    #[test]
    fn bad_lines() {
        for line in [
            &b"PROXY TCP4 01.2.3.4 5.6.7.8 11 22\r\n"[..],
            b"PROXY TCP4 1.2.3 5.6.7.8 11 22\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 011 22\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 11 65536\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 +1 22\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8  22\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 11\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 11 22 \r\n",
            b"PROXY TCP4 1.2.3.4  5.6.7.8 11 22\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 11 22 xx\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 11 22\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 11 22\r\r\n",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 11 2\xff\r\n",
            b"PROXY TCP4 ::1 ::2 11 22\r\n",
            b"PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n",
            b"PROXY TCP6 fe80::1%eth0 ::2 1 2\r\n",
            b"PROXY UDP4 1.2.3.4 5.6.7.8 11 22\r\n",
            b"PROXY UNIX a b\r\n",
            b"PROXY UNKNOWNx\r\n",
            b"PROXY UNKNOWN a\rb\r\n",
            b"PROXY UNKNOWN a\nb\r\n",
            b"PROXY\r\n",
            b"proxy TCP4 1.2.3.4 5.6.7.8 11 22\r\n",
        ] {
            assert!(parse(line).is_err(), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn the_length_is_bounded_at_107_bytes() {
        let mut line = b"PROXY UNKNOWN ".to_vec();
        line.resize(105, b'f');
        assert!(matches!(
            parse(&line),
            Ok(ProxyHeaderParse::Incomplete { .. })
        ));
        let fits = [&line[..], b"\r\n"].concat();
        assert!(matches!(
            parse(&fits),
            Ok(ProxyHeaderParse::Complete { bytes: 107, .. })
        ));
        let long = [&line[..], b"f\r\n"].concat();
        assert_eq!(parse(&long[..107]), Err(ProxyHeaderError::TooLong));
        assert_eq!(parse(&long), Err(ProxyHeaderError::TooLong));
    }

    #[test]
    fn any_beginning_is_incomplete_and_never_asks_for_data() {
        let line = b"PROXY TCP6 ::1 2001:db8::2 11 22\r\n";
        for cut in 0..line.len() {
            match parse(&line[..cut]) {
                Ok(ProxyHeaderParse::Incomplete { bytes_needed }) => {
                    assert!(bytes_needed > 0 && cut + bytes_needed <= line.len());
                }
                other => panic!("{cut}: {other:?}"),
            }
        }
    }
}
