//! What a request amounts to: the configuration that is to be in force once it is met.
//!
//! Files are read, sections by command are put into them, and what operators did to servers is put
//! together with what they say. Nothing is changed here.

use std::sync::Arc;

use ballast_cli::{ChangeRequest, Source};
use ballast_config::Loaded;
use ballast_edit::{
    Edit, EditCommand, Files, NO_FILE, Place, Refusal, SECTION_EDIT_BYTES_MAX, SectionAt,
    SectionEdit, SectionMap, SectionOf, excerpt, server_line,
};
use ballast_engine::config_history::{ConfigSource, Merged, Overrides};
use ballast_engine::numbers;
use ballast_expr::{RuntimeEntries, Store};
use ballast_model::change::{apply, diff};
use ballast_model::{Change, Config, Server};
use ballast_stats::Surroundings;
use ballast_syntax::SectionPlace;

use crate::args::Options;
use crate::check::{self, About};
use crate::controller::{Controller, now_unix_s};
use crate::instance::Instance;
use crate::machine::{Machine, MachineAnswers};
use crate::states::{self, State};
use crate::{run, say};

/// A configuration on its way.
#[derive(Default)]
pub(crate) struct TargetConfig {
    pub(crate) config: Config,
    /// What is written then, where that is another.
    pub(crate) written: Option<ConfigSource>,
    /// Files were read for it.
    pub(crate) is_read: bool,
    /// These are the files of the start.
    pub(crate) is_of_start: bool,
    pub(crate) patterns: Option<Arc<Store>>,
    /// Where the sections of the files stand.
    pub(crate) texts: Option<SectionMap>,
    /// What the machine answered while files were read.
    pub(crate) machine_answers: Option<Arc<MachineAnswers>>,
    pub(crate) cause: String,
    pub(crate) notes: String,
    /// Settings by command that hold no longer, by their keys.
    pub(crate) overruled: Vec<String>,
    /// Whether the process is to be what the files say, whatever operators set.
    pub(crate) overrides: Overrides,
    /// What state files say of the servers then.
    pub(crate) states: Vec<State>,
    /// Backends that a command adds: no rule leads there before they are published.
    pub(crate) unpublished: Vec<String>,
    /// A server that goes on under another name: backend, name before, name then.
    pub(crate) renamed: Option<(String, String, String)>,
    /// Added by a command: begins in maintenance and unchecked, as HAProxy's do. Backend, server,
    /// and its words as a file would have them.
    pub(crate) dormant: Option<(String, String, String)>,
}

impl Controller {
    /// The machine, as a configuration in these files asks about it.
    pub(crate) fn machine(&self, files: &Files) -> Machine {
        machine(&self.options, files)
    }

    /// What files say: read, and what the command line says of it put in. What is as `before` is
    /// the same object.
    fn understand(
        &self,
        instance: &Instance,
        files: Files,
        before: Option<&Config>,
        about: &About,
    ) -> Result<FileConfig, Refusal> {
        let (loaded, notes) = read(&self.options, &self.patterns(), files, about)?;
        let Loaded {
            mut config,
            store,
            sections,
            ..
        } = loaded;
        run::apply_options(&self.options, &mut config);
        numbers::keep(&mut config, &instance.generation().config);
        // What they say as before is kept once, however often they are read.
        let config = match before {
            Some(before) => apply(before, &diff(before, &config)).unwrap_or(config),
            None => config,
        };
        Ok(FileConfig {
            config,
            store,
            sections,
            notes,
        })
    }
}

/// What files say.
struct FileConfig {
    config: Config,
    store: Arc<Store>,
    sections: Vec<SectionPlace>,
    notes: String,
}

/// The machine, as a configuration in these files asks about it.
pub(crate) fn machine(options: &Options, files: &Files) -> Machine {
    let named = files.iter().map(|(name, _)| name);
    // What commands wrote beside them is none of the files.
    let names: Vec<String> = named.filter(|name| *name != NO_FILE).cloned().collect();
    Machine::new(&names, options.local_peer.as_deref(), options.master_worker)
}

impl Instance {
    /// Makes of a request the configuration it amounts to.
    pub(crate) fn target(
        &self,
        controller: &Controller,
        request: ChangeRequest,
    ) -> Result<TargetConfig, Refusal> {
        let now = self.generation();
        match request {
            ChangeRequest::Reload { keep } => {
                let overrides = if keep {
                    Overrides::Keep
                } else {
                    Overrides::Drop
                };
                self.read_again(controller, None, overrides, "reload")
            }
            ChangeRequest::Plan(source) => {
                self.read_again(controller, source, Overrides::Drop, "plan")
            }
            ChangeRequest::Apply(source) => {
                let cause = match &source {
                    Source::File(name) => format!("apply {name}"),
                    Source::Text(_) => "apply".to_owned(),
                };
                self.read_again(controller, Some(source), Overrides::Drop, &cause)
            }
            ChangeRequest::Rollback(number) => self.back_to(controller, number),
            ChangeRequest::Change { changes, command } => Ok(TargetConfig {
                config: changed(&now.config, &changes)?,
                cause: command,
                ..TargetConfig::default()
            }),
            ChangeRequest::AddServer {
                backend,
                server,
                words,
            } => {
                let (line, notes) = added_server(&now.config, &backend, &server, &words)?;
                let words = server_line::numbered(&words, line.id);
                let changes = [Change::AddServer(backend.clone(), Arc::new(line))];
                Ok(TargetConfig {
                    config: changed(&now.config, &changes)?,
                    cause: format!("add server {backend}/{server}"),
                    notes,
                    dormant: Some((backend, server, words)),
                    ..TargetConfig::default()
                })
            }
            ChangeRequest::Edit {
                section,
                edit,
                command,
            } => self.edit(controller, &section, edit, command),
            ChangeRequest::RenameServer {
                backend,
                server,
                name,
            } => self.rename(controller, &now.config, [backend, server, name]),
            // These want nothing.
            ChangeRequest::Persist(_) | ChangeRequest::Section(_) => Err(Refusal(String::new())),
        }
    }

    /// What was in force before. Its text is read again: lists and maps are no part of what is
    /// kept, and hold what somebody else wrote by now.
    fn back_to(&self, controller: &Controller, number: u64) -> Result<TargetConfig, Refusal> {
        let past = {
            let config_history = controller.config_history();
            let past = config_history.history().find(|past| past.number == number);
            let past = past.ok_or_else(|| Refusal(format!("No generation {number}.")))?;
            past.clone()
        };
        let _open = controller.machine_answers().open();
        let now = self.generation();
        let written = past.written;
        let texts = SectionMap::read(
            Arc::clone(&written.files),
            &controller.machine(&written.files),
        );
        let with_edits = texts.with_edits(&written.section_edits, Place::Beside);
        let said = controller.understand(self, with_edits.files, Some(&now.config), &About::All)?;
        // What operators had done beside it at that time.
        let overridden = diff(&written.with_edits, &past.config);
        Ok(TargetConfig {
            config: changed(&said.config, &overridden)?,
            written: Some(written),
            is_read: true,
            patterns: Some(said.store),
            texts: Some(texts),
            cause: format!("rollback {number}"),
            ..TargetConfig::default()
        })
    }

    /// Reads files, and puts together with what operators did what they say.
    fn read_again(
        &self,
        controller: &Controller,
        source: Option<Source>,
        overrides: Overrides,
        cause: &str,
    ) -> Result<TargetConfig, Refusal> {
        let is_of_start = source.is_none();
        let files = files_of(&controller.options, source)?;
        let target = self.understood(controller, files, overrides, cause)?;
        Ok(TargetConfig {
            is_of_start,
            ..target
        })
    }

    /// Puts together what files say with what operators did, or leaves out what these did: `overrides`
    /// says which, unless the files ask for them to be kept.
    pub(crate) fn understood(
        &self,
        controller: &Controller,
        files: Files,
        overrides: Overrides,
        cause: &str,
    ) -> Result<TargetConfig, Refusal> {
        // What a scout was answered, or what the machine answers now.
        let machine_answers = MachineAnswers::in_use().unwrap_or_else(MachineAnswers::new);
        let _open = machine_answers.open();
        let before = controller.config_history().written().clone();
        let file = controller.understand(self, files.clone(), Some(&before.file), &About::All)?;
        let overrides = match file.config.global.reload_keeps_overrides {
            true => Overrides::Keep,
            false => overrides,
        };
        let drops = overrides == Overrides::Drop;
        let section_edits: &[SectionEdit] = if drops { &[] } else { &before.section_edits };
        let files = if *before.files == files {
            before.files
        } else {
            Arc::new(files)
        };
        let texts = SectionMap::of(Arc::clone(&files), file.sections);
        let with_edits = texts.with_edits(section_edits, Place::Beside);
        let said = if with_edits.kept.is_empty() {
            None
        } else {
            let said = controller.understand(
                self,
                with_edits.files,
                Some(&before.with_edits),
                &About::All,
            );
            Some(said.map_err(|Refusal(why)| {
                Refusal(format!(
                    "{why}The files are right by themselves, not with the sections that commands \
                     wrote: 'reload' without 'keep' drops these.\n"
                ))
            })?)
        };
        let file_config = Arc::new(file.config);
        let (config, patterns, mut notes) = match said {
            Some(said) => (Arc::new(said.config), said.store, said.notes),
            None => (Arc::clone(&file_config), file.store, file.notes),
        };
        for title in with_edits.overruled {
            notes.push_str(&format!(
                "The file overrules what was set by command: {title}\n"
            ));
        }
        let mut merged = self.merged(controller, &config, overrides, &mut notes);
        let mut states = Vec::new();
        if drops {
            patterns.set_runtime_entries(RuntimeEntries::Drop);
            let (found, troubles) = states::read(&merged.config);
            for trouble in troubles {
                notes.push_str(&say::line_of(say::Severity::Warning, &trouble));
            }
            states::configure(&mut merged.config, &found);
            states = found;
        }
        states::forget(&machine_answers, &merged.config);
        Ok(TargetConfig {
            config: merged.config,
            written: Some(ConfigSource {
                files,
                file: file_config,
                section_edits: Arc::new(with_edits.kept),
                with_edits: config,
            }),
            is_read: true,
            patterns: Some(patterns),
            machine_answers: Some(machine_answers),
            texts: Some(texts),
            cause: cause.to_owned(),
            notes,
            overruled: merged.overruled,
            overrides,
            states,
            ..TargetConfig::default()
        })
    }

    /// Edits a section of what is written.
    fn edit(
        &self,
        controller: &Controller,
        section: &SectionAt,
        edit: Edit,
        command: String,
    ) -> Result<TargetConfig, Refusal> {
        let _open = controller.machine_answers().open();
        let before = controller.config_history().written().clone();
        let machine = controller.machine(&before.files);
        // Whoever removes something knows that what was set of it goes along.
        let removes = matches!(edit, Edit::Remove);
        let comes_or_goes = removes || matches!(edit, Edit::Add(..));
        let adds = section.kind == SectionOf::Backend && matches!(edit, Edit::Add(..));
        let texts = controller.texts(&before);
        let (section_edits, title) = texts.edited(
            &before.section_edits,
            command_of(section, edit, &command),
            &machine,
        )?;
        let bytes = section_edits.iter().filter_map(|one| one.text.as_ref());
        if bytes.map(String::len).sum::<usize>() > SECTION_EDIT_BYTES_MAX {
            return Err(Refusal(
                "The sections by command are too large: 'persist now' writes them to the files."
                    .into(),
            ));
        }
        let said = self.edited(controller, &before, &section_edits, &title, comes_or_goes);
        let said = said.map_err(|Refusal(why)| {
            Refusal(format!(
                "{why}Nothing was changed; lines are counted as if the command had been carried \
                 out.\n"
            ))
        })?;
        let (config, mut notes) = (Arc::new(said.config), said.notes);
        let mut overruled = String::new();
        let merged = self.merged(controller, &config, Overrides::Keep, &mut overruled);
        if !check::has_listener(&merged.config) {
            return Err(Refusal("Nothing would be listened on.".into()));
        }
        if !removes {
            notes.push_str(&overruled);
        }
        Ok(TargetConfig {
            config: merged.config,
            written: Some(ConfigSource {
                section_edits: Arc::new(section_edits),
                with_edits: config,
                ..before
            }),
            patterns: Some(said.store),
            cause: command,
            notes,
            overruled: merged.overruled,
            unpublished: adds.then(|| section.name.clone()).into_iter().collect(),
            ..TargetConfig::default()
        })
    }

    /// What is written says once a section was edited: read whole, or only what can be another,
    /// where the section `comes_or_goes`.
    fn edited(
        &self,
        controller: &Controller,
        before: &ConfigSource,
        section_edits: &[SectionEdit],
        title: &str,
        comes_or_goes: bool,
    ) -> Result<FileConfig, Refusal> {
        let texts = controller.texts(before);
        let text = section_edits.iter().find(|one| one.title == title);
        let is_there = text.map_or(texts.has(title), |one| one.text.is_some());
        if comes_or_goes && !is_there && !excerpt::is_mentioned(&texts, section_edits, title) {
            return Ok(FileConfig {
                config: excerpt::without(&before.with_edits, title),
                store: controller.patterns(),
                sections: Vec::new(),
                notes: String::new(),
            });
        }
        // What is wrong in a part is judged by the whole.
        if comes_or_goes
            && is_there
            && !texts.has(title)
            && let Some(part) = excerpt::around(&texts, section_edits, title, &before.with_edits)
            && let own = part.len() - 1
            && let about = About::Part(Some((own, 0..part[own].1.len())))
            && let Ok(said) = controller.understand(self, part, None, &about)
        {
            said.store.keep_others();
            let mut config = excerpt::with(&before.with_edits, &said.config, title);
            numbers::keep(&mut config, &self.generation().config);
            return Ok(FileConfig { config, ..said });
        }
        let with_edits = texts.with_edits(section_edits, Place::Beside);
        let about = About::Part(with_edits.place(title));
        controller.understand(self, with_edits.files, Some(&before.with_edits), &about)
    }

    /// Gives a server another name: where its line is in a file, there; else to what a command
    /// added.
    fn rename(
        &self,
        controller: &Controller,
        now: &Config,
        [backend, server, name]: [String; 3],
    ) -> Result<TargetConfig, Refusal> {
        let command = format!("set server {backend}/{server} name {name}");
        let renamed = (backend.clone(), server.clone(), name.clone());
        let known = now.backend(&backend).and_then(|known| {
            let mut servers = known.servers.iter();
            servers.find(|one| one.name == server)
        });
        let known = known.ok_or_else(|| Refusal("No such server.".into()))?;
        if !known.origin.file.is_empty() {
            let at = SectionAt {
                kind: SectionOf::Backend,
                name: backend,
            };
            let target = self.edit(controller, &at, Edit::RenameServer(server, name), command)?;
            return Ok(TargetConfig {
                renamed: Some(renamed),
                ..target
            });
        }
        let mut other = Server::clone(known);
        other.name.clone_from(&name);
        let changes = [
            Change::RemoveServer(backend.clone(), server),
            Change::AddServer(backend, Arc::new(other)),
        ];
        Ok(TargetConfig {
            config: changed(now, &changes)?,
            cause: command,
            renamed: Some(renamed),
            ..TargetConfig::default()
        })
    }

    /// What is written, and what operators did beside it.
    fn merged(
        &self,
        controller: &Controller,
        config: &Config,
        overrides: Overrides,
        notes: &mut String,
    ) -> Merged {
        let now = self.generation();
        // Workers note overrides meanwhile: nobody waits for the comparing.
        let basis = controller.config_history().basis();
        let merged = basis.merge(&now.config, config, overrides);
        let dropped = merged.dropped.iter().flat_map(|change| {
            ballast_model::plan::lines(&now.config, std::slice::from_ref(change))
        });
        let dropped = dropped.map(|line| line.to_string());
        let said = dropped.chain(merged.overruled.iter().cloned());
        // What a reload drops stands among the lines of its plan.
        for what in said.filter(|_| overrides == Overrides::Keep) {
            notes.push_str(&format!(
                "The file overrules what was set by command: {what}\n"
            ));
        }
        for word in self.needs_handover(&now.config, &merged.config) {
            notes.push_str(&format!(
                "'{word}' is another now; that takes effect when a new process takes over.\n"
            ));
        }
        merged
    }
}

/// An edit that is asked for now.
fn command_of<'c>(section: &'c SectionAt, edit: Edit, command: &'c str) -> EditCommand<'c> {
    EditCommand {
        section,
        edit,
        command,
        at_unix_s: now_unix_s(),
    }
}

/// The server of an `add server`: the files are not read for it.
///
/// # Errors
/// HAProxy's words for what is wrong.
pub(crate) fn added_server(
    now: &Config,
    backend: &str,
    server: &str,
    words: &[String],
) -> Result<(Server, String), Refusal> {
    let machine = Machine::new(&[NO_FILE.to_owned()], None, false);
    let reader = (&machine as _, std::process::id());
    server_line::server(now, backend, server, words, reader)
}

fn changed(now: &Config, changes: &[Change]) -> Result<Config, Refusal> {
    apply(now, changes).map_err(|error| Refusal(format!("{error}.")))
}

/// The files of the start, or what stands for them.
pub(crate) fn files_of(options: &Options, source: Option<Source>) -> Result<Files, Refusal> {
    let files = match source {
        Some(Source::Text(text)) => Ok(vec![(NO_FILE.to_owned(), text)]),
        Some(Source::File(name)) => crate::read::files(&[name]),
        None => crate::read::files(&options.files),
    };
    files.map_err(|error| Refusal(say::line_of(say::Severity::Alert, &error)))
}

/// Understands files that are to follow what is in force.
pub(crate) fn read(
    options: &Options,
    patterns: &Arc<Store>,
    files: Files,
    about: &About,
) -> Result<(Loaded, String), Refusal> {
    let (loaded, said) = check::again(options, patterns, files, about);
    if loaded.has_alerts() || !loaded.unserved.is_empty() {
        return Err(Refusal(said));
    }
    let zero_warning = options.zero_warning || loaded.config.global.zero_warning;
    if zero_warning && loaded.has_warnings() {
        let text = "Some warnings were found and 'zero-warning' is set. Aborting.";
        return Err(Refusal(said + &say::line_of(say::Severity::Alert, text)));
    }
    // Of an edit only a part may be read.
    if matches!(about, About::All) && !check::has_listener(&loaded.config) {
        let text = "No enabled listener found (check for 'bind' directives) ! Exiting.";
        return Err(Refusal(say::line_of(say::Severity::Alert, text)));
    }
    Ok((loaded, said))
}
