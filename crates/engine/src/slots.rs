//! The slots that servers have in the balancer of their backend.

use ballast_balance::Choice;

/// How many servers a pick can be asked to avoid.
pub(crate) const AVOIDED_COUNT_MAX: usize = 4;

/// An empty slot.
pub(crate) const FREE: u32 = u32::MAX;

/// The slot of each server of a backend in its balancer.
#[derive(Debug)]
pub(crate) struct BalancerSlots {
    of_place: Vec<u32>,
    places: Vec<u32>,
    /// The balancer of the previous generation is continued, server by server.
    pub(crate) continues: bool,
    /// The slot of every server is its index.
    slots_are_places: bool,
}

impl BalancerSlots {
    /// Slots of servers in the order of the file; `continues` says whether the balancer of the
    /// previous generation is continued.
    pub(crate) fn new(of_place: Vec<u32>, continues: bool) -> Self {
        let size = of_place.iter().max().map_or(0, |&slot| slot as usize + 1);
        let mut places = vec![FREE; size];
        for (place, &slot) in of_place.iter().enumerate() {
            places[slot as usize] = u32::try_from(place).unwrap_or(FREE);
        }
        let slots_are_places = of_place.iter().zip(0..).all(|(&slot, place)| slot == place);
        Self {
            of_place,
            places,
            continues,
            slots_are_places,
        }
    }

    /// The slot of the server at `place`.
    pub(crate) fn of_place(&self, place: usize) -> Option<u32> {
        self.of_place.get(place).copied()
    }

    /// The server of a slot, as its place.
    pub(crate) fn place(&self, slot: u32) -> Option<usize> {
        let place = self.places.get(slot as usize).copied()?;
        (place != FREE).then_some(place as usize)
    }

    /// The slots of these servers, written to `memory`, which limits their number.
    pub(crate) fn of_places<'m>(
        &self,
        places: &'m [u32],
        memory: &'m mut [u32; AVOIDED_COUNT_MAX],
    ) -> &'m [u32] {
        if self.slots_are_places {
            return places;
        }
        let mut count = 0;
        for slot in places
            .iter()
            .filter_map(|&place| self.of_place(place as usize))
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
            Choice::Server(slot) if !self.slots_are_places => self
                .place(slot)
                .and_then(|place| u32::try_from(place).ok())
                .map_or(Choice::NoServer, Choice::Server),
            choice => choice,
        }
    }
}
