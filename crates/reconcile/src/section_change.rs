//! Commands that edit a section: its text is edited, and the parts of the configuration that can
//! differ are read again.

use std::sync::Arc;

use ballast_edit::{
    EditCommand, InsertPosition, Refusal, SECTION_EDIT_BYTES_MAX, SectionEdit, SectionName,
    SectionOperation, SectionWord, excerpt,
};
use ballast_engine::numbers;
use ballast_model::{Change, Config, Server};
use ballast_tls::store::TakeOver;

use crate::history::ConfigSource;
use crate::kinds::backend;
use crate::now_unix_s;
use crate::read::{WarningScope, has_listener};
use crate::reading::{FileConfig, apply_changes, share_equal};
use crate::reconciler::Reconciler;
use crate::target::{ChangeMode, ChangeTarget, NewSource};

impl Reconciler {
    /// The lines of a section that are in force.
    pub(crate) fn lines_of(&self, at: &SectionName) -> Result<Vec<String>, Refusal> {
        let written = self.controller.config_history().written().clone();
        is_there(&written.with_edits, at)?;
        let machine = self.host.machine(&written.files);
        let sections = self.sections(&written);
        sections.lines(&written.section_edits, at, &*machine)
    }

    /// The target of an edited section.
    pub(crate) fn edit_target(
        &self,
        section: &SectionName,
        edit: SectionOperation,
        command: String,
    ) -> Result<ChangeTarget, Refusal> {
        let _open = self.controller.machine_answers().open();
        let before = self.controller.config_history().written().clone();
        // It was looked for when the command came; changes before this one may have removed it, or added it.
        if matches!(edit, SectionOperation::Add(..)) {
            is_free(&before.with_edits, section)?;
        } else {
            is_there(&before.with_edits, section)?;
        }
        // A command that removes a section drops its overrides without a note.
        let removes = matches!(edit, SectionOperation::Remove);
        let comes_or_goes = removes || matches!(edit, SectionOperation::Add(..));
        let adds =
            section.kind == SectionWord::Backend && matches!(edit, SectionOperation::Add(..));
        let asked = EditCommand {
            section,
            edit,
            command: &command,
            at_unix_s: now_unix_s(),
        };
        let machine = self.host.machine(&before.files);
        let sections = self.sections(&before);
        let edited = sections.edited(&before.section_edits, asked, &*machine);
        let (section_edits, title) = edited?;
        let bytes = section_edits.iter().filter_map(|one| one.text.as_ref());
        if bytes.map(String::len).sum::<usize>() > SECTION_EDIT_BYTES_MAX {
            return Err(Refusal(
                "The sections set by command are too large: 'persist now' writes them to the files."
                    .into(),
            ));
        }
        let read = self.read_edited(&before, &section_edits, &title, comes_or_goes);
        let read = read.map_err(|Refusal(why)| {
            Refusal(format!(
                "{why}Nothing was changed; lines are counted as if the command had been carried \
                 out.\n"
            ))
        })?;
        let (config, mut notes) = (Arc::new(read.config), read.notes);
        let mut overruled = String::new();
        let merged = self.merge(&config, &mut overruled);
        if !has_listener(&merged.config) {
            return Err(Refusal("Nothing would be listened on.".into()));
        }
        if !removes {
            notes.push_str(&overruled);
        }
        let mode = ChangeMode::Edit {
            unpublished: adds.then(|| backend::override_key(&section.name, &backend::PUBLISHED)),
        };
        let target = ChangeTarget::of_merge(merged, command, mode);
        Ok(ChangeTarget {
            notes,
            source: Some(NewSource {
                written: ConfigSource {
                    section_edits: Arc::new(section_edits),
                    with_edits: config,
                    ..before
                },
                patterns: read.store,
                certificates: read.certificates,
                sections: None,
                machine_answers: None,
            }),
            ..target
        })
    }

    /// Reads the configuration after a section was edited: all of it, or only what can differ, where
    /// the section was added or removed (`comes_or_goes`).
    fn read_edited(
        &self,
        before: &ConfigSource,
        section_edits: &[SectionEdit],
        title: &str,
        comes_or_goes: bool,
    ) -> Result<FileConfig, Refusal> {
        let sections = self.sections(before);
        let text = section_edits.iter().find(|one| one.title == title);
        let is_there = text.map_or(sections.has(title), |one| one.text.is_some());
        if comes_or_goes && !is_there && !excerpt::is_mentioned(&sections, section_edits, title) {
            return Ok(FileConfig {
                config: excerpt::without_section(&before.with_edits, title),
                store: self.controller.patterns(),
                certificates: self
                    .host
                    .generation()
                    .config
                    .global
                    .tls
                    .shared_store
                    .clone(),
                sections: Vec::new(),
                notes: String::new(),
            });
        }
        // Where the part is wrong, the whole is read, for its messages.
        if comes_or_goes
            && is_there
            && !sections.has(title)
            && let Some(part) =
                excerpt::files_with_new_section(&sections, section_edits, title, &before.with_edits)
            && let own = part.len() - 1
            && let warnings = WarningScope::Part(Some((own, 0..part[own].1.len())))
            && let Ok(read) = self.read_config(part, &warnings, TakeOver::All)
        {
            read.store.keep_unnamed_lists();
            let mut config = excerpt::with_section(&before.with_edits, &read.config, title);
            numbers::keep(&mut config, &self.host.generation().config);
            return Ok(FileConfig { config, ..read });
        }
        let with_edits = sections.with_edits(section_edits, InsertPosition::Beside);
        let warnings = WarningScope::Part(with_edits.position_of(title));
        let read = self.read_config(with_edits.files, &warnings, TakeOver::All)?;
        Ok(FileConfig {
            config: share_equal(&before.with_edits, read.config),
            ..read
        })
    }

    /// The target of `set server name`. The line of a server of a file is edited; a server that a
    /// command added is removed and added again.
    pub(crate) fn rename_target(
        &self,
        backend: String,
        old_name: String,
        new_name: String,
    ) -> Result<ChangeTarget, Refusal> {
        let command = format!("set server {backend}/{old_name} name {new_name}");
        let now = self.host.generation();
        let known = now.config.backend(&backend).and_then(|known| {
            let mut servers = known.servers.iter();
            servers.find(|one| one.name == old_name)
        });
        let known = known.ok_or_else(|| Refusal("No such server.".into()))?;
        let target = if known.origin.file.is_empty() {
            let mut other = Server::clone(known);
            other.name.clone_from(&new_name);
            let changes = [
                Change::RemoveServer(backend.clone(), old_name.clone()),
                Change::AddServer(backend.clone(), Arc::new(other)),
            ];
            let config = apply_changes(&now.config, &changes)?;
            ChangeTarget::from(&now.config, config, command, ChangeMode::Change)
        } else {
            let at = SectionName {
                kind: SectionWord::Backend,
                name: backend.clone(),
            };
            let edit = SectionOperation::RenameServer(old_name.clone(), new_name.clone());
            self.edit_target(&at, edit, command)?
        };
        Ok(ChangeTarget {
            mode: ChangeMode::RenameServer {
                backend,
                old_name,
                new_name,
            },
            ..target
        })
    }
}

/// The halves of a section: words and whether a configuration has them.
fn halves(config: &Config, section: &SectionName) -> [(SectionWord, bool); 2] {
    let frontend = config.frontend(&section.name).is_some();
    let backend = config.backend(&section.name).is_some();
    [
        (SectionWord::Frontend, frontend),
        (SectionWord::Backend, backend),
    ]
}

fn is_there(config: &Config, section: &SectionName) -> Result<(), Refusal> {
    let is_there = match section.kind {
        SectionWord::Listen => {
            let frontend = config.frontend(&section.name);
            frontend.is_some_and(|frontend| frontend.common.listen)
        }
        kind => halves(config, section).contains(&(kind, true)),
    };
    if is_there {
        return Ok(());
    }
    Err(Refusal(format!("No such {}.", section.kind.word())))
}

fn is_free(config: &Config, section: &SectionName) -> Result<(), Refusal> {
    let is_whole = section.kind == SectionWord::Listen;
    let mut own = halves(config, section).into_iter();
    match own.find(|(kind, is_there)| *is_there && (is_whole || *kind == section.kind)) {
        Some((kind, _)) => Err(Refusal(format!(
            "A {} '{}' already exists.",
            kind.word(),
            section.name
        ))),
        None => Ok(()),
    }
}
