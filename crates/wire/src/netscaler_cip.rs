//! The NetScaler Client IP insertion protocol: the real client address of a connection.
//!
//! A NetScaler in front of us sends, before the first byte of data, a magic number that both sides
//! agree on, a length, and the IP and TCP headers of the client's own packet; see
//! `netscaler-client-ip-insertion-protocol.txt` of HAProxy. The standard form (NetScaler 10.5 and
//! later) has a type and a second length between the length and the IP header, the legacy form has
//! not. Parsing is incremental and tolerates any fragmentation.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes after which the form is known: the first byte of an IP header, or the type and the second
/// length.
const FORM_BYTES: usize = 12;
const LEGACY_HEAD_BYTES: usize = 8;
const STANDARD_HEAD_BYTES: usize = 12;
const IPV4_BYTES_MIN: usize = 20;
const IPV6_BYTES: usize = 40;
/// The ports are all that is read of a TCP header.
const PORTS_BYTES: usize = 4;
const TCP: u8 = 6;

/// The result of parsing the bytes received so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CipParse {
    /// Incomplete: at least `bytes_needed` more bytes are missing.
    Incomplete {
        /// How many bytes are missing at least; never 0. A reader that must not read past the
        /// header reads at most this many.
        bytes_needed: usize,
    },
    /// A complete header.
    Complete {
        /// The client's address.
        source: SocketAddr,
        /// The address it connected to.
        destination: SocketAddr,
        /// The header's length: data begins there.
        bytes: usize,
    },
}

/// Why bytes are not such a header. It is the sender's fault, and the connection must be closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProxyHeaderError {
    /// Another magic number than the one agreed on.
    Magic,
    /// Neither form, or headers of other protocols than IP and TCP.
    Protocol,
    /// The lengths do not hold the headers, or exceed the caller's limit.
    Length,
}

impl fmt::Display for ProxyHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Magic => "wrong magic number",
            Self::Protocol => "unknown protocol",
            Self::Length => "lengths that do not fit",
        })
    }
}

impl std::error::Error for ProxyHeaderError {}

/// Parses a header at the beginning of `input`.
///
/// `header_bytes_max` limits what a header may announce; a listener passes the size of its buffer.
///
/// # Errors
/// As soon as `input` cannot be the beginning of a header.
pub fn parse(
    input: &[u8],
    magic: u32,
    header_bytes_max: usize,
) -> Result<CipParse, ProxyHeaderError> {
    let magic = magic.to_be_bytes();
    let known = input.len().min(magic.len());
    if input[..known] != magic[..known] {
        return Err(ProxyHeaderError::Magic);
    }
    let Some(form) = input.first_chunk::<FORM_BYTES>() else {
        return Ok(CipParse::Incomplete {
            bytes_needed: FORM_BYTES - input.len(),
        });
    };
    let (start, length) = if matches!(form[8] >> 4, 4 | 6) {
        let length = u32::from_be_bytes([form[4], form[5], form[6], form[7]]);
        (
            LEGACY_HEAD_BYTES,
            usize::try_from(length).unwrap_or(usize::MAX),
        )
    } else if form[8] >> 4 == 0 {
        // The type, which is 1; as HAProxy, we take the standard form by its first bits alone.
        let length = u16::from_be_bytes([form[10], form[11]]);
        (STANDARD_HEAD_BYTES, usize::from(length))
    } else {
        return Err(ProxyHeaderError::Protocol);
    };
    if length < IPV4_BYTES_MIN + PORTS_BYTES || length > header_bytes_max.saturating_sub(start) {
        return Err(ProxyHeaderError::Length);
    }
    let bytes = start + length;
    let Some(headers) = input.get(start..bytes) else {
        return Ok(CipParse::Incomplete {
            bytes_needed: bytes - input.len(),
        });
    };
    let (source, destination, tcp) = addresses(headers)?;
    let ports = tcp
        .first_chunk::<PORTS_BYTES>()
        .ok_or(ProxyHeaderError::Length)?;
    Ok(CipParse::Complete {
        source: SocketAddr::new(source, u16::from_be_bytes([ports[0], ports[1]])),
        destination: SocketAddr::new(destination, u16::from_be_bytes([ports[2], ports[3]])),
        bytes,
    })
}

/// Source and destination of an IP header, and what follows it.
fn addresses(headers: &[u8]) -> Result<(IpAddr, IpAddr, &[u8]), ProxyHeaderError> {
    let version = headers.first().ok_or(ProxyHeaderError::Length)? >> 4;
    match version {
        4 => {
            let (fixed, _) = headers
                .split_first_chunk::<IPV4_BYTES_MIN>()
                .ok_or(ProxyHeaderError::Length)?;
            let header_bytes = usize::from(fixed[0] & 0x0f) * 4;
            if header_bytes < IPV4_BYTES_MIN {
                return Err(ProxyHeaderError::Length);
            }
            if fixed[9] != TCP {
                return Err(ProxyHeaderError::Protocol);
            }
            let rest = headers
                .get(header_bytes..)
                .ok_or(ProxyHeaderError::Length)?;
            let address = |at: usize| {
                IpAddr::V4(Ipv4Addr::new(
                    fixed[at],
                    fixed[at + 1],
                    fixed[at + 2],
                    fixed[at + 3],
                ))
            };
            Ok((address(12), address(16), rest))
        }
        6 => {
            let (fixed, rest) = headers
                .split_first_chunk::<IPV6_BYTES>()
                .ok_or(ProxyHeaderError::Length)?;
            if fixed[6] != TCP {
                return Err(ProxyHeaderError::Protocol);
            }
            let address = |at: usize| {
                let mut octets = [0; 16];
                octets.copy_from_slice(&fixed[at..at + 16]);
                IpAddr::V6(Ipv6Addr::from(octets))
            };
            Ok((address(8), address(24), rest))
        }
        _ => Err(ProxyHeaderError::Protocol),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: u32 = 0x1234_5678;

    fn tcp() -> Vec<u8> {
        let mut header = vec![0; 20];
        header[..4].copy_from_slice(&[0x03, 0xe8, 0x00, 0x50]);
        header
    }

    fn ipv4() -> Vec<u8> {
        let mut headers = vec![0; IPV4_BYTES_MIN];
        headers[0] = 0x45;
        headers[9] = TCP;
        headers[12..].copy_from_slice(&[192, 0, 2, 1, 198, 51, 100, 2]);
        headers.extend(tcp());
        headers
    }

    fn ipv6() -> Vec<u8> {
        let mut headers = vec![0; IPV6_BYTES];
        headers[0] = 0x60;
        headers[6] = TCP;
        headers[8..10].copy_from_slice(&[0x20, 0x01]);
        headers[23] = 1;
        headers[24..26].copy_from_slice(&[0x20, 0x01]);
        headers[39] = 2;
        headers.extend(tcp());
        headers
    }

    fn legacy(headers: &[u8]) -> Vec<u8> {
        let length = u32::try_from(headers.len()).unwrap();
        [&MAGIC.to_be_bytes(), &length.to_be_bytes(), headers].concat()
    }

    fn standard(headers: &[u8]) -> Vec<u8> {
        let length = u16::try_from(headers.len()).unwrap();
        let total = u32::from(length) + 12;
        [
            &MAGIC.to_be_bytes()[..],
            &total.to_be_bytes(),
            &1_u16.to_be_bytes(),
            &length.to_be_bytes(),
            headers,
        ]
        .concat()
    }

    #[test]
    fn both_forms_tell_addresses_of_both_families() {
        let v4 = ("192.0.2.1:1000", "198.51.100.2:80");
        let v6 = ("[2001::1]:1000", "[2001::2]:80");
        for (header, (source, destination)) in [
            (legacy(&ipv4()), v4),
            (standard(&ipv4()), v4),
            (legacy(&ipv6()), v6),
            (standard(&ipv6()), v6),
        ] {
            let expected = CipParse::Complete {
                source: source.parse().unwrap(),
                destination: destination.parse().unwrap(),
                bytes: header.len(),
            };
            let more = [&header[..], b"GET /"].concat();
            assert_eq!(parse(&more, MAGIC, 1024), Ok(expected));
            for cut in 0..header.len() {
                let Ok(CipParse::Incomplete { bytes_needed }) = parse(&header[..cut], MAGIC, 1024)
                else {
                    panic!("{cut} of {}", header.len());
                };
                assert!(bytes_needed > 0 && cut + bytes_needed <= header.len());
            }
        }
    }

    #[test]
    fn options_of_the_ip_header_are_passed_over() {
        let mut headers = ipv4();
        headers[0] = 0x46;
        headers.splice(20..20, [1, 1, 1, 0]);
        let Ok(CipParse::Complete { source, .. }) = parse(&legacy(&headers), MAGIC, 1024) else {
            panic!("a header");
        };
        assert_eq!(source.port(), 1000);
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let bad = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut header = standard(&ipv4());
            change(&mut header);
            parse(&header, MAGIC, 1024).unwrap_err()
        };
        assert_eq!(parse(b"GET", MAGIC, 1024), Err(ProxyHeaderError::Magic));
        assert_eq!(bad(&|header| header[3] = 0), ProxyHeaderError::Magic);
        assert_eq!(bad(&|header| header[8] = 0x50), ProxyHeaderError::Protocol);
        assert_eq!(bad(&|header| header[12] = 0x55), ProxyHeaderError::Protocol);
        assert_eq!(bad(&|header| header[21] = 17), ProxyHeaderError::Protocol);
        assert_eq!(bad(&|header| header[11] = 23), ProxyHeaderError::Length);
        assert_eq!(bad(&|header| header[12] = 0x44), ProxyHeaderError::Length);
        assert_eq!(bad(&|header| header[12] = 0x4f), ProxyHeaderError::Length);
        assert_eq!(bad(&|header| header[10] = 0xff), ProxyHeaderError::Length);
        let mut huge = legacy(&ipv4());
        huge[4] = 0xff;
        assert_eq!(parse(&huge, MAGIC, 1024), Err(ProxyHeaderError::Length));
        assert_eq!(
            parse(&legacy(&ipv4()), MAGIC, 40),
            Err(ProxyHeaderError::Length)
        );
        let mut short = ipv6();
        short.truncate(43);
        assert_eq!(
            parse(&standard(&short), MAGIC, 1024),
            Err(ProxyHeaderError::Length)
        );
    }
}
