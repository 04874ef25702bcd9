//! A target is put in force: everybody prepares, which may refuse, and then everybody commits,
//! which cannot.

use std::collections::HashSet;
use std::sync::Arc;

use ballast_edit::Refusal;
use ballast_engine::counters::BackendSums;
use ballast_engine::{Frontend, Generation};

use crate::file_state::{reopen, reopens, shut_again};
use crate::history::PastConfig;
use crate::kinds::{self, BACKEND, PUBLISHED, SERVER};
use crate::now_unix_s;
use crate::object::{ObjectName, Override, OverrideKey};
use crate::participant::{Effects, Prepared, Transition};
use crate::reconciler::Reconciler;
use crate::request::Applied;
use crate::target::{Mode, Target};

impl Reconciler {
    /// Compiles, opens, commits.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub(crate) fn put_in_force(&self, mut target: Target) -> Result<Applied, Refusal> {
        let now = self.host.generation();
        let mut plan = self.plan(&target);
        if target.drops_overrides() {
            // What was set while the files were read goes with the rest: it was set of what is no
            // more.
            target.overruled = self.droppable_overrides();
        }
        let reopens = reopens(&now, &target);
        let patterns = target.source.as_ref().map(|one| Arc::clone(&one.patterns));
        let mut to = Transition {
            now: &now,
            next: None,
            patterns: patterns.as_ref(),
            taken: None,
        };
        if target.changes.is_empty() && !reopens {
            let prepared = self.prepare(&to)?;
            self.remember(&mut target);
            commit(prepared, &to);
            if let Some(source) = target.source.take() {
                self.controller.config_history().written_is(source.written);
            }
            self.settle(&target, &now);
            return Ok(plan.applied);
        }
        let config = Arc::new(std::mem::take(&mut target.config));
        let registry = self.host.registry();
        let generation = Arc::new(Generation::succeed(Arc::clone(&config), registry, &now));
        let reopened = reopen(&generation, reopens);
        to.next = Some(&generation);
        let prepared = self.prepare(&to).inspect_err(|_| shut_again(&reopened))?;
        if let Mode::RenameServer { backend, was, is } = &target.mode {
            self.go_on_renamed((&now, &generation), backend, (was, is));
        }
        let taken = generation.take_over(Some(&now), registry);
        to.taken = Some(&taken);
        self.limit_connections(&generation);
        self.publish(&generation, &target);
        self.remember(&mut target);
        let former = self.host.put_in_force(Arc::clone(&generation));
        commit(prepared, &to);
        registry.retire(former);
        self.begin_overridden(&target);
        self.settle(&target, &generation);
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
        plan.applied.generation = generation.number;
        Ok(plan.applied)
    }

    /// Has everybody open what is new. What was opened is closed on a refusal.
    fn prepare(&self, to: &Transition<'_>) -> Result<Vec<Box<dyn Prepared>>, Refusal> {
        let prepared = self.participants.iter().map(|one| one.prepare(to));
        let prepared: Result<Vec<_>, _> = prepared.collect();
        Ok(prepared?.into_iter().flatten().collect())
    }

    /// What was read is what edits and rollbacks go by from now on.
    fn remember(&self, target: &mut Target) {
        let is_of_start = target.is_of_start();
        let Some(source) = &mut target.source else {
            return;
        };
        if let Some(answers) = source.machine_answers.take() {
            self.controller.set_machine_answers(answers);
        }
        if let Some(sections) = source.sections.take() {
            self.controller.set_sections(sections);
        }
        if is_of_start {
            self.controller.set_disk(Arc::clone(&source.written.files));
        }
    }

    /// What a file has is published, unless an override said otherwise; what a command adds is not.
    fn publish(&self, generation: &Generation, target: &Target) {
        if let Mode::Edit {
            unpublished: Some(key),
        } = &target.mode
            && let Some(backend) = generation.backend(key.name.text())
        {
            backend.state.publish(false);
        }
        let Some(file) = target.file_that_was_read() else {
            return;
        };
        let history = self.controller.config_history();
        let overrides = history.overrides();
        let hidden: HashSet<&str> = overrides
            .filter(|(key, entry)| key.is(&BACKEND, &PUBLISHED) && entry.value.text() == "no")
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

    /// Notes what a command added, and has it begin as HAProxy's do: a server unchecked, a backend
    /// that no rule leads to.
    fn begin_overridden(&self, target: &Target) {
        match &target.mode {
            Mode::Edit {
                unpublished: Some(key),
            } => self.controller.note(key.clone(), "no", &target.cause),
            Mode::AddServer { key, words } => {
                self.controller.note(key.clone(), words, &target.cause);
                if let Some((backend, server)) = key.name.server() {
                    self.host.tell(backend, server, &mut |health, _| {
                        health.enable_check(false);
                        health.enable_agent(false);
                        Vec::new()
                    });
                }
            }
            _ => {}
        }
    }

    /// Overrides that hold no longer are released, and where files win the process is what they
    /// say.
    fn settle(&self, target: &Target, generation: &Generation) {
        let scope = self.scope(generation);
        for key in &target.overruled {
            if (key.kind.in_force)(generation, &key.name) {
                (key.setting.release)(&scope, &key.name);
            }
        }
        if !target.overruled.is_empty() {
            self.host.limits_changed();
        }
        {
            let mut history = self.controller.config_history();
            // What is there no more has no overrides on it.
            history.forget_overrides(|key| {
                target.overruled.contains(key) || !(key.kind.in_force)(generation, &key.name)
            });
        }
        self.equal_the_files(target, generation);
    }

    /// Has a server go on under another name: what was counted and believed of it, and what
    /// operators set of it.
    fn go_on_renamed(
        &self,
        (now, next): (&Generation, &Generation),
        backend: &str,
        (was, is): (&str, &str),
    ) {
        let at = |generation: &Generation, name: &str| {
            let backend = Arc::clone(generation.backend(backend)?);
            let place = backend.server_named(name)?;
            Some((backend, place))
        };
        let (Some((before, old)), Some((after, new))) = (at(now, was), at(next, is)) else {
            return;
        };
        let (old, known) = (&before.servers[old], &after.servers[new]);
        let sums = old.state.counters.sums();
        let counters = known.state.counters.of(0);
        for (name, amount) in BackendSums::NAMES.iter().zip(sums.values()) {
            if let Some(counter) = counters.named(name) {
                counter.add(amount);
            }
        }
        let now_ms = self.host.registry().process().age_ms();
        let told = old.state.health().snapshot(now_ms);
        known.state.health().restore(&told, now_ms);
        after.settle_health(new);
        let reach = old.state.reach();
        known.state.set_reach(reach.address.clone(), reach.port);
        let limit = old.state.connection_count_max(&old.model);
        if limit != old.model.connection_count_max {
            known.state.limit_connections(Some(limit));
        }
        let checks = old.state.check_overrides();
        known.state.change_checks(|own| *own = checks);
        let renamed = |name: &str| ObjectName::Server(backend.to_owned(), name.to_owned());
        let (was, is) = (renamed(was), renamed(is));
        let mut history = self.controller.config_history();
        let own = history
            .overrides()
            .filter(|(key, _)| key.kind.word == SERVER.word && key.name == was);
        let own: Vec<(OverrideKey, Override)> = own
            .map(|(key, entry)| (key.of(is.clone()), entry.clone()))
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
        if process.connection_count_written() == target {
            return;
        }
        process.limit_connections(target);
        let no_own = |frontend: &&Arc<Frontend>| frontend.model.connection_count_max.is_none();
        for frontend in generation.frontends.iter().filter(no_own) {
            frontend.state.limit_connections(target);
        }
        self.host.limits_changed();
    }

    /// Servers that overrides still have a say about go on as they are: their lines said less.
    /// Answers what was set of them.
    pub(crate) fn keep_servers(&self, target: &mut Target) -> Vec<(OverrideKey, Override)> {
        let now = self.host.generation();
        let left: Vec<(OverrideKey, Override)> = {
            let history = self.controller.config_history();
            let overrides = history.overrides();
            let overrides = overrides.filter(|(key, _)| key.kind.word == SERVER.word);
            overrides
                .map(|(key, entry)| (key.clone(), entry.clone()))
                .collect()
        };
        for (key, _) in &left {
            let Some((backend, server)) = key.name.server() else {
                continue;
            };
            let runs = kinds::line(&now.config, &key.name);
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

    /// Says again what operators said of servers while lines of theirs were put in force; `before`
    /// is what they had said when that began.
    pub(crate) fn say_again(&self, before: &[(OverrideKey, Override)]) {
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

/// Everybody goes over, and then ends what is no more.
fn commit(mut prepared: Vec<Box<dyn Prepared>>, to: &Transition<'_>) {
    let mut effects = Effects::default();
    for one in &mut prepared {
        one.commit(to, &mut effects);
    }
    for one in prepared {
        one.finish();
    }
}
