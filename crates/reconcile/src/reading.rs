//! From a request to its target: the configuration that is to be in force.
//!
//! Files are read, sections by command are put into them, and overrides are merged with what the
//! files say. Nothing is changed here.

use std::sync::Arc;

use ballast_config::LoadedConfig;
use ballast_edit::{ConfigFiles, InsertPosition, Refusal, SectionMap, server_line};
use ballast_engine::numbers;
use ballast_expr::{RuntimeEntries, Store};
use ballast_model::change::{apply, diff};
use ballast_model::{Change, Config};
use ballast_syntax::{SectionPlace, Severity};
use ballast_tls::shared_store::{FormerStore, SharedStore};
use ballast_tls::store::TakeOver;

use crate::console::console_line;
use crate::history::ConfigSource;
use crate::kinds::server;
use crate::machine_answers::MachineAnswers;
use crate::merge::MergeOutcome;
use crate::overrides::OverrideKey;
use crate::read::{WarningScope, read};
use crate::reconciler::Reconciler;
use crate::request::ConfigInput;
use crate::state_files::{configure_states, forget_state_files, read_states};
use crate::target::{ChangeMode, ChangeTarget, FileOrigin, NewSource};

/// A configuration as files say it.
pub(crate) struct FileConfig {
    pub(crate) config: Config,
    pub(crate) store: Arc<Store>,
    /// The certificates and keys that were read with it.
    pub(crate) certificates: SharedStore,
    pub(crate) sections: Vec<SectionPlace>,
    pub(crate) notes: String,
}

/// Whether a reload keeps overrides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OverridePolicy {
    /// Overrides stay where the files did not change.
    Keep,
    /// Overrides are dropped, unless the files ask to keep them.
    Drop,
}

impl Reconciler {
    /// Reads files, and applies the options of the command line.
    pub(crate) fn read_config(
        &self,
        files: ConfigFiles,
        warnings: &WarningScope,
        take_over: TakeOver,
    ) -> Result<FileConfig, Refusal> {
        let machine = self.host.machine(&files);
        let former = self.former_store(take_over);
        let (loaded, notes) = read(
            &self.controller.options,
            ((&self.controller.patterns(), former), &*machine),
            files,
            warnings,
        )?;
        let LoadedConfig {
            mut config,
            store,
            sections,
            ..
        } = loaded;
        self.controller.options.apply(&mut config);
        numbers::keep(&mut config, &self.host.generation().config);
        Ok(FileConfig {
            certificates: config.global.tls.shared_store.clone(),
            config,
            store,
            sections,
            notes,
        })
    }

    /// The certificates and keys in force, for a configuration that is read.
    pub(crate) fn former_store(&self, take_over: TakeOver) -> FormerStore {
        let now = self.host.generation();
        now.config.global.tls.shared_store.former(take_over)
    }

    /// The target of changes by command that need no text.
    pub(crate) fn change_target(
        &self,
        changes: &[Change],
        command: String,
    ) -> Result<ChangeTarget, Refusal> {
        let now = self.host.generation();
        let config = apply_changes(&now.config, changes)?;
        Ok(ChangeTarget::from(
            &now.config,
            config,
            command,
            ChangeMode::Change,
        ))
    }

    /// The target of `add server`. No file is read for it.
    pub(crate) fn add_server_target(
        &self,
        backend: &str,
        server: &str,
        words: &[String],
    ) -> Result<ChangeTarget, Refusal> {
        let now = self.host.generation();
        let machine = self.host.machine(&ConfigFiles::new());
        let machine = (&*machine, std::process::id());
        let (line, notes) = server_line::server(&now.config, backend, server, words, machine)?;
        let key = server::override_key(backend, server, &server::ADDED);
        let words = server_line::numbered(words, &line);
        let changes = [Change::AddServer(backend.to_owned(), Arc::new(line))];
        let cause = format!("add server {backend}/{server}");
        let config = apply_changes(&now.config, &changes)?;
        let mode = ChangeMode::AddServer { key, words };
        let target = ChangeTarget::from(&now.config, config, cause, mode);
        Ok(ChangeTarget { notes, ..target })
    }

    /// The target of `rollback`. The text of that time is read again: the history does not keep lists
    /// and maps, and other lines may have been written to their files since.
    pub(crate) fn rollback_target(&self, number: u64) -> Result<ChangeTarget, Refusal> {
        let past = {
            let history = self.controller.config_history();
            let past = history.history().find(|past| past.number == number);
            let past = past.ok_or_else(|| Refusal(format!("No generation {number}.")))?;
            past.clone()
        };
        let _open = self.controller.machine_answers().open();
        let now = self.host.generation();
        let written = past.written;
        let machine = self.host.machine(&written.files);
        let sections = SectionMap::read(Arc::clone(&written.files), &*machine);
        let with_edits = sections.with_edits(&written.section_edits, InsertPosition::Beside);
        let read = self.read_config(with_edits.files, &WarningScope::All, TakeOver::All)?;
        // The servers that operators had added and removed at that time.
        let by_command = diff(&written.with_edits, &past.config);
        let config = apply_changes(&share_equal(&now.config, read.config), &by_command)?;
        let cause = format!("rollback {number}");
        // What was set by command in between goes where the configuration of that time says something
        // else, and stays in force where it does not.
        let mut overruled = self.controller.config_history().merge_base().overrides;
        overruled.retain(|key| key.is_overruled(&now.config, &config));
        let notes = overruled.iter().map(|key| overruled_line(&key.to_string()));
        let notes = notes.collect();
        let target = ChangeTarget::from(&now.config, config, cause, ChangeMode::Rollback);
        Ok(ChangeTarget {
            notes,
            overruled,
            source: Some(NewSource {
                written,
                patterns: read.store,
                certificates: read.certificates,
                sections: Some(sections),
                machine_answers: None,
            }),
            ..target
        })
    }

    /// The target of a reload: reads the files of the command line, or a source in their place.
    pub(crate) fn reload_target(
        &self,
        source: Option<ConfigInput>,
        policy: OverridePolicy,
        cause: &str,
    ) -> Result<ChangeTarget, Refusal> {
        let origin = match source {
            None => FileOrigin::Disk,
            Some(_) => FileOrigin::Given,
        };
        self.files_target(self.files_of(source)?, origin, policy, cause)
    }

    /// The target of files.
    pub(crate) fn files_target(
        &self,
        files: ConfigFiles,
        origin: FileOrigin,
        policy: OverridePolicy,
        cause: &str,
    ) -> Result<ChangeTarget, Refusal> {
        // The answers of the privileged helper, or new ones of the machine.
        let machine_answers = MachineAnswers::in_use().unwrap_or_else(MachineAnswers::new);
        let _open = machine_answers.open();
        let before = self.controller.config_history().written().clone();
        let take_over = match policy {
            OverridePolicy::Keep => TakeOver::Changes,
            OverridePolicy::Drop => TakeOver::ProcessKeys,
        };
        let mut file = self.read_config(files.clone(), &WarningScope::All, take_over)?;
        let keeps = policy == OverridePolicy::Keep || file.config.global.reload_keeps_overrides;
        if keeps && take_over != TakeOver::Changes {
            // Only the files say that overrides are kept.
            file = self.read_config(files.clone(), &WarningScope::All, TakeOver::Changes)?;
        }
        let files = if *before.files == files {
            Arc::clone(&before.files)
        } else {
            Arc::new(files)
        };
        let sections = SectionMap::of(files, file.sections.clone());
        let mut target = if keeps {
            self.target_with_overrides(&before, file, &sections, origin)?
        } else {
            self.target_without_overrides(file, &sections, origin)
        };
        cause.clone_into(&mut target.cause);
        forget_state_files(&machine_answers, &target.config);
        if let Some(source) = &mut target.source {
            machine_answers.forget_certificates(&source.certificates);
            source.sections = Some(sections);
            source.machine_answers = Some(machine_answers);
        }
        Ok(target)
    }

    /// The process becomes what the files say.
    fn target_without_overrides(
        &self,
        file: FileConfig,
        sections: &SectionMap,
        origin: FileOrigin,
    ) -> ChangeTarget {
        let now = self.host.generation();
        let mut notes = file.notes;
        let mut changes = diff(&now.config, &file.config);
        // Objects that are equal to those in force are the same objects.
        let mut config = apply(&now.config, &changes).unwrap_or(file.config);
        let file_config = Arc::new(config.clone());
        self.note_handover(&now.config, &config, &mut notes);
        file.store.set_runtime_entries(RuntimeEntries::Drop);
        let (states, errors) = read_states(&config, &|path| self.host.state_file(path));
        for error in errors {
            notes.push_str(&console_line(Severity::Warning, &error));
        }
        if !states.is_empty() {
            configure_states(&mut config, &states);
            changes = diff(&now.config, &config);
        }
        let target = ChangeTarget::new(
            config,
            changes,
            String::new(),
            ChangeMode::Drop(origin, states),
        );
        ChangeTarget {
            notes,
            overruled: self.droppable_overrides(),
            source: Some(NewSource {
                written: ConfigSource {
                    files: Arc::clone(&sections.files),
                    file: Arc::clone(&file_config),
                    section_edits: Arc::default(),
                    with_edits: file_config,
                },
                patterns: file.store,
                certificates: file.certificates,
                sections: None,
                machine_answers: None,
            }),
            ..target
        }
    }

    /// Overrides stay where the files did not change, and so do sections by command.
    fn target_with_overrides(
        &self,
        before: &ConfigSource,
        file: FileConfig,
        sections: &SectionMap,
        origin: FileOrigin,
    ) -> Result<ChangeTarget, Refusal> {
        // Objects of the files that did not change are kept once, however often files are read.
        let file_config = Arc::new(share_equal(&before.file, file.config));
        let with_edits = sections.with_edits(&before.section_edits, InsertPosition::Beside);
        let (config, (patterns, certificates), mut notes) = if with_edits.kept.is_empty() {
            let read = (file.store, file.certificates);
            (Arc::clone(&file_config), read, file.notes)
        } else {
            let read = self.read_config(with_edits.files, &WarningScope::All, TakeOver::Changes);
            let read = read.map_err(|Refusal(why)| {
                Refusal(format!(
                    "{why}The files are right by themselves, not with the sections that commands \
                     wrote: 'reload' without 'keep' drops these.\n"
                ))
            })?;
            let config = share_equal(&before.with_edits, read.config);
            let kept = (read.store, read.certificates);
            (Arc::new(config), kept, read.notes)
        };
        for title in with_edits.overruled {
            notes.push_str(&overruled_line(&title));
        }
        let merged = self.merge(&config, &mut notes);
        let target = ChangeTarget::of_merge(merged, String::new(), ChangeMode::Keep(origin));
        Ok(ChangeTarget {
            notes,
            source: Some(NewSource {
                written: ConfigSource {
                    files: Arc::clone(&sections.files),
                    file: file_config,
                    section_edits: Arc::new(with_edits.kept),
                    with_edits: config,
                },
                patterns,
                certificates,
                sections: None,
                machine_answers: None,
            }),
            ..target
        })
    }

    /// The overrides that a reload drops.
    pub(crate) fn droppable_overrides(&self) -> Vec<OverrideKey> {
        let history = self.controller.config_history();
        let keys = history.overrides().map(|(key, _)| key);
        keys.filter(|key| !key.setting.outlives_reload)
            .cloned()
            .collect()
    }

    /// Merges a configuration that was read with overrides.
    pub(crate) fn merge(&self, config: &Config, notes: &mut String) -> MergeOutcome {
        let now = self.host.generation();
        // A copy: workers note overrides while configurations are compared.
        let base = self.controller.config_history().merge_base();
        let merged = base.merge(&now.config, config);
        let dropped = ballast_model::plan::lines(&now.config, &merged.dropped);
        let dropped = dropped.iter().map(ToString::to_string);
        for what in dropped.chain(merged.overruled.iter().map(ToString::to_string)) {
            notes.push_str(&overruled_line(&what));
        }
        self.note_handover(&now.config, &merged.config, notes);
        merged
    }

    fn note_handover(&self, now: &Config, next: &Config, notes: &mut String) {
        for word in self.needs_handover(now, next) {
            notes.push_str(&format!(
                "'{word}' is another now; that takes effect when a new process takes over.\n"
            ));
        }
    }
}

fn overruled_line(what: &str) -> String {
    format!("The file overrules what was set by command: {what}\n")
}

/// A configuration that has the objects of `before` where they are equal.
pub(crate) fn share_equal(before: &Config, config: Config) -> Config {
    apply(before, &diff(before, &config)).unwrap_or(config)
}

/// A configuration with changes by command.
pub(crate) fn apply_changes(now: &Config, changes: &[Change]) -> Result<Config, Refusal> {
    apply(now, changes).map_err(|error| Refusal(format!("{error}.")))
}
