//! `persist`: overrides are written to the files.
//!
//! Words are changed where they stand, so that comments and layout stay. The new text is read before
//! it is written: unless it says exactly what it should say, nothing is written. Each file is
//! replaced in one step, so that a process that is killed leaves the old file or the new one.

use std::sync::Arc;

use ballast_edit::{ConfigFiles, InsertPosition, Refusal, SectionMap, quoted_line, words_of};
use ballast_expr::bytes_of_text;
use ballast_model::change::diff;
use ballast_model::{Change, Config, Server};
use ballast_tls::store::TakeOver;

use crate::explicit_words;
use crate::file_editor::{FileEditor, ServerWords, WriteEffect, WriteResult, find_server};
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
    /// Servers that the files cannot say, and why. They stay as they are in the files.
    left_out: Vec<LeftOut>,
}

/// A server that the files cannot say: backend, name, why.
type LeftOut = (String, String, String);

/// What came of reading the text of a plan.
enum PlanOutcome {
    /// It says what it is to say.
    Done(ConfigFiles),
    /// It does not, because of these servers.
    Without(Vec<LeftOut>),
}

impl WriteBackPlan {
    /// A plan that writes nothing yet, and nothing of `left_out`.
    fn new(editor: FileEditor, left_out: &[LeftOut]) -> Self {
        let mut plan = Self {
            editor,
            written: Vec::new(),
            of_new_servers: Vec::new(),
            notes: String::new(),
            left_out: left_out.to_vec(),
        };
        for (backend, server, why) in left_out {
            plan.note(&format!("server {backend}/{server}"), why);
        }
        plan
    }

    fn is_left_out(&self, backend: &str, server: &str) -> bool {
        let mut left_out = self.left_out.iter();
        left_out.any(|(of, name, _)| of == backend && name == server)
    }

    fn note(&mut self, what: &dyn std::fmt::Display, why: &str) {
        self.notes
            .push_str(&format!("Not written: {what}: {why}\n"));
    }

    /// Writes one override, as its row says.
    fn write(&mut self, key: &OverrideKey, entry: &Override) {
        let server = key.name.server().filter(|_| key.is_of(&SERVER));
        if server.is_some_and(|(backend, name)| self.is_left_out(backend, name)) {
            return;
        }
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
                if !has(&runs.servers, &server.name) && !self.is_left_out(&name, &server.name) {
                    self.remove_line(&name, server);
                }
            }
            for server in &runs.servers {
                if !has(&known.servers, &server.name) && !self.is_left_out(&name, &server.name) {
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
        if !self.editor.add_server(backend, model, (origin, line)) {
            self.note(added, "its backend was not found");
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
        let now = self.host.generation();
        let mut left_out: Vec<LeftOut> = Vec::new();
        let (plan, edited) = loop {
            let editor = FileEditor::new(&with_edits, config.clone());
            let mut plan = WriteBackPlan::new(editor, &left_out);
            plan.write_members(&now.config, &overrides);
            for (key, entry) in &overrides {
                if !plan.written.contains(key) && !plan.of_new_servers.contains(key) {
                    plan.write(key, entry);
                }
            }
            match self.read_plan(&mut plan, &with_edits)? {
                PlanOutcome::Done(edited) => break (plan, edited),
                PlanOutcome::Without(servers) => left_out.extend(servers),
            }
        };
        self.write_files(plan, edited, (&files, &overrides))
    }

    /// Reads the text of a plan, and completes it: a line may need words because of `default-server`, or
    /// because servers before it are removed.
    fn read_plan(
        &self,
        plan: &mut WriteBackPlan,
        with_edits: &ConfigFiles,
    ) -> Result<PlanOutcome, Refusal> {
        let mut edited = plan.editor.edited(with_edits);
        let mut config = match self.config_of(edited.clone()) {
            Ok(config) => config,
            Err(refusal) => return without_new_servers(plan, refusal),
        };
        let has_numbers = plan.editor.keep_numbers(&config);
        if plan.editor.add_differing_words(&config) || has_numbers {
            edited = plan.editor.edited(with_edits);
            config = match self.config_of(edited.clone()) {
                Ok(config) => config,
                Err(refusal) => return without_new_servers(plan, refusal),
            };
        }
        plan.editor.take_unused_settings(&config);
        let target = &plan.editor.target;
        let other = diff(target, &config);
        let Some(line) = ballast_model::plan::lines(target, &other)
            .into_iter()
            .next()
        else {
            return Ok(PlanOutcome::Done(edited));
        };
        let servers = other.iter().map(|change| match change {
            Change::SetServer(backend, read) => {
                let wanted = find_server(target, backend, &read.name)?;
                let words = explicit_words::names(wanted, read);
                let why = format!("its line would say another '{words}', which no word takes back");
                let is_new = !plan.is_left_out(backend, &read.name);
                is_new.then(|| (backend.clone(), read.name.clone(), why))
            }
            _ => None,
        });
        match servers.collect::<Option<Vec<_>>>() {
            Some(servers) => Ok(PlanOutcome::Without(servers)),
            None => Err(Refusal(format!(
                "The files cannot say it: {line}. Nothing was written."
            ))),
        }
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

    /// Writes the new text, and drops the overrides that it has.
    fn write_files(
        &self,
        mut plan: WriteBackPlan,
        edited: ConfigFiles,
        (files, overrides): (&ConfigFiles, &[OverrideEntry]),
    ) -> Result<(ChangeReport, ConfigFiles), Refusal> {
        let mut report = ChangeReport {
            generation: self.host.generation().number,
            notes: std::mem::take(&mut plan.notes),
            ..ChangeReport::default()
        };
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
        done.map_err(|error| Refusal(format!("{}.", error.trim_end_matches('.'))))?;
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

/// Leaves out the servers that commands added, where the files are refused with them.
fn without_new_servers(plan: &WriteBackPlan, refusal: Refusal) -> Result<PlanOutcome, Refusal> {
    let why = refusal.0.lines().next().unwrap_or_default();
    let why = format!("the files are refused with the servers that commands added: {why}");
    let servers = plan.editor.new_servers();
    let servers = servers.map(|(of, name)| (of.to_owned(), name.to_owned(), why.clone()));
    let servers: Vec<LeftOut> = servers.collect();
    if servers.is_empty() {
        return Err(refusal);
    }
    Ok(PlanOutcome::Without(servers))
}
