//! The reconciler carries out changes with its participants.

use std::sync::Arc;

use ballast_edit::{ConfigFiles, Refusal, SectionMap};
use ballast_engine::Generation;
use ballast_model::Config;
use ballast_syntax::Severity;

use crate::console::console_line;
use crate::controller::Controller;
use crate::history::ConfigSource;
use crate::host::ReconcilerHost;
use crate::lists::Lists;
use crate::object::SettingScope;
use crate::overrides::{Override, OverrideKey};
use crate::participant::Participant;
use crate::request::ConfigInput;

/// Carries out changes, one after the other.
pub struct Reconciler {
    pub(crate) controller: Arc<Controller>,
    pub(crate) host: Arc<dyn ReconcilerHost>,
    /// In the order in which they commit.
    pub(crate) participants: Vec<Box<dyn Participant>>,
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Reconciler")
    }
}

impl Reconciler {
    /// The reconciler of a process. `participants` hold its sockets, log targets and so on; they
    /// commit in this order, after lists and maps.
    pub fn new(
        controller: Arc<Controller>,
        host: Arc<dyn ReconcilerHost>,
        participants: Vec<Box<dyn Participant>>,
    ) -> Self {
        let lists: Box<dyn Participant> = Box::new(Lists(Arc::clone(&controller)));
        Self {
            controller,
            host,
            participants: std::iter::once(lists).chain(participants).collect(),
        }
    }

    /// Applies the overrides of the former process. Those of servers were restored with their state.
    pub fn restore_overrides(&self) {
        let overrides: Vec<(OverrideKey, Override)> = {
            let history = self.controller.config_history();
            let overrides = history.overrides();
            overrides
                .map(|(key, entry)| (key.clone(), entry.clone()))
                .collect()
        };
        let generation = self.host.generation();
        let scope = self.scope(&generation);
        for (key, entry) in &overrides {
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
    pub(crate) fn scope<'s>(&'s self, generation: &'s Generation) -> SettingScope<'s> {
        SettingScope {
            host: &*self.host,
            generation,
            persists: &self.controller.persists,
        }
    }

    /// The files of the start, or a source in their place.
    pub(crate) fn files_of(&self, source: Option<ConfigInput>) -> Result<ConfigFiles, Refusal> {
        let files = self.host.files(source);
        files.map_err(|error| Refusal(console_line(Severity::Alert, &error)))
    }

    /// The positions of the sections in a text.
    pub(crate) fn sections(&self, written: &ConfigSource) -> SectionMap {
        let known = self.controller.last_sections();
        if Arc::ptr_eq(&known.files, &written.files) {
            return known;
        }
        let machine = self.host.machine(&written.files);
        let read = SectionMap::read(Arc::clone(&written.files), &*machine);
        self.controller.set_sections(read.clone());
        read
    }

    /// The words that differ and that only a new process can change.
    pub(crate) fn needs_handover(&self, now: &Config, next: &Config) -> Vec<&'static str> {
        let mut words = now.global.fixed_words_changed(&next.global);
        let (was, is) = (&now.global, &next.global);
        // The descriptors of the start limit it.
        if is.connection_count_max > was.connection_count_max
            && is.connection_count_max > Some(self.host.connection_count_hard_max())
        {
            words.push("maxconn");
        }
        words
    }
}
