//! A start: the configuration that a process begins with.
//!
//! It is what files say. Where the process follows another one, what operators changed there is
//! applied to it: [`OperatorChanges`], which are empty at the first start. Nothing is in force yet, so
//! a start makes no changes and has no participants: what it opens, it opens with the rights of a
//! start, before there are threads.

use std::sync::Arc;

use ballast_config::LoadedConfig;
use ballast_edit::{ConfigFiles, InsertPosition, SectionEdit, SectionMap};
use ballast_engine::numbers;
use ballast_expr::Store;
use ballast_model::Config;

use crate::history::ConfigSource;
use crate::host::StartHost;
use crate::machine_answers::MachineAnswers;
use crate::operator_changes::{OperatorChanges, apply_operator_changes};
use crate::overrides::{Override, OverrideKey};
use crate::read::ReadOptions;
use crate::state_files::{SavedState, configure_states, forget_state_files, read_states};
use crate::stats_file::SavedCounts;

/// The files of a start, with the sections that commands wrote in the former process.
#[derive(Debug)]
pub struct StartFiles {
    /// The configuration.
    pub loaded: LoadedConfig,
    /// The files, and the positions of their sections.
    pub sections: SectionMap,
    section_edits: Vec<SectionEdit>,
    /// The configuration of the files without these sections, where there are some.
    file_config: Option<Config>,
}

impl StartFiles {
    /// Reads files by `load`, with sections by command in them. Sections that do not go with the
    /// files are left out, with a warning: better without them than no start.
    pub fn read(
        files: ConfigFiles,
        section_edits: &[SectionEdit],
        load: &dyn Fn(ConfigFiles) -> LoadedConfig,
        warn: &dyn Fn(&str),
    ) -> Self {
        let mut loaded = load(files.clone());
        let sections = SectionMap::of(Arc::new(files), std::mem::take(&mut loaded.sections));
        let with_edits = sections.with_edits(section_edits, InsertPosition::Beside);
        for title in &with_edits.overruled {
            warn(&format!(
                "The file overrules what was set by command: {title}"
            ));
        }
        let mut read = Self {
            loaded,
            sections,
            section_edits: with_edits.kept,
            file_config: None,
        };
        if read.section_edits.is_empty() {
            return read;
        }
        let whole = load(with_edits.files);
        if whole.has_alerts() || !whole.unimplemented.is_empty() {
            warn("The files do not go with the sections that commands wrote: without them.");
            read.section_edits.clear();
        } else {
            read.file_config = Some(std::mem::replace(&mut read.loaded, whole).config);
        }
        read
    }

    /// The target of a start with these files. `machine_answers` were recorded while they were read.
    pub fn target(
        self,
        options: &ReadOptions,
        changes: OperatorChanges,
        machine_answers: Arc<MachineAnswers>,
        host: &StartHost<'_>,
    ) -> StartTarget {
        let store = self.loaded.store;
        let mut config = self.loaded.config;
        options.apply(&mut config);
        let file = self.file_config.map(|mut file| {
            options.apply(&mut file);
            // The same numbers as if the sections had come while the process ran.
            numbers::keep(&mut config, &file);
            Arc::new(file)
        });
        let with_edits = Arc::new(config.clone());
        let file = file.unwrap_or_else(|| Arc::clone(&with_edits));
        let files = Arc::clone(&self.sections.files);
        machine_answers.forget_content(files.iter().map(|(name, _)| name.as_str()));
        let texts = (&*store, &self.sections);
        let overrides = apply_operator_changes(&mut config, texts, changes, host);
        // The warnings about these files were printed when the configuration was read.
        let (states, _) = read_states(&config, host.state_file);
        configure_states(&mut config, &states);
        let (counts, _) = SavedCounts::of(&config, host.state_file);
        forget_state_files(&machine_answers, &config);
        machine_answers.forget_certificates(&config.global.tls.shared_store);
        StartTarget {
            config,
            states,
            counts,
            record: StartRecord {
                written: ConfigSource {
                    files,
                    file,
                    section_edits: Arc::new(self.section_edits),
                    with_edits,
                },
                store,
                sections: self.sections,
                machine_answers,
                overrides,
            },
        }
    }
}

/// The target of a start.
#[derive(Debug)]
pub struct StartTarget {
    /// The configuration to compile.
    pub config: Config,
    /// The states to restore in its generation.
    pub states: Vec<SavedState>,
    /// The counts to restore in its generation, where no former process gives them (`stats-file`).
    pub counts: SavedCounts,
    /// What the controller begins with.
    pub record: StartRecord,
}

/// What the controller of a process begins with.
#[derive(Debug)]
pub struct StartRecord {
    /// The text of the configuration.
    pub written: ConfigSource,
    /// Lists and maps.
    pub store: Arc<Store>,
    /// The positions of the sections in the files.
    pub sections: SectionMap,
    /// The answers of the machine while the files were read.
    pub machine_answers: Arc<MachineAnswers>,
    /// Overrides of the former process that still hold.
    pub overrides: Vec<(OverrideKey, Override)>,
}
