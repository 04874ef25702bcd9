//! The handshake with a SOCKS4 proxy (`socks4` of a server line), before anything else is sent.

use std::fmt;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};

use ballast_net as net;
use ballast_wire::socks4::{REPLY_BYTES, is_granted, request};
use ballast_worker::Stream;

/// Why a proxy did not connect to the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Socks4Failure {
    /// It broke the connection off.
    Aborted,
    /// It refuses, or speaks another protocol.
    Denied,
    /// It closed the connection before its reply was whole.
    Read,
    /// The server has no IPv4 address.
    Unsupported,
    /// The request could not be sent.
    Write,
}

impl Socks4Failure {
    /// HAProxy's number of the error (`bc_err`) and its text.
    pub fn code_and_text(self) -> (i64, &'static str) {
        match self {
            Self::Write => (39, "SOCKS4 Proxy write error during handshake"),
            Self::Read => (40, "SOCKS4 Proxy read error during handshake"),
            Self::Denied => (41, "SOCKS4 Proxy deny the request"),
            Self::Aborted => (42, "SOCKS4 Proxy handshake aborted by server"),
            Self::Unsupported => (0, "General socket error (Invalid argument)"),
        }
    }
}

impl fmt::Display for Socks4Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.code_and_text().1)
    }
}

/// The address of a server that a proxy can be asked for: the protocol knows those of IPv4 only.
pub(crate) fn destination(address: &net::Address) -> Result<SocketAddrV4, Socks4Failure> {
    match address {
        net::Address::Ip(SocketAddr::V4(known)) => Ok(*known),
        _ => Err(Socks4Failure::Unsupported),
    }
}

/// Has the proxy at the other end of `stream` connect to `destination`. What the server says right
/// behind the reply stays in the socket.
pub(crate) async fn pass(stream: &Stream, destination: SocketAddrV4) -> Result<(), Socks4Failure> {
    let sent = stream.write_all(&request(destination)).await;
    sent.map_err(|_| Socks4Failure::Write)?;
    let mut reply = [0; REPLY_BYTES];
    let mut held = 0;
    while held < REPLY_BYTES {
        held += match stream.read(&mut reply[held..]).await {
            Ok(0) => return Err(Socks4Failure::Read),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                return Err(Socks4Failure::Aborted);
            }
            Err(_) => return Err(Socks4Failure::Read),
        };
    }
    match is_granted(&reply) {
        true => Ok(()),
        false => Err(Socks4Failure::Denied),
    }
}
