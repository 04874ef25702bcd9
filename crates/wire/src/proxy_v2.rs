//! PROXY protocol version 2: a binary block.
//!
//! Families and transports that a TCP listener cannot have (UDP, unix, unspec) are parsed, and the
//! socket's own addresses are used, as section 2.2 allows; HAProxy 2.6 closes such connections.
//! Unassigned ones are refused.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::crc32c::crc32c_with_hole;
use crate::proxy_header::{
    Addresses, ProxyCommand, ProxyHeader, ProxyHeaderError, ProxyHeaderParse, ProxyTransport, Tlvs,
    kind, split,
};

/// The signature of every version 2 header.
pub const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The length of the fixed part.
pub const FIXED_BYTES: usize = 16;

/// The maximum length of a unique identifier (section 2.2.5).
pub const UNIQUE_ID_BYTES_MAX: usize = 128;

/// The maximum length of a host name in AUTHORITY, as in HAProxy.
pub const AUTHORITY_BYTES_MAX: usize = 255;

/// The maximum length of any value, as in HAProxy.
pub const VALUE_BYTES_MAX: usize = 1024;

/// The length of each of the two unix socket names.
pub(crate) const UNIX_NAME_BYTES: usize = 108;

/// Parses a version 2 header at the beginning of `input`. A header that
/// announces more than `header_bytes_max` bytes is refused before they arrive.
///
/// # Errors
/// As soon as `input` cannot be the beginning of a header.
pub fn parse(
    input: &[u8],
    header_bytes_max: usize,
) -> Result<ProxyHeaderParse<'_>, ProxyHeaderError> {
    let known = input.len().min(SIGNATURE.len());
    if input[..known] != SIGNATURE[..known] {
        return Err(ProxyHeaderError::Signature);
    }
    let command = match input.get(12) {
        Some(byte) if byte >> 4 != 2 => return Err(ProxyHeaderError::Version),
        Some(0x20) => Some(ProxyCommand::Local),
        Some(0x21) => Some(ProxyCommand::Proxy),
        Some(_) => return Err(ProxyHeaderError::Command),
        None => None,
    };
    let (Some(command), Some(fixed)) = (command, input.first_chunk::<FIXED_BYTES>()) else {
        return Ok(ProxyHeaderParse::Incomplete {
            bytes_needed: FIXED_BYTES - input.len(),
        });
    };
    let bytes = FIXED_BYTES + usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if bytes > header_bytes_max {
        return Err(ProxyHeaderError::TooLong);
    }
    let Some(block) = input.get(..bytes) else {
        return Ok(ProxyHeaderParse::Incomplete {
            bytes_needed: bytes - input.len(),
        });
    };
    let (addresses, tlvs) = match command {
        ProxyCommand::Local => (Addresses::Unknown, Tlvs::default()),
        ProxyCommand::Proxy => proxied(fixed[13], block)?,
    };
    let header = ProxyHeader {
        version: 2,
        command,
        addresses,
        tlvs,
    };
    Ok(ProxyHeaderParse::Complete { header, bytes })
}

fn proxied(family: u8, block: &[u8]) -> Result<(Addresses<'_>, Tlvs<'_>), ProxyHeaderError> {
    let transport = match family & 0x0f {
        0 => None,
        1 => Some(ProxyTransport::Stream),
        2 => Some(ProxyTransport::Datagram),
        _ => return Err(ProxyHeaderError::Family),
    };
    let body = &block[FIXED_BYTES..];
    let (address_bytes, addresses) = match family >> 4 {
        // For an unknown family the end of the addresses is not known, so all that follows is
        // skipped, values included.
        0 => return Ok((Addresses::Unknown, Tlvs::default())),
        1 => (12, v4(body, transport).ok_or(ProxyHeaderError::Truncated)?),
        2 => (36, v6(body, transport).ok_or(ProxyHeaderError::Truncated)?),
        3 => (
            2 * UNIX_NAME_BYTES,
            unix(body, transport).ok_or(ProxyHeaderError::Truncated)?,
        ),
        _ => return Err(ProxyHeaderError::Family),
    };
    let values = &body[address_bytes..];
    check_values(block, FIXED_BYTES + address_bytes)?;
    Ok((addresses, Tlvs { bytes: values }))
}

fn v4(body: &[u8], transport: Option<ProxyTransport>) -> Option<Addresses<'static>> {
    let (source, rest) = body.split_first_chunk::<4>()?;
    let (destination, rest) = rest.split_first_chunk::<4>()?;
    let (source_port, destination_port) = ports(rest)?;
    Some(ip(
        transport,
        SocketAddr::from((Ipv4Addr::from(*source), source_port)),
        SocketAddr::from((Ipv4Addr::from(*destination), destination_port)),
    ))
}

fn v6(body: &[u8], transport: Option<ProxyTransport>) -> Option<Addresses<'static>> {
    let (source, rest) = body.split_first_chunk::<16>()?;
    let (destination, rest) = rest.split_first_chunk::<16>()?;
    let (source_port, destination_port) = ports(rest)?;
    Some(ip(
        transport,
        SocketAddr::from((Ipv6Addr::from(*source), source_port)),
        SocketAddr::from((Ipv6Addr::from(*destination), destination_port)),
    ))
}

fn ports(bytes: &[u8]) -> Option<(u16, u16)> {
    let ports = bytes.first_chunk::<4>()?;
    Some((
        u16::from_be_bytes([ports[0], ports[1]]),
        u16::from_be_bytes([ports[2], ports[3]]),
    ))
}

fn ip(
    transport: Option<ProxyTransport>,
    source: SocketAddr,
    destination: SocketAddr,
) -> Addresses<'static> {
    match transport {
        Some(transport) => Addresses::Ip {
            transport,
            source,
            destination,
        },
        None => Addresses::Unknown,
    }
}

fn unix(body: &[u8], transport: Option<ProxyTransport>) -> Option<Addresses<'_>> {
    let (source, rest) = body.split_first_chunk::<UNIX_NAME_BYTES>()?;
    let destination = rest.first_chunk::<UNIX_NAME_BYTES>()?;
    Some(match transport {
        Some(transport) => Addresses::Unix {
            transport,
            source: name(source),
            destination: name(destination),
        },
        None => Addresses::Unknown,
    })
}

fn name(field: &[u8]) -> &[u8] {
    let end = field.iter().rposition(|&b| b != 0).map_or(0, |at| at + 1);
    &field[..end]
}

/// Checks the values that begin at `start` of `block`, and the checksum of the whole block if there
/// is one.
fn check_values(block: &[u8], start: usize) -> Result<(), ProxyHeaderError> {
    let mut rest = &block[start..];
    while let Some((value_kind, value, after)) = split(rest)? {
        match value_kind {
            kind::CRC32C => {
                let sum = value.first_chunk::<4>().filter(|_| value.len() == 4);
                let sum = u32::from_be_bytes(*sum.ok_or(ProxyHeaderError::Checksum)?);
                let hole = block.len() - after.len() - 4;
                if crc32c_with_hole(block, hole) != sum {
                    return Err(ProxyHeaderError::Checksum);
                }
            }
            kind::AUTHORITY if value.len() > AUTHORITY_BYTES_MAX => {
                return Err(ProxyHeaderError::Value);
            }
            kind::UNIQUE_ID if value.len() > UNIQUE_ID_BYTES_MAX => {
                return Err(ProxyHeaderError::Value);
            }
            _ if value.len() > VALUE_BYTES_MAX => return Err(ProxyHeaderError::Value),
            _ => {}
        }
        rest = after;
    }
    Ok(())
}

#[cfg(test)]
#[path = "proxy_v2_tests.rs"]
mod tests;
