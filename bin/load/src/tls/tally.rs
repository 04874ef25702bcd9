//! What a run counts of TLS.

use std::collections::BTreeMap;

use crate::histogram::Histogram;
use crate::tls::Handshake;

/// How often each name occurred.
pub(crate) type NameCounts = BTreeMap<&'static str, u64>;

/// The counts of the handshakes that succeeded, and the alerts of those that did not.
#[derive(Debug, Default)]
pub(crate) struct TlsTally {
    /// How long full handshakes took, connecting not included.
    pub(crate) full: Histogram,
    /// How long resumed handshakes took, connecting not included.
    pub(crate) resumed: Histogram,
    /// Handshakes that offered a session.
    pub(crate) offered: u64,
    /// Full handshakes in which the server asked for another key share.
    pub(crate) hello_retries: u64,
    /// Handshakes for sessions to resume, which are counted nowhere else.
    pub(crate) warming: u64,
    pub(crate) versions: NameCounts,
    pub(crate) ciphers: NameCounts,
    pub(crate) groups: NameCounts,
    /// The protocols of ALPN.
    pub(crate) protocols: BTreeMap<String, u64>,
    /// The alerts that were received, apart from `close_notify`.
    pub(crate) alerts: NameCounts,
    /// Connections that the peer closed without `close_notify`.
    pub(crate) unclean_closes: u64,
}

impl TlsTally {
    /// Counts a handshake.
    pub(crate) fn count(&mut self, handshake: &Handshake) {
        let latency = match handshake.is_resumed {
            true => &mut self.resumed,
            false => &mut self.full,
        };
        latency.record(handshake.took);
        self.offered += u64::from(handshake.has_offered);
        self.hello_retries += u64::from(handshake.has_hello_retry);
        *self.versions.entry(handshake.version).or_default() += 1;
        *self.ciphers.entry(handshake.cipher).or_default() += 1;
        if let Some(group) = handshake.group {
            *self.groups.entry(group).or_default() += 1;
        }
        if let Some(protocol) = &handshake.protocol {
            match self.protocols.get_mut(protocol) {
                Some(count) => *count += 1,
                None => _ = self.protocols.insert(protocol.clone(), 1),
            }
        }
    }

    /// Adds the counts of another thread.
    pub(crate) fn add(&mut self, other: Self) {
        self.full.add(&other.full);
        self.resumed.add(&other.resumed);
        self.offered += other.offered;
        self.hello_retries += other.hello_retries;
        self.warming += other.warming;
        add(&mut self.versions, other.versions);
        add(&mut self.ciphers, other.ciphers);
        add(&mut self.groups, other.groups);
        add(&mut self.protocols, other.protocols);
        add(&mut self.alerts, other.alerts);
        self.unclean_closes += other.unclean_closes;
    }
}

fn add<K: Ord>(to: &mut BTreeMap<K, u64>, other: BTreeMap<K, u64>) {
    for (name, count) in other {
        *to.entry(name).or_default() += count;
    }
}
