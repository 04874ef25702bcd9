//! Whether a listening socket fits a bind.

use ballast_model::{Address, Bind, UnixOwner};

/// The properties of a socket that cannot be changed once it listens: a bind that differs in one of
/// them needs another socket. The number of sockets and the frontend they serve are not part of it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct SocketIdentity {
    address: Address,
    interface: Option<String>,
    namespace: Option<String>,
    transparent: bool,
    v6_only: Option<bool>,
    /// `user`, `group`, `mode`.
    owner: (Option<String>, Option<String>, Option<u32>),
}

impl SocketIdentity {
    /// The properties that `bind` requires. Options that mean nothing for its kind of address are
    /// left out.
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
