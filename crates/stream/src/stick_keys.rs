//! The keys under which tables are to remember the server of an exchange.

use std::net::{Ipv4Addr, Ipv6Addr};

use ballast_engine::Backend;
use ballast_model::StickRule;
use ballast_stick::Key;

/// The keys under which the server of an exchange is to be remembered.
#[derive(Debug, Default)]
pub(crate) struct StickKeys {
    /// At most one for each table.
    pub(crate) keys: Vec<StickKey>,
    /// The bytes of their keys.
    bytes: Vec<u8>,
}

/// A key, and the rule that it is of.
#[derive(Debug)]
pub(crate) struct StickKey {
    /// The index of its rule.
    pub(crate) rule: usize,
    /// The key.
    pub(crate) key: KeptKey,
}

/// A key; its bytes are kept beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeptKey {
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    Integer(u32),
    /// From and to, in the bytes of all keys.
    Bytes(usize, usize),
}

impl StickKeys {
    /// Forgets all keys, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.bytes.clear();
    }

    /// Adds the key of a rule.
    pub(crate) fn add(&mut self, rule: usize, key: Key<'_>) {
        let key = match key {
            Key::Ipv4(address) => KeptKey::Ipv4(address),
            Key::Ipv6(address) => KeptKey::Ipv6(address),
            Key::Integer(number) => KeptKey::Integer(number),
            Key::Bytes(bytes) => {
                let from = self.bytes.len();
                self.bytes.extend_from_slice(bytes);
                KeptKey::Bytes(from, self.bytes.len())
            }
        };
        self.keys.push(StickKey { rule, key });
    }

    /// Whether a key is to be stored already in the table of a rule.
    pub(crate) fn has_one_for(&self, backend: &Backend, rule: &StickRule) -> bool {
        let mut rules = self
            .keys
            .iter()
            .filter_map(|stick| backend.model.stick_rules.get(stick.rule));
        rules.any(|former| former.table == rule.table)
    }

    /// The key as tables take it.
    pub(crate) fn key(&self, kept: KeptKey) -> Key<'_> {
        match kept {
            KeptKey::Ipv4(address) => Key::Ipv4(address),
            KeptKey::Ipv6(address) => Key::Ipv6(address),
            KeptKey::Integer(number) => Key::Integer(number),
            KeptKey::Bytes(from, to) => Key::Bytes(self.bytes.get(from..to).unwrap_or_default()),
        }
    }
}
