//! What makes a listening socket the one a bind needs.

use ballast_model::{Address, Bind, UnixOwner};

/// All that cannot be changed of a socket once it listens: a bind that differs in any of it needs
/// another one. How many sockets there are, and which frontend they serve, is no part of it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Identity {
    address: Address,
    interface: Option<String>,
    namespace: Option<String>,
    transparent: bool,
    v6_only: Option<bool>,
    /// `user`, `group`, `mode`.
    owner: (Option<String>, Option<String>, Option<u32>),
}

impl Identity {
    /// The socket that `bind` needs. Words that mean nothing to its kind of address do not count.
    pub(crate) fn of(bind: &Bind) -> Self {
        let ip = match bind.address {
            Address::Inet(ip) => Some(ip),
            _ => None,
        };
        let UnixOwner { user, group, mode } = &bind.unix_owner;
        let owner = match bind.address {
            Address::Unix(_) => (user.clone(), group.clone(), *mode),
            _ => (None, None, None),
        };
        Self {
            address: bind.address.clone(),
            interface: bind.interface.clone().filter(|_| ip.is_some()),
            namespace: bind.namespace.clone(),
            transparent: bind.transparent && ip.is_some(),
            v6_only: bind.v6_only.filter(|_| ip.is_some_and(|ip| ip.is_ipv6())),
            owner,
        }
    }
}
