//! Who carries out changes, with all that takes part in them.

use std::sync::Arc;

use ballast_edit::{Files, Refusal, SectionMap};
use ballast_engine::Generation;
use ballast_model::Config;

use crate::console::{Severity, console_line};
use crate::controller::Controller;
use crate::history::ConfigSource;
use crate::host::Host;
use crate::lists::Lists;
use crate::object::{Override, OverrideKey, Scope};
use crate::participant::Participant;
use crate::request::Source;

/// Carries out changes, one after the other.
pub struct Reconciler {
    pub(crate) controller: Arc<Controller>,
    pub(crate) host: Arc<dyn Host>,
    /// In the order in which they go over.
    pub(crate) participants: Vec<Box<dyn Participant>>,
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Reconciler")
    }
}

impl Reconciler {
    /// For a process whose sockets, log targets and so on are held by `participants`, who go over
    /// in this order; lists and maps go first.
    pub fn new(
        controller: Arc<Controller>,
        host: Arc<dyn Host>,
        participants: Vec<Box<dyn Participant>>,
    ) -> Self {
        let lists: Box<dyn Participant> = Box::new(Lists(Arc::clone(&controller)));
        Self {
            controller,
            host,
            participants: std::iter::once(lists).chain(participants).collect(),
        }
    }

    /// Takes up what operators set in the process before. What is in the states of servers is told
    /// with their health.
    pub fn restore(&self, overrides: &[(OverrideKey, Override)]) {
        let generation = self.host.generation();
        let scope = self.scope(&generation);
        for (key, entry) in overrides {
            let apply = key.setting.apply.filter(|_| !key.setting.is_in_state);
            if let Some(apply) = apply {
                apply(&scope, &key.name, &entry.value);
            }
        }
        if !overrides.is_empty() {
            self.host.limits_changed();
        }
    }

    /// Where settings are applied to a generation that is in force.
    pub(crate) fn scope<'s>(&'s self, generation: &'s Generation) -> Scope<'s> {
        Scope {
            host: &*self.host,
            generation,
            persists: &self.controller.persists,
        }
    }

    /// The files of the start, or what stands for them.
    pub(crate) fn files_of(&self, source: Option<Source>) -> Result<Files, Refusal> {
        let files = self.host.files(source);
        files.map_err(|error| Refusal(console_line(Severity::Alert, &error)))
    }

    /// Where the sections of what is written stand.
    pub(crate) fn sections(&self, written: &ConfigSource) -> SectionMap {
        let known = self.controller.last_sections();
        if Arc::ptr_eq(&known.files, &written.files) {
            return known;
        }
        let surroundings = self.host.surroundings(&written.files);
        let read = SectionMap::read(Arc::clone(&written.files), &*surroundings);
        self.controller.set_sections(read.clone());
        read
    }

    /// The few words that a living process cannot change.
    pub(crate) fn needs_handover(&self, now: &Config, next: &Config) -> Vec<&'static str> {
        let mut words = now.global.fixed_words_changed(&next.global);
        let (was, is) = (&now.global, &next.global);
        // The descriptors of the start allow no more.
        if is.connection_count_max > was.connection_count_max
            && is.connection_count_max > Some(self.host.connection_count_hard_max())
        {
            words.push("maxconn");
        }
        words
    }
}
