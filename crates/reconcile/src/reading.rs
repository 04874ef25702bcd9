//! From a request to the configuration that is to be in force.
//!
//! Files are read, sections by command are put into them, and what operators did to servers is put
//! together with what they say. Nothing is changed here.

use std::sync::Arc;

use ballast_config::Loaded;
use ballast_edit::{Files, Place, Refusal, SectionMap, server_line};
use ballast_engine::numbers;
use ballast_expr::{RuntimeEntries, Store};
use ballast_model::change::{apply, diff};
use ballast_model::{Change, Config};
use ballast_syntax::SectionPlace;

use crate::console::{Severity, console_line};
use crate::history::ConfigSource;
use crate::kinds;
use crate::machine_answers::MachineAnswers;
use crate::merge::Merged;
use crate::object::OverrideKey;
use crate::read::{About, read};
use crate::reconciler::Reconciler;
use crate::request::Source;
use crate::state_files::{configure_states, forget_states, read_states};
use crate::target::{Mode, NewSource, Target};

/// What files say.
pub(crate) struct FileConfig {
    pub(crate) config: Config,
    pub(crate) store: Arc<Store>,
    pub(crate) sections: Vec<SectionPlace>,
    pub(crate) notes: String,
}

/// Which files are read, and what for.
pub(crate) struct Reading {
    pub(crate) files: Files,
    /// They are those of the start.
    pub(crate) is_of_start: bool,
    /// What operators set stays where the files did not change.
    pub(crate) keeps_overrides: bool,
    /// The command, for the history.
    pub(crate) cause: String,
}

impl Reconciler {
    /// What files say: read, and what the command line says of it put in.
    pub(crate) fn understand(&self, files: Files, about: &About) -> Result<FileConfig, Refusal> {
        let surroundings = self.host.surroundings(&files);
        let (loaded, notes) = read(
            &self.controller.options,
            (&self.controller.patterns(), &*surroundings),
            files,
            about,
        )?;
        let Loaded {
            mut config,
            store,
            sections,
            ..
        } = loaded;
        self.controller.options.apply(&mut config);
        numbers::keep(&mut config, &self.host.generation().config);
        Ok(FileConfig {
            config,
            store,
            sections,
            notes,
        })
    }

    /// Changes by command that need no text.
    pub(crate) fn changed(&self, changes: &[Change], command: String) -> Result<Target, Refusal> {
        let now = self.host.generation();
        let config = changed(&now.config, changes)?;
        Ok(Target::new(&now.config, config, command, Mode::Change))
    }

    /// `add server`: the files are not read for it.
    pub(crate) fn with_server(
        &self,
        backend: &str,
        server: &str,
        words: &[String],
    ) -> Result<Target, Refusal> {
        let now = self.host.generation();
        let surroundings = self.host.surroundings(&Files::new());
        let machine = (&*surroundings, std::process::id());
        let (line, notes) = server_line::server(&now.config, backend, server, words, machine)?;
        let key = kinds::server_added(backend, server);
        let words = server_line::numbered(words, line.id);
        let changes = [Change::AddServer(backend.to_owned(), Arc::new(line))];
        let cause = format!("add server {backend}/{server}");
        let config = changed(&now.config, &changes)?;
        let mode = Mode::AddServer { key, words };
        let target = Target::new(&now.config, config, cause, mode);
        Ok(Target { notes, ..target })
    }

    /// What was in force before. Its text is read again: lists and maps are no part of what is
    /// kept, and hold what somebody else wrote by now.
    pub(crate) fn back_to(&self, number: u64) -> Result<Target, Refusal> {
        let past = {
            let history = self.controller.config_history();
            let past = history.history().find(|past| past.number == number);
            let past = past.ok_or_else(|| Refusal(format!("No generation {number}.")))?;
            past.clone()
        };
        let _open = self.controller.machine_answers().open();
        let now = self.host.generation();
        let written = past.written;
        let surroundings = self.host.surroundings(&written.files);
        let sections = SectionMap::read(Arc::clone(&written.files), &*surroundings);
        let with_edits = sections.with_edits(&written.section_edits, Place::Beside);
        let said = self.understand(with_edits.files, &About::All)?;
        // What operators had done beside it at that time.
        let overridden = diff(&written.with_edits, &past.config);
        let config = changed(&shared(&now.config, said.config), &overridden)?;
        let cause = format!("rollback {number}");
        let target = Target::new(&now.config, config, cause, Mode::Rollback);
        Ok(Target {
            source: Some(NewSource {
                written,
                patterns: said.store,
                sections: Some(sections),
                machine_answers: None,
            }),
            ..target
        })
    }

    /// Reads the files of the start, or a source in their place.
    pub(crate) fn read_again(
        &self,
        source: Option<Source>,
        keeps_overrides: bool,
        cause: &str,
    ) -> Result<Target, Refusal> {
        let is_of_start = source.is_none();
        self.understood(Reading {
            files: self.files_of(source)?,
            is_of_start,
            keeps_overrides,
            cause: cause.to_owned(),
        })
    }

    /// Puts together what files say with what operators did, or leaves out what these did: the
    /// request says which, unless the files ask for it to be kept.
    pub(crate) fn understood(&self, reading: Reading) -> Result<Target, Refusal> {
        // What a scout was answered, or what the machine answers now.
        let machine_answers = MachineAnswers::in_use().unwrap_or_else(MachineAnswers::new);
        let _open = machine_answers.open();
        let before = self.controller.config_history().written().clone();
        let file = self.understand(reading.files.clone(), &About::All)?;
        let files = if *before.files == reading.files {
            Arc::clone(&before.files)
        } else {
            Arc::new(reading.files)
        };
        let sections = SectionMap::of(files, file.sections.clone());
        let keeps = reading.keeps_overrides || file.config.global.reload_keeps_overrides;
        let is_of_start = reading.is_of_start;
        let mut target = if keeps {
            self.keeping_overrides(&before, file, &sections, is_of_start)?
        } else {
            self.dropping_overrides(file, &sections, is_of_start)
        };
        target.cause = reading.cause;
        forget_states(&machine_answers, &target.config);
        if let Some(source) = &mut target.source {
            source.sections = Some(sections);
            source.machine_answers = Some(machine_answers);
        }
        Ok(target)
    }

    /// The process becomes what the files say.
    fn dropping_overrides(
        &self,
        file: FileConfig,
        sections: &SectionMap,
        is_of_start: bool,
    ) -> Target {
        let now = self.host.generation();
        let mut notes = file.notes;
        let changes = diff(&now.config, &file.config);
        // What is equal to what runs is what runs.
        let config = apply(&now.config, &changes).unwrap_or(file.config);
        let said = Arc::new(config.clone());
        self.note_handover(&now.config, &config, &mut notes);
        file.store.set_runtime_entries(RuntimeEntries::Drop);
        let (states, troubles) = read_states(&config, &|path| self.host.state_file(path));
        for trouble in troubles {
            notes.push_str(&console_line(Severity::Warning, &trouble));
        }
        let (mut config, mut changes) = (config, changes);
        if !states.is_empty() {
            configure_states(&mut config, &states);
            changes = diff(&now.config, &config);
        }
        Target {
            config,
            changes,
            cause: String::new(),
            notes,
            overruled: self.droppable_overrides(),
            source: Some(NewSource {
                written: ConfigSource {
                    files: Arc::clone(&sections.files),
                    file: Arc::clone(&said),
                    section_edits: Arc::default(),
                    with_edits: said,
                },
                patterns: file.store,
                sections: None,
                machine_answers: None,
            }),
            mode: Mode::Drop {
                is_of_start,
                states,
            },
        }
    }

    /// What was set stays where the files did not change, sections by command too.
    fn keeping_overrides(
        &self,
        before: &ConfigSource,
        file: FileConfig,
        sections: &SectionMap,
        is_of_start: bool,
    ) -> Result<Target, Refusal> {
        // What files say as before is kept once, however often they are read.
        let file_config = Arc::new(shared(&before.file, file.config));
        let with_edits = sections.with_edits(&before.section_edits, Place::Beside);
        let (config, patterns, mut notes) = if with_edits.kept.is_empty() {
            (Arc::clone(&file_config), file.store, file.notes)
        } else {
            let said = self.understand(with_edits.files, &About::All);
            let said = said.map_err(|Refusal(why)| {
                Refusal(format!(
                    "{why}The files are right by themselves, not with the sections that commands \
                     wrote: 'reload' without 'keep' drops these.\n"
                ))
            })?;
            let config = shared(&before.with_edits, said.config);
            (Arc::new(config), said.store, said.notes)
        };
        for title in with_edits.overruled {
            notes.push_str(&overruled_line(&title));
        }
        let now = self.host.generation();
        let merged = self.merged(&config, &mut notes);
        let mode = Mode::Keep { is_of_start };
        let target = Target::new(&now.config, merged.config, String::new(), mode);
        Ok(Target {
            notes,
            overruled: merged.overruled,
            source: Some(NewSource {
                written: ConfigSource {
                    files: Arc::clone(&sections.files),
                    file: file_config,
                    section_edits: Arc::new(with_edits.kept),
                    with_edits: config,
                },
                patterns,
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

    /// What is written, and what operators did beside it.
    pub(crate) fn merged(&self, config: &Config, notes: &mut String) -> Merged {
        let now = self.host.generation();
        // Workers note overrides meanwhile: nobody waits for the comparing.
        let basis = self.controller.config_history().basis();
        let merged = basis.merge(&now.config, config);
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

/// A configuration that shares with another what is equal in both.
pub(crate) fn shared(before: &Config, config: Config) -> Config {
    apply(before, &diff(before, &config)).unwrap_or(config)
}

pub(crate) fn changed(now: &Config, changes: &[Change]) -> Result<Config, Refusal> {
    apply(now, changes).map_err(|error| Refusal(format!("{error}.")))
}
