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

use ballast_cli::{Applied, Demand, Outcome, Persist, Refused};
use ballast_engine::Generation;
use ballast_engine::affairs::{Affairs, Hand, Overrides, PERSIST, Past, Written};
use ballast_expr::Store;
use ballast_model::Config;
use ballast_model::change::diff;
use ballast_model::plan::Line;
use ballast_stats::Surroundings;
use ballast_worker::sync::oneshot;

use crate::amend::{Files, Texts};
use crate::args::Options;
use crate::desk::House;
use crate::machine::Book;
use crate::reading::Wanted;
use crate::{overrides, say};

/// Demands that may wait for their turn; who comes then is refused.
const DEMAND_COUNT_MAX: usize = 1024;

type Job = Box<dyn FnOnce(&House) + Send>;

/// Where demands are brought.
#[derive(Debug)]
pub(crate) struct Chief {
    jobs: mpsc::SyncSender<Job>,
    affairs: Mutex<Affairs>,
    patterns: Mutex<Arc<Store>>,
    /// The files that were last read, and where their sections stand.
    texts: Mutex<Texts>,
    /// What the files of the start held when they were last read or written.
    disk: Mutex<Arc<Files>>,
    /// What the machine answered then.
    book: Mutex<Arc<Book>>,
    pub(crate) options: Options,
    /// What hands change is written to the files (`persist on`).
    persists: AtomicBool,
    /// A job that does so waits for its turn.
    persist_waits: AtomicBool,
}

impl Chief {
    /// The chief of a process that goes by `affairs` when it starts, and the work that comes to
    /// them.
    pub(crate) fn begin(
        affairs: Affairs,
        patterns: Arc<Store>,
        (texts, book): (Texts, Arc<Book>),
        options: Options,
    ) -> (Self, Work) {
        let (jobs, work) = mpsc::sync_channel(DEMAND_COUNT_MAX);
        let chief = Self {
            jobs,
            affairs: Mutex::new(affairs),
            patterns: Mutex::new(patterns),
            disk: Mutex::new(Arc::clone(&texts.files)),
            texts: Mutex::new(texts),
            book: Mutex::new(book),
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
        let Some(file) = wanted.written.as_ref().filter(|_| wanted.is_read) else {
            return;
        };
        let hidden: HashSet<String> = self
            .affairs()
            .hands()
            .filter(|(key, hand)| hand.value == "no" && !wanted.overruled.iter().any(|o| o == key))
            .filter_map(|(key, _)| key.strip_prefix("backend ")?.strip_suffix(" published"))
            .map(str::to_owned)
            .collect();
        for backend in &file.file.backends {
            let name = &backend.common.name;
            if let Some(known) = generation.backend(name) {
                known.state.publish(!hidden.contains(name));
            }
        }
    }

    /// Has what hands change be written to the files from now on, or no more; answers whether it
    /// was before.
    pub(crate) fn persist(&self, on: bool) -> bool {
        self.persists.swap(on, Ordering::Relaxed)
    }

    /// What the machine answered when files were last read.
    pub(crate) fn book(&self) -> Arc<Book> {
        Arc::clone(&self.book.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where the sections of what is written stand.
    pub(crate) fn texts(&self, written: &Written) -> Texts {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        // After a rollback they are those of other files.
        if !Arc::ptr_eq(&texts.files, &written.files) {
            *texts = Texts::read(Arc::clone(&written.files), &self.machine(&written.files));
        }
        texts.clone()
    }

    /// What the files of the start held when they were last read or written.
    pub(crate) fn disk(&self) -> Arc<Files> {
        Arc::clone(&self.disk.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn disk_is(&self, files: Arc<Files>) {
        *self.disk.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    fn texts_are(&self, read: Option<Texts>) {
        if let Some(read) = read {
            *self.texts.lock().unwrap_or_else(PoisonError::into_inner) = read;
        }
    }

    fn book_is(&self, book: Option<Arc<Book>>) {
        if let Some(book) = book {
            *self.book.lock().unwrap_or_else(PoisonError::into_inner) = book;
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
            return self.met_persist(chief, how);
        }
        if let Demand::Section(at) = &demand {
            let written = chief.affairs().written().clone();
            return Ok(Applied {
                generation: self.generation().number,
                lines: chief.texts(&written).lines(
                    &written.amendments,
                    at,
                    &chief.machine(&written.files),
                )?,
                ..Applied::default()
            });
        }
        let plan_only = matches!(demand, Demand::Plan(_));
        let by_hand = matches!(
            demand,
            Demand::AddServer { .. }
                | Demand::Change { .. }
                | Demand::Edit { .. }
                | Demand::RenameServer { .. }
                | Demand::Rollback(_)
        );
        let is_read = matches!(demand, Demand::Reload { .. } | Demand::Apply(_));
        let wanted = self.wanted(chief, demand);
        if plan_only {
            return Ok(self.plan(&wanted?));
        }
        let applied = wanted.and_then(|wanted| self.put_in_force(chief, wanted));
        if is_read {
            let (grade, text) = told(&applied);
            self.was_said(say::line_of(grade, &text));
        }
        let applied = applied?;
        if by_hand {
            self.persist_soon();
        }
        Ok(applied)
    }

    fn met_persist(&self, chief: &Chief, how: Persist) -> Result<Applied, Refused> {
        match how {
            Persist::Now => return self.write_back(chief),
            Persist::On => {
                // The process that follows goes on with it.
                let hand = Hand {
                    value: "on".to_owned(),
                    at_unix_s: now_unix_s(),
                    command: "persist on".to_owned(),
                };
                let was_on = chief.persist(true);
                chief.affairs().note(PERSIST, hand);
                return self.write_back(chief).map_err(|Refused(why)| {
                    if was_on {
                        return Refused(why);
                    }
                    // What was refused has changed nothing.
                    persist_off(chief);
                    Refused(format!("'persist' stays off: {why}"))
                });
            }
            Persist::Off => persist_off(chief),
        }
        Ok(Applied::default())
    }

    /// Writes what hands did to the files, and goes on with what the files say then. That is no
    /// news to anybody: what hands did meanwhile, and what no file can say, stays as it is.
    fn write_back(&self, chief: &Chief) -> Result<Applied, Refused> {
        let (written, files) = self.persist(chief)?;
        if !written.lines.is_empty() {
            // What was written, not what the files say by now: somebody may have changed them.
            chief.disk_is(Arc::new(files.clone()));
            let mut wanted = self.understood(chief, files, Overrides::Keep, "persist")?;
            wanted.overruled.clear();
            let left = self.keep_by_hand(chief, &mut wanted);
            self.put_in_force(chief, wanted)?;
            self.say_again(chief, &left);
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
            if !chief.persists.load(Ordering::Relaxed) {
                return;
            }
            if let Err(Refused(why)) = house.write_back(chief) {
                say::warn(&format!("persist : {}", why.trim_end()));
            }
        });
        if chief.jobs.try_send(job).is_err() {
            // The next hand tries again.
            waits.store(false, Ordering::Release);
        }
    }

    /// The few words that a living process cannot change.
    pub(crate) fn needs_handover(&self, now: &Config, next: &Config) -> Vec<&'static str> {
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
        let mut lines: Vec<String> = lines
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
        lines.extend(self.dropped(wanted));
        let lists = wanted.patterns.iter().flat_map(|store| store.changes());
        lines.extend(lists.map(|list| overrides::line_of_list(&list)));
        Applied {
            generation: now.number,
            lines,
            notes: wanted.notes.clone(),
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
        overrides::drop_late(chief, &mut wanted);
        let disk = wanted.written.as_ref().filter(|_| wanted.is_of_start);
        let disk = disk.map(|written| Arc::clone(&written.files));
        let reopens = overrides::reopens(&now, &wanted);
        if changes.is_empty() && !reopens {
            self.commit_patterns(chief, wanted.patterns.as_ref());
            chief.book_is(wanted.book.take());
            chief.texts_are(wanted.texts.take());
            disk.into_iter().for_each(|disk| chief.disk_is(disk));
            if let Some(written) = wanted.written.take() {
                chief.affairs().written_is(written);
            }
            self.give_back(chief, &wanted.overruled, &now);
            self.equal_the_files(&wanted, &now);
            return Ok(applied);
        }
        let config = Arc::new(std::mem::take(&mut wanted.config));
        let generation = Arc::new(Generation::succeed(
            Arc::clone(&config),
            &self.registry,
            &now,
        ));
        let reopened = overrides::reopen(&generation, reopens);
        let prepared = match self.prepare(&now, &generation) {
            Ok(prepared) => prepared,
            Err(refused) => {
                overrides::shut_again(&reopened);
                return Err(refused);
            }
        };
        if let Some(renamed) = &wanted.renamed {
            self.go_on_renamed(chief, &now, &generation, renamed);
        }
        let taken = generation.take_over(Some(&now), &self.registry);
        self.limit_connections(&generation);
        chief.publish(&generation, &wanted);
        self.commit_patterns(chief, wanted.patterns.as_ref());
        chief.book_is(wanted.book.take());
        chief.texts_are(wanted.texts.take());
        disk.into_iter().for_each(|disk| chief.disk_is(disk));
        self.commit(&generation, &taken, prepared);
        self.begin_by_hand(chief, &wanted);
        self.give_back(chief, &wanted.overruled, &generation);
        self.equal_the_files(&wanted, &generation);
        let past = Past {
            number: generation.number,
            at_unix_s: now_unix_s(),
            cause: wanted.cause,
            lines: ballast_model::plan::lines(&now.config, &changes),
            config,
            written: wanted
                .written
                .unwrap_or_else(|| chief.affairs().written().clone()),
        };
        chief.affairs().put_in_force(past);
        applied.generation = generation.number;
        Ok(applied)
    }

    /// Notes what a command added, and has it begin as HAProxy's do: a server unchecked, a backend
    /// that no rule leads to.
    fn begin_by_hand(&self, chief: &Chief, wanted: &Wanted) {
        let note = |key: String, value: String| {
            let hand = Hand {
                value,
                at_unix_s: now_unix_s(),
                command: wanted.cause.clone(),
            };
            chief.affairs().note(&key, hand);
        };
        for backend in &wanted.unpublished {
            note(format!("backend {backend} published"), "no".to_owned());
        }
        let Some((backend, server, words)) = &wanted.dormant else {
            return;
        };
        note(format!("server {backend}/{server} added"), words.clone());
        if let Some(keeper) = self.keeper() {
            keeper.tell(backend, server, |health, _| {
                health.enable_check(false);
                health.enable_agent(false);
                Vec::new()
            });
        }
    }

    /// What was set under these keys is the file's again.
    fn give_back(&self, chief: &Chief, keys: &[String], generation: &Generation) {
        self.let_go_of(keys, generation);
        let mut affairs = chief.affairs();
        affairs.forget_hands(|key| keys.iter().any(|gone| gone == key));
        // What is there no more has no hands on it.
        affairs.forget_hands(|key| {
            let mut words = key.split(' ');
            let (kind, name) = (words.next(), words.next().unwrap_or_default());
            match kind {
                Some("server") => {
                    let known = name.split_once('/').and_then(|(backend, server)| {
                        generation.backend(backend)?.server_named(server)
                    });
                    known.is_none()
                }
                Some("backend") => generation.backend(name).is_none(),
                Some("frontend") => generation.frontend(name).is_none(),
                _ => false,
            }
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

/// Forgets that what hands change was to be written.
fn persist_off(chief: &Chief) {
    chief.affairs().forget_hands(|key| key == PERSIST);
    chief.persist(false);
}
