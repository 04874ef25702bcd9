//! How a backend balances: its algorithm, its hash, and the slots of its servers.

use std::sync::Arc;

use ballast_balance::{
    Algorithm, BalancerSettings, HashAffinity, HashFunction, HashMethod, HashType, NewServer,
};
use ballast_model as model;

use crate::cookies::hash_key;
use crate::slots::{BalancerSlots, FREE};
use crate::{Backend, Server};

/// A server as the balancer sees it.
pub(crate) fn new_server(server: &Server) -> NewServer {
    NewServer {
        backup: server.model.backup,
        hash_key: hash_key(server),
        id: server.model.id,
        usable: server.state.is_usable() && !server.state.is_draining(),
        weight: server.state.weight(),
    }
}

/// How a backend balances.
pub(crate) fn balancer_settings(backend: &model::Backend) -> BalancerSettings {
    BalancerSettings {
        algorithm: algorithm(backend),
        all_backups: backend.options.all_backups,
        balance_factor: backend.hash_balance_factor,
        affinity: match backend.hash_affinity {
            model::HashAffinity::Always => HashAffinity::Always,
            model::HashAffinity::Maxconn => HashAffinity::Maxconn,
            model::HashAffinity::Maxqueue => HashAffinity::Maxqueue,
        },
    }
}

fn algorithm(backend: &model::Backend) -> Algorithm {
    use model::Balance;
    match &backend.balance {
        Balance::RoundRobin => Algorithm::RoundRobin,
        Balance::StaticRoundRobin => Algorithm::StaticRr,
        Balance::LeastConnections => Algorithm::LeastConn,
        Balance::First => Algorithm::First,
        Balance::Random(draws) => Algorithm::Random { draws: *draws },
        Balance::Source
        | Balance::Uri(_)
        | Balance::UrlParam { .. }
        | Balance::Header { .. }
        | Balance::RdpCookie(_)
        | Balance::Hash(_)
        | Balance::Sticky => Algorithm::Hash(if backend.hash_type.consistent {
            HashMethod::Consistent
        } else {
            HashMethod::MapBased
        }),
    }
}

/// How the keys of a backend are hashed.
pub fn hash_type(backend: &model::Backend) -> HashType {
    HashType {
        avalanche: backend.hash_type.avalanche,
        function: match backend.hash_type.function {
            model::HashFunction::Sdbm => HashFunction::Sdbm,
            model::HashFunction::Djb2 => HashFunction::Djb2,
            model::HashFunction::Wt6 => HashFunction::Wt6,
            model::HashFunction::Crc32 => HashFunction::Crc32,
            model::HashFunction::None => HashFunction::None,
        },
        method: if backend.hash_type.consistent {
            HashMethod::Consistent
        } else {
            HashMethod::MapBased
        },
    }
}

/// The slots of the servers of `backend`. Servers that were in `former` keep theirs, unless the
/// algorithm changed, or the order of the file, which some algorithms depend on.
pub(crate) fn slots(backend: &model::Backend, former: Option<&Arc<Backend>>) -> BalancerSlots {
    let count = u32::try_from(backend.servers.len()).unwrap_or(FREE);
    match former.filter(|former| can_continue(backend, former)) {
        None => BalancerSlots::new((0..count).collect(), false),
        Some(former) => BalancerSlots::new(kept_slots(backend, former), true),
    }
}

/// Whether the balancer of `former` can be continued.
fn can_continue(backend: &model::Backend, former: &Backend) -> bool {
    if balancer_settings(backend) != balancer_settings(&former.model) {
        return false;
    }
    // The servers that stay must come first and in the same order.
    let mut was = 0;
    let mut came = false;
    let mut servers = backend.servers.iter().enumerate();
    servers.all(|(index, server)| match former.counterpart(index, server) {
        Some(server_index) => {
            let follows = server_index >= was && !came;
            was = server_index + 1;
            follows
        }
        None => {
            came = true;
            true
        }
    })
}

/// The slots of the servers that stay, and free ones for new servers.
fn kept_slots(backend: &model::Backend, former: &Backend) -> Vec<u32> {
    let kept = |(index, server): (usize, &Arc<model::Server>)| {
        former.slots.of_server(former.counterpart(index, server)?)
    };
    let servers = backend.servers.iter().enumerate();
    let kept: Vec<Option<u32>> = servers.map(kept).collect();
    // The new ones need no slot beyond the number of servers.
    let mut taken = vec![false; kept.len()];
    for slot in kept.iter().flatten() {
        if let Some(taken) = taken.get_mut(*slot as usize) {
            *taken = true;
        }
    }
    let mut free = (0..).zip(taken).filter(|(_, taken)| !taken);
    let mut free = move || free.next().map(|(slot, _)| slot);
    let slots = kept.into_iter();
    slots
        .map(|kept| kept.or_else(&mut free).unwrap_or(FREE - 1))
        .collect()
}
