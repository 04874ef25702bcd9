//! The PROXY header at the start of a connection (`accept-proxy`).

use std::cell::Cell;
use std::net::SocketAddr;

use ballast_wire::proxy::parse;
use ballast_wire::proxy_header::{ProxyHeaderError, ProxyHeaderParse, Tlvs};

use super::{EstablishedConnection, HandshakeError};
use crate::limits::HEADER_BYTES_FIRST;

/// The PROXY header of a client.
#[derive(Clone, Debug)]
pub struct ClientProxyHeader {
    /// Source and destination that replace the socket's; `None` keeps those.
    pub endpoints: Option<(SocketAddr, SocketAddr)>,
    /// Its other values.
    pub values: ProxyHeaderValues,
}

/// The values of a PROXY header of version 2; none in most headers.
#[derive(Clone, Debug, Default)]
pub struct ProxyHeaderValues(Box<[u8]>);

impl ProxyHeaderValues {
    /// The first value of a type from a byte on, which is 0 or the end of another value, and its end.
    #[must_use]
    pub fn find_from(&self, value_type: u8, start: usize) -> Option<(&[u8], usize)> {
        Tlvs::of_bytes(&self.0).find_from(value_type, start)
    }

    /// The host name that the sender's client asked for.
    #[must_use]
    pub fn authority(&self) -> Option<&[u8]> {
        Tlvs::of_bytes(&self.0).authority()
    }
}

/// Reads the header. `begun` is set with its first byte.
///
/// HAProxy reads once and refuses a header that is not complete by then; here it may arrive in
/// several segments, as section 2 of the protocol's text recommends.
///
/// # Errors
/// Why the connection must be closed.
pub(crate) async fn read_header(
    connection: EstablishedConnection,
    header_bytes_max: usize,
    begun: &Cell<bool>,
) -> Result<EstablishedConnection, HandshakeError> {
    let EstablishedConnection {
        transport,
        read_ahead: mut bytes,
        inserted,
        ..
    } = connection;
    begun.set(!bytes.is_empty());
    loop {
        let needed = match parse(&bytes, header_bytes_max) {
            Ok(ProxyHeaderParse::Complete {
                header,
                bytes: taken,
            }) => {
                let header = ClientProxyHeader {
                    endpoints: header.endpoints(),
                    values: ProxyHeaderValues(header.tlvs.as_bytes().into()),
                };
                bytes.drain(..taken);
                return Ok(EstablishedConnection {
                    transport,
                    read_ahead: bytes,
                    proxied: Some(header),
                    inserted,
                    tls: None,
                });
            }
            Ok(ProxyHeaderParse::Incomplete { bytes_needed }) => bytes_needed,
            Err(error) => return Err(refusal(error)),
        };
        let have = bytes.len();
        // The parser refuses a header that is too long, so the buffer stays within its bound.
        let room = needed.max(HEADER_BYTES_FIRST.saturating_sub(have));
        bytes.resize(have + room, 0);
        let read = transport.read(&mut bytes[have..]).await;
        bytes.truncate(have + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) | Err(_) if have == 0 => return Err(HandshakeError::Closed),
            Ok(0) | Err(_) => return Err(HandshakeError::Truncated),
            Ok(_) => begun.set(true),
        }
    }
}

fn refusal(error: ProxyHeaderError) -> HandshakeError {
    match error {
        ProxyHeaderError::Signature | ProxyHeaderError::Version => HandshakeError::NotProxy,
        ProxyHeaderError::Family => HandshakeError::Unhandled,
        _ => HandshakeError::Invalid,
    }
}
