//! `persist`: overrides are written to the files.
//!
//! Words are changed where they stand, so that comments and layout stay. The new text is read before
//! it is written: unless it says exactly what it should say, nothing is written. Each file is
//! replaced in one step, so that a process that is killed leaves the old file or the new one.

use std::sync::Arc;

use ballast_edit::{ConfigFiles, InsertPosition, Refusal, SectionMap, quoted_line, words_of};
use ballast_expr::bytes_of_text;
use ballast_model::change::diff;
use ballast_model::{Config, Server};
use ballast_tls::store::TakeOver;

use crate::file_editor::{FileEditor, ServerWords, WriteEffect, WriteResult};
use crate::kinds::process::NOT_WRITABLE;
use crate::kinds::server::{self, ADDED};
use crate::kinds::{ACL, MAP, SERVER};
use crate::object::{ObjectName, WriteBack};
use crate::overrides::{Override, OverrideKey};
use crate::read::{WarningScope, read};
use crate::reconciler::Reconciler;
use crate::request::ChangeReport;

type OverrideEntry = (OverrideKey, Override);

/// The files as they are to be written.
struct WriteBackPlan {
    editor: FileEditor,
    /// Overrides that the files have then.
    written: Vec<OverrideKey>,
    /// Overrides of servers that are added to the files: written with their lines, or noted.
    of_new_servers: Vec<OverrideKey>,
    notes: String,
}

impl WriteBackPlan {
    fn note(&mut self, what: &dyn std::fmt::Display, why: &str) {
        self.notes
            .push_str(&format!("Not written: {what}: {why}\n"));
    }

    /// Writes one override, as its row says.
    fn write(&mut self, key: &OverrideKey, entry: &Override) {
        let written = match &key.setting.write_back {
            WriteBack::Never => Err(NOT_WRITABLE),
            WriteBack::Section(write) => write(&mut self.editor, &key.name, &entry.value),
            WriteBack::ServerLine(_) => self.write_server(key, entry),
        };
        match written {
            Ok(WriteEffect::InFile) => self.written.push(key.clone()),
            Ok(WriteEffect::NotNeeded) => {}
            Err(why) => self.note(key, why),
        }
    }

    /// Writes a setting of a server that has a line of its own.
    fn write_server(&mut self, key: &OverrideKey, entry: &Override) -> WriteResult {
        let WriteBack::ServerLine(write) = &key.setting.write_back else {
            return Ok(WriteEffect::NotNeeded);
        };
        let Some((backend, name)) = key.name.server() else {
            return Ok(WriteEffect::NotNeeded);
        };
        let Some(known) = server::line(&self.editor.target, &key.name).cloned() else {
            return Ok(WriteEffect::NotNeeded);
        };
        let mut server = Server::clone(&known);
        let mut words = self.editor.server_line(&known)?;
        let done = write(&mut words, &mut server, &entry.value)?;
        let servers = self.editor.servers(backend).into_iter().flatten();
        for own in servers.filter(|own| own.name == name) {
            *own = Arc::new(server.clone());
        }
        Ok(done)
    }

    /// Writes the servers that commands added to, or removed from, the backends of the files.
    fn write_members(&mut self, running: &Config, overrides: &[OverrideEntry]) {
        let backends = self.editor.target.backends.iter();
        let names: Vec<String> = backends.map(|one| one.common.name.clone()).collect();
        for name in names {
            let (Some(known), Some(runs)) = (
                self.editor.target.backend(&name).cloned(),
                running.backend(&name).cloned(),
            ) else {
                continue;
            };
            let has = |list: &[Arc<Server>], name: &str| list.iter().any(|one| one.name == name);
            for server in &known.servers {
                if !has(&runs.servers, &server.name) {
                    self.remove_line(&name, server);
                }
            }
            for server in &runs.servers {
                if !has(&known.servers, &server.name) {
                    self.add_line(&name, server, overrides);
                }
            }
        }
    }

    fn remove_line(&mut self, backend: &str, server: &Server) {
        let number = server.origin.line;
        let own = self.editor.text(&server.origin).and_then(|text| {
            let line = text.line(number)?;
            (line.text(0) == "server").then_some(())?;
            text.remove(number).then_some(())
        });
        if own.is_none() {
            let what = format!("server {backend}/{}", server.name);
            return self.note(&what, "it shares its line with others");
        }
        if let Some(servers) = self.editor.servers(backend) {
            servers.retain(|one| one.name != server.name);
        }
    }

    fn add_line(&mut self, backend: &str, server: &Arc<Server>, overrides: &[OverrideEntry]) {
        let name = ObjectName::of_server(backend, &server.name);
        let own = overrides
            .iter()
            .filter(|(key, _)| key.is_of(&SERVER) && key.name == name);
        let own: Vec<&OverrideEntry> = own.collect();
        let added = own.iter().find(|(key, _)| key.is_about(&ADDED));
        let Some((added, line)) = added else {
            let what = format!("server {backend}/{} added", server.name);
            return self.note(&what, "its words are not known");
        };
        let Some(known) = self.editor.target.backend(backend).cloned() else {
            return;
        };
        let last = known.servers.iter().rev().map(|one| &one.origin);
        let mut indexes = last
            .chain([&known.common.origin])
            .filter(|origin| !origin.file.is_empty());
        let Some(origin) = indexes.next() else {
            return self.note(added, "its backend is in none of the files");
        };
        let mut words = words_of(line.value.text());
        let mut model = Server::clone(server);
        for (key, entry) in &own {
            self.of_new_servers.push(key.clone());
            let WriteBack::ServerLine(write) = &key.setting.write_back else {
                continue;
            };
            let mut new = ServerWords::New(&mut words);
            match write(&mut new, &mut model, &entry.value) {
                Ok(_) => self.written.push(key.clone()),
                Err(why) => self.note(key, why),
            }
        }
        // In a file it is `enabled` unless it says otherwise.
        words.retain(|word| word != "disabled" && word != "enabled");
        if model.disabled {
            words.push("disabled".to_owned());
        }
        let name = quoted_line(std::slice::from_ref(&server.name));
        let line = format!("server {name} {}", quoted_line(&words));
        let text = self.editor.text(origin);
        if !text.is_some_and(|text| text.add_after(origin.line, &line)) {
            return self.note(added, "its backend was not found");
        }
        if let Some(servers) = self.editor.servers(backend) {
            servers.push(Arc::new(model));
        }
    }
}

impl Reconciler {
    /// Writes overrides to the files of the start, and to those of lists and maps; returns the files
    /// that were written, and the text of the files of the start.
    ///
    /// # Errors
    /// The files have changed, or cannot say it, or cannot be written.
    pub(crate) fn write_files_back(&self) -> Result<(ChangeReport, ConfigFiles), Refusal> {
        let files = self.files_of(None)?;
        let (before, overrides) = {
            let history = self.controller.config_history();
            let overrides = history.overrides();
            let overrides: Vec<OverrideEntry> = overrides
                .map(|(key, entry)| (key.clone(), entry.clone()))
                .collect();
            (history.written().clone(), overrides)
        };
        let disk = self.controller.disk();
        if *disk != files && !self.is_same_configuration(&files, &disk)? {
            return Err(Refusal(
                "The files have changed since they were read: reload first.".into(),
            ));
        }
        let names = |files: &ConfigFiles| {
            let names = files.iter().map(|(name, _)| name.clone());
            names.collect::<Vec<_>>()
        };
        if names(&before.files) != names(&files) {
            return Err(Refusal(
                "What is in force was applied in place of the files of the start, which cannot say \
                 it: write it to them, or reload."
                    .into(),
            ));
        }
        // The files of the disk may have other comments. After a rollback they say something else.
        let text = if *before.files == *disk {
            files.clone()
        } else {
            ConfigFiles::clone(&before.files)
        };
        let _open = self.controller.machine_answers().open();
        let machine = self.host.machine(&files);
        let texts = SectionMap::read(Arc::new(text), &*machine);
        let with_edits = texts
            .with_edits(&before.section_edits, InsertPosition::Last)
            .files;
        let config = self.config_of(with_edits.clone())?;
        let mut plan = WriteBackPlan {
            editor: FileEditor::new(&with_edits, config),
            written: Vec::new(),
            of_new_servers: Vec::new(),
            notes: String::new(),
        };
        let now = self.host.generation();
        plan.write_members(&now.config, &overrides);
        for (key, entry) in &overrides {
            if !plan.written.contains(key) && !plan.of_new_servers.contains(key) {
                plan.write(key, entry);
            }
        }
        self.write_files(plan, &with_edits, (&files, &overrides))
    }

    /// The configuration of files.
    fn config_of(&self, files: ConfigFiles) -> Result<Config, Refusal> {
        let machine = self.host.machine(&files);
        let (loaded, _) = read(
            &self.controller.options,
            (
                (
                    &self.controller.patterns(),
                    self.former_store(TakeOver::All),
                ),
                &*machine,
            ),
            files,
            &WarningScope::All,
        )?;
        let mut config = loaded.config;
        self.controller.options.apply(&mut config);
        Ok(config)
    }

    /// Whether files say the same as before. Their comments may differ.
    fn is_same_configuration(
        &self,
        files: &ConfigFiles,
        before: &ConfigFiles,
    ) -> Result<bool, Refusal> {
        let was = self.config_of(before.clone())?;
        let is = self.config_of(files.clone())?;
        Ok(diff(&was, &is).is_empty())
    }

    /// Reads the new text, writes it, and drops the overrides that it has.
    fn write_files(
        &self,
        mut plan: WriteBackPlan,
        with_edits: &ConfigFiles,
        (files, overrides): (&ConfigFiles, &[OverrideEntry]),
    ) -> Result<(ChangeReport, ConfigFiles), Refusal> {
        let mut report = ChangeReport {
            generation: self.host.generation().number,
            notes: std::mem::take(&mut plan.notes),
            ..ChangeReport::default()
        };
        // Servers after one that was removed would get other numbers: their lines say them.
        let counted = self.config_of(plan.editor.edited(with_edits))?;
        plan.editor.keep_numbers(&counted);
        let edited = plan.editor.edited(with_edits);
        let config = self.config_of(edited.clone())?;
        let target = &plan.editor.target;
        let other = diff(target, &config);
        if let Some(line) = ballast_model::plan::lines(target, &other).first() {
            return Err(Refusal(format!(
                "The files cannot say it: {line}. Nothing was written."
            )));
        }
        let new = edited.iter().zip(files).filter(|(new, old)| new != old);
        let mut files: ConfigFiles = new.map(|(new, _)| new.clone()).collect();
        let mut lists = Vec::new();
        for listed in self.controller.patterns().all() {
            let Some(path) = listed.path.filter(|_| listed.list.is_changed()) else {
                continue;
            };
            let text = listed.list.to_text();
            for key in &text.left_out {
                report.notes.push_str(&format!(
                    "Not written: '{key}' of {path}: no line can hold it\n"
                ));
            }
            files.push((path, bytes_of_text(&text.text).into_owned()));
            lists.push((listed.list, text.text));
        }
        let done = self.host.write_files(&files);
        done.map_err(|error| Refusal(format!("{error}.")))?;
        for (list, text) in &lists {
            list.was_written(text);
        }
        report.lines = files.into_iter().map(|(name, _)| name).collect();
        let is_written = |key: &OverrideKey| {
            let is_list = key.is_of(&MAP) || key.is_of(&ACL);
            let mut lists = lists.iter();
            plan.written.contains(key)
                || is_list && lists.any(|(list, _)| list.name() == key.name.text())
        };
        let seen = overrides.iter().filter(|(key, _)| is_written(key));
        let seen: Vec<OverrideEntry> = seen.cloned().collect();
        self.controller.config_history().forget_equal(&seen);
        Ok((report, edited))
    }
}
