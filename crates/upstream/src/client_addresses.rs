//! The client's address and the address it connected to, as servers, headers and logs see them.

use std::net::{IpAddr, SocketAddr};

use ballast_model::PortSpec;

/// The two ends of a client's connection, as the proxy protocol or a rule may have set them.
/// `None` where the connection has no IP address (unix sockets).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ClientAddresses {
    /// The client.
    pub source: Option<SocketAddr>,
    /// What the client connected to.
    pub destination: Option<SocketAddr>,
}

impl ClientAddresses {
    /// The client's address, without the port.
    pub fn source_ip(&self) -> Option<IpAddr> {
        self.source.map(|source| source.ip())
    }

    /// Both ends, when both are known.
    pub fn both(&self) -> Option<(SocketAddr, SocketAddr)> {
        Some((self.source?, self.destination?))
    }

    /// Whether the server's address or port depends on the client: its line, or a later `set server
    /// addr`, leaves one of them open.
    pub(crate) fn depends_on_client(port: PortSpec, address: &SocketAddr) -> bool {
        address.ip().is_unspecified() || address.port() == 0 || port != PortSpec::Fixed
    }

    /// The address that a connection of this session is opened to (configuration manual, "server"):
    /// the address the client connected to where none is given; its port where none is given, or
    /// its port plus the offset of `port`. For a client over a unix socket, what is not given stays
    /// unset. `None` when the result is not a port.
    pub(crate) fn server_address(
        &self,
        port: PortSpec,
        address: &SocketAddr,
    ) -> Option<SocketAddr> {
        let asked_port = self.destination.map_or(0, |destination| destination.port());
        let port = match port {
            PortSpec::Offset(offset) => u16::try_from(i32::from(asked_port) + offset).ok()?,
            PortSpec::Fixed if address.port() == 0 => asked_port,
            PortSpec::Fixed => address.port(),
        };
        let ip = match self.destination {
            Some(destination) if address.ip().is_unspecified() => destination.ip(),
            _ => address.ip(),
        };
        Some(SocketAddr::new(ip, port))
    }
}
