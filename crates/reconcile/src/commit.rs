//! A target is put in force: all participants prepare, which may fail; then all commit, which
//! cannot.

use std::collections::HashSet;
use std::sync::Arc;

use ballast_edit::Refusal;
use ballast_engine::counters::BackendSums;
use ballast_engine::{Frontend, Generation};

use crate::certificate_changes::{CertificateChangeLock, NextGeneration};
use crate::file_state::{reopen, reopens, shut_again};
use crate::history::PastConfig;
use crate::kinds::backend::{PUBLISHED, is_published, published};
use crate::kinds::{SERVER, server};
use crate::now_unix_s;
use crate::object::ObjectName;
use crate::override_value::OverrideValue;
use crate::overrides::{Override, OverrideKey};
use crate::participant::{CommitEffects, GenerationSwitch, PreparedChange};
use crate::reconciler::Reconciler;
use crate::request::ChangeReport;
use crate::target::{ChangeMode, ChangeTarget};

impl Reconciler {
    /// Compiles the next generation, prepares and commits.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub(crate) fn put_in_force(&self, mut target: ChangeTarget) -> Result<ChangeReport, Refusal> {
        let now = self.host.generation();
        let mut plan = self.plan(&target);
        if target.drops_overrides() {
            // Overrides that came while the files were read are dropped too.
            target.overruled = self.droppable_overrides();
        }
        let reopens = reopens(&now, &target);
        let patterns = target.source.as_ref().map(|one| Arc::clone(&one.patterns));
        let mut to = GenerationSwitch {
            now: &now,
            next: None,
            patterns: patterns.as_ref(),
            changes: None,
        };
        if target.changes.is_empty() && !reopens {
            let prepared = self.prepare(&to)?;
            self.record_source(&mut target);
            let turn = self.controller.certificate_change_lock();
            carry_over_certificates(&turn, &target, (&now, &now));
            drop(turn);
            commit(prepared, &to);
            if to.patterns.is_some() {
                self.host.memory_was_freed();
            }
            if let Some(source) = target.source.take() {
                self.controller.config_history().set_written(source.written);
            }
            self.release_overrides(&target, &now);
            return Ok(plan.report);
        }
        let config = Arc::new(std::mem::take(&mut target.config));
        let registry = self.host.registry();
        let generation = Arc::new(Generation::compile_next(
            Arc::clone(&config),
            registry,
            &now,
        ));
        let reopened = reopen(&generation, reopens);
        to.next = Some(&generation);
        let prepared = self.prepare(&to).inspect_err(|_| shut_again(&reopened))?;
        if let ChangeMode::RenameServer {
            backend,
            old_name,
            new_name,
        } = &target.mode
        {
            self.carry_over_renamed((&now, &generation), backend, (old_name, new_name));
        }
        let changes = generation.take_over(Some(&now), registry);
        to.changes = Some(&changes);
        self.limit_connections(&generation);
        self.publish(&generation, &target);
        self.record_source(&mut target);
        let turn = self.controller.certificate_change_lock();
        carry_over_certificates(&turn, &target, (&now, &generation));
        let former = self.host.put_in_force(Arc::clone(&generation));
        drop(turn);
        commit(prepared, &to);
        self.controller.retired.retire(former);
        if to.patterns.is_some() {
            self.host.memory_was_freed();
        }
        self.note_addition(&target);
        self.release_overrides(&target, &generation);
        let written = target.source.map(|source| source.written);
        let mut history = self.controller.config_history();
        let written = written.unwrap_or_else(|| history.written().clone());
        history.put_in_force(PastConfig {
            number: generation.number,
            at_unix_s: now_unix_s(),
            cause: target.cause,
            lines: plan.lines,
            config,
            written,
        });
        plan.report.generation = generation.number;
        Ok(plan.report)
    }

    /// Has all participants prepare. When one refuses, what the others opened is closed.
    fn prepare(&self, to: &GenerationSwitch<'_>) -> Result<Vec<Box<dyn PreparedChange>>, Refusal> {
        let prepared = self.participants.iter().map(|one| one.prepare(to));
        let prepared: Result<Vec<_>, _> = prepared.collect();
        Ok(prepared?.into_iter().flatten().collect())
    }

    /// Edits and rollbacks go by what was read, from now on.
    fn record_source(&self, target: &mut ChangeTarget) {
        let is_of_disk = target.is_of_disk();
        let Some(source) = &mut target.source else {
            return;
        };
        if let Some(answers) = source.machine_answers.take() {
            self.controller.set_machine_answers(answers);
        }
        if let Some(sections) = source.sections.take() {
            self.controller.set_sections(sections);
        }
        if is_of_disk {
            self.controller.set_disk(Arc::clone(&source.written.files));
        }
    }

    /// Publishes the backends of files, unless an override says otherwise. A backend that a command
    /// added is not published.
    fn publish(&self, generation: &Generation, target: &ChangeTarget) {
        if let ChangeMode::Edit {
            unpublished: Some(key),
        } = &target.mode
            && let Some(backend) = generation.backend(key.name.text())
        {
            backend.state.publish(false);
        }
        let Some(file) = target.file_config() else {
            return;
        };
        let history = self.controller.config_history();
        let overrides = history.overrides();
        let hidden: HashSet<&str> = overrides
            .filter(|(key, entry)| key.is_about(&PUBLISHED) && !is_published(&entry.value))
            .filter(|(key, _)| !target.overruled.contains(key))
            .map(|(key, _)| key.name.text())
            .collect();
        for backend in &file.backends {
            let name = &backend.common.name;
            if let Some(known) = generation.backend(name) {
                known.state.publish(!hidden.contains(name.as_str()));
            }
        }
    }

    /// Notes the override of a server or backend that a command added. As in HAProxy, the server
    /// begins unchecked and the backend unpublished.
    fn note_addition(&self, target: &ChangeTarget) {
        match &target.mode {
            ChangeMode::Edit {
                unpublished: Some(key),
            } => self.note(key, published(false), target),
            ChangeMode::AddServer { key, words } => {
                self.note(key, OverrideValue::of_text(words), target);
                if let Some((backend, server)) = key.name.server() {
                    self.host.change_health(backend, server, &mut |health, _| {
                        health.enable_check(false);
                        health.enable_agent(false);
                        Vec::new()
                    });
                }
            }
            _ => {}
        }
    }

    fn note(&self, key: &OverrideKey, value: OverrideValue, target: &ChangeTarget) {
        let entry = Override::now(value, target.cause.clone());
        self.controller.config_history().note(key.clone(), entry);
    }

    /// Releases overrides that end with this change.
    fn release_overrides(&self, target: &ChangeTarget, generation: &Generation) {
        let scope = self.scope(generation);
        for key in &target.overruled {
            if (key.kind.in_force)(generation, &key.name) {
                (key.setting.release)(&scope, &key.name);
            }
        }
        if !target.overruled.is_empty() {
            self.host.limits_changed();
        }
        // A server that comes takes nothing away, and thousands of them may come.
        if !matches!(target.mode, ChangeMode::AddServer { .. }) {
            let mut history = self.controller.config_history();
            // An object that is gone has no overrides.
            history.forget_overrides(|key| {
                target.overruled.contains(key) || !(key.kind.in_force)(generation, &key.name)
            });
        }
        self.reset_to_files(target, generation);
    }

    /// Gives a renamed server the counters, the health, the settings and the overrides that it had
    /// under its old name.
    fn carry_over_renamed(
        &self,
        (now, next): (&Generation, &Generation),
        backend: &str,
        (old_name, new_name): (&str, &str),
    ) {
        let at = |generation: &Generation, name: &str| {
            let backend = Arc::clone(generation.backend(backend)?);
            let server_index = backend.server_named(name)?;
            Some((backend, server_index))
        };
        let (Some((before, old)), Some((after, new))) = (at(now, old_name), at(next, new_name))
        else {
            return;
        };
        let (old, known) = (&before.servers[old], &after.servers[new]);
        let sums = old.state.counters.sums();
        let counters = known.state.counters.of(0);
        for (name, amount) in BackendSums::NAMES.iter().zip(sums.values()) {
            if let Some(counter) = counters.find(name) {
                counter.add(amount);
            }
        }
        let now_ms = self.host.registry().process().age_ms();
        let snapshot = old.state.health().snapshot(now_ms);
        known.state.health().restore(&snapshot, now_ms);
        after.apply_health(new);
        let current = old.state.current_address();
        known
            .state
            .set_current_address(current.address.clone(), current.port);
        let limit = old.state.connection_count_max(&old.model);
        if limit != old.model.connection_count_max {
            known.state.limit_connections(Some(limit));
        }
        let checks = old.state.check_overrides();
        known.state.change_checks(|own| *own = checks);
        let old_name = ObjectName::of_server(backend, old_name);
        let new_name = ObjectName::of_server(backend, new_name);
        let mut history = self.controller.config_history();
        let own = history
            .overrides()
            .filter(|(key, _)| key.is_of(&SERVER) && key.name == old_name);
        let own: Vec<(OverrideKey, Override)> = own
            .map(|(key, entry)| {
                let key = OverrideKey::new(key.kind, new_name.clone(), key.setting);
                (key, entry.clone())
            })
            .collect();
        for (key, entry) in own {
            history.note(key, entry);
        }
    }

    /// The limit of the process follows the file, as far as the descriptors of its start allow,
    /// and with it that of frontends that set none.
    fn limit_connections(&self, generation: &Generation) {
        let most = self.host.connection_count_hard_max();
        let target = generation.config.global.connection_count_max;
        let target = target.map_or(most, |target| target.min(most));
        let process = self.host.registry().process();
        if process.configured_connection_max() == target {
            return;
        }
        process.limit_connections(target);
        let no_own = |frontend: &&Arc<Frontend>| frontend.model.connection_count_max.is_none();
        for frontend in generation.frontends.iter().filter(no_own) {
            frontend.state.limit_connections(target);
        }
        self.host.limits_changed();
    }

    /// Keeps the lines of servers that still have overrides: no file says all that was set of them.
    /// Returns these overrides.
    pub(crate) fn keep_server_lines(
        &self,
        target: &mut ChangeTarget,
    ) -> Vec<(OverrideKey, Override)> {
        let now = self.host.generation();
        let left: Vec<(OverrideKey, Override)> = {
            let history = self.controller.config_history();
            let overrides = history.overrides();
            let overrides = overrides.filter(|(key, _)| key.is_of(&SERVER));
            overrides
                .map(|(key, entry)| (key.clone(), entry.clone()))
                .collect()
        };
        for (key, _) in &left {
            let Some((backend, server)) = key.name.server() else {
                continue;
            };
            let runs = server::line(&now.config, &key.name);
            let mut backends = target.config.backends.iter_mut();
            let known = backends.find(|one| one.common.name == backend);
            if let (Some(runs), Some(known)) = (runs, known) {
                let mut servers = Arc::make_mut(known).servers.iter_mut();
                if let Some(own) = servers.find(|one| one.name == server) {
                    *own = Arc::clone(runs);
                }
            }
        }
        target.changes = ballast_model::change::diff(&now.config, &target.config);
        left
    }

    /// Applies overrides of servers again that came while the lines of servers were put in force.
    /// `before` has the overrides of before that.
    pub(crate) fn reapply_overrides_since(&self, before: &[(OverrideKey, Override)]) {
        let new: Vec<(OverrideKey, Override)> = {
            let history = self.controller.config_history();
            let is_known = |key: &OverrideKey, entry: &Override| {
                let mut before = before.iter();
                before.any(|(known, then)| known == key && then == entry)
            };
            let new = history.overrides();
            let new = new.filter(|(key, entry)| key.setting.is_in_state && !is_known(key, entry));
            new.map(|(key, entry)| (key.clone(), entry.clone()))
                .collect()
        };
        let generation = self.host.generation();
        let scope = self.scope(&generation);
        for (key, entry) in new {
            if let Some(apply) = key.setting.apply {
                apply(&scope, &key.name, &entry.value);
            }
        }
    }
}

/// Has the next configuration hold the certificates and keys that were read, and what commands did
/// since.
fn carry_over_certificates(
    turn: &CertificateChangeLock<'_>,
    target: &ChangeTarget,
    (now, next): (&Generation, &Arc<Generation>),
) {
    let certificates = &next.config.global.tls.shared_store;
    let former = &now.config.global.tls.shared_store;
    let keeps_commands = match &target.source {
        Some(source) => certificates.adopt(&source.certificates, former),
        None => true,
    };
    turn.replay(NextGeneration {
        generation: next,
        keeps_commands,
    });
}

/// Has all participants commit, and then finish.
fn commit(mut prepared: Vec<Box<dyn PreparedChange>>, to: &GenerationSwitch<'_>) {
    let mut effects = CommitEffects::default();
    for one in &mut prepared {
        one.commit(to, &mut effects);
    }
    for one in prepared {
        one.finish();
    }
}
