//! Where a session comes from and was going: what servers, headers and logs are told.

use std::net::{IpAddr, SocketAddr};

use ballast_model::{self as model, PortSpec};
use ballast_net as net;

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

    /// Where a connection for this session to a server goes: the address, with what `port` and
    /// the client's destination port make of its port (configuration manual, "server").
    pub fn target(&self, port: PortSpec, address: &model::Address) -> Option<net::Address> {
        let client_port = self.destination.map_or(0, |destination| destination.port());
        Some(match address {
            model::Address::Inet(known) => {
                let port = match port {
                    PortSpec::Offset(offset) => {
                        u16::try_from(i32::from(client_port) + offset).ok()?
                    }
                    PortSpec::Fixed if known.port() == 0 => client_port,
                    PortSpec::Fixed => known.port(),
                };
                net::Address::Ip(SocketAddr::new(known.ip(), port))
            }
            model::Address::Unix(path) => net::Address::Unix(path.into()),
            model::Address::Abstract(name) => net::Address::Abstract {
                name: name.as_bytes().into(),
                padded: true,
            },
            model::Address::AbstractUnpadded(name) => net::Address::Abstract {
                name: name.as_bytes().into(),
                padded: false,
            },
            model::Address::Name { .. } | model::Address::Fd(_) | model::Address::SocketPair(_) => {
                return None;
            }
        })
    }
}
