//! Replacing one generation by the next in one step.
//!
//! Balancing continues where it was: servers that stay keep their slots in the balancer, and with
//! them their turns, loads and points on the ring, whatever comes before or after them in the file.
//! When an exchange of the previous generation takes or releases a server later, the balancer in
//! force is told.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use ballast_balance::{Balancer, NewServer, WEIGHT_SCALE};
use ballast_expr::SearchLimit;
use ballast_model as model;

use crate::balancing::{balancer_settings, new_server};
use crate::slots::FREE;
use crate::{Backend, Generation, Registry, Server};

/// What changed between two generations.
#[derive(Debug, Default)]
pub struct GenerationChanges {
    /// Servers that are new or whose lines changed, with the previous server.
    pub servers: Vec<ChangedServer>,
    /// Backends whose settings or servers changed, as they are now.
    pub backends: Vec<Arc<Backend>>,
    /// Servers that were removed.
    pub removed: Vec<Arc<Server>>,
    /// The names of backends that were added, removed or changed.
    pub backend_names: Vec<String>,
}

/// A server whose line is new or changed.
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
    /// Compiles the first configuration of a process and puts it in force.
    pub fn compile(number: u64, config: Arc<model::Config>, registry: &Registry) -> Self {
        let first = Self::build(number, config, registry, None);
        first.take_over(None, registry);
        first
    }

    /// Replaces `previous` by this generation: limits that its lines change are set, and balancers
    /// continue from the previous ones. Cannot fail. The caller makes sure that only one thread
    /// does this at a time, and publishes the generation.
    pub fn take_over(&self, previous: Option<&Self>, registry: &Registry) -> GenerationChanges {
        let mut changes = GenerationChanges::default();
        let process_max = registry.process().configured_connection_max();
        let limits = &self.config.global.tune.variables;
        registry.process().variables.limit(limits);
        SearchLimit::set_steps_max(self.config.global.tune.regex_steps_max);
        let tune = &self.config.global.tune;
        registry
            .process()
            .idle_connections
            .set_percents(tune.idle_percent_low, tune.idle_percent_high);
        registry
            .process()
            .set_environment(&self.config.global.environment);
        let former = previous.map(|previous| &previous.config.global.variables);
        registry.process().apply_variable_lines(
            &self.config.global.variables,
            former.map_or(&[], Vec::as_slice),
        );
        let tls = &self.config.global.tls;
        registry
            .process()
            .tls
            .limit_connections(tls.connection_count_max);
        let tables = previous.map(|previous| &*previous.tables);
        self.tables.take_over(tables, registry);
        for (frontend_index, frontend) in self.frontends.iter().enumerate() {
            let stays = previous.and_then(|previous| previous.frontends.get(frontend_index));
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
                    changes.backend_names.push(backend.name().to_owned());
                    backend.continue_balancing(former);
                    changes.backends.push(Arc::clone(backend));
                    compare_servers(former, backend, &mut changes);
                }
                None => {
                    backend.begin_balancing();
                    changes.backend_names.push(backend.name().to_owned());
                    changes
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
            self.forget_removed(previous, registry, &mut changes);
        }
        changes
    }

    /// Forgets what is not configured any more, so that a later section or server of the same name
    /// starts with new state.
    fn forget_removed(
        &self,
        previous: &Self,
        registry: &Registry,
        changes: &mut GenerationChanges,
    ) {
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
                changes.backend_names.push(backend.name().to_owned());
                changes.removed.extend(backend.servers.iter().cloned());
            }
        }
        // A removed backend keeps its queue and servers until its last exchange has ended.
        for server in self.removed_servers(previous) {
            server.state.record_usability(false, true);
            changes.removed.push(server);
        }
    }

    /// The servers that were removed from backends that both generations have.
    fn removed_servers(&self, previous: &Self) -> Vec<Arc<Server>> {
        let mut removed = Vec::new();
        for former in &previous.backends {
            let Some(backend) = self.backend(former.name()) else {
                continue;
            };
            if Arc::ptr_eq(former, backend) {
                continue;
            }
            let left = former.servers.iter().enumerate();
            let left =
                left.filter(|(index, server)| backend.counterpart(*index, &server.model).is_none());
            removed.extend(left.map(|(_, server)| Arc::clone(server)));
        }
        removed
    }
}

fn compare_servers(former: &Arc<Backend>, backend: &Arc<Backend>, changes: &mut GenerationChanges) {
    for (index, server) in backend.servers.iter().enumerate() {
        let former_server = former
            .counterpart(index, &server.model)
            .map(|server_index| &former.servers[server_index]);
        if former_server
            .is_some_and(|former_server| Arc::ptr_eq(&former_server.model, &server.model))
        {
            continue;
        }
        if let Some(former_server) = former_server
            && former_server.model.address != server.model.address
            && !matches!(server.model.address, model::Address::Name { .. })
        {
            server.state.set_address(Some(server.model.address.clone()));
        }
        if let Some(former_server) = former_server
            && former_server.model.connection_count_max != server.model.connection_count_max
        {
            // A value that changed in the file wins over what a command set before.
            server.state.limit_connections(None);
        }
        changes.servers.push(ChangedServer {
            backend: Arc::clone(backend),
            server: Arc::clone(server),
            former: former_server.cloned(),
        });
    }
}

impl Backend {
    /// Begins to balance with a new balancer.
    fn begin_balancing(self: &Arc<Self>) {
        let mut balancer = Balancer::new(balancer_settings(&self.model), &self.new_servers());
        balancer.recompute_map();
        *self
            .balancer
            .write()
            .unwrap_or_else(PoisonError::into_inner) = balancer;
        self.renew_cookies();
        self.renew_addresses();
        self.state.set_current(self);
    }

    /// Continues the balancer of `former`, which is told nothing any more.
    fn continue_balancing(self: &Arc<Self>, former: &Self) {
        let old = former
            .balancer
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut balancer = if self.slots.continues {
            let mut balancer = old.clone();
            self.bring_up_to_date(&mut balancer, former);
            balancer
        } else {
            let mut balancer = Balancer::new(balancer_settings(&self.model), &self.new_servers());
            for (server_index, server) in self.servers.iter().enumerate() {
                if let Some(slot) = former
                    .counterpart(server_index, &server.model)
                    .and_then(|former_index| former.slots.of_server(former_index))
                {
                    let slot_now = self.slots.of_server(server_index).unwrap_or(FREE);
                    balancer.set_inflight(slot_now, old.inflight(slot));
                }
            }
            balancer
        };
        balancer.recompute_map();
        *self
            .balancer
            .write()
            .unwrap_or_else(PoisonError::into_inner) = balancer;
        self.renew_cookies();
        self.renew_addresses();
        self.state.set_current(self);
        former.superseded.store(true, Ordering::Release);
        drop(old);
    }

    fn bring_up_to_date(&self, balancer: &mut Balancer, former: &Self) {
        for (server_index, server) in former.servers.iter().enumerate() {
            if self.counterpart(server_index, &server.model).is_none()
                && let Some(slot) = former.slots.of_server(server_index)
            {
                balancer.remove(slot);
            }
        }
        for (server_index, server) in self.servers.iter().enumerate() {
            let Some(slot) = self.slots.of_server(server_index) else {
                continue;
            };
            let former_server = former
                .counterpart(server_index, &server.model)
                .map(|server_index| &former.servers[server_index]);
            match former_server {
                None => balancer.add(slot, &new_server(server)),
                Some(former_server) if Arc::ptr_eq(&former_server.model, &server.model) => {}
                Some(former_server) => {
                    let now = new_server(server);
                    let keeps_slot = former_server.model.backup == server.model.backup
                        && former_server.model.id == server.model.id;
                    if !keeps_slot {
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

    fn new_servers(&self) -> Vec<NewServer> {
        self.servers
            .iter()
            .map(|server| new_server(server))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DescriptorPressure, Process};

    #[test]
    fn shares_of_descriptors_change_with_the_configuration() {
        let process = Arc::new(Process::new(1, 10));
        process.idle_connections.limit_descriptors(10);
        let registry = Registry::new(1, Arc::clone(&process));
        let generation = |low, high| {
            let mut config = ballast_model::Config::default();
            let tune = &mut Arc::make_mut(&mut config.global).tune;
            (tune.idle_percent_low, tune.idle_percent_high) = (low, high);
            Generation::compile(1, Arc::new(config), &registry)
        };
        for _ in 0..2 {
            process.server_connections.enter();
        }
        let first = generation(30, 50);
        first.take_over(None, &registry);
        assert_eq!(process.descriptor_pressure(), DescriptorPressure::Low);
        let second = generation(20, 50);
        second.take_over(Some(&first), &registry);
        assert_eq!(process.descriptor_pressure(), DescriptorPressure::Medium);
        let third = generation(10, 20);
        third.take_over(Some(&second), &registry);
        assert_eq!(process.descriptor_pressure(), DescriptorPressure::High);
    }
}
