//! The settings of a balancer and of its servers.

use crate::hash::HashMethod;
use crate::ring::HashKey;

/// Effective weight of a user weight of 1 where weights are dynamic; the scale leaves room for a
/// slow start.
///
/// effective = user weight x step, the step being 1 to 16 (16 when fully warm). Static algorithms
/// (`static-rr`, map-based hashes) divide the user weights by their greatest common divisor
/// instead and know no slow start.
pub const WEIGHT_SCALE: u32 = 16;
/// The largest `weight` of a server.
pub const WEIGHT_USER_MAX: u32 = 256;

/// `balance <algorithm>`, reduced to the way of choosing: every keyed algorithm is
/// [`Algorithm::Hash`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Algorithm {
    /// `first`.
    First,
    /// `source`, `uri`, `url_param`, `hdr`, `hash`, `rdp-cookie`.
    Hash(HashMethod),
    /// `leastconn`.
    LeastConn,
    /// `random(<draws>)`; 2 by default.
    Random {
        /// How many servers are drawn; the least loaded of them is taken. 0 counts as 1.
        draws: u32,
    },
    /// `roundrobin`.
    #[default]
    RoundRobin,
    /// `static-rr`.
    StaticRr,
}

impl Algorithm {
    /// Whether weights may change while servers are up. Static algorithms accept only 0% and
    /// 100% from the Runtime API.
    #[must_use]
    pub const fn is_dynamic(self) -> bool {
        !matches!(self, Self::StaticRr | Self::Hash(HashMethod::MapBased))
    }
}

/// Settings that do not change while a backend lives.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BalancerSettings {
    /// Algorithm.
    pub algorithm: Algorithm,
    /// `option allbackups`: all backups share the load, not only the first.
    pub all_backups: bool,
    /// `hash-balance-factor`, in percent of the average load; 0 for none.
    pub balance_factor: u32,
    /// `hash-preserve-affinity`.
    pub affinity: HashAffinity,
}

/// Which servers of a ring a request passes over that has another one's key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HashAffinity {
    /// None for its load.
    #[default]
    Always,
    /// Those that have reached their limit of connections.
    Maxconn,
    /// Those whose queue is full.
    Maxqueue,
}

/// A server that is added.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NewServer {
    /// `backup`.
    pub backup: bool,
    /// `hash-key`.
    pub hash_key: HashKey,
    /// The server's id (`id`, else its position), unique in the backend.
    pub id: u32,
    /// Whether it may be chosen: up, not in maintenance, not draining.
    pub usable: bool,
    /// `weight`, 0 to [`WEIGHT_USER_MAX`].
    pub weight: u32,
}

impl Algorithm {
    /// `random`.
    pub(crate) const fn is_random(self) -> bool {
        matches!(self, Self::Random { .. })
    }

    /// `static-rr`: the servers of the map take turns, whatever the key.
    pub(crate) const fn takes_turns(self) -> bool {
        matches!(self, Self::StaticRr)
    }
}
