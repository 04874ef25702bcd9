//! A reload makes the process what its files say: what operators set while it ran is released, as
//! HAProxy's new process knows nothing of it.
//!
//! What is counted and believed stays: counters, sessions, idle connections, and the health of
//! servers, so that one that is down stays down until a check says otherwise. What a state file
//! says (`load-server-state-from-file`) holds then as it would at a start.

use std::collections::HashSet;
use std::sync::Arc;

use ballast_engine::{Backend, CheckOverrides, Frontend, Generation, Opening, Server};
use ballast_health::{Admin, Effect, Health, Operational};
use ballast_model::Address;

use crate::kinds::SERVER;
use crate::object::{ObjectName, OverrideKey};
use crate::reconciler::Reconciler;
use crate::state_files::SavedState;
use crate::target::{Mode, Target};

/// Whether a frontend that was shut is to listen again.
pub(crate) fn reopens(now: &Generation, target: &Target) -> bool {
    let is_shut = |one: &Arc<Frontend>| one.state.gate.opening() == Opening::Shut;
    target.drops_overrides() && now.frontends.iter().any(is_shut)
}

/// Opens the gates that were shut, where that is wanted, before their sockets are opened; answers
/// which.
pub(crate) fn reopen(generation: &Generation, target: bool) -> Vec<Arc<Frontend>> {
    let frontends = generation.frontends.iter().filter(|_| target);
    let reopened = frontends.filter(|frontend| frontend.state.gate.reopen());
    reopened.cloned().collect()
}

/// Takes [`reopen`] back: the change was refused.
pub(crate) fn shut_again(reopened: &[Arc<Frontend>]) {
    for frontend in reopened {
        frontend.state.gate.set(Opening::Shut);
    }
}

impl Reconciler {
    /// Lets go of what operators set, where that is wanted, and takes over what state files say.
    pub(crate) fn equal_the_files(&self, target: &Target, generation: &Generation) {
        let Mode::Drop { states, .. } = &target.mode else {
            return;
        };
        self.equal_the_process(generation);
        let told: HashSet<(usize, usize)> = states.iter().map(|one| one.place()).collect();
        for (at, backend) in generation.backends.iter().enumerate() {
            for (place, server) in backend.servers.iter().enumerate() {
                let is_told = told.contains(&(at, place));
                self.equal_its_line(generation, (backend, server), &target.overruled, is_told);
            }
        }
        self.take_over_states(states, generation);
    }

    /// The limits of the process and its frontends.
    fn equal_the_process(&self, generation: &Generation) {
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
            if frontend.state.gate.opening() == Opening::Paused {
                // Why one cannot be resumed was logged.
                let _ = self.host.resume_frontend(frontend.name());
            }
        }
        self.host.limits_changed();
    }

    /// A server. What its agent said of it stays, as long as no operator said otherwise; what a
    /// state file says of it comes after.
    fn equal_its_line(
        &self,
        generation: &Generation,
        (backend, server): (&Arc<Backend>, &Arc<Server>),
        overridden: &[OverrideKey],
        is_told: bool,
    ) {
        let (model, state) = (&server.model, &server.state);
        let at = (backend.name(), server.name());
        let differs = Differences::of(server);
        if !differs.any() {
            return;
        }
        let scope = self.scope(generation);
        let name = ObjectName::Server(at.0.to_owned(), at.1.to_owned());
        let setting = |word: &str| SERVER.settings.iter().find(|one| one.word == word);
        let is_override = |word: &str| {
            let is_it = |key: &OverrideKey| {
                key.kind.word == SERVER.word && key.setting.word == word && key.name == name
            };
            !differs.has_agent || overridden.iter().any(is_it)
        };
        let give_back = |word: &str| {
            if let Some(setting) = setting(word) {
                (setting.release)(&scope, &name);
            }
        };
        if differs.weight && !is_told && is_override("weight") {
            give_back("weight");
        }
        if differs.limit && is_override("maxconn") {
            give_back("maxconn");
        }
        if differs.address {
            give_back("addr");
        }
        if differs.checks {
            state.change_checks(|checks| *checks = CheckOverrides::default());
        }
        if differs.check_off {
            give_back("health");
        }
        if differs.agent_off {
            give_back("agent");
        }
        if differs.admin && !is_told && is_override("state") {
            self.host.tell(at.0, at.1, &mut |health, now_ms| {
                health.set_configured_maint(now_ms, model.disabled)
            });
        }
        if differs.forced_health && !is_told {
            self.host.tell(at.0, at.1, &mut Health::forget_forced);
        }
    }

    fn take_over_states(&self, states: &[SavedState], generation: &Generation) {
        if states.is_empty() {
            return;
        }
        for state in states {
            let (backend, server) = state.place();
            let backend = &generation.backends[backend];
            let server = &backend.servers[server];
            let was_usable = server.state.is_usable();
            self.host
                .tell(backend.name(), server.name(), &mut |health, now_ms| {
                    let standing = |health: &Health| (health.operational(), health.balance());
                    let before = standing(health);
                    state.restore(health, now_ms);
                    if standing(health) == before {
                        return Vec::new();
                    }
                    vec![Effect::Balance(health.balance())]
                });
            if server.state.is_usable() != was_usable {
                state.tell(generation, was_usable, &|text| self.host.warn(text));
            }
        }
        self.host.settle_tracking();
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
        let reach = state.reach();
        let is_name = matches!(model.address, Address::Name { .. });
        let moved = reach.port.is_some() || reach.address.as_ref() != Some(&model.address);
        let health = state.health();
        Self {
            weight: health.weight_user() != u32::from(model.weight),
            limit: state.connection_count_max(model) != model.connection_count_max,
            address: moved && !is_name,
            checks: state.check_overrides() != CheckOverrides::default(),
            check_off: !health.check().enabled,
            agent_off: !health.agent().enabled,
            admin: is_forced(&health) != model.disabled || health.admin().has(Admin::FORCED_DRAIN),
            forced_health: is_unjudged(&health) && health.operational() != Operational::Running
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

/// Whether nobody but an operator says whether it is up.
fn is_unjudged(health: &Health) -> bool {
    let settings = health.settings();
    settings.check.is_none() && settings.agent.is_none() && !settings.tracks
}
