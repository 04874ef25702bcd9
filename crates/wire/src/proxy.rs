//! The PROXY protocol: the real client address of a connection.
//!
//! A proxy in front of us sends it in a header before the first byte of data, in a text format
//! (version 1) or a binary format (version 2); see the protocol's text, `proxy-protocol.txt`.
//! Parsing is incremental and tolerates any fragmentation, as section 2 recommends, and fails at
//! the first byte that cannot belong to a header.

use std::fmt;
use std::net::SocketAddr;

use crate::proxy_v1;
use crate::proxy_v2::{self, Tlvs};

/// The result of parsing the bytes received so far.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed<'a> {
    /// Incomplete: at least `bytes_needed` more bytes are missing.
    Incomplete {
        /// How many bytes are missing at least; never 0. A reader that must not read past the
        /// header reads at most this many.
        bytes_needed: usize,
    },
    /// A complete header.
    Complete {
        /// Its content.
        header: Header<'a>,
        /// Its length: data begins there.
        bytes: usize,
    },
}

/// One PROXY protocol header.
#[derive(Clone, Debug, PartialEq)]
pub struct Header<'a> {
    /// 1 or 2.
    pub version: u8,
    /// Whether the connection is relayed for another one.
    pub command: Command,
    /// The addresses of the relayed connection.
    pub addresses: Addresses<'a>,
    /// The other values of version 2; empty in version 1 and for [`Command::Local`], where they
    /// must be ignored.
    pub tlvs: Tlvs<'a>,
}

impl Header<'_> {
    /// Source and destination that replace those of the socket, or `None` when the socket's own are
    /// to be used (LOCAL, UNKNOWN, families and transports that a TCP listener cannot have).
    pub fn endpoints(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self.addresses {
            Addresses::Ip {
                transport: Transport::Stream,
                source,
                destination,
            } => Some((source, destination)),
            _ => None,
        }
    }
}

/// The reason for the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Command {
    /// The proxy's own connection, for example a health check.
    Local,
    /// Relayed for a client.
    Proxy,
}

/// The addresses of the relayed connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Addresses<'a> {
    /// Unknown: the socket's own addresses are used.
    Unknown,
    /// IPv4 or IPv6.
    Ip {
        /// TCP or UDP.
        transport: Transport,
        /// The client's address.
        source: SocketAddr,
        /// The address it connected to.
        destination: SocketAddr,
    },
    /// Unix sockets: names without their trailing zeroes; an abstract name begins with a zero.
    Unix {
        /// Stream or datagram.
        transport: Transport,
        /// The client's name; empty if unnamed.
        source: &'a [u8],
        /// The name it connected to.
        destination: &'a [u8],
    },
}

/// The transport of the relayed connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transport {
    /// `SOCK_STREAM`.
    Stream,
    /// `SOCK_DGRAM`.
    Datagram,
}

/// Why bytes are not a PROXY protocol header. It is the sender's fault, and the connection must be
/// closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Error {
    /// An address that does not fit its family, or is missing.
    Address,
    /// An unknown command of version 2.
    Command,
    /// The checksum is wrong, or is not four bytes long.
    Checksum,
    /// An unknown address family or transport of version 2.
    Family,
    /// The bytes do not begin with a header of either version.
    Signature,
    /// Too long: more than 107 bytes in version 1, or than the caller's limit in version 2.
    TooLong,
    /// The block is shorter than the addresses or values it announces.
    Truncated,
    /// A value that is longer than allowed for its type.
    Value,
    /// A binary header with a version other than 2.
    Version,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Address => "invalid address",
            Self::Checksum => "wrong checksum",
            Self::Command => "unknown command",
            Self::Family => "unknown family or transport",
            Self::Signature => "not a PROXY protocol header",
            Self::TooLong => "header too long",
            Self::Truncated => "header shorter than what it announces",
            Self::Value => "value too long for its type",
            Self::Version => "unknown version",
        })
    }
}

impl std::error::Error for Error {}

/// Parses a header of either version at the beginning of `input`.
///
/// `header_bytes_max` limits what a version 2 header may announce; a listener passes the size of
/// its buffer.
///
/// # Errors
/// As soon as `input` cannot be the beginning of a header.
pub fn parse(input: &[u8], header_bytes_max: usize) -> Result<Parsed<'_>, Error> {
    match input.first() {
        None => Ok(Parsed::Incomplete {
            bytes_needed: proxy_v1::HEADER_BYTES_MIN,
        }),
        Some(b'P') => proxy_v1::parse(input),
        Some(_) => proxy_v2::parse(input, header_bytes_max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_told_from_the_first_byte() {
        let Ok(Parsed::Complete { header, bytes }) = parse(b"PROXY UNKNOWN\r\nx", 536) else {
            panic!("a version 1 header");
        };
        assert_eq!((header.version, bytes), (1, 15));
        assert_eq!(header.endpoints(), None);
        let v2 = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
        let Ok(Parsed::Complete { header, bytes }) = parse(v2, 536) else {
            panic!("a version 2 header");
        };
        assert_eq!((header.version, bytes), (2, 16));
        assert_eq!(header.command, Command::Local);
        assert_eq!(parse(b"GET / HTTP/1.1\r\n", 536), Err(Error::Signature));
        assert_eq!(parse(b"", 536), Ok(Parsed::Incomplete { bytes_needed: 8 }));
    }
}
