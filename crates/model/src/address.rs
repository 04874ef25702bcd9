//! Addresses of binds, servers and log targets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A socket address as the configuration can name it (configuration manual, section 11).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Address {
    /// IPv4 or IPv6 with its port. Port 0 means "the client's destination port" for a server, and
    /// is refused on a bind.
    Inet(SocketAddr),
    /// A host name that is not resolved yet, with its port.
    Name {
        /// The host name as written.
        host: String,
        /// The port, 0 when none was given.
        port: u16,
        /// `ipv4@` or `ipv6@`: only addresses of this family are used.
        family: NameFamily,
    },
    /// `unix@path` or a path that begins with a slash.
    Unix(String),
    /// `abns@name`: Linux's abstract namespace, padded with NUL to the full length.
    Abstract(String),
    /// `abnsz@name`: the abstract namespace, not padded.
    AbstractUnpadded(String),
    /// `fd@N`: a socket that the program was started with.
    Fd(i32),
    /// `sockpair@N`: connections arrive as descriptors over an inherited socket pair.
    SocketPair(i32),
}

/// Which address family a name may resolve to.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum NameFamily {
    /// The first address that the resolver returns.
    #[default]
    Any,
    /// `ipv4@`.
    V4,
    /// `ipv6@`.
    V6,
}

impl Address {
    /// The port, when the address has one.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Inet(address) => Some(address.port()),
            Self::Name { port, .. } => Some(*port),
            _ => None,
        }
    }

    /// The same address with another port; addresses without ports are unchanged.
    #[must_use]
    pub fn with_port(&self, port: u16) -> Self {
        match self {
            Self::Inet(address) => Self::Inet(SocketAddr::new(address.ip(), port)),
            Self::Name { host, family, .. } => Self::Name {
                host: host.clone(),
                port,
                family: *family,
            },
            other => other.clone(),
        }
    }
}

impl Address {
    /// Its text with the family, as command sockets are named: `ipv4@127.0.0.1:9999`, `unix@/run/x.sock`.
    pub fn with_family(&self) -> String {
        match self {
            Self::Inet(inet) if inet.is_ipv4() => format!("ipv4@{self}"),
            Self::Inet(_) => format!("ipv6@{self}"),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Address {
    /// Writes the address as HAProxy's statistics and logs do.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(address) => match address.ip() {
                IpAddr::V4(ip) => write!(out, "{ip}:{}", address.port()),
                IpAddr::V6(ip) => write!(out, "[{ip}]:{}", address.port()),
            },
            Self::Name { host, port, .. } => write!(out, "{host}:{port}"),
            Self::Unix(path) => write!(out, "unix@{path}"),
            Self::Abstract(name) => write!(out, "abns@{name}"),
            Self::AbstractUnpadded(name) => write!(out, "abnsz@{name}"),
            Self::Fd(number) => write!(out, "fd@{number}"),
            Self::SocketPair(number) => write!(out, "sockpair@{number}"),
        }
    }
}

/// How a server's port is determined.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum PortSpec {
    /// The port written on the line (or 0: the client's destination port).
    #[default]
    Fixed,
    /// `addr:+N` or `addr:-N`: the client's destination port plus this offset.
    Offset(i32),
}

/// An address range, as in `option forwardfor except`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Network {
    /// The network address.
    pub address: IpAddr,
    /// The number of leading bits that are compared: at most 32 for IPv4, 128 for IPv6.
    pub prefix_bits: u8,
}

impl Network {
    /// Whether the address is in the network. An IPv4-mapped IPv6 address is compared as IPv4.
    pub fn contains(&self, ip: IpAddr) -> bool {
        match (self.address, ip.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(ip)) => {
                let mask = mask_v4(self.prefix_bits);
                u32::from(network) & mask == u32::from(ip) & mask
            }
            (IpAddr::V6(network), IpAddr::V6(ip)) => {
                let mask = mask_v6(self.prefix_bits);
                u128::from(network) & mask == u128::from(ip) & mask
            }
            _ => false,
        }
    }

    /// IPv4's loopback range.
    pub fn loopback_v4() -> Self {
        Self {
            address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)),
            prefix_bits: 8,
        }
    }

    /// IPv6's loopback address alone.
    pub fn loopback_v6() -> Self {
        Self {
            address: IpAddr::V6(Ipv6Addr::LOCALHOST),
            prefix_bits: 128,
        }
    }
}

fn mask_v4(bits: u8) -> u32 {
    u32::MAX
        .checked_shl(32 - u32::from(bits.min(32)))
        .unwrap_or(0)
}

fn mask_v6(bits: u8) -> u128 {
    u128::MAX
        .checked_shl(128 - u32::from(bits.min(128)))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_no_bits_holds_every_address_of_its_family() {
        let all = Network {
            address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            prefix_bits: 0,
        };
        assert!(all.contains("192.0.2.1".parse().unwrap()));
        assert!(all.contains("::ffff:192.0.2.1".parse().unwrap()));
        assert!(!all.contains("2001:db8::1".parse().unwrap()));
    }

    #[test]
    fn loopback_networks_hold_loopback_alone() {
        assert!(Network::loopback_v4().contains("127.9.9.9".parse().unwrap()));
        assert!(!Network::loopback_v4().contains("128.0.0.1".parse().unwrap()));
        assert!(Network::loopback_v6().contains("::1".parse().unwrap()));
        assert!(!Network::loopback_v6().contains("::2".parse().unwrap()));
    }

    #[test]
    fn addresses_print_as_logs_show_them() {
        assert_eq!(
            Address::Inet("[::1]:80".parse().unwrap()).to_string(),
            "[::1]:80"
        );
        assert_eq!(
            Address::Unix("/run/a.sock".into()).to_string(),
            "unix@/run/a.sock"
        );
    }
}
