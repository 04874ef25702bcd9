//! A PROXY protocol header: its addresses, its values, and why bytes are none.

use std::fmt;
use std::net::SocketAddr;

/// The result of parsing the bytes received so far.
#[derive(Clone, Debug, PartialEq)]
pub enum ProxyHeaderParse<'a> {
    /// Incomplete: at least `bytes_needed` more bytes are missing.
    Incomplete {
        /// How many bytes are missing at least; never 0. A reader that must not read past the
        /// header reads at most this many.
        bytes_needed: usize,
    },
    /// A complete header.
    Complete {
        /// Its content.
        header: ProxyHeader<'a>,
        /// Its length: data begins there.
        bytes: usize,
    },
}

/// One PROXY protocol header.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxyHeader<'a> {
    /// 1 or 2.
    pub version: u8,
    /// Whether the connection is relayed for another one.
    pub command: ProxyCommand,
    /// The addresses of the relayed connection.
    pub addresses: Addresses<'a>,
    /// The other values of version 2; empty in version 1 and for [`ProxyCommand::Local`], where they
    /// must be ignored.
    pub tlvs: Tlvs<'a>,
}

impl ProxyHeader<'_> {
    /// Source and destination that replace those of the socket, or `None` when the socket's own are
    /// to be used (LOCAL, UNKNOWN, families and transports that a TCP listener cannot have).
    pub fn endpoints(&self) -> Option<(SocketAddr, SocketAddr)> {
        match self.addresses {
            Addresses::Ip {
                transport: ProxyTransport::Stream,
                source,
                destination,
            } => Some((source, destination)),
            _ => None,
        }
    }
}

/// The reason for the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProxyCommand {
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
        transport: ProxyTransport,
        /// The client's address.
        source: SocketAddr,
        /// The address it connected to.
        destination: SocketAddr,
    },
    /// Unix sockets: names without their trailing zeroes; an abstract name begins with a zero.
    Unix {
        /// Stream or datagram.
        transport: ProxyTransport,
        /// The client's name; empty if unnamed.
        source: &'a [u8],
        /// The name it connected to.
        destination: &'a [u8],
    },
}

/// The transport of the relayed connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProxyTransport {
    /// `SOCK_STREAM`.
    Stream,
    /// `SOCK_DGRAM`.
    Datagram,
}

/// Why bytes are not a PROXY protocol header. It is the sender's fault, and the connection must be
/// closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProxyHeaderError {
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

impl fmt::Display for ProxyHeaderError {
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

impl std::error::Error for ProxyHeaderError {}

/// Types of values (section 2.2).
#[expect(missing_docs, reason = "the names of section 2.2")]
pub mod kind {
    pub const ALPN: u8 = 0x01;
    pub const AUTHORITY: u8 = 0x02;
    pub const CRC32C: u8 = 0x03;
    pub const NOOP: u8 = 0x04;
    pub const UNIQUE_ID: u8 = 0x05;
    pub const SSL: u8 = 0x20;
    pub const SSL_VERSION: u8 = 0x21;
    pub const SSL_CN: u8 = 0x22;
    pub const SSL_CIPHER: u8 = 0x23;
    pub const SSL_SIG_ALG: u8 = 0x24;
    pub const SSL_KEY_ALG: u8 = 0x25;
    pub const NETNS: u8 = 0x30;
}

/// The values of a version 2 header, which were checked when the header was parsed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tlvs<'a> {
    /// One value after the other; their structure was checked.
    pub(crate) bytes: &'a [u8],
}

impl<'a> Tlvs<'a> {
    /// All values in order, with their types, including NOOP.
    pub fn iter(&self) -> TlvIter<'a> {
        TlvIter { rest: self.bytes }
    }

    /// The first value of a type.
    pub fn find(&self, kind: u8) -> Option<&'a [u8]> {
        self.find_all(kind).next()
    }

    /// All values of a type, in order.
    pub fn find_all(&self, kind: u8) -> impl Iterator<Item = &'a [u8]> {
        let of_kind = self.iter().filter(move |(found, _)| *found == kind);
        of_kind.map(|(_, value)| value)
    }

    /// The first value of a type from a byte on, which is 0 or the end of another value, and its end.
    pub fn find_from(&self, kind: u8, start: usize) -> Option<(&'a [u8], usize)> {
        let mut rest = TlvIter {
            rest: self.bytes.get(start..)?,
        };
        let (_, value) = rest.find(|(found, _)| *found == kind)?;
        Some((value, self.bytes.len() - rest.rest.len()))
    }

    /// The bytes of them all.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The values that [`Self::as_bytes`] gave.
    pub fn of_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The host name that the client requested.
    pub fn authority(&self) -> Option<&'a [u8]> {
        self.find(kind::AUTHORITY)
    }

    /// The identifier of the connection.
    pub fn unique_id(&self) -> Option<&'a [u8]> {
        self.find(kind::UNIQUE_ID)
    }

    /// The name of the network namespace.
    pub fn namespace(&self) -> Option<&'a [u8]> {
        self.find(kind::NETNS)
    }

    /// The facts of the TLS layer, if the value has the format of section 2.2.6.
    pub fn ssl(&self) -> Option<Ssl<'a>> {
        Ssl::parse(self.find(kind::SSL)?)
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// The values of a header or of an SSL value, one after the other.
#[derive(Clone, Debug)]
pub struct TlvIter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for TlvIter<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (value_kind, value, rest) = split(self.rest).ok()??;
        self.rest = rest;
        Some((value_kind, value))
    }
}

/// The value of type SSL (section 2.2.6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ssl<'a> {
    /// Bits: 1 the client used TLS, 2 it sent a certificate over this connection, 4 in this
    /// session.
    pub client: u8,
    /// 0 if a certificate was sent and verified.
    pub verify: u32,
    values: Tlvs<'a>,
}

impl<'a> Ssl<'a> {
    fn parse(value: &'a [u8]) -> Option<Self> {
        let (fixed, rest) = value.split_first_chunk::<5>()?;
        check_structure(rest).ok()?;
        Some(Self {
            client: fixed[0],
            verify: u32::from_be_bytes([fixed[1], fixed[2], fixed[3], fixed[4]]),
            values: Tlvs { bytes: rest },
        })
    }

    /// The version of TLS, such as `TLSv1.3`.
    pub fn version(&self) -> Option<&'a [u8]> {
        self.values.find(kind::SSL_VERSION)
    }

    /// The common name of the client's certificate.
    pub fn common_name(&self) -> Option<&'a [u8]> {
        self.values.find(kind::SSL_CN)
    }

    /// All values in order.
    pub fn values(&self) -> Tlvs<'a> {
        self.values
    }
}

fn check_structure(mut rest: &[u8]) -> Result<(), ProxyHeaderError> {
    while let Some((_, _, after)) = split(rest)? {
        rest = after;
    }
    Ok(())
}

/// Type, value and the rest; `None` at the end.
pub(crate) type Split<'a> = Option<(u8, &'a [u8], &'a [u8])>;

/// Splits off the first value.
///
/// # Errors
/// [`ProxyHeaderError::Truncated`].
pub(crate) fn split(bytes: &[u8]) -> Result<Split<'_>, ProxyHeaderError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (head, rest) = bytes
        .split_first_chunk::<3>()
        .ok_or(ProxyHeaderError::Truncated)?;
    let length = usize::from(u16::from_be_bytes([head[1], head[2]]));
    let (value, rest) = rest
        .split_at_checked(length)
        .ok_or(ProxyHeaderError::Truncated)?;
    Ok(Some((head[0], value, rest)))
}
