//! What operators changed is written back to the files (`persist`).
//!
//! Words are changed where they stand, so that comments and layout stay. Nothing is written that
//! was not read again first: the new text must say what was meant, and nothing else, or it is
//! given up. Each file is replaced whole, in one step, so that a process that is killed at any
//! time leaves the old file or the new one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use ballast_cli::Applied;
use ballast_edit::{FileText, Files, Place, Refusal, SectionMap, quoted_line, words_of};
use ballast_engine::config_history::Override;
use ballast_model::change::diff;
use ballast_model::{Address, Config, Origin, Server};
use ballast_net::replace_files;
use ballast_stats::Surroundings;

use crate::check::About;
use crate::controller::Controller;
use crate::instance::Instance;
use crate::reading::{files_of, read};

/// What is to be written, as it is put together.
struct WriteBack {
    texts: BTreeMap<String, FileText>,
    /// What the files are to say then.
    target: Config,
    /// Keys of overrides that the files have then.
    written: Vec<String>,
    /// Keys of overrides on servers that come into the files: they are settled with these.
    settled: Vec<String>,
    notes: String,
}

impl WriteBack {
    /// The files with all edits made.
    fn edited(&self, with_edits: &Files) -> Files {
        let edited = with_edits.iter().map(|(name, bytes)| {
            let text = self.texts.get(name);
            (
                name.clone(),
                text.map_or_else(|| bytes.clone(), FileText::edited),
            )
        });
        edited.collect()
    }

    /// Has servers that would be counted otherwise say their number.
    fn keep_numbers(&mut self, counted: &Config) {
        let mut wrong = Vec::new();
        for backend in &self.target.backends {
            let Some(now) = counted.backend(&backend.common.name) else {
                continue;
            };
            let pairs = backend.servers.iter().zip(&now.servers);
            let moved = pairs.filter(|(was, is)| was.name == is.name && was.id != is.id);
            wrong.extend(moved.map(|(was, _)| Arc::clone(was)));
        }
        for server in wrong {
            let number = server.id.to_string();
            if let Some(text) = self.text(&server.origin) {
                text.set(server.origin.line, 3, "id", &number);
            }
        }
    }

    fn note(&mut self, what: &str, why: &str) {
        self.notes
            .push_str(&format!("Not written: {what}: {why}\n"));
    }

    fn text(&mut self, origin: &Origin) -> Option<&mut FileText> {
        self.texts.get_mut(&origin.file)
    }

    /// The server as the files are to have it.
    fn change(&mut self, backend: &str, server: &str, change: impl FnOnce(&mut Server)) {
        let mut backends = self.target.backends.iter_mut();
        if let Some(known) = backends.find(|one| one.common.name == backend) {
            let mut servers = Arc::make_mut(known).servers.iter_mut();
            if let Some(known) = servers.find(|one| one.name == server) {
                change(Arc::make_mut(known));
            }
        }
    }

    /// A setting by command of a server that has a line of its own.
    fn server(&mut self, key: &str, (backend, server): (&str, &str), word: &str, entry: &Override) {
        let known = self.target.backend(backend).and_then(|backend| {
            let mut servers = backend.servers.iter();
            servers.find(|one| one.name == server).cloned()
        });
        let Some(known) = known else { return };
        let origin = known.origin.clone();
        let value = entry.value.as_str();
        let Some(text) = self.text(&origin) else {
            return self.note(key, "its line is in none of the files");
        };
        let own = text.line(origin.line);
        if own.is_none_or(|line| line.text(0) != "server" || line.text(1) != server) {
            return self.note(key, "it shares its line with others");
        }
        let done = match word {
            "weight" => text.set(origin.line, 3, "weight", value),
            "maxconn" => text.set(origin.line, 3, "maxconn", value),
            "state" if value != "drain" => {
                text.switch(origin.line, 3, "disabled", value == "maint")
            }
            "addr" if value.parse::<SocketAddr>().is_ok() => {
                text.replace_word(origin.line, 2, value)
            }
            _ => return self.note(key, "no word of a file says it"),
        };
        if !done {
            return self.note(key, "its line was not found");
        }
        self.change(backend, server, |one| match word {
            "weight" => one.weight = value.parse().unwrap_or(one.weight),
            "maxconn" => {
                one.connection_count_max = value.parse().unwrap_or(one.connection_count_max);
            }
            "state" => one.disabled = value == "maint",
            _ => {
                if let Ok(inet) = value.parse() {
                    one.address = Address::Inet(inet);
                    one.host_name = None;
                }
            }
        });
        self.written.push(key.to_owned());
    }

    /// `set maxconn frontend`.
    fn frontend(&mut self, key: &str, name: &str, entry: &Override) {
        let known = self.target.frontend(name).cloned();
        let Some(known) = known else { return };
        let origin = known.common.origin.clone();
        let done = self
            .text(&origin)
            .is_some_and(|text| text.set_line(origin.line, "maxconn", &entry.value));
        if !done {
            return self.note(key, "its section was not found");
        }
        let mut frontends = self.target.frontends.iter_mut();
        if let Some(known) = frontends.find(|one| one.common.name == name) {
            Arc::make_mut(known).connection_count_max = entry.value.parse().ok();
        }
        self.written.push(key.to_owned());
    }

    /// Servers that an override added to, or took from, a backend of the files.
    fn members(&mut self, running: &Config, overrides: &[(String, Override)]) {
        let names: Vec<String> = self
            .target
            .backends
            .iter()
            .map(|one| one.common.name.clone())
            .collect();
        for name in names {
            let (Some(known), Some(runs)) = (
                self.target.backend(&name).cloned(),
                running.backend(&name).cloned(),
            ) else {
                continue;
            };
            let has = |list: &[Arc<Server>], name: &str| list.iter().any(|one| one.name == name);
            let gone: Vec<_> = known
                .servers
                .iter()
                .filter(|one| !has(&runs.servers, &one.name))
                .cloned()
                .collect();
            for server in gone {
                self.take_away(&name, &server);
            }
            let come: Vec<_> = runs
                .servers
                .iter()
                .filter(|one| !has(&known.servers, &one.name))
                .cloned()
                .collect();
            for server in come {
                self.add(&name, &server, overrides);
            }
        }
    }

    fn take_away(&mut self, backend: &str, server: &Server) {
        let key = format!("server {backend}/{}", server.name);
        let origin = server.origin.clone();
        let own = self.text(&origin).and_then(|text| {
            let line = text.line(origin.line)?;
            (line.text(0) == "server").then_some(())?;
            text.remove(origin.line).then_some(())
        });
        if own.is_none() {
            return self.note(&key, "it shares its line with others");
        }
        let mut backends = self.target.backends.iter_mut();
        if let Some(known) = backends.find(|one| one.common.name == backend) {
            Arc::make_mut(known)
                .servers
                .retain(|one| one.name != server.name);
        }
    }

    fn add(&mut self, backend: &str, server: &Arc<Server>, overrides: &[(String, Override)]) {
        let key = format!("server {backend}/{} added", server.name);
        let words = overrides.iter().find(|(known, _)| *known == key);
        let Some((_, words)) = words.cloned() else {
            return self.note(&key, "its words are not known");
        };
        let known = self.target.backend(backend).cloned();
        let Some(known) = known else { return };
        let last = known.servers.iter().rev().map(|one| &one.origin);
        let mut places = last
            .chain([&known.common.origin])
            .filter(|origin| !origin.file.is_empty());
        let Some(origin) = places.next().cloned() else {
            return self.note(&key, "its backend is in none of the files");
        };
        let mut words = words_of(&words.value);
        let mut model = Server::clone(server);
        let prefix = format!("server {backend}/{} ", server.name);
        let own = overrides.iter().filter(|(key, _)| key.starts_with(&prefix));
        for (key, entry) in own {
            self.settled.push(key.clone());
            let word = key.strip_prefix(&prefix).unwrap_or_default();
            if is_said(word, entry, &mut words, &mut model) {
                self.written.push(key.clone());
            } else {
                self.note(key, "no word of a file says it");
            }
        }
        // In a file it is `enabled` unless it says otherwise.
        words.retain(|word| word != "disabled" && word != "enabled");
        if model.disabled {
            words.push("disabled".to_owned());
        }
        let name = quoted_line(std::slice::from_ref(&server.name));
        let line = format!("server {name} {}", quoted_line(&words));
        let done = self
            .text(&origin)
            .is_some_and(|text| text.add_after(origin.line, &line));
        if !done {
            return self.note(&key, "its backend was not found");
        }
        let mut backends = self.target.backends.iter_mut();
        if let Some(known) = backends.find(|one| one.common.name == backend) {
            Arc::make_mut(known).servers.push(Arc::new(model));
        }
    }
}

/// Has the words of a server line, and what they amount to, say what an override set; false where no
/// word does.
fn is_said(word: &str, entry: &Override, words: &mut Vec<String>, model: &mut Server) -> bool {
    let value = entry.value.as_str();
    let mut set = |word: &str| {
        match words.iter().skip(1).position(|one| one == word) {
            Some(at) if at + 2 < words.len() => value.clone_into(&mut words[at + 2]),
            _ => words.extend([word.to_owned(), value.to_owned()]),
        }
        true
    };
    match word {
        "added" => true,
        "state" if value != "drain" => {
            model.disabled = value == "maint";
            true
        }
        "weight" if let Ok(weight) = value.parse() => {
            model.weight = weight;
            set("weight")
        }
        "maxconn" if let Ok(count_max) = value.parse() => {
            model.connection_count_max = count_max;
            set("maxconn")
        }
        "addr" if let (Ok(inet), Some(address)) = (value.parse(), words.first_mut()) => {
            model.address = Address::Inet(inet);
            model.host_name = None;
            value.clone_into(address);
            true
        }
        // It begins so in a file.
        "health" => value == "enable" && words.iter().any(|one| one == "check"),
        "agent" => value == "enable" && words.iter().any(|one| one == "agent-check"),
        _ => false,
    }
}

impl Instance {
    /// Writes what operators changed to the files of the start, and to those of lists and maps; answers
    /// which were written, and what the files of the start hold now.
    pub(crate) fn persist(&self, controller: &Controller) -> Result<(Applied, Files), Refusal> {
        let files = files_of(&controller.options, None)?;
        let (before, overrides) = {
            let config_history = controller.config_history();
            let overrides = config_history
                .overrides()
                .map(|(key, entry)| (key.to_owned(), entry.clone()));
            (
                config_history.written().clone(),
                overrides.collect::<Vec<_>>(),
            )
        };
        let disk = controller.disk();
        if *disk != files && !self.says(controller, &files, &disk)? {
            return Err(Refusal(
                "The files have changed since they were read: reload first.".into(),
            ));
        }
        let names = |files: &Files| {
            files
                .iter()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
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
        let _open = controller.machine_answers().open();
        let texts = SectionMap::read(Arc::new(text), &controller.machine(&files));
        let with_edits = texts.with_edits(&before.section_edits, Place::Last).files;
        let config = self.understood_again(controller, with_edits.clone())?;
        let texts = with_edits
            .iter()
            .map(|(name, bytes)| (name.clone(), FileText::of(name, bytes)));
        let mut pen = WriteBack {
            texts: texts.collect(),
            target: config,
            written: Vec::new(),
            settled: Vec::new(),
            notes: String::new(),
        };
        let now = self.generation();
        pen.members(&now.config, &overrides);
        for (key, entry) in &overrides {
            if pen.written.contains(key) || pen.settled.contains(key) {
                continue;
            }
            let words: Vec<&str> = key.splitn(3, ' ').collect();
            match words[..] {
                ["map" | "acl", name] if name.starts_with('#') => {
                    pen.note(key, "the list has no file");
                }
                ["map" | "acl", ..] => {}
                // That it is done.
                ["global", "persist"] => {}
                ["backend", _, "published"] if entry.value != "no" => {}
                ["frontend", name, "maxconn"] => pen.frontend(key, name, entry),
                ["server", at, word] => {
                    if let Some(at) = at.split_once('/') {
                        pen.server(key, at, word, entry);
                    }
                }
                _ => pen.note(key, "it stays with this process"),
            }
        }
        self.write(controller, pen, &with_edits, (&files, &overrides))
    }

    /// What files say.
    fn understood_again(&self, controller: &Controller, files: Files) -> Result<Config, Refusal> {
        let (loaded, _) = read(
            &controller.options,
            &controller.patterns(),
            files,
            &About::All,
        )?;
        let mut config = loaded.config;
        crate::run::apply_options(&controller.options, &mut config);
        Ok(config)
    }

    /// Whether files say what they said before: comments may be others.
    fn says(
        &self,
        controller: &Controller,
        files: &Files,
        before: &Files,
    ) -> Result<bool, Refusal> {
        let was = self.understood_again(controller, before.clone())?;
        let is = self.understood_again(controller, files.clone())?;
        Ok(diff(&was, &is).is_empty())
    }

    /// Reads again what is to be written, writes it, and forgets the overrides that it holds.
    fn write(
        &self,
        controller: &Controller,
        mut pen: WriteBack,
        with_edits: &Files,
        (files, overrides): (&Files, &[(String, Override)]),
    ) -> Result<(Applied, Files), Refusal> {
        let mut applied = Applied {
            generation: self.generation().number,
            notes: std::mem::take(&mut pen.notes),
            ..Applied::default()
        };
        // Servers that follow one that went would be counted anew: they keep their numbers.
        let counted = self.understood_again(controller, pen.edited(with_edits))?;
        pen.keep_numbers(&counted);
        let edited = pen.edited(with_edits);
        let config = self.understood_again(controller, edited.clone())?;
        let other = diff(&pen.target, &config);
        if let Some(line) = ballast_model::plan::lines(&pen.target, &other).first() {
            return Err(Refusal(format!(
                "The files cannot say it: {line}. Nothing was written."
            )));
        }
        let new = edited.iter().zip(files).filter(|(new, old)| new != old);
        let mut files: Files = new.map(|(new, _)| new.clone()).collect();
        let mut written = pen.written;
        let mut lists = Vec::new();
        for listed in controller.patterns().all() {
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
        replace_files(&files).map_err(|error| Refusal(format!("{error}.")))?;
        for (list, text) in lists {
            list.was_written(&text);
            let name = list.name();
            written.extend([format!("map {name}"), format!("acl {name}")]);
        }
        applied.lines = files.into_iter().map(|(name, _)| name).collect();
        let mut config_history = controller.config_history();
        let seen: Vec<_> = overrides
            .iter()
            .filter(|(key, _)| written.contains(key))
            .cloned()
            .collect();
        config_history.forget_as_seen(&seen);
        Ok((applied, edited))
    }
}
