//! Where a session comes from and was going: what servers, headers and logs are told.

use std::net::{IpAddr, SocketAddr};

use ballast_model::PortSpec;

/// The two ends of a client's connection, as the proxy protocol or a rule may have set them.
/// `None` where the connection has no IP address (unix sockets).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Path {
    /// The client.
    pub source: Option<SocketAddr>,
    /// What the client connected to.
    pub destination: Option<SocketAddr>,
}

impl Path {
    /// The client's address, without the port.
    pub fn source_ip(&self) -> Option<IpAddr> {
        self.source.map(|source| source.ip())
    }

    /// Both ends, when both are known.
    pub fn both(&self) -> Option<(SocketAddr, SocketAddr)> {
        Some((self.source?, self.destination?))
    }

    /// Whether a server is reached where the client says: its line, or who set its address since,
    /// leaves the address or the port open.
    pub(crate) fn is_followed(port: PortSpec, address: &SocketAddr) -> bool {
        address.ip().is_unspecified() || address.port() == 0 || port != PortSpec::Fixed
    }

    /// Where a connection for this session to such a server goes (configuration manual, "server"):
    /// to the address that the client connected to where none is given, to its port where none is
    /// given or so far from it as `port` says. What a client over a unix socket does not say stays
    /// as it is. `None` where the offset leads beyond all ports.
    pub(crate) fn followed(&self, port: PortSpec, address: &SocketAddr) -> Option<SocketAddr> {
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
