//! The slots that servers have in the balancer of their backend.

use ballast_balance::Choice;

/// How many servers a pick can be asked to avoid.
pub(crate) const AVOIDED_COUNT_MAX: usize = 4;

/// An empty slot.
pub(crate) const FREE: u32 = u32::MAX;

/// The slot of each server of a backend in its balancer.
#[derive(Debug)]
pub(crate) struct BalancerSlots {
    of_server: Vec<u32>,
    server_indexes: Vec<u32>,
    /// The balancer of the previous generation is continued, server by server.
    pub(crate) continues: bool,
    /// The slot of every server is its index.
    slots_are_indexes: bool,
}

impl BalancerSlots {
    /// Slots of servers in the order of the file; `continues` says whether the balancer of the
    /// previous generation is continued.
    pub(crate) fn new(of_server: Vec<u32>, continues: bool) -> Self {
        let size = of_server.iter().max().map_or(0, |&slot| slot as usize + 1);
        let mut server_indexes = vec![FREE; size];
        for (server_index, &slot) in of_server.iter().enumerate() {
            server_indexes[slot as usize] = u32::try_from(server_index).unwrap_or(FREE);
        }
        let slots_are_indexes = of_server
            .iter()
            .zip(0..)
            .all(|(&slot, server_index)| slot == server_index);
        Self {
            of_server,
            server_indexes,
            continues,
            slots_are_indexes,
        }
    }

    /// The slot of the server with this index.
    pub(crate) fn of_server(&self, server_index: usize) -> Option<u32> {
        self.of_server.get(server_index).copied()
    }

    /// The server of a slot, as its index.
    pub(crate) fn server_index(&self, slot: u32) -> Option<usize> {
        let server_index = self.server_indexes.get(slot as usize).copied()?;
        (server_index != FREE).then_some(server_index as usize)
    }

    /// The slots of these servers, written to `memory`, which limits their number.
    pub(crate) fn of_servers<'m>(
        &self,
        server_indexes: &'m [u32],
        memory: &'m mut [u32; AVOIDED_COUNT_MAX],
    ) -> &'m [u32] {
        if self.slots_are_indexes {
            return server_indexes;
        }
        let mut count = 0;
        for slot in server_indexes
            .iter()
            .filter_map(|&server_index| self.of_server(server_index as usize))
            .take(AVOIDED_COUNT_MAX)
        {
            memory[count] = slot;
            count += 1;
        }
        &memory[..count]
    }

    /// Converts a choice of a slot to the choice of a server's index.
    pub(crate) fn choice(&self, choice: Choice) -> Choice {
        match choice {
            Choice::Server(slot) if !self.slots_are_indexes => self
                .server_index(slot)
                .and_then(|server_index| u32::try_from(server_index).ok())
                .map_or(Choice::NoServer, Choice::Server),
            choice => choice,
        }
    }
}
