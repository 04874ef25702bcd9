//! A reload makes the process what its files say: it releases all that operators set, as HAProxy's
//! new process knows nothing of it.
//!
//! Counters, sessions, idle connections and the health of servers stay: a server that is down stays
//! down until a check says otherwise. State files (`load-server-state-from-file`) are read as at a
//! start.

use std::collections::HashSet;
use std::sync::Arc;

use ballast_engine::{Backend, CheckOverrides, Frontend, GateState, Generation, Server};
use ballast_health::{Admin, Effect, Health, Operational};
use ballast_model::Address;

use crate::kinds::server;
use crate::object::{ObjectName, Setting};
use crate::overrides::OverrideKey;
use crate::reconciler::Reconciler;
use crate::state_files::SavedState;
use crate::target::{ChangeMode, ChangeTarget};

/// Whether a frontend that was shut down is to listen again.
pub(crate) fn reopens(now: &Generation, target: &ChangeTarget) -> bool {
    let is_shut = |one: &Arc<Frontend>| one.state.gate.state() == GateState::Shut;
    target.drops_overrides() && now.frontends.iter().any(is_shut)
}

/// Opens the gates that were shut, where `reopens`, before their sockets are opened; answers their
/// frontends.
pub(crate) fn reopen(generation: &Generation, reopens: bool) -> Vec<Arc<Frontend>> {
    let frontends = generation.frontends.iter().filter(|_| reopens);
    let reopened = frontends.filter(|frontend| frontend.state.gate.reopen());
    reopened.cloned().collect()
}

/// Shuts the gates again: the change was refused.
pub(crate) fn shut_again(reopened: &[Arc<Frontend>]) {
    for frontend in reopened {
        frontend.state.gate.set(GateState::Shut);
    }
}

impl Reconciler {
    /// Where overrides are dropped: makes the state of all objects what the files say, and restores
    /// what state files say.
    pub(crate) fn reset_to_files(&self, target: &ChangeTarget, generation: &Generation) {
        let ChangeMode::Drop(_, states) = &target.mode else {
            return;
        };
        self.reset_limits(generation);
        let saved: HashSet<(usize, usize)> =
            states.iter().map(|one| one.server_position()).collect();
        for (at, backend) in generation.backends.iter().enumerate() {
            for (server_index, server) in backend.servers.iter().enumerate() {
                let is_saved = saved.contains(&(at, server_index));
                self.reset_server(generation, (backend, server), &target.overruled, is_saved);
            }
        }
        self.restore_saved_states(states, generation);
    }

    /// Resets the limits of the process and of its frontends.
    fn reset_limits(&self, generation: &Generation) {
        let process = self.host.registry().process();
        process.override_connection_limit(None);
        let rates = &process.rates;
        let all = [
            &rates.connections,
            &rates.sessions,
            &rates.ssl_sessions,
            &rates.compression_bytes,
        ];
        all.into_iter().for_each(|rate| rate.set(None));
        for frontend in &generation.frontends {
            frontend.state.override_connection_limit(None);
            if frontend.state.gate.state() == GateState::Paused {
                // The log says why a frontend could not be resumed.
                let _ = self.host.resume_frontend(frontend.name());
            }
        }
        self.host.limits_changed();
    }

    /// Resets a server to its line. What its agent set stays, unless an operator overrode it. A state
    /// file (`is_saved`) is read later.
    fn reset_server(
        &self,
        generation: &Generation,
        (backend, known): (&Arc<Backend>, &Arc<Server>),
        overridden: &[OverrideKey],
        is_saved: bool,
    ) {
        let (model, state) = (&known.model, &known.state);
        let at = (backend.name(), known.name());
        let differs = Differences::of(known);
        if !differs.any() {
            return;
        }
        let scope = self.scope(generation);
        let name = ObjectName::of_server(at.0, at.1);
        let is_overridden = |setting: &'static Setting| {
            let is_it = |key: &OverrideKey| key.is_about(setting) && key.name == name;
            !differs.has_agent || overridden.iter().any(is_it)
        };
        let release = |setting: &'static Setting| (setting.release)(&scope, &name);
        if differs.weight && !is_saved && is_overridden(&server::WEIGHT) {
            release(&server::WEIGHT);
        }
        if differs.limit && is_overridden(&server::MAXCONN) {
            release(&server::MAXCONN);
        }
        if differs.address {
            release(&server::ADDRESS);
        }
        if differs.checks {
            state.change_checks(|checks| *checks = CheckOverrides::default());
        }
        if differs.check_off {
            release(&server::HEALTH);
        }
        if differs.agent_off {
            release(&server::AGENT);
        }
        if differs.admin && !is_saved && is_overridden(&server::STATE) {
            self.host.change_health(at.0, at.1, &mut |health, now_ms| {
                health.set_configured_maint(now_ms, model.disabled)
            });
        }
        if differs.forced_health && !is_saved {
            self.host
                .change_health(at.0, at.1, &mut Health::forget_forced);
        }
    }

    fn restore_saved_states(&self, states: &[SavedState], generation: &Generation) {
        if states.is_empty() {
            return;
        }
        for state in states {
            let (backend, server) = state.server_position();
            let backend = &generation.backends[backend];
            let server = &backend.servers[server];
            let was_usable = server.state.is_usable();
            self.host
                .change_health(backend.name(), server.name(), &mut |health, now_ms| {
                    let standing = |health: &Health| (health.operational(), health.balance());
                    let before = standing(health);
                    state.restore(health, now_ms);
                    if standing(health) == before {
                        return Vec::new();
                    }
                    vec![Effect::Balance(health.balance())]
                });
            if server.state.is_usable() != was_usable {
                state.warn(generation, was_usable, &|text| self.host.warn(text));
            }
        }
        self.host.update_tracking_servers();
    }
}

/// Where a server is not what its line says.
struct Differences {
    weight: bool,
    limit: bool,
    address: bool,
    checks: bool,
    check_off: bool,
    agent_off: bool,
    admin: bool,
    forced_health: bool,
    has_agent: bool,
}

impl Differences {
    fn of(server: &Server) -> Self {
        let (model, state) = (&server.model, &server.state);
        let current = state.current_address();
        let is_name = matches!(model.address, Address::Name { .. });
        let moved = current.port.is_some() || current.address.as_ref() != Some(&model.address);
        let health = state.health();
        Self {
            weight: health.weight_user() != u32::from(model.weight),
            limit: state.connection_count_max(model) != model.connection_count_max,
            address: moved && !is_name,
            checks: state.check_overrides() != CheckOverrides::default(),
            check_off: !health.check().enabled,
            agent_off: !health.agent().enabled,
            admin: is_forced(&health) != model.disabled || health.admin().has(Admin::FORCED_DRAIN),
            forced_health: is_set_by_operator_only(&health)
                && health.operational() != Operational::Running
                || health.check().forced
                || health.agent().forced,
            has_agent: health.settings().agent.is_some(),
        }
    }

    fn any(&self) -> bool {
        self.weight
            || self.limit
            || self.address
            || self.checks
            || self.check_off
            || self.agent_off
            || self.admin
            || self.forced_health
    }
}

fn is_forced(health: &Health) -> bool {
    health.admin().has(Admin::FORCED_MAINT)
}

/// Whether only an operator says whether it is up: it has no check, no agent, and tracks none.
fn is_set_by_operator_only(health: &Health) -> bool {
    let settings = health.settings();
    settings.check.is_none() && settings.agent.is_none() && !settings.tracks
}
