//! Commands that edit a section: its text is edited, and all that can be another is read again.

use std::sync::Arc;

use ballast_edit::{
    Edit, EditCommand, Place, Refusal, SECTION_EDIT_BYTES_MAX, SectionAt, SectionEdit, SectionOf,
    excerpt,
};
use ballast_engine::numbers;
use ballast_model::{Change, Server};

use crate::history::ConfigSource;
use crate::read::{About, has_listener};
use crate::reading::{FileConfig, changed, shared};
use crate::reconciler::Reconciler;
use crate::target::{Mode, NewSource, Target};
use crate::{kinds, now_unix_s};

impl Reconciler {
    /// The lines of a section that are in force.
    pub(crate) fn lines_of(&self, at: &SectionAt) -> Result<Vec<String>, Refusal> {
        let written = self.controller.config_history().written().clone();
        let surroundings = self.host.surroundings(&written.files);
        let sections = self.sections(&written);
        sections.lines(&written.section_edits, at, &*surroundings)
    }

    /// Edits a section of what is written.
    pub(crate) fn edit(
        &self,
        section: &SectionAt,
        edit: Edit,
        command: String,
    ) -> Result<Target, Refusal> {
        let _open = self.controller.machine_answers().open();
        let before = self.controller.config_history().written().clone();
        // Whoever removes something knows that what was set of it goes along.
        let removes = matches!(edit, Edit::Remove);
        let comes_or_goes = removes || matches!(edit, Edit::Add(..));
        let adds = section.kind == SectionOf::Backend && matches!(edit, Edit::Add(..));
        let asked = EditCommand {
            section,
            edit,
            command: &command,
            at_unix_s: now_unix_s(),
        };
        let surroundings = self.host.surroundings(&before.files);
        let sections = self.sections(&before);
        let edited = sections.edited(&before.section_edits, asked, &*surroundings);
        let (section_edits, title) = edited?;
        let bytes = section_edits.iter().filter_map(|one| one.text.as_ref());
        if bytes.map(String::len).sum::<usize>() > SECTION_EDIT_BYTES_MAX {
            return Err(Refusal(
                "The sections set by command are too large: 'persist now' writes them to the files."
                    .into(),
            ));
        }
        let said = self.edited(&before, &section_edits, &title, comes_or_goes);
        let said = said.map_err(|Refusal(why)| {
            Refusal(format!(
                "{why}Nothing was changed; lines are counted as if the command had been carried \
                 out.\n"
            ))
        })?;
        let (config, mut notes) = (Arc::new(said.config), said.notes);
        let mut overruled = String::new();
        let merged = self.merged(&config, &mut overruled);
        if !has_listener(&merged.config) {
            return Err(Refusal("Nothing would be listened on.".into()));
        }
        if !removes {
            notes.push_str(&overruled);
        }
        let mode = Mode::Edit {
            unpublished: adds.then(|| kinds::backend_published(&section.name)),
        };
        let now = self.host.generation();
        let target = Target::new(&now.config, merged.config, command, mode);
        Ok(Target {
            notes,
            overruled: merged.overruled,
            source: Some(NewSource {
                written: ConfigSource {
                    section_edits: Arc::new(section_edits),
                    with_edits: config,
                    ..before
                },
                patterns: said.store,
                sections: None,
                machine_answers: None,
            }),
            ..target
        })
    }

    /// What is written says once a section was edited: read whole, or only what can be another,
    /// where the section `comes_or_goes`.
    fn edited(
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
                config: excerpt::without(&before.with_edits, title),
                store: self.controller.patterns(),
                sections: Vec::new(),
                notes: String::new(),
            });
        }
        // What is wrong in a part is judged by the whole.
        if comes_or_goes
            && is_there
            && !sections.has(title)
            && let Some(part) = excerpt::around(&sections, section_edits, title, &before.with_edits)
            && let own = part.len() - 1
            && let about = About::Part(Some((own, 0..part[own].1.len())))
            && let Ok(said) = self.understand(part, &about)
        {
            said.store.keep_others();
            let mut config = excerpt::with(&before.with_edits, &said.config, title);
            numbers::keep(&mut config, &self.host.generation().config);
            return Ok(FileConfig { config, ..said });
        }
        let with_edits = sections.with_edits(section_edits, Place::Beside);
        let about = About::Part(with_edits.place(title));
        let said = self.understand(with_edits.files, &about)?;
        Ok(FileConfig {
            config: shared(&before.with_edits, said.config),
            ..said
        })
    }

    /// Gives a server another name: where its line is in a file, there; else to what a command
    /// added.
    pub(crate) fn rename(
        &self,
        backend: String,
        was: String,
        is: String,
    ) -> Result<Target, Refusal> {
        let command = format!("set server {backend}/{was} name {is}");
        let now = self.host.generation();
        let known = now.config.backend(&backend).and_then(|known| {
            let mut servers = known.servers.iter();
            servers.find(|one| one.name == was)
        });
        let known = known.ok_or_else(|| Refusal("No such server.".into()))?;
        let target = if known.origin.file.is_empty() {
            let mut other = Server::clone(known);
            other.name.clone_from(&is);
            let changes = [
                Change::RemoveServer(backend.clone(), was.clone()),
                Change::AddServer(backend.clone(), Arc::new(other)),
            ];
            let config = changed(&now.config, &changes)?;
            Target::new(&now.config, config, command, Mode::Change)
        } else {
            let at = SectionAt {
                kind: SectionOf::Backend,
                name: backend.clone(),
            };
            self.edit(&at, Edit::RenameServer(was.clone(), is.clone()), command)?
        };
        Ok(Target {
            mode: Mode::RenameServer { backend, was, is },
            ..target
        })
    }
}
