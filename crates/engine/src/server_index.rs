//! Looks up servers of a backend by name and by id. Names and ids stay where the servers are: an index
//! has numbers only.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Server;

/// An empty place of a [`NameIndex`].
const EMPTY: u32 = u32::MAX;

/// Finds the index of a server by its name: an open hash table of indexes, at most half full.
#[derive(Debug)]
pub(crate) struct NameIndex {
    places: Box<[u32]>,
}

impl NameIndex {
    pub(crate) fn new(servers: &[Arc<Server>]) -> Self {
        let mut index = Self {
            places: vec![EMPTY; Self::size(servers.len())].into(),
        };
        index.add_from(0, servers);
        index
    }

    /// The table of `servers`, the first `count` of which are those that this one was made of: the
    /// names of these are not hashed again.
    pub(crate) fn with_more(&self, count: usize, servers: &[Arc<Server>]) -> Self {
        if self.places.len() != Self::size(servers.len()) {
            return Self::new(servers);
        }
        let mut index = Self {
            places: self.places.clone(),
        };
        index.add_from(count, servers);
        index
    }

    fn size(server_count: usize) -> usize {
        (server_count * 2).next_power_of_two()
    }

    fn add_from(&mut self, first: usize, servers: &[Arc<Server>]) {
        for (server, number) in servers.iter().zip(0..).skip(first) {
            let mut walk = self.walk(server.name());
            if let Some(at) = walk.find(|at| self.places[*at] == EMPTY) {
                self.places[at] = number;
            }
        }
    }

    /// The index of the server of that name, which must be one of those the table was made of.
    pub(crate) fn find(&self, name: &str, servers: &[Arc<Server>]) -> Option<usize> {
        let known = self.walk(name).map(|at| self.places[at]);
        let mut known = known.take_while(|number| *number != EMPTY);
        let is_named = |number: &u32| servers[*number as usize].name() == name;
        known.find(is_named).map(|number| number as usize)
    }

    /// The places where a name may be, in order.
    fn walk(&self, name: &str) -> impl Iterator<Item = usize> + use<> {
        let size = self.places.len();
        let first = hash(name) as usize;
        (0..size).map(move |step| first.wrapping_add(step) & (size - 1))
    }
}

/// FNV-1a, with the upper bits mixed into the lower ones. Names are an operator's: nobody looks for
/// collisions.
fn hash(name: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^ (hash >> 32)
}

/// Finds the index of a server by its id.
#[derive(Debug)]
pub(crate) enum IdIndex {
    /// Ids are counted from 1, as they are where no line gives one.
    Counted,
    /// Any ids.
    Given(HashMap<u32, usize>),
}

impl IdIndex {
    pub(crate) fn new(servers: &[Arc<Server>]) -> Self {
        if servers
            .iter()
            .zip(1..)
            .all(|(server, id)| server.model.id == id)
        {
            return Self::Counted;
        }
        let mut by_id = HashMap::new();
        for (index, server) in servers.iter().enumerate() {
            by_id.entry(server.model.id).or_insert(index);
        }
        Self::Given(by_id)
    }

    /// The index of the first server with this id, among those the index was made of.
    pub(crate) fn find(&self, id: u32, servers: &[Arc<Server>]) -> Option<usize> {
        match self {
            Self::Counted => (id as usize)
                .checked_sub(1)
                .filter(|index| *index < servers.len()),
            Self::Given(by_id) => by_id.get(&id).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use ballast_model as model;

    use super::*;
    use crate::{Generation, Process, Registry};

    /// Servers of these names and ids.
    fn servers(lines: impl Iterator<Item = (String, u32)>) -> Vec<Arc<Server>> {
        let address = model::Address::Inet("127.0.0.1:80".parse().unwrap());
        let lines = lines.map(|(name, id)| {
            let mut line = model::Server::new(name, address.clone());
            line.id = id;
            Arc::new(line)
        });
        let backend = model::Backend {
            servers: lines.collect(),
            ..model::Backend::default()
        };
        let config = model::Config {
            backends: vec![Arc::new(backend)],
            ..model::Config::default()
        };
        let registry = Registry::new(1, Arc::new(Process::new(1, 10)));
        let generation = Generation::compile(1, Arc::new(config), &registry);
        generation.backends[0].servers.clone()
    }

    #[test]
    fn each_name_is_found_at_any_size_and_no_other() {
        for count in [0, 1, 2, 3, 64, 65, 1000] {
            let servers = servers((1..=count).map(|id| (format!("s{id}"), id)));
            let names = NameIndex::new(&servers);
            for (index, server) in servers.iter().enumerate() {
                assert_eq!(names.find(server.name(), &servers), Some(index));
            }
            for unknown in ["", "s", "s0", "s1001", "S1"] {
                assert_eq!(names.find(unknown, &servers), None, "{unknown} of {count}");
            }
            for before in [0, 1, servers.len() / 2, servers.len()] {
                let before = before.min(servers.len());
                let grown = NameIndex::new(&servers[..before]).with_more(before, &servers);
                for (index, server) in servers.iter().enumerate() {
                    assert_eq!(grown.find(server.name(), &servers), Some(index));
                }
            }
        }
    }

    #[test]
    fn ids_are_found_whether_counted_or_given() {
        let counted = servers((1..=3).map(|id| (format!("s{id}"), id)));
        let index = IdIndex::new(&counted);
        assert!(matches!(index, IdIndex::Counted));
        let found = [0, 1, 3, 4].map(|id| index.find(id, &counted));
        assert_eq!(found, [None, Some(0), Some(2), None]);
        let ids = [7, 2, 7].into_iter().enumerate();
        let given = servers(ids.map(|(at, id)| (format!("s{at}"), id)));
        let index = IdIndex::new(&given);
        let found = [1, 2, 3, 7].map(|id| index.find(id, &given));
        assert_eq!(found, [None, Some(1), None, Some(0)]);
    }
}
