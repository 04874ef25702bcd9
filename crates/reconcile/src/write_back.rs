//! What operators changed is written back to the files (`persist`).
//!
//! Words are changed where they stand, so that comments and layout stay. Nothing is written that
//! was not read again first: the new text must say what was meant, and nothing else, or it is
//! given up. Each file is replaced whole, in one step, so that a process that is killed at any
//! time leaves the old file or the new one.

use std::sync::Arc;

use ballast_edit::{Files, Place, Refusal, SectionMap, quoted_line, words_of};
use ballast_model::change::diff;
use ballast_model::{Config, Server};

use crate::kinds::{self, ADDED, SERVER};
use crate::object::{ObjectName, Override, OverrideKey, WriteBack};
use crate::pen::{InFile, Pen, Written};
use crate::read::{About, read};
use crate::reconciler::Reconciler;
use crate::request::Applied;

type Entry = (OverrideKey, Override);

/// What is to be written, as it is put together.
struct Report {
    pen: Pen,
    /// Overrides that the files have then.
    written: Vec<OverrideKey>,
    /// Overrides on servers that come into the files: they are settled with these.
    settled: Vec<OverrideKey>,
    notes: String,
}

impl Report {
    fn note(&mut self, what: &dyn std::fmt::Display, why: &str) {
        self.notes
            .push_str(&format!("Not written: {what}: {why}\n"));
    }

    /// Writes one override, as its row says.
    fn write(&mut self, key: &OverrideKey, entry: &Override) {
        let written = match &key.setting.write_back {
            WriteBack::Never => Err(kinds::STAYS),
            WriteBack::Section(write) => write(&mut self.pen, &key.name, &entry.value),
            WriteBack::ServerLine(_) => self.write_server(key, entry),
        };
        match written {
            Ok(InFile::Yes) => self.written.push(key.clone()),
            Ok(InFile::NothingToSay) => {}
            Err(why) => self.note(key, why),
        }
    }

    /// A setting of a server that has a line of its own.
    fn write_server(&mut self, key: &OverrideKey, entry: &Override) -> Written {
        let WriteBack::ServerLine(write) = &key.setting.write_back else {
            return Ok(InFile::NothingToSay);
        };
        let Some((backend, name)) = key.name.server() else {
            return Ok(InFile::NothingToSay);
        };
        let Some(known) = kinds::line(&self.pen.target, &key.name).cloned() else {
            return Ok(InFile::NothingToSay);
        };
        let mut server = Server::clone(&known);
        let mut words = self.pen.server_line(&known)?;
        let done = write(&mut words, &mut server, &entry.value)?;
        let servers = self.pen.servers(backend).into_iter().flatten();
        for own in servers.filter(|own| own.name == name) {
            *own = Arc::new(server.clone());
        }
        Ok(done)
    }

    /// Servers that a command added to, or took from, a backend of the files.
    fn members(&mut self, running: &Config, overrides: &[Entry]) {
        let backends = self.pen.target.backends.iter();
        let names: Vec<String> = backends.map(|one| one.common.name.clone()).collect();
        for name in names {
            let (Some(known), Some(runs)) = (
                self.pen.target.backend(&name).cloned(),
                running.backend(&name).cloned(),
            ) else {
                continue;
            };
            let has = |list: &[Arc<Server>], name: &str| list.iter().any(|one| one.name == name);
            for server in &known.servers {
                if !has(&runs.servers, &server.name) {
                    self.take_away(&name, server);
                }
            }
            for server in &runs.servers {
                if !has(&known.servers, &server.name) {
                    self.add(&name, server, overrides);
                }
            }
        }
    }

    fn take_away(&mut self, backend: &str, server: &Server) {
        let number = server.origin.line;
        let own = self.pen.text(&server.origin).and_then(|text| {
            let line = text.line(number)?;
            (line.text(0) == "server").then_some(())?;
            text.remove(number).then_some(())
        });
        if own.is_none() {
            let what = format!("server {backend}/{}", server.name);
            return self.note(&what, "it shares its line with others");
        }
        if let Some(servers) = self.pen.servers(backend) {
            servers.retain(|one| one.name != server.name);
        }
    }

    fn add(&mut self, backend: &str, server: &Arc<Server>, overrides: &[Entry]) {
        let name = ObjectName::Server(backend.to_owned(), server.name.clone());
        let own = overrides
            .iter()
            .filter(|(key, _)| key.kind.word == SERVER.word && key.name == name);
        let own: Vec<&Entry> = own.collect();
        let added = own.iter().find(|(key, _)| key.is(&SERVER, &ADDED));
        let Some((added, line)) = added else {
            let what = format!("server {backend}/{} added", server.name);
            return self.note(&what, "its words are not known");
        };
        let Some(known) = self.pen.target.backend(backend).cloned() else {
            return;
        };
        let last = known.servers.iter().rev().map(|one| &one.origin);
        let mut places = last
            .chain([&known.common.origin])
            .filter(|origin| !origin.file.is_empty());
        let Some(origin) = places.next() else {
            return self.note(added, "its backend is in none of the files");
        };
        let mut words = words_of(line.value.text());
        let mut model = Server::clone(server);
        for (key, entry) in &own {
            self.settled.push(key.clone());
            let WriteBack::ServerLine(write) = &key.setting.write_back else {
                continue;
            };
            let mut new = crate::pen::ServerWords::New(&mut words);
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
        let text = self.pen.text(origin);
        if !text.is_some_and(|text| text.add_after(origin.line, &line)) {
            return self.note(added, "its backend was not found");
        }
        if let Some(servers) = self.pen.servers(backend) {
            servers.push(Arc::new(model));
        }
    }
}

impl Reconciler {
    /// Writes what operators changed to the files of the start, and to those of lists and maps;
    /// answers which were written, and what the files of the start hold now.
    ///
    /// # Errors
    /// The files have changed, or cannot say it, or cannot be written.
    pub(crate) fn persist(&self) -> Result<(Applied, Files), Refusal> {
        let files = self.files_of(None)?;
        let (before, overrides) = {
            let history = self.controller.config_history();
            let overrides = history.overrides();
            let overrides: Vec<Entry> = overrides
                .map(|(key, entry)| (key.clone(), entry.clone()))
                .collect();
            (history.written().clone(), overrides)
        };
        let disk = self.controller.disk();
        if *disk != files && !self.says(&files, &disk)? {
            return Err(Refusal(
                "The files have changed since they were read: reload first.".into(),
            ));
        }
        let names = |files: &Files| {
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
        // Somebody may have written comments; after a rollback they say something else.
        let text = if *before.files == *disk {
            files.clone()
        } else {
            Files::clone(&before.files)
        };
        let _open = self.controller.machine_answers().open();
        let surroundings = self.host.surroundings(&files);
        let texts = SectionMap::read(Arc::new(text), &*surroundings);
        let with_edits = texts.with_edits(&before.section_edits, Place::Last).files;
        let config = self.understood_again(with_edits.clone())?;
        let mut report = Report {
            pen: Pen::new(&with_edits, config),
            written: Vec::new(),
            settled: Vec::new(),
            notes: String::new(),
        };
        let now = self.host.generation();
        report.members(&now.config, &overrides);
        for (key, entry) in &overrides {
            if !report.written.contains(key) && !report.settled.contains(key) {
                report.write(key, entry);
            }
        }
        self.write(report, &with_edits, (&files, &overrides))
    }

    /// What files say.
    fn understood_again(&self, files: Files) -> Result<Config, Refusal> {
        let surroundings = self.host.surroundings(&files);
        let (loaded, _) = read(
            &self.controller.options,
            (&self.controller.patterns(), &*surroundings),
            files,
            &About::All,
        )?;
        let mut config = loaded.config;
        self.controller.options.apply(&mut config);
        Ok(config)
    }

    /// Whether files say what they said before: comments may be others.
    fn says(&self, files: &Files, before: &Files) -> Result<bool, Refusal> {
        let was = self.understood_again(before.clone())?;
        let is = self.understood_again(files.clone())?;
        Ok(diff(&was, &is).is_empty())
    }

    /// Reads again what is to be written, writes it, and forgets the overrides that it holds.
    fn write(
        &self,
        mut report: Report,
        with_edits: &Files,
        (files, overrides): (&Files, &[Entry]),
    ) -> Result<(Applied, Files), Refusal> {
        let mut applied = Applied {
            generation: self.host.generation().number,
            notes: std::mem::take(&mut report.notes),
            ..Applied::default()
        };
        // Servers that follow one that went would be counted anew: they keep their numbers.
        let counted = self.understood_again(report.pen.edited(with_edits))?;
        report.pen.keep_numbers(&counted);
        let edited = report.pen.edited(with_edits);
        let config = self.understood_again(edited.clone())?;
        let target = &report.pen.target;
        let other = diff(target, &config);
        if let Some(line) = ballast_model::plan::lines(target, &other).first() {
            return Err(Refusal(format!(
                "The files cannot say it: {line}. Nothing was written."
            )));
        }
        let new = edited.iter().zip(files).filter(|(new, old)| new != old);
        let mut files: Files = new.map(|(new, _)| new.clone()).collect();
        let mut lists = Vec::new();
        for listed in self.controller.patterns().all() {
            let Some(path) = listed.path.filter(|_| listed.list.is_changed()) else {
                continue;
            };
            let text = listed.list.to_text();
            for key in &text.left_out {
                applied.notes.push_str(&format!(
                    "Not written: '{key}' of {path}: no line can hold it\n"
                ));
            }
            files.push((path, text.text.clone().into_bytes()));
            lists.push((listed.list, text.text));
        }
        let done = self.host.write_files(&files);
        done.map_err(|error| Refusal(format!("{error}.")))?;
        for (list, text) in &lists {
            list.was_written(text);
        }
        applied.lines = files.into_iter().map(|(name, _)| name).collect();
        let is_written = |key: &OverrideKey| {
            let is_list = [kinds::MAP.word, kinds::ACL.word].contains(&key.kind.word);
            let mut lists = lists.iter();
            report.written.contains(key)
                || is_list && lists.any(|(list, _)| list.name() == key.name.text())
        };
        let seen = overrides.iter().filter(|(key, _)| is_written(key));
        let seen: Vec<Entry> = seen.cloned().collect();
        self.controller.config_history().forget_as_seen(&seen);
        Ok((applied, edited))
    }
}
