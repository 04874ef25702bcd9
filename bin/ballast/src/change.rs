//! The one path of change: whatever asks for it, a file read again, a command or a signal.
//!
//! ```text
//!   read ─► merge with hands ─► compile ─► open sockets and logs ─► commit ─► effects
//!     └────────────┴───────────────┴──────────────┘ any of these may refuse, and nothing is
//!                                                    changed
//! ```
//!
//! Changes are made one after the other by the chief, a thread of its own: reading files,
//! compiling and waiting for workers hold up no traffic. A worker goes over to the new generation
//! between two of its tasks; exchanges under way finish under the one they began with.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use ballast_cli::{Applied, Demand, Outcome, Persist, Refused, Source};
use ballast_config::Loaded;
use ballast_engine::Generation;
use ballast_engine::affairs::{Affairs, Hand, Past};
use ballast_expr::Store;
use ballast_model::change::{apply, diff};
use ballast_model::plan::Line;
use ballast_model::{Change, Config};
use ballast_stats::Surroundings;
use ballast_worker::sync::oneshot;

use crate::args::Options;
use crate::desk::House;
use crate::{check, fragment, run, say};

/// Demands that may wait for their turn; who comes then is refused.
const DEMAND_COUNT_MAX: usize = 1024;

type Job = Box<dyn FnOnce(&House) + Send>;

/// Where demands are brought.
#[derive(Debug)]
pub(crate) struct Chief {
    jobs: mpsc::SyncSender<Job>,
    affairs: Mutex<Affairs>,
    patterns: Mutex<Arc<Store>>,
    /// The `defaults` sections of the files in force.
    defaults: Mutex<Arc<Vec<u8>>>,
    pub(crate) options: Options,
    /// What hands change is written to the files (`persist on`).
    persists: AtomicBool,
    /// A job that does so waits for its turn.
    persist_waits: AtomicBool,
}

impl Chief {
    /// The chief of a process that starts with `config`, and the work that comes to them.
    pub(crate) fn begin(
        config: Arc<Config>,
        patterns: Arc<Store>,
        options: Options,
    ) -> (Self, Work) {
        let (jobs, work) = mpsc::sync_channel(DEMAND_COUNT_MAX);
        // Standard input cannot be read twice; a file that is gone leaves no defaults.
        let mut names = options.files.clone();
        names.retain(|name| name != "-");
        let files = crate::read::files(&names).unwrap_or_default();
        let chief = Self {
            defaults: Mutex::new(Arc::new(fragment::defaults(&files))),
            jobs,
            affairs: Mutex::new(Affairs::begin(config, now_unix_s())),
            patterns: Mutex::new(patterns),
            options,
            persists: AtomicBool::new(false),
            persist_waits: AtomicBool::new(false),
        };
        (chief, Work(work))
    }

    /// What was put in force, and by whom.
    pub(crate) fn affairs(&self) -> MutexGuard<'_, Affairs> {
        self.affairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a file has is published, unless a hand said otherwise; what a command adds is not.
    fn publish(&self, generation: &Generation, wanted: &Wanted) {
        for name in &wanted.unpublished {
            if let Some(backend) = generation.backend(name) {
                backend.state.publish(false);
            }
        }
        let Some(file) = &wanted.file else { return };
        let hidden: HashSet<String> = self
            .affairs()
            .hands()
            .filter(|(key, hand)| hand.value == "no" && !wanted.overruled.iter().any(|o| o == key))
            .filter_map(|(key, _)| key.strip_prefix("backend ")?.strip_suffix(" published"))
            .map(str::to_owned)
            .collect();
        for backend in &file.backends {
            let name = &backend.common.name;
            if let Some(known) = generation.backend(name) {
                known.state.publish(!hidden.contains(name));
            }
        }
    }

    fn defaults(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.defaults.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn defaults_are(&self, text: Option<Arc<Vec<u8>>>) {
        if let Some(text) = text {
            *self.defaults.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
    }

    /// The lists and maps in force.
    pub(crate) fn patterns(&self) -> Arc<Store> {
        Arc::clone(&self.patterns.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The demands, as the chief takes them up.
#[derive(Debug)]
pub(crate) struct Work(mpsc::Receiver<Job>);

impl Work {
    /// Has a thread of its own take them up, for as long as the process lives.
    ///
    /// # Errors
    /// The system's refusal of a thread.
    pub(crate) fn take_up(self, house: Arc<House>) -> std::io::Result<()> {
        let work = move || {
            for job in self.0 {
                // A fault of ours in one demand must not end all that come after it. Who brought
                // it hears that it was given up.
                let done = catch_unwind(AssertUnwindSafe(|| job(&house)));
                if done.is_err() {
                    house.registry.process().counters.of(0).panics.increment();
                    say::alert("a change ended in a panic and was contained.");
                }
            }
        };
        std::thread::Builder::new()
            .name("ballast-change".into())
            .spawn(work)
            .map(drop)
    }
}

/// A configuration on its way.
struct Wanted {
    config: Config,
    /// What the file says, where one was read.
    file: Option<Arc<Config>>,
    patterns: Option<Arc<Store>>,
    /// The `defaults` sections of the files that were read.
    defaults: Option<Arc<Vec<u8>>>,
    cause: String,
    notes: String,
    /// Settings by hand that hold no longer, by their keys.
    overruled: Vec<String>,
    /// Backends that a command adds: no rule leads there before they are published.
    unpublished: Vec<String>,
    /// Added by a command: begins in maintenance and unchecked, as HAProxy's do. Backend, server,
    /// and its words as a file would have them.
    dormant: Option<(String, String, String)>,
}

impl House {
    /// Brings a demand to the chief.
    pub(crate) fn bring(&self, demand: Demand) -> Outcome {
        let (sender, receiver) = oneshot::channel();
        let job: Job = Box::new(move |house| {
            // Who asked may be gone; the change is made all the same.
            let _ = sender.send(house.meet(demand));
        });
        let taken = self.chief.get().map(|chief| chief.jobs.try_send(job));
        Box::pin(async move {
            match taken {
                Some(Ok(())) => receiver
                    .await
                    .unwrap_or_else(|_| Err(Refused("The change was given up.".into()))),
                Some(Err(_)) => Err(Refused("Too many changes wait for their turn.".into())),
                None => Err(Refused("The process is not ready for changes.".into())),
            }
        })
    }

    /// As [`Self::bring`], for threads that may wait.
    pub(crate) fn bring_and_wait(&self, demand: Demand) -> Result<Applied, Refused> {
        let (sender, receiver) = mpsc::channel();
        let job: Job = Box::new(move |house| {
            let _ = sender.send(house.meet(demand));
        });
        let refused = |text: &str| Refused(text.to_owned());
        let chief = self.chief.get();
        let chief = chief.ok_or_else(|| refused("The process is not ready for changes."))?;
        chief
            .jobs
            .send(job)
            .map_err(|_| refused("The process ends."))?;
        receiver
            .recv()
            .map_err(|_| refused("The change was given up."))?
    }

    fn meet(&self, demand: Demand) -> Result<Applied, Refused> {
        let chief = self.chief.get().ok_or_else(|| Refused(String::new()))?;
        if let Demand::Persist(how) = demand {
            chief.persists.store(
                match how {
                    Persist::Now => chief.persists.load(Ordering::Relaxed),
                    Persist::On => true,
                    Persist::Off => false,
                },
                Ordering::Relaxed,
            );
            return match how {
                Persist::Off => Ok(Applied::default()),
                Persist::Now | Persist::On => self.write_back(chief),
            };
        }
        let plan_only = matches!(demand, Demand::Plan(_));
        let by_hand = matches!(
            demand,
            Demand::AddServer { .. } | Demand::Change { .. } | Demand::Fragment { .. }
        );
        let wanted = self.wanted(chief, demand)?;
        if plan_only {
            return Ok(self.plan(&wanted));
        }
        let applied = self.put_in_force(chief, wanted)?;
        if by_hand {
            self.persist_soon();
        }
        Ok(applied)
    }

    /// Writes what hands did to the files, and goes on with what the files say then.
    fn write_back(&self, chief: &Chief) -> Result<Applied, Refused> {
        let (written, files) = self.persist(chief)?;
        if !written.lines.is_empty() {
            // What was written, not what the files say by now: somebody may have changed them.
            let wanted = self.understood(chief, files, false, "persist")?;
            self.put_in_force(chief, wanted)?;
        }
        Ok(Applied {
            generation: self.generation().number,
            ..written
        })
    }

    /// A hand changed something: has it written, where `persist` is on.
    pub(crate) fn persist_soon(&self) {
        let Some(chief) = self.chief.get() else {
            return;
        };
        let waits = &chief.persist_waits;
        if !chief.persists.load(Ordering::Relaxed) || waits.swap(true, Ordering::AcqRel) {
            return;
        }
        let job: Job = Box::new(|house| {
            let Some(chief) = house.chief.get() else {
                return;
            };
            chief.persist_waits.store(false, Ordering::Release);
            if let Err(Refused(why)) = house.write_back(chief) {
                say::warn(&format!("persist : {}", why.trim_end()));
            }
        });
        if chief.jobs.try_send(job).is_err() {
            // The next hand tries again.
            waits.store(false, Ordering::Release);
        }
    }

    /// Makes of a demand the configuration it amounts to.
    fn wanted(&self, chief: &Chief, demand: Demand) -> Result<Wanted, Refused> {
        let now = self.generation();
        match demand {
            Demand::Reload { reset } => self.read_again(chief, None, reset, "reload"),
            Demand::Persist(_) => Err(Refused(String::new())),
            Demand::Plan(source) => self.read_again(chief, source, false, "plan"),
            Demand::Apply(source) => {
                let cause = match &source {
                    Source::File(name) => format!("apply {name}"),
                    Source::Text(_) => "apply".to_owned(),
                };
                self.read_again(chief, Some(source), false, &cause)
            }
            Demand::Rollback(number) => {
                let affairs = chief.affairs();
                let past = affairs.history().find(|past| past.number == number);
                let past = past.ok_or_else(|| Refused(format!("No generation {number}.")))?;
                let changes = diff(&now.config, &past.config);
                Ok(Wanted {
                    config: changed(&now.config, &changes)?,
                    file: Some(Arc::clone(&past.file)),
                    patterns: None,
                    defaults: None,
                    cause: format!("rollback {number}"),
                    notes: String::new(),
                    overruled: Vec::new(),
                    unpublished: Vec::new(),
                    dormant: None,
                })
            }
            Demand::Change { changes, command } => Ok(Wanted {
                config: changed(&now.config, &changes)?,
                file: None,
                patterns: None,
                defaults: None,
                cause: command,
                notes: String::new(),
                overruled: Vec::new(),
                unpublished: Vec::new(),
                dormant: None,
            }),
            Demand::AddServer {
                backend,
                server,
                words,
            } => {
                let (line, notes) = fragment::server(&now.config, &backend, &server, &words)?;
                let changes = [Change::AddServer(backend.clone(), Arc::new(line))];
                Ok(Wanted {
                    config: changed(&now.config, &changes)?,
                    file: None,
                    patterns: None,
                    defaults: None,
                    cause: format!("add server {backend}/{server}"),
                    notes,
                    overruled: Vec::new(),
                    unpublished: Vec::new(),
                    dormant: Some((backend, server, fragment::line(&words))),
                })
            }
            Demand::Fragment { text, command } => {
                let (changes, notes) = fragment::sections(&now.config, &chief.defaults(), &text)?;
                let added = changes.iter().filter_map(|change| match change {
                    Change::AddBackend(backend) => Some(backend.common.name.clone()),
                    _ => None,
                });
                Ok(Wanted {
                    unpublished: added.collect(),
                    config: changed(&now.config, &changes)?,
                    file: None,
                    patterns: None,
                    defaults: None,
                    cause: command,
                    notes,
                    overruled: Vec::new(),
                    dormant: None,
                })
            }
        }
    }

    /// Reads files, and puts together with what hands did what they say.
    fn read_again(
        &self,
        chief: &Chief,
        source: Option<Source>,
        reset: bool,
        cause: &str,
    ) -> Result<Wanted, Refused> {
        let files = files_of(&chief.options, source)?;
        self.understood(chief, files, reset, cause)
    }

    /// Puts together what files say with what hands did.
    fn understood(
        &self,
        chief: &Chief,
        files: Vec<(String, Vec<u8>)>,
        reset: bool,
        cause: &str,
    ) -> Result<Wanted, Refused> {
        let defaults = Arc::new(fragment::defaults(&files));
        let (loaded, mut notes) = read(&chief.options, &chief.patterns(), files)?;
        let Loaded {
            mut config, store, ..
        } = loaded;
        run::apply_options(&chief.options, &mut config);
        let now = self.generation();
        // What the file says as before is kept once, however often it is read.
        let before = Arc::clone(chief.affairs().file());
        let config = apply(&before, &diff(&before, &config)).unwrap_or(config);
        // Workers note hands meanwhile: nobody waits for the comparing.
        let basis = chief.affairs().basis();
        let merged = basis.merge(&now.config, &config, reset);
        for change in &merged.dropped {
            for line in ballast_model::plan::lines(&now.config, std::slice::from_ref(change)) {
                notes.push_str(&format!(
                    "The file overrules what was set by hand: {line}\n"
                ));
            }
        }
        for key in &merged.overruled {
            notes.push_str(&format!("The file overrules what was set by hand: {key}\n"));
        }
        for word in self.needs_handover(&now.config, &merged.config) {
            notes.push_str(&format!(
                "'{word}' is another now; that takes effect when a new process takes over.\n"
            ));
        }
        Ok(Wanted {
            config: merged.config,
            file: Some(Arc::new(config)),
            patterns: Some(store),
            defaults: Some(defaults),
            cause: cause.to_owned(),
            notes,
            overruled: merged.overruled,
            unpublished: Vec::new(),
            dormant: None,
        })
    }

    /// The few words that a living process cannot change.
    fn needs_handover(&self, now: &Config, next: &Config) -> Vec<&'static str> {
        let mut words = now.global.fixed_words_changed(&next.global);
        let (was, is) = (&now.global, &next.global);
        // The descriptors of the start allow no more.
        if is.connection_count_max > was.connection_count_max
            && is.connection_count_max > Some(self.facts.connection_count_hard_max)
        {
            words.push("maxconn");
        }
        words
    }

    fn plan(&self, wanted: &Wanted) -> Applied {
        let now = self.generation();
        let changes = diff(&now.config, &wanted.config);
        let lines = ballast_model::plan::lines(&now.config, &changes);
        let mut drains = false;
        let lines = lines
            .iter()
            .map(|line| {
                let left = self.left_by(line);
                drains |= left > 0;
                if left > 0 {
                    match now.config.global.hard_stop_after {
                        Some(limit) => format!(
                            "{line} ({left} connections may finish within {} s)",
                            limit.as_secs()
                        ),
                        None => format!("{line} ({left} connections may finish)"),
                    }
                } else {
                    line.to_string()
                }
            })
            .collect();
        let mut notes = wanted.notes.clone();
        for list in wanted.patterns.iter().flat_map(|store| store.changes()) {
            notes.push_str(&format!(
                "{}: {} entries added, {} removed\n",
                list.list.name(),
                list.added,
                list.removed
            ));
        }
        Applied {
            generation: now.number,
            lines,
            notes,
            needs_process: !self.needs_handover(&now.config, &wanted.config).is_empty(),
            drains,
        }
    }

    /// How many connections what is removed still has.
    fn left_by(&self, line: &Line) -> u32 {
        if line.deed != ballast_model::plan::Deed::Remove {
            return 0;
        }
        let now = self.generation();
        let Some((kind, name)) = line.what.split_once(' ') else {
            return 0;
        };
        match kind {
            "frontend" => now.frontend(name).map(|one| one.state.sessions.now()),
            "backend" => now.backend(name).map(|one| one.state.sessions.now()),
            "server" => name.split_once('/').and_then(|(backend, server)| {
                let backend = now.backend(backend)?;
                let place = backend.server_named(server)?;
                Some(backend.servers[place].state.sessions.now())
            }),
            _ => None,
        }
        .unwrap_or(0)
    }

    /// Compiles, opens, commits.
    fn put_in_force(&self, chief: &Chief, mut wanted: Wanted) -> Result<Applied, Refused> {
        let now = self.generation();
        let changes = diff(&now.config, &wanted.config);
        let mut applied = self.plan(&wanted);
        if changes.is_empty() {
            self.commit_patterns(chief, wanted.patterns.as_ref());
            chief.defaults_are(wanted.defaults);
            if let Some(file) = wanted.file {
                chief.affairs().file_is(file);
            }
            self.give_back(chief, &wanted.overruled, &now);
            return Ok(applied);
        }
        let config = Arc::new(std::mem::take(&mut wanted.config));
        let generation = Arc::new(Generation::succeed(
            Arc::clone(&config),
            &self.registry,
            &now,
        ));
        let prepared = self.prepare(&now, &generation)?;
        let taken = generation.take_over(Some(&now), &self.registry);
        self.limit_connections(&generation);
        chief.publish(&generation, &wanted);
        self.commit_patterns(chief, wanted.patterns.as_ref());
        chief.defaults_are(wanted.defaults);
        self.commit(&generation, &taken, prepared);
        if let Some((backend, server, words)) = &wanted.dormant {
            let hand = Hand {
                value: words.clone(),
                at_unix_s: now_unix_s(),
                command: wanted.cause.clone(),
            };
            let key = format!("server {backend}/{server} added");
            chief.affairs().note(&key, hand);
        }
        if let Some((backend, server, _)) = &wanted.dormant
            && let Some(keeper) = self.keeper()
        {
            keeper.tell(backend, server, |health, _| {
                health.enable_check(false);
                health.enable_agent(false);
                Vec::new()
            });
        }
        self.give_back(chief, &wanted.overruled, &generation);
        let past = Past {
            number: generation.number,
            at_unix_s: now_unix_s(),
            cause: wanted.cause,
            lines: ballast_model::plan::lines(&now.config, &changes),
            config,
            file: wanted
                .file
                .unwrap_or_else(|| Arc::clone(chief.affairs().file())),
        };
        chief.affairs().put_in_force(past);
        applied.generation = generation.number;
        Ok(applied)
    }

    /// What was set under these keys is the file's again.
    fn give_back(&self, chief: &Chief, keys: &[String], generation: &Generation) {
        self.let_go_of(keys, generation);
        let mut affairs = chief.affairs();
        affairs.forget_hands(|key| keys.iter().any(|gone| gone == key));
        // What is there no more has no hands on it.
        affairs.forget_hands(|key| match key.split_once(' ') {
            Some(("server", rest)) => {
                let at = rest.split(' ').next().and_then(|at| at.split_once('/'));
                let known = at.and_then(|(backend, server)| {
                    generation.backend(backend)?.server_named(server)
                });
                known.is_none()
            }
            _ => false,
        });
    }

    fn commit_patterns(&self, chief: &Chief, patterns: Option<&Arc<Store>>) {
        if let Some(store) = patterns {
            let _ = store.commit();
            *chief
                .patterns
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Arc::clone(store);
        }
    }
}

fn changed(now: &Config, changes: &[Change]) -> Result<Config, Refused> {
    apply(now, changes).map_err(|error| Refused(format!("{error}.")))
}

/// The files of the start, or what stands for them.
pub(crate) fn files_of(
    options: &Options,
    source: Option<Source>,
) -> Result<Vec<(String, Vec<u8>)>, Refused> {
    let files = match source {
        Some(Source::Text(text)) => Ok(vec![("<<".to_owned(), text)]),
        Some(Source::File(name)) => crate::read::files(&[name]),
        None => crate::read::files(&options.files),
    };
    files.map_err(|error| Refused(say::line_of(say::Grade::Alert, &error)))
}

/// Understands files that are to follow what is in force.
pub(crate) fn read(
    options: &Options,
    patterns: &Arc<Store>,
    files: Vec<(String, Vec<u8>)>,
) -> Result<(Loaded, String), Refused> {
    let (loaded, said) = check::again(options, patterns, files);
    if loaded.has_alerts() || !loaded.unserved.is_empty() {
        return Err(Refused(said));
    }
    let zero_warning = options.zero_warning || loaded.config.global.zero_warning;
    if zero_warning && loaded.has_warnings() {
        let text = "Some warnings were found and 'zero-warning' is set. Aborting.";
        return Err(Refused(said + &say::line_of(say::Grade::Alert, text)));
    }
    if !check::has_listener(&loaded.config) {
        let text = "No enabled listener found (check for 'bind' directives) ! Exiting.";
        return Err(Refused(say::line_of(say::Grade::Alert, text)));
    }
    Ok((loaded, said))
}

/// What is said of a reload that nobody waits at a command socket for.
pub(crate) fn told(outcome: &Result<Applied, Refused>) -> (say::Grade, String) {
    match outcome {
        Ok(applied) if applied.lines.is_empty() => (
            say::Grade::Notice,
            "Configuration read again: nothing changed.".to_owned(),
        ),
        Ok(applied) => {
            let lines = applied.lines.join("\n  ");
            let notes = applied.notes.trim_end();
            let text = format!(
                "Configuration applied (generation {}):\n  {lines}\n{notes}",
                applied.generation
            );
            (say::Grade::Notice, text.trim_end().to_owned())
        }
        Err(Refused(why)) => (
            say::Grade::Alert,
            format!(
                "Configuration refused, nothing was changed:\n{}",
                why.trim_end()
            ),
        ),
    }
}

pub(crate) fn now_unix_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
