//! The header of a NetScaler at the start of a connection (`accept-netscaler-cip`).

use std::cell::Cell;

use ballast_wire::netscaler_cip::{CipParse, ProxyHeaderError, parse};

use super::{EstablishedConnection, HandshakeError};

/// Reads the header, and no byte behind it. `begun` is set with its first byte.
///
/// HAProxy reads once and refuses a header that is not complete by then; here it may arrive in
/// several segments, as anything on a connection may.
///
/// # Errors
/// Why the connection must be closed.
pub(crate) async fn read_header(
    connection: EstablishedConnection,
    magic: u32,
    header_bytes_max: usize,
    begun: &Cell<bool>,
) -> Result<EstablishedConnection, HandshakeError> {
    let EstablishedConnection {
        transport,
        read_ahead: mut bytes,
        proxied,
        tls,
        ..
    } = connection;
    begun.set(!bytes.is_empty());
    loop {
        let needed = match parse(&bytes, magic, header_bytes_max) {
            Ok(CipParse::Complete {
                source,
                destination,
                bytes: taken,
            }) => {
                bytes.drain(..taken);
                return Ok(EstablishedConnection {
                    transport,
                    read_ahead: bytes,
                    proxied,
                    inserted: Some((source, destination)),
                    tls,
                });
            }
            Ok(CipParse::Incomplete { bytes_needed }) => bytes_needed,
            Err(error) => return Err(refusal(error)),
        };
        // The parser refuses a header that is too long, so the buffer stays within its bound.
        let have = bytes.len();
        bytes.resize(have + needed, 0);
        let read = transport.read(&mut bytes[have..]).await;
        bytes.truncate(have + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) | Err(_) if have == 0 => return Err(HandshakeError::CipClosed),
            Ok(0) | Err(_) => return Err(HandshakeError::CipTruncated),
            Ok(_) => begun.set(true),
        }
    }
}

fn refusal(error: ProxyHeaderError) -> HandshakeError {
    match error {
        ProxyHeaderError::Magic => HandshakeError::CipMagic,
        ProxyHeaderError::Protocol => HandshakeError::CipProtocol,
        ProxyHeaderError::Length => HandshakeError::CipTruncated,
    }
}
