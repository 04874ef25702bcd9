//! What a demand amounts to: the configuration that is to be in force once it is met.
//!
//! Files are read, sections by hand are put into them, and what hands did to servers is put
//! together with what they say. Nothing is changed here.

use std::sync::Arc;

use ballast_cli::{Demand, Edit, Refused, SectionAt, SectionOf, Source};
use ballast_config::Loaded;
use ballast_engine::affairs::{AMENDMENT_BYTES_MAX, Amendment, Merged, Overrides, Written};
use ballast_engine::numbers;
use ballast_expr::{RuntimeEntries, Store};
use ballast_model::change::{apply, diff};
use ballast_model::{Change, Config, Server};
use ballast_stats::Surroundings;
use ballast_syntax::SectionPlace;

use crate::amend::{Files, NO_FILE, Place, Texts};
use crate::args::Options;
use crate::change::Chief;
use crate::check::{self, About};
use crate::desk::House;
use crate::machine::{Book, Machine};
use crate::states::{self, State};
use crate::{fragment, run, say, skeleton};

/// A configuration on its way.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) config: Config,
    /// What is written then, where that is another.
    pub(crate) written: Option<Written>,
    /// Files were read for it.
    pub(crate) is_read: bool,
    /// These are the files of the start.
    pub(crate) is_of_start: bool,
    pub(crate) patterns: Option<Arc<Store>>,
    /// Where the sections of the files stand.
    pub(crate) texts: Option<Texts>,
    /// What the machine answered while files were read.
    pub(crate) book: Option<Arc<Book>>,
    pub(crate) cause: String,
    pub(crate) notes: String,
    /// Settings by hand that hold no longer, by their keys.
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

impl Chief {
    /// The machine, as a configuration in these files asks about it.
    pub(crate) fn machine(&self, files: &Files) -> Machine {
        machine(&self.options, files)
    }

    /// What files say: read, and what the command line says of it put in. What is as `before` is
    /// the same object.
    fn understand(
        &self,
        house: &House,
        files: Files,
        before: Option<&Config>,
        about: &About,
    ) -> Result<Said, Refused> {
        let (loaded, notes) = read(&self.options, &self.patterns(), files, about)?;
        let Loaded {
            mut config,
            store,
            sections,
            ..
        } = loaded;
        run::apply_options(&self.options, &mut config);
        numbers::keep(&mut config, &house.generation().config);
        // What they say as before is kept once, however often they are read.
        let config = match before {
            Some(before) => apply(before, &diff(before, &config)).unwrap_or(config),
            None => config,
        };
        Ok(Said {
            config,
            store,
            sections,
            notes,
        })
    }
}

/// What files say.
struct Said {
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

impl House {
    /// Makes of a demand the configuration it amounts to.
    pub(crate) fn wanted(&self, chief: &Chief, demand: Demand) -> Result<Wanted, Refused> {
        let now = self.generation();
        match demand {
            Demand::Reload { keep } => {
                let overrides = if keep {
                    Overrides::Keep
                } else {
                    Overrides::Drop
                };
                self.read_again(chief, None, overrides, "reload")
            }
            Demand::Plan(source) => self.read_again(chief, source, Overrides::Drop, "plan"),
            Demand::Apply(source) => {
                let cause = match &source {
                    Source::File(name) => format!("apply {name}"),
                    Source::Text(_) => "apply".to_owned(),
                };
                self.read_again(chief, Some(source), Overrides::Drop, &cause)
            }
            Demand::Rollback(number) => self.back_to(chief, number),
            Demand::Change { changes, command } => Ok(Wanted {
                config: changed(&now.config, &changes)?,
                cause: command,
                ..Wanted::default()
            }),
            Demand::AddServer {
                backend,
                server,
                words,
            } => {
                let (line, notes) = fragment::server(&now.config, &backend, &server, &words)?;
                let words = fragment::numbered(&words, line.id);
                let changes = [Change::AddServer(backend.clone(), Arc::new(line))];
                Ok(Wanted {
                    config: changed(&now.config, &changes)?,
                    cause: format!("add server {backend}/{server}"),
                    notes,
                    dormant: Some((backend, server, words)),
                    ..Wanted::default()
                })
            }
            Demand::Edit {
                section,
                edit,
                command,
            } => self.edit(chief, &section, edit, command),
            Demand::RenameServer {
                backend,
                server,
                name,
            } => self.rename(chief, &now.config, [backend, server, name]),
            // These want nothing.
            Demand::Persist(_) | Demand::Section(_) => Err(Refused(String::new())),
        }
    }

    /// What was in force before. Its text is read again: lists and maps are no part of what is
    /// kept, and hold what somebody else wrote by now.
    fn back_to(&self, chief: &Chief, number: u64) -> Result<Wanted, Refused> {
        let past = {
            let affairs = chief.affairs();
            let past = affairs.history().find(|past| past.number == number);
            let past = past.ok_or_else(|| Refused(format!("No generation {number}.")))?;
            past.clone()
        };
        let _open = chief.book().open();
        let now = self.generation();
        let written = past.written;
        let texts = Texts::read(Arc::clone(&written.files), &chief.machine(&written.files));
        let amended = texts.amended(&written.amendments, Place::Beside);
        let said = chief.understand(self, amended.files, Some(&now.config), &About::All)?;
        // What hands had done beside it at that time.
        let by_hand = diff(&written.amended, &past.config);
        Ok(Wanted {
            config: changed(&said.config, &by_hand)?,
            written: Some(written),
            is_read: true,
            patterns: Some(said.store),
            texts: Some(texts),
            cause: format!("rollback {number}"),
            ..Wanted::default()
        })
    }

    /// Reads files, and puts together with what hands did what they say.
    fn read_again(
        &self,
        chief: &Chief,
        source: Option<Source>,
        overrides: Overrides,
        cause: &str,
    ) -> Result<Wanted, Refused> {
        let is_of_start = source.is_none();
        let files = files_of(&chief.options, source)?;
        let wanted = self.understood(chief, files, overrides, cause)?;
        Ok(Wanted {
            is_of_start,
            ..wanted
        })
    }

    /// Puts together what files say with what hands did, or leaves out what these did: `overrides`
    /// says which, unless the files ask for them to be kept.
    pub(crate) fn understood(
        &self,
        chief: &Chief,
        files: Files,
        overrides: Overrides,
        cause: &str,
    ) -> Result<Wanted, Refused> {
        // What a scout was answered, or what the machine answers now.
        let book = Book::in_use().unwrap_or_else(Book::new);
        let _open = book.open();
        let before = chief.affairs().written().clone();
        let file = chief.understand(self, files.clone(), Some(&before.file), &About::All)?;
        let overrides = match file.config.global.reload_keeps_overrides {
            true => Overrides::Keep,
            false => overrides,
        };
        let drops = overrides == Overrides::Drop;
        let amendments: &[Amendment] = if drops { &[] } else { &before.amendments };
        let files = if *before.files == files {
            before.files
        } else {
            Arc::new(files)
        };
        let texts = Texts::of(Arc::clone(&files), file.sections);
        let amended = texts.amended(amendments, Place::Beside);
        let said = if amended.kept.is_empty() {
            None
        } else {
            let said = chief.understand(self, amended.files, Some(&before.amended), &About::All);
            Some(said.map_err(|Refused(why)| {
                Refused(format!(
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
        for title in amended.overruled {
            notes.push_str(&format!(
                "The file overrules what was set by hand: {title}\n"
            ));
        }
        let mut merged = self.merged(chief, &config, overrides, &mut notes);
        let mut states = Vec::new();
        if drops {
            patterns.set_runtime_entries(RuntimeEntries::Drop);
            let (found, troubles) = states::read(&merged.config);
            for trouble in troubles {
                notes.push_str(&say::line_of(say::Grade::Warning, &trouble));
            }
            states::configure(&mut merged.config, &found);
            states = found;
        }
        states::forget(&book, &merged.config);
        Ok(Wanted {
            config: merged.config,
            written: Some(Written {
                files,
                file: file_config,
                amendments: Arc::new(amended.kept),
                amended: config,
            }),
            is_read: true,
            patterns: Some(patterns),
            book: Some(book),
            texts: Some(texts),
            cause: cause.to_owned(),
            notes,
            overruled: merged.overruled,
            overrides,
            states,
            ..Wanted::default()
        })
    }

    /// Edits a section of what is written.
    fn edit(
        &self,
        chief: &Chief,
        section: &SectionAt,
        edit: Edit,
        command: String,
    ) -> Result<Wanted, Refused> {
        let _open = chief.book().open();
        let before = chief.affairs().written().clone();
        let machine = chief.machine(&before.files);
        // Whoever removes something knows that what was set of it goes along.
        let removes = matches!(edit, Edit::Remove);
        let comes_or_goes = removes || matches!(edit, Edit::Add(..));
        let adds = section.kind == SectionOf::Backend && matches!(edit, Edit::Add(..));
        let texts = chief.texts(&before);
        let (amendments, title) =
            texts.edited(&before.amendments, section, edit, &command, &machine)?;
        let bytes = amendments.iter().filter_map(|one| one.text.as_ref());
        if bytes.map(String::len).sum::<usize>() > AMENDMENT_BYTES_MAX {
            return Err(Refused(
                "The sections by hand are too large: 'persist now' writes them to the files."
                    .into(),
            ));
        }
        let said = self.edited(chief, &before, &amendments, &title, comes_or_goes);
        let said = said.map_err(|Refused(why)| {
            Refused(format!(
                "{why}Nothing was changed; lines are counted as if the command had been carried \
                 out.\n"
            ))
        })?;
        let (config, mut notes) = (Arc::new(said.config), said.notes);
        let mut overruled = String::new();
        let merged = self.merged(chief, &config, Overrides::Keep, &mut overruled);
        if !check::has_listener(&merged.config) {
            return Err(Refused("Nothing would be listened on.".into()));
        }
        if !removes {
            notes.push_str(&overruled);
        }
        Ok(Wanted {
            config: merged.config,
            written: Some(Written {
                amendments: Arc::new(amendments),
                amended: config,
                ..before
            }),
            patterns: Some(said.store),
            cause: command,
            notes,
            overruled: merged.overruled,
            unpublished: adds.then(|| section.name.clone()).into_iter().collect(),
            ..Wanted::default()
        })
    }

    /// What is written says once a section was edited: read whole, or only what can be another,
    /// where the section `comes_or_goes`.
    fn edited(
        &self,
        chief: &Chief,
        before: &Written,
        amendments: &[Amendment],
        title: &str,
        comes_or_goes: bool,
    ) -> Result<Said, Refused> {
        let texts = chief.texts(before);
        let text = amendments.iter().find(|one| one.title == title);
        let is_there = text.map_or(texts.has(title), |one| one.text.is_some());
        if comes_or_goes && !is_there && !skeleton::is_mentioned(&texts, amendments, title) {
            return Ok(Said {
                config: skeleton::without(&before.amended, title),
                store: chief.patterns(),
                sections: Vec::new(),
                notes: String::new(),
            });
        }
        // What is wrong in a part is judged by the whole.
        if comes_or_goes
            && is_there
            && !texts.has(title)
            && let Some(part) = skeleton::around(&texts, amendments, title, &before.amended)
            && let own = part.len() - 1
            && let about = About::Part(Some((own, 0..part[own].1.len())))
            && let Ok(said) = chief.understand(self, part, None, &about)
        {
            said.store.keep_others();
            let mut config = skeleton::with(&before.amended, &said.config, title);
            numbers::keep(&mut config, &self.generation().config);
            return Ok(Said { config, ..said });
        }
        let amended = texts.amended(amendments, Place::Beside);
        let about = About::Part(amended.place(title));
        chief.understand(self, amended.files, Some(&before.amended), &about)
    }

    /// Gives a server another name: where its line is in a file, there; else to what a command
    /// added.
    fn rename(
        &self,
        chief: &Chief,
        now: &Config,
        [backend, server, name]: [String; 3],
    ) -> Result<Wanted, Refused> {
        let command = format!("set server {backend}/{server} name {name}");
        let renamed = (backend.clone(), server.clone(), name.clone());
        let known = now.backend(&backend).and_then(|known| {
            let mut servers = known.servers.iter();
            servers.find(|one| one.name == server)
        });
        let known = known.ok_or_else(|| Refused("No such server.".into()))?;
        if !known.origin.file.is_empty() {
            let at = SectionAt {
                kind: SectionOf::Backend,
                name: backend,
            };
            let wanted = self.edit(chief, &at, Edit::RenameServer(server, name), command)?;
            return Ok(Wanted {
                renamed: Some(renamed),
                ..wanted
            });
        }
        let mut other = Server::clone(known);
        other.name.clone_from(&name);
        let changes = [
            Change::RemoveServer(backend.clone(), server),
            Change::AddServer(backend, Arc::new(other)),
        ];
        Ok(Wanted {
            config: changed(now, &changes)?,
            cause: command,
            renamed: Some(renamed),
            ..Wanted::default()
        })
    }

    /// What is written, and what hands did beside it.
    fn merged(
        &self,
        chief: &Chief,
        config: &Config,
        overrides: Overrides,
        notes: &mut String,
    ) -> Merged {
        let now = self.generation();
        // Workers note hands meanwhile: nobody waits for the comparing.
        let basis = chief.affairs().basis();
        let merged = basis.merge(&now.config, config, overrides);
        let dropped = merged.dropped.iter().flat_map(|change| {
            ballast_model::plan::lines(&now.config, std::slice::from_ref(change))
        });
        let dropped = dropped.map(|line| line.to_string());
        let said = dropped.chain(merged.overruled.iter().cloned());
        // What a reload drops stands among the lines of its plan.
        for what in said.filter(|_| overrides == Overrides::Keep) {
            notes.push_str(&format!(
                "The file overrules what was set by hand: {what}\n"
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

fn changed(now: &Config, changes: &[Change]) -> Result<Config, Refused> {
    apply(now, changes).map_err(|error| Refused(format!("{error}.")))
}

/// The files of the start, or what stands for them.
pub(crate) fn files_of(options: &Options, source: Option<Source>) -> Result<Files, Refused> {
    let files = match source {
        Some(Source::Text(text)) => Ok(vec![(NO_FILE.to_owned(), text)]),
        Some(Source::File(name)) => crate::read::files(&[name]),
        None => crate::read::files(&options.files),
    };
    files.map_err(|error| Refused(say::line_of(say::Grade::Alert, &error)))
}

/// Understands files that are to follow what is in force.
pub(crate) fn read(
    options: &Options,
    patterns: &Arc<Store>,
    files: Files,
    about: &About,
) -> Result<(Loaded, String), Refused> {
    let (loaded, said) = check::again(options, patterns, files, about);
    if loaded.has_alerts() || !loaded.unserved.is_empty() {
        return Err(Refused(said));
    }
    let zero_warning = options.zero_warning || loaded.config.global.zero_warning;
    if zero_warning && loaded.has_warnings() {
        let text = "Some warnings were found and 'zero-warning' is set. Aborting.";
        return Err(Refused(said + &say::line_of(say::Grade::Alert, text)));
    }
    // Of an edit only a part may be read.
    if matches!(about, About::All) && !check::has_listener(&loaded.config) {
        let text = "No enabled listener found (check for 'bind' directives) ! Exiting.";
        return Err(Refused(say::line_of(say::Grade::Alert, text)));
    }
    Ok((loaded, said))
}
