//! Replacing one generation by the next in one step.
//!
//! Balancing continues where it was: servers that stay keep their slots in the balancer, and with
//! them their turns, loads and points on the ring, whatever comes before or after them in the file.
//! When an exchange of the previous generation takes or releases a server later, the balancer in
//! force is told.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use ballast_balance::{Balancer, Candidate, Choice, WEIGHT_SCALE};
use ballast_model as model;

use crate::generation::{candidate, setup};
use crate::{Backend, Generation, Registry, Server};

/// How many servers a pick can be asked to avoid.
pub(crate) const AVOIDED_COUNT_MAX: usize = 4;

/// An empty slot.
const FREE: u32 = u32::MAX;

/// The slot of each server of a backend in its balancer.
#[derive(Debug)]
pub(crate) struct Slots {
    of_place: Vec<u32>,
    places: Vec<u32>,
    /// The balancer of the previous generation is continued, server by server.
    continues: bool,
    /// The slot of every server is its index.
    plain: bool,
}

impl Slots {
    /// Servers that were in `former` keep their slots, unless the algorithm changed, or the order
    /// of the file, which some algorithms depend on.
    pub(crate) fn of(backend: &model::Backend, former: Option<&Arc<Backend>>) -> Self {
        let count = u32::try_from(backend.servers.len()).unwrap_or(FREE);
        match former.filter(|former| goes_on(backend, former)) {
            None => Self::new((0..count).collect(), false),
            Some(former) => Self::new(stay(backend, former), true),
        }
    }

    fn new(of_place: Vec<u32>, continues: bool) -> Self {
        let size = of_place.iter().max().map_or(0, |&slot| slot as usize + 1);
        let mut places = vec![FREE; size];
        for (place, &slot) in of_place.iter().enumerate() {
            places[slot as usize] = u32::try_from(place).unwrap_or(FREE);
        }
        let plain = of_place.iter().zip(0..).all(|(&slot, place)| slot == place);
        Self {
            of_place,
            places,
            continues,
            plain,
        }
    }

    pub(crate) fn of_place(&self, place: usize) -> Option<u32> {
        self.of_place.get(place).copied()
    }

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
        if self.plain {
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
            Choice::Server(slot) if !self.plain => self
                .place(slot)
                .and_then(|place| u32::try_from(place).ok())
                .map_or(Choice::Nobody, Choice::Server),
            choice => choice,
        }
    }
}

/// Whether the balancer of `former` can be continued.
fn goes_on(backend: &model::Backend, former: &Backend) -> bool {
    if setup(backend) != setup(&former.model) {
        return false;
    }
    // The servers that stay must come first and in the same order.
    let mut was = 0;
    let mut came = false;
    backend
        .servers
        .iter()
        .all(|server| match former.server_named(&server.name) {
            Some(place) => {
                let follows = place >= was && !came;
                was = place + 1;
                follows
            }
            None => {
                came = true;
                true
            }
        })
}

/// The slots of the servers that stay, and free ones for new servers.
fn stay(backend: &model::Backend, former: &Backend) -> Vec<u32> {
    let kept = |server: &Arc<model::Server>| {
        let place = former.server_named(&server.name)?;
        former.slots.of_place(place)
    };
    let taken: HashSet<u32> = backend.servers.iter().filter_map(kept).collect();
    let mut free = (0..).filter(|slot| !taken.contains(slot));
    backend
        .servers
        .iter()
        .map(|server| kept(server).or_else(|| free.next()).unwrap_or(FREE - 1))
        .collect()
}

/// What changed between two generations.
#[derive(Debug, Default)]
pub struct TakenOver {
    /// Servers that are new or numbered_proxy lines changed, with the previous server.
    pub servers: Vec<ChangedServer>,
    /// Backends numbered_proxy settings or servers changed, as they are now.
    pub backends: Vec<Arc<Backend>>,
    /// Servers that were removed.
    pub removed: Vec<Arc<Server>>,
    /// The names of backends that were added, removed or changed.
    pub names: Vec<String>,
}

/// A server numbered_proxy line is new or changed.
#[derive(Debug)]
pub struct ChangedServer {
    /// The backend.
    pub backend: Arc<Backend>,
    /// The server.
    pub server: Arc<Server>,
    /// The previous server; `None` when it is new.
    pub former: Option<Arc<Server>>,
}

impl Generation {
    /// Replaces `previous` by this generation: limits that its lines change are set, and balancers
    /// continue from the previous ones. Cannot fail. The caller makes sure that only one thread
    /// does this at a time, and publishes the generation.
    pub fn take_over(&self, previous: Option<&Self>, registry: &Registry) -> TakenOver {
        let mut taken = TakenOver::default();
        let process_max = registry.process().connection_count_written();
        let former = previous.map(|previous| &previous.config.global.variables);
        registry.process().follow_variables(
            &self.config.global.variables,
            former.map_or(&[], Vec::as_slice),
        );
        for (place, frontend) in self.frontends.iter().enumerate() {
            let stays = previous.and_then(|previous| previous.frontends.get(place));
            if stays.is_some_and(|former| Arc::ptr_eq(former, frontend)) {
                continue;
            }
            let wanted = frontend.model.connection_count_max;
            let former = previous.and_then(|previous| previous.frontend(frontend.name()));
            if former.is_none_or(|former| former.model.connection_count_max != wanted) {
                frontend
                    .state
                    .limit_connections(wanted.unwrap_or(process_max));
                if former.is_some() {
                    // A value that changed in the file wins over what a command set before.
                    frontend.state.override_connection_limit(None);
                }
            }
        }
        for backend in &self.backends {
            let former = previous.and_then(|previous| previous.backend(backend.name()));
            match former {
                Some(former) if Arc::ptr_eq(former, backend) => {}
                Some(former) => {
                    taken.names.push(backend.name().to_owned());
                    backend.succeed(former);
                    taken.backends.push(Arc::clone(backend));
                    compare(former, backend, &mut taken);
                }
                None => {
                    backend.found();
                    taken.names.push(backend.name().to_owned());
                    taken
                        .servers
                        .extend(backend.servers.iter().map(|server| ChangedServer {
                            backend: Arc::clone(backend),
                            server: Arc::clone(server),
                            former: None,
                        }));
                }
            }
        }
        if let Some(previous) = previous {
            self.let_go(previous, registry, &mut taken);
        }
        taken
    }

    /// Forgets what is not configured any more, so that a later section or server of the same name
    /// starts with new state.
    fn let_go(&self, previous: &Self, registry: &Registry, taken: &mut TakenOver) {
        let names: HashSet<&str> = self.frontends.iter().map(|one| one.name()).collect();
        for frontend in &previous.frontends {
            if !names.contains(frontend.name()) {
                let sent = frontend.state.counters.sums().bytes_out;
                registry.process().counters.of(0).bytes_out.add(sent);
                registry.forget_frontend(frontend.name());
            }
        }
        for backend in &previous.backends {
            if self.backend_named(backend.name()).is_none() {
                registry.forget_backend(backend.name());
                taken.names.push(backend.name().to_owned());
                taken.removed.extend(backend.servers.iter().cloned());
                for server in &backend.servers {
                    registry.forget_server(backend.name(), server.name());
                }
            }
        }
        // A removed backend keeps its queue and servers until its last exchange has ended.
        for (backend, server) in self.servers_gone(previous) {
            registry.forget_server(backend.name(), server.name());
            server.state.believe(false, true);
            taken.removed.push(server);
        }
    }

    /// The servers that were removed from backends that both generations have.
    fn servers_gone(&self, previous: &Self) -> Vec<(Arc<Backend>, Arc<Server>)> {
        let mut gone = Vec::new();
        for former in &previous.backends {
            let Some(backend) = self.backend(former.name()) else {
                continue;
            };
            if Arc::ptr_eq(former, backend) {
                continue;
            }
            let left = former
                .servers
                .iter()
                .filter(|server| backend.server_named(server.name()).is_none());
            gone.extend(left.map(|server| (Arc::clone(former), Arc::clone(server))));
        }
        gone
    }
}

fn compare(former: &Arc<Backend>, backend: &Arc<Backend>, taken: &mut TakenOver) {
    for server in &backend.servers {
        let known = former
            .server_named(server.name())
            .map(|place| &former.servers[place]);
        if known.is_some_and(|known| Arc::ptr_eq(&known.model, &server.model)) {
            continue;
        }
        if let Some(known) = known
            && known.model.address != server.model.address
            && !matches!(server.model.address, model::Address::Name { .. })
        {
            server.state.set_address(Some(server.model.address.clone()));
        }
        if let Some(known) = known
            && known.model.connection_count_max != server.model.connection_count_max
        {
            // A value that changed in the file wins over what a command set before.
            server.state.limit_connections(None);
        }
        taken.servers.push(ChangedServer {
            backend: Arc::clone(backend),
            server: Arc::clone(server),
            former: known.cloned(),
        });
    }
}

impl Backend {
    /// Begins to balance with a new balancer.
    fn found(self: &Arc<Self>) {
        let mut balancer = Balancer::new(setup(&self.model), &self.candidates());
        balancer.settle();
        *self
            .balancer
            .write()
            .unwrap_or_else(PoisonError::into_inner) = balancer;
        self.renew_cookies();
        self.state.set_current(self);
    }

    /// Continues the balancer of `former`, which is told nothing any more.
    fn succeed(self: &Arc<Self>, former: &Self) {
        let old = former
            .balancer
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut balancer = if self.slots.continues {
            let mut balancer = old.clone();
            self.bring_up_to_date(&mut balancer, former);
            balancer
        } else {
            let mut balancer = Balancer::new(setup(&self.model), &self.candidates());
            for (place, server) in self.servers.iter().enumerate() {
                if let Some(slot) = former
                    .server_named(server.name())
                    .and_then(|was| former.slots.of_place(was))
                {
                    let slot_now = self.slots.of_place(place).unwrap_or(FREE);
                    balancer.set_inflight(slot_now, old.inflight(slot));
                }
            }
            balancer
        };
        balancer.settle();
        *self
            .balancer
            .write()
            .unwrap_or_else(PoisonError::into_inner) = balancer;
        self.renew_cookies();
        self.state.set_current(self);
        former.superseded.store(true, Ordering::Release);
        drop(old);
    }

    fn bring_up_to_date(&self, balancer: &mut Balancer, former: &Self) {
        for (place, server) in former.servers.iter().enumerate() {
            if self.server_named(server.name()).is_none()
                && let Some(slot) = former.slots.of_place(place)
            {
                balancer.remove(slot);
            }
        }
        for (place, server) in self.servers.iter().enumerate() {
            let Some(slot) = self.slots.of_place(place) else {
                continue;
            };
            let known = former
                .server_named(server.name())
                .map(|place| &former.servers[place]);
            let now = candidate(server);
            match known {
                None => balancer.add(slot, &now),
                Some(known) if Arc::ptr_eq(&known.model, &server.model) => {}
                Some(known) => {
                    let stands = known.model.backup == server.model.backup
                        && known.model.id == server.model.id;
                    if !stands {
                        let inflight = balancer.inflight(slot);
                        balancer.add(slot, &now);
                        balancer.set_inflight(slot, inflight);
                    }
                    balancer.set_hash_key(slot, now.hash_key);
                    let percent = server.state.throttle_percent();
                    balancer.set_weight(slot, now.weight, (percent * WEIGHT_SCALE).div_ceil(100));
                    balancer.set_usable(slot, now.usable);
                }
            }
        }
    }

    fn candidates(&self) -> Vec<Candidate> {
        self.servers
            .iter()
            .map(|server| candidate(server))
            .collect()
    }
}
