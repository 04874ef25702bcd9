//! A reload makes the process what its files say: what operators set while it ran is let go, as
//! HAProxy's new process knows nothing of it.
//!
//! What is counted and believed stays: counters, sessions, idle connections, and the health of
//! servers, so that one that is down stays down until a check says otherwise. What a state file
//! says (`load-server-state-from-file`) holds then as it would at a start.

use std::collections::HashSet;
use std::sync::Arc;

use ballast_cli::Control;
use ballast_engine::config_history::{Overrides, PERSIST};
use ballast_engine::{Backend, CheckOverrides, Frontend, Generation, Opening, Server};
use ballast_expr::ListChange;
use ballast_health::{Admin, Effect, Health, Operational};
use ballast_model::Address;

use crate::controller::Controller;
use crate::instance::Instance;
use crate::override_state::added;
use crate::reading::TargetConfig;

/// The line of a plan for a list that gets other entries.
pub(crate) fn line_of_list(change: &ListChange) -> String {
    let (list, added, removed) = (&change.list, change.added, change.removed);
    let kind = if list.is_map() { "map" } else { "acl" };
    match list.name() {
        "" => format!("~ {kind} patterns: {added} added, {removed} removed"),
        name => format!("~ {kind} {name}: {added} added, {removed} removed"),
    }
}

/// Has what was set while the files were read go with the rest: it was set of what is no more.
pub(crate) fn drop_late(controller: &Controller, target: &mut TargetConfig) {
    if target.overrides == Overrides::Drop {
        let config_history = controller.config_history();
        let keys = config_history.overrides().map(|(key, _)| key.to_owned());
        target.overruled = keys.filter(|key| key != PERSIST).collect();
    }
}

/// Whether a frontend that was shut is to listen again.
pub(crate) fn reopens(now: &Generation, target: &TargetConfig) -> bool {
    let is_shut = |one: &Arc<Frontend>| one.state.gate.opening() == Opening::Shut;
    target.overrides == Overrides::Drop && now.frontends.iter().any(is_shut)
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

impl Instance {
    /// The lines of a plan for the overrides that are dropped. Servers and sections that go, or
    /// come back, have lines of their own.
    pub(crate) fn dropped(&self, target: &TargetConfig) -> Vec<String> {
        let (Overrides::Drop, Some(controller)) = (target.overrides, self.controller.get()) else {
            return Vec::new();
        };
        let config_history = controller.config_history();
        let overruled: HashSet<&str> = target.overruled.iter().map(String::as_str).collect();
        let overrides = config_history.overrides();
        let overrides =
            overrides.filter(|(key, _)| overruled.contains(key) && has_own_line(key, target));
        overrides
            .map(|(key, entry)| {
                format!("- override {key} {}", entry.value)
                    .trim_end()
                    .to_owned()
            })
            .collect()
    }

    /// Lets go of what operators set, where that is wanted, and takes over what state files say.
    pub(crate) fn equal_the_files(&self, target: &TargetConfig, generation: &Generation) {
        if target.overrides == Overrides::Keep {
            return;
        }
        self.equal_the_process(generation);
        let overridden: HashSet<&str> = target.overruled.iter().map(String::as_str).collect();
        let told: HashSet<(usize, usize)> = target.states.iter().map(|one| one.place()).collect();
        for (at, backend) in generation.backends.iter().enumerate() {
            for (place, server) in backend.servers.iter().enumerate() {
                let is_told = told.contains(&(at, place));
                self.equal_its_line(generation, (backend, server), &overridden, is_told);
            }
        }
        self.take_over_states(target, generation);
    }

    /// The limits of the process and its frontends.
    fn equal_the_process(&self, generation: &Generation) {
        let process = self.registry.process();
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
                let _ = self.resume_frontend(frontend.name());
            }
        }
        self.limits_changed();
    }

    /// A server. What its agent said of it stays, as long as no operator said otherwise; what a
    /// state file says of it comes after.
    fn equal_its_line(
        &self,
        generation: &Generation,
        (backend, server): (&Arc<Backend>, &Arc<Server>),
        overridden: &HashSet<&str>,
        is_told: bool,
    ) {
        let (model, state) = (&server.model, &server.state);
        let at = (backend.name(), server.name());
        let differs = Differences::of(server);
        if !differs.any() {
            return;
        }
        let is_override = |word: &str| {
            let key = format!("server {}/{} {word}", at.0, at.1);
            !differs.has_agent || overridden.contains(key.as_str())
        };
        let give_back = |word: &str| self.let_go_of_server(at, word, generation);
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
        let Some(probes) = self.probes() else {
            return;
        };
        if differs.admin && !is_told && is_override("state") {
            probes.tell(at.0, at.1, |health, now_ms| {
                health.set_configured_maint(now_ms, model.disabled)
            });
        }
        if differs.forced_health && !is_told {
            probes.tell(at.0, at.1, Health::forget_forced);
        }
    }

    fn take_over_states(&self, target: &TargetConfig, generation: &Generation) {
        let Some(probes) = self.probes().filter(|_| !target.states.is_empty()) else {
            return;
        };
        for state in &target.states {
            let (backend, server) = state.place();
            let backend = &generation.backends[backend];
            let server = &backend.servers[server];
            let was_usable = server.state.is_usable();
            probes.tell(backend.name(), server.name(), |health, now_ms| {
                let standing = |health: &Health| (health.operational(), health.balance());
                let before = standing(health);
                state.restore(health, now_ms);
                if standing(health) == before {
                    return Vec::new();
                }
                vec![Effect::Balance(health.balance())]
            });
            if server.state.is_usable() != was_usable {
                state.tell(generation, was_usable);
            }
        }
        probes.settle_tracking();
    }
}

/// Whether a line of its own tells that an override is dropped.
fn has_own_line(key: &str, target: &TargetConfig) -> bool {
    let words: Vec<&str> = key.splitn(3, ' ').collect();
    match words[..] {
        ["map" | "acl", ..] => false,
        ["server", at, _] if added(key).is_none() => {
            at.split_once('/').is_some_and(|(backend, name)| {
                let backend = target.config.backend(backend);
                backend.is_some_and(|known| known.servers.iter().any(|one| one.name == name))
            })
        }
        ["server", ..] => false,
        ["backend", name, _] => target.config.backend(name).is_some(),
        ["frontend", name, _] => target.config.frontend(name).is_some(),
        _ => true,
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
