//! Which cookie value belongs to which server: as written, or computed from a key and the server's
//! address (`cookie ... dynamic`). Commands may change both.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};

use ballast_balance::{HashKey, dynamic_cookie};
use ballast_expr::bytes_of_text;
use ballast_model as model;

use crate::{Backend, DynamicCookies, Server};

impl Backend {
    /// The server that the cookie value stands for, as its index.
    pub fn server_of_cookie(&self, value: &[u8]) -> Option<usize> {
        self.by_cookie.load().get(value).copied()
    }

    /// Sets the overrides of dynamic cookies and applies them at once.
    pub fn change_dynamic_cookies(&self, change: impl FnOnce(&mut DynamicCookies)) {
        change(
            &mut self
                .state
                .dynamic_cookies
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        self.renew_cookies();
    }

    /// Recomputes what follows from addresses after one changed: the server's position in hashes, cookies,
    /// and who is found by address.
    pub fn address_changed(&self, server: usize) {
        let Some(known) = self.servers.get(server) else {
            return;
        };
        let key = hash_key(known);
        self.update_balancer(server, |balancer, index| balancer.set_hash_key(index, key));
        self.renew_cookies();
        self.renew_addresses();
    }

    /// Notes the addresses of all servers.
    pub(crate) fn renew_addresses(&self) {
        if self.model.stick_rules.is_empty() {
            return;
        }
        let mut by_address = HashMap::new();
        for (server_index, server) in self.servers.iter().enumerate() {
            let current = server.state.current_address();
            if current.address.is_some() {
                by_address
                    .entry(current.text().to_owned())
                    .or_insert(server_index);
            }
        }
        self.by_address.store(Arc::new(by_address));
    }

    /// Recomputes all cookies.
    pub(crate) fn renew_cookies(&self) {
        let entry = self
            .state
            .dynamic_cookies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let written = self.model.cookie.as_ref();
        let on = entry
            .on
            .unwrap_or_else(|| written.is_some_and(|cookie| cookie.dynamic));
        let key = entry
            .key
            .as_ref()
            .or(self.model.dynamic_cookie_key.as_ref());
        let key = key.filter(|_| on);
        let has_any = key.is_some() || self.servers.iter().any(|one| one.model.cookie.is_some());
        // Then none of these servers has one from a former generation either: what decides about cookies
        // is the same there, or they were made anew.
        if !has_any && self.by_cookie.load().is_empty() {
            return;
        }
        let mut by_cookie = HashMap::new();
        for (server_index, server) in self.servers.iter().enumerate() {
            let cookie = server.model.cookie.clone().or_else(|| {
                let address = inet(server.state.current_address().address.as_ref()?)?;
                Some(dynamic_cookie(&bytes_of_text(key?), address))
            });
            if let Some(cookie) = &cookie {
                by_cookie
                    .entry(bytes_of_text(cookie).into_owned())
                    .or_insert(server_index);
            }
            server.cookie.store(cookie.map(Arc::new));
        }
        self.by_cookie.store(Arc::new(by_cookie));
    }
}

/// What a server's points on the hash ring are computed from.
pub(crate) fn hash_key(server: &Server) -> HashKey {
    let address = server
        .state
        .current_address()
        .address
        .as_ref()
        .and_then(inet);
    match (server.model.hash_key, address) {
        (model::HashKey::Addr, Some(address)) => HashKey::Addr(address.ip()),
        (model::HashKey::AddrPort, Some(address)) => HashKey::AddrPort(address),
        _ => HashKey::Id,
    }
}

fn inet(address: &model::Address) -> Option<SocketAddr> {
    match address {
        model::Address::Inet(address) => Some(*address),
        _ => None,
    }
}
