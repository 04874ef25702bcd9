//! The one path of change: whatever asks for it, a file read again, a command or a signal.
//!
//! ```text
//!   read ─► merge with overrides ─► compile ─► open sockets and logs ─► commit ─► effects
//!     └────────────┴───────────────┴──────────────┘ any of these may refuse, and nothing is
//!                                                    changed
//! ```
//!
//! Changes are made one after the other by the controller, a thread of its own: reading files,
//! compiling and waiting for workers hold up no traffic. A worker goes over to the new generation
//! between two of its tasks; exchanges under way finish under the one they began with.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use ballast_cli::{Applied, ChangeRequest, Outcome, Persist};
use ballast_edit::{Files, Refusal, SectionMap};
use ballast_engine::Generation;
use ballast_engine::config_history::{
    ConfigHistory, ConfigSource, Override, Overrides, PERSIST, PastConfig,
};
use ballast_expr::Store;
use ballast_model::Config;
use ballast_model::change::diff;
use ballast_model::plan::PlanLine;
use ballast_stats::Surroundings;
use ballast_worker::sync::oneshot;

use crate::args::Options;
use crate::instance::Instance;
use crate::machine::MachineAnswers;
use crate::reading::TargetConfig;
use crate::{overrides, say};

/// Demands that may wait for their turn; who comes then is refused.
const CHANGE_REQUEST_COUNT_MAX: usize = 1024;

type Job = Box<dyn FnOnce(&Instance) + Send>;

/// Where demands are brought.
#[derive(Debug)]
pub(crate) struct Controller {
    jobs: mpsc::SyncSender<Job>,
    config_history: Mutex<ConfigHistory>,
    patterns: Mutex<Arc<Store>>,
    /// The files that were last read, and where their sections stand.
    texts: Mutex<SectionMap>,
    /// What the files of the start held when they were last read or written.
    disk: Mutex<Arc<Files>>,
    /// What the machine answered then.
    machine_answers: Mutex<Arc<MachineAnswers>>,
    pub(crate) options: Options,
    /// What operators change is written to the files (`persist on`).
    persists: AtomicBool,
    /// A job that does so waits for its turn.
    persist_waits: AtomicBool,
}

impl Controller {
    /// The controller of a process that goes by `config history` when it starts, and the work that comes to
    /// them.
    pub(crate) fn begin(
        config_history: ConfigHistory,
        patterns: Arc<Store>,
        (texts, machine_answers): (SectionMap, Arc<MachineAnswers>),
        options: Options,
    ) -> (Self, Work) {
        let (jobs, work) = mpsc::sync_channel(CHANGE_REQUEST_COUNT_MAX);
        let controller = Self {
            jobs,
            config_history: Mutex::new(config_history),
            patterns: Mutex::new(patterns),
            disk: Mutex::new(Arc::clone(&texts.files)),
            texts: Mutex::new(texts),
            machine_answers: Mutex::new(machine_answers),
            options,
            persists: AtomicBool::new(false),
            persist_waits: AtomicBool::new(false),
        };
        (controller, Work(work))
    }

    /// What was put in force, and by whom.
    pub(crate) fn config_history(&self) -> MutexGuard<'_, ConfigHistory> {
        self.config_history
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What a file has is published, unless an override said otherwise; what a command adds is not.
    fn publish(&self, generation: &Generation, target: &TargetConfig) {
        for name in &target.unpublished {
            if let Some(backend) = generation.backend(name) {
                backend.state.publish(false);
            }
        }
        let Some(file) = target.written.as_ref().filter(|_| target.is_read) else {
            return;
        };
        let hidden: HashSet<String> = self
            .config_history()
            .overrides()
            .filter(|(key, entry)| {
                entry.value == "no" && !target.overruled.iter().any(|o| o == key)
            })
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

    /// Has what operators change be written to the files from now on, or no more; answers whether it
    /// was before.
    pub(crate) fn persist(&self, on: bool) -> bool {
        self.persists.swap(on, Ordering::Relaxed)
    }

    /// What the machine answered when files were last read.
    pub(crate) fn machine_answers(&self) -> Arc<MachineAnswers> {
        Arc::clone(
            &self
                .machine_answers
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Where the sections of what is written stand.
    pub(crate) fn texts(&self, written: &ConfigSource) -> SectionMap {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        // After a rollback they are those of other files.
        if !Arc::ptr_eq(&texts.files, &written.files) {
            *texts = SectionMap::read(Arc::clone(&written.files), &self.machine(&written.files));
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

    fn texts_are(&self, read: Option<SectionMap>) {
        if let Some(read) = read {
            *self.texts.lock().unwrap_or_else(PoisonError::into_inner) = read;
        }
    }

    fn machine_answers_are(&self, machine_answers: Option<Arc<MachineAnswers>>) {
        if let Some(machine_answers) = machine_answers {
            *self
                .machine_answers
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = machine_answers;
        }
    }

    /// The lists and maps in force.
    pub(crate) fn patterns(&self) -> Arc<Store> {
        Arc::clone(&self.patterns.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The demands, as the controller takes them up.
#[derive(Debug)]
pub(crate) struct Work(mpsc::Receiver<Job>);

impl Work {
    /// Has a thread of its own take them up, for as long as the process lives.
    ///
    /// # Errors
    /// The system's refusal of a thread.
    pub(crate) fn take_up(self, instance: Arc<Instance>) -> std::io::Result<()> {
        let work = move || {
            for job in self.0 {
                // A fault of ours in one request must not end all that come after it. Who brought
                // it hears that it was given up.
                let done = catch_unwind(AssertUnwindSafe(|| job(&instance)));
                if done.is_err() {
                    instance
                        .registry
                        .process()
                        .counters
                        .of(0)
                        .panics
                        .increment();
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

impl Instance {
    /// Brings a request to the controller.
    pub(crate) fn bring(&self, request: ChangeRequest) -> Outcome {
        let (sender, receiver) = oneshot::channel();
        let job: Job = Box::new(move |instance| {
            // Who asked may be gone; the change is made all the same.
            let _ = sender.send(instance.meet(request));
        });
        let taken = self
            .controller
            .get()
            .map(|controller| controller.jobs.try_send(job));
        Box::pin(async move {
            match taken {
                Some(Ok(())) => receiver
                    .await
                    .unwrap_or_else(|_| Err(Refusal("The change was given up.".into()))),
                Some(Err(_)) => Err(Refusal("Too many changes wait for their turn.".into())),
                None => Err(Refusal("The process is not ready for changes.".into())),
            }
        })
    }

    /// As [`Self::bring`], for threads that may wait.
    pub(crate) fn bring_and_wait(&self, request: ChangeRequest) -> Result<Applied, Refusal> {
        let (sender, receiver) = mpsc::channel();
        let job: Job = Box::new(move |instance| {
            let _ = sender.send(instance.meet(request));
        });
        let refused = |text: &str| Refusal(text.to_owned());
        let controller = self.controller.get();
        let controller =
            controller.ok_or_else(|| refused("The process is not ready for changes."))?;
        controller
            .jobs
            .send(job)
            .map_err(|_| refused("The process ends."))?;
        receiver
            .recv()
            .map_err(|_| refused("The change was given up."))?
    }

    fn meet(&self, request: ChangeRequest) -> Result<Applied, Refusal> {
        let controller = self
            .controller
            .get()
            .ok_or_else(|| Refusal(String::new()))?;
        if let ChangeRequest::Persist(how) = request {
            return self.met_persist(controller, how);
        }
        if let ChangeRequest::Section(at) = &request {
            let written = controller.config_history().written().clone();
            return Ok(Applied {
                generation: self.generation().number,
                lines: controller.texts(&written).lines(
                    &written.section_edits,
                    at,
                    &controller.machine(&written.files),
                )?,
                ..Applied::default()
            });
        }
        let plan_only = matches!(request, ChangeRequest::Plan(_));
        let overridden = matches!(
            request,
            ChangeRequest::AddServer { .. }
                | ChangeRequest::Change { .. }
                | ChangeRequest::Edit { .. }
                | ChangeRequest::RenameServer { .. }
                | ChangeRequest::Rollback(_)
        );
        let is_read = matches!(
            request,
            ChangeRequest::Reload { .. } | ChangeRequest::Apply(_)
        );
        let target = self.target(controller, request);
        if plan_only {
            return Ok(self.plan(&target?));
        }
        let applied = target.and_then(|target| self.put_in_force(controller, target));
        if is_read {
            let (grade, text) = told(&applied);
            self.was_said(say::line_of(grade, &text));
        }
        let applied = applied?;
        if overridden {
            self.persist_soon();
        }
        Ok(applied)
    }

    fn met_persist(&self, controller: &Controller, how: Persist) -> Result<Applied, Refusal> {
        match how {
            Persist::Now => return self.write_back(controller),
            Persist::On => {
                // The process that follows goes on with it.
                let entry = Override {
                    value: "on".to_owned(),
                    at_unix_s: now_unix_s(),
                    command: "persist on".to_owned(),
                };
                let was_on = controller.persist(true);
                controller.config_history().note(PERSIST, entry);
                return self.write_back(controller).map_err(|Refusal(why)| {
                    if was_on {
                        return Refusal(why);
                    }
                    // What was refused has changed nothing.
                    persist_off(controller);
                    Refusal(format!("'persist' stays off: {why}"))
                });
            }
            Persist::Off => persist_off(controller),
        }
        Ok(Applied::default())
    }

    /// Writes what operators did to the files, and goes on with what the files say then. That is no
    /// news to anybody: what operators did meanwhile, and what no file can say, stays as it is.
    fn write_back(&self, controller: &Controller) -> Result<Applied, Refusal> {
        let (written, files) = self.persist(controller)?;
        if !written.lines.is_empty() {
            // What was written, not what the files say by now: somebody may have changed them.
            controller.disk_is(Arc::new(files.clone()));
            let mut target = self.understood(controller, files, Overrides::Keep, "persist")?;
            target.overruled.clear();
            let left = self.keep_override(controller, &mut target);
            self.put_in_force(controller, target)?;
            self.say_again(controller, &left);
        }
        Ok(Applied {
            generation: self.generation().number,
            ..written
        })
    }

    /// An override changed something: has it written, where `persist` is on.
    pub(crate) fn persist_soon(&self) {
        let Some(controller) = self.controller.get() else {
            return;
        };
        let waits = &controller.persist_waits;
        if !controller.persists.load(Ordering::Relaxed) || waits.swap(true, Ordering::AcqRel) {
            return;
        }
        let job: Job = Box::new(|instance| {
            let Some(controller) = instance.controller.get() else {
                return;
            };
            controller.persist_waits.store(false, Ordering::Release);
            if !controller.persists.load(Ordering::Relaxed) {
                return;
            }
            if let Err(Refusal(why)) = instance.write_back(controller) {
                say::warn(&format!("persist : {}", why.trim_end()));
            }
        });
        if controller.jobs.try_send(job).is_err() {
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

    fn plan(&self, target: &TargetConfig) -> Applied {
        let now = self.generation();
        let changes = diff(&now.config, &target.config);
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
        lines.extend(self.dropped(target));
        let lists = target.patterns.iter().flat_map(|store| store.changes());
        lines.extend(lists.map(|list| overrides::line_of_list(&list)));
        Applied {
            generation: now.number,
            lines,
            notes: target.notes.clone(),
            needs_process: !self.needs_handover(&now.config, &target.config).is_empty(),
            drains,
        }
    }

    /// How many connections what is removed still has.
    fn left_by(&self, line: &PlanLine) -> u32 {
        if line.action != ballast_model::plan::PlanAction::Remove {
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
    fn put_in_force(
        &self,
        controller: &Controller,
        mut target: TargetConfig,
    ) -> Result<Applied, Refusal> {
        let now = self.generation();
        let changes = diff(&now.config, &target.config);
        let mut applied = self.plan(&target);
        overrides::drop_late(controller, &mut target);
        let disk = target.written.as_ref().filter(|_| target.is_of_start);
        let disk = disk.map(|written| Arc::clone(&written.files));
        let reopens = overrides::reopens(&now, &target);
        if changes.is_empty() && !reopens {
            self.commit_patterns(controller, target.patterns.as_ref());
            controller.machine_answers_are(target.machine_answers.take());
            controller.texts_are(target.texts.take());
            disk.into_iter().for_each(|disk| controller.disk_is(disk));
            if let Some(written) = target.written.take() {
                controller.config_history().written_is(written);
            }
            self.give_back(controller, &target.overruled, &now);
            self.equal_the_files(&target, &now);
            return Ok(applied);
        }
        let config = Arc::new(std::mem::take(&mut target.config));
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
        if let Some(renamed) = &target.renamed {
            self.go_on_renamed(controller, &now, &generation, renamed);
        }
        let taken = generation.take_over(Some(&now), &self.registry);
        self.limit_connections(&generation);
        controller.publish(&generation, &target);
        self.commit_patterns(controller, target.patterns.as_ref());
        controller.machine_answers_are(target.machine_answers.take());
        controller.texts_are(target.texts.take());
        disk.into_iter().for_each(|disk| controller.disk_is(disk));
        self.commit(&generation, &taken, prepared);
        self.begin_overridden(controller, &target);
        self.give_back(controller, &target.overruled, &generation);
        self.equal_the_files(&target, &generation);
        let past = PastConfig {
            number: generation.number,
            at_unix_s: now_unix_s(),
            cause: target.cause,
            lines: ballast_model::plan::lines(&now.config, &changes),
            config,
            written: target
                .written
                .unwrap_or_else(|| controller.config_history().written().clone()),
        };
        controller.config_history().put_in_force(past);
        applied.generation = generation.number;
        Ok(applied)
    }

    /// Notes what a command added, and has it begin as HAProxy's do: a server unchecked, a backend
    /// that no rule leads to.
    fn begin_overridden(&self, controller: &Controller, target: &TargetConfig) {
        let note = |key: String, value: String| {
            let entry = Override {
                value,
                at_unix_s: now_unix_s(),
                command: target.cause.clone(),
            };
            controller.config_history().note(&key, entry);
        };
        for backend in &target.unpublished {
            note(format!("backend {backend} published"), "no".to_owned());
        }
        let Some((backend, server, words)) = &target.dormant else {
            return;
        };
        note(format!("server {backend}/{server} added"), words.clone());
        if let Some(probes) = self.probes() {
            probes.tell(backend, server, |health, _| {
                health.enable_check(false);
                health.enable_agent(false);
                Vec::new()
            });
        }
    }

    /// What was set under these keys is the file's again.
    fn give_back(&self, controller: &Controller, keys: &[String], generation: &Generation) {
        self.let_go_of(keys, generation);
        let mut config_history = controller.config_history();
        config_history.forget_overrides(|key| keys.iter().any(|gone| gone == key));
        // What is there no more has no overrides on it.
        config_history.forget_overrides(|key| {
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

    fn commit_patterns(&self, controller: &Controller, patterns: Option<&Arc<Store>>) {
        if let Some(store) = patterns {
            let _ = store.commit();
            *controller
                .patterns
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Arc::clone(store);
        }
    }
}

/// What is said of a reload that nobody waits at a command socket for.
pub(crate) fn told(outcome: &Result<Applied, Refusal>) -> (say::Severity, String) {
    match outcome {
        Ok(applied) if applied.lines.is_empty() => (
            say::Severity::Notice,
            "Configuration read again: nothing changed.".to_owned(),
        ),
        Ok(applied) => {
            let lines = applied.lines.join("\n  ");
            let notes = applied.notes.trim_end();
            let text = format!(
                "Configuration applied (generation {}):\n  {lines}\n{notes}",
                applied.generation
            );
            (say::Severity::Notice, text.trim_end().to_owned())
        }
        Err(Refusal(why)) => (
            say::Severity::Alert,
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

/// Forgets that what operators change was to be written.
fn persist_off(controller: &Controller) {
    controller
        .config_history()
        .forget_overrides(|key| key == PERSIST);
    controller.persist(false);
}
