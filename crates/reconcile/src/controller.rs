//! What is known of the configuration, and the queue of requests to change it.
//!
//! Commands look at it from any thread; one thread carries out what is asked. Reading files,
//! compiling and waiting for workers hold up no traffic.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballast_edit::{Files, Refusal, SectionMap};
use ballast_expr::Store;
use ballast_model::change::diff;
use ballast_model::{Change, Config};

use crate::history::ConfigHistory;
use crate::machine_answers::MachineAnswers;
use crate::memory::{ListOverrideCache, Memory};
use crate::object::{ObjectKind, Override, OverrideKey};
use crate::read::ReadOptions;
use crate::request::{Applied, ChangeRequest};
use crate::{kinds, now_unix_s};

/// Requests that may wait for their turn; who comes then is refused.
const CHANGE_REQUEST_COUNT_MAX: usize = 1024;

/// Who asked hears of the outcome. Dropped without a call when the change was given up.
pub(crate) type Answer = Box<dyn FnOnce(Result<Applied, Refusal>) + Send>;

/// What the thread is asked for.
pub(crate) enum Job {
    /// A change.
    Request(ChangeRequest, Answer),
    /// Overrides are to be in the files (`persist on`).
    WriteBack,
}

/// The jobs, for the one who takes them up.
pub struct RequestQueue(pub(crate) mpsc::Receiver<Job>);

impl fmt::Debug for RequestQueue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RequestQueue")
    }
}

/// What is in force, what operators set, and where requests are brought.
pub struct Controller {
    jobs: mpsc::SyncSender<Job>,
    config_history: Mutex<ConfigHistory>,
    patterns: Mutex<Arc<Store>>,
    /// The files that were last read, and where their sections stand.
    sections: Mutex<SectionMap>,
    /// What the files of the start held when they were last read or written.
    disk: Mutex<Arc<Files>>,
    /// What the machine answered then.
    machine_answers: Mutex<Arc<MachineAnswers>>,
    lists: Mutex<ListOverrideCache>,
    pub(crate) options: ReadOptions,
    /// The kinds of objects that commands override settings of.
    pub(crate) kinds: &'static [&'static ObjectKind],
    /// What operators change is written to the files (`persist on`).
    pub(crate) persists: AtomicBool,
    /// A job that does so waits for its turn.
    pub(crate) persist_waits: AtomicBool,
}

impl fmt::Debug for Controller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Controller")
    }
}

fn lock<T>(one: &Mutex<T>) -> MutexGuard<'_, T> {
    one.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Controller {
    /// The controller of a process that goes by `config_history` when it starts, and the work that
    /// comes to it.
    pub fn begin(
        config_history: ConfigHistory,
        patterns: Arc<Store>,
        (sections, machine_answers): (SectionMap, Arc<MachineAnswers>),
        options: ReadOptions,
    ) -> (Self, RequestQueue) {
        let (jobs, work) = mpsc::sync_channel(CHANGE_REQUEST_COUNT_MAX);
        let controller = Self {
            jobs,
            config_history: Mutex::new(config_history),
            patterns: Mutex::new(patterns),
            disk: Mutex::new(Arc::clone(&sections.files)),
            sections: Mutex::new(sections),
            machine_answers: Mutex::new(machine_answers),
            lists: Mutex::default(),
            options,
            kinds: kinds::ALL,
            persists: AtomicBool::new(false),
            persist_waits: AtomicBool::new(false),
        };
        (controller, RequestQueue(work))
    }

    /// Has a request carried out; `answer` is called with the outcome, or dropped when the change
    /// was given up.
    ///
    /// # Errors
    /// Too many requests wait.
    pub fn submit(
        &self,
        request: ChangeRequest,
        answer: impl FnOnce(Result<Applied, Refusal>) + Send + 'static,
    ) -> Result<(), Refusal> {
        let sent = self.jobs.try_send(Job::Request(request, Box::new(answer)));
        sent.map_err(|refused| match refused {
            TrySendError::Full(_) => Refusal("Too many changes wait for their turn.".into()),
            TrySendError::Disconnected(_) => Refusal("The process ends.".into()),
        })
    }

    /// As [`Self::submit`], for threads that may wait.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub fn submit_and_wait(&self, request: ChangeRequest) -> Result<Applied, Refusal> {
        let (sender, receiver) = mpsc::channel();
        let answer = Box::new(move |outcome| {
            // Who asked may be gone; the change is made all the same.
            let _ = sender.send(outcome);
        });
        let sent = self.jobs.send(Job::Request(request, answer));
        sent.map_err(|_| Refusal("The process ends.".into()))?;
        let outcome = receiver.recv();
        outcome.map_err(|_| Refusal("The change was given up.".into()))?
    }

    /// Notes that a command set something, by its key as text. Each key that a command notes is
    /// that of a row.
    pub fn note_override(&self, key: &str, value: &str, command: &str) {
        let known = OverrideKey::parse(self.kinds, key);
        debug_assert!(known.is_some(), "no row knows the override '{key}'");
        let Some(key) = known else {
            return;
        };
        self.note(key, value, command);
        self.persist_soon();
    }

    /// An override changed something: has it written, where `persist` is on.
    pub(crate) fn persist_soon(&self) {
        let waits = &self.persist_waits;
        if !self.persists.load(Ordering::Relaxed) || waits.swap(true, Ordering::AcqRel) {
            return;
        }
        if self.jobs.try_send(Job::WriteBack).is_err() {
            // The next override tries again.
            waits.store(false, Ordering::Release);
        }
    }

    /// What was put in force, and by whom.
    pub fn config_history(&self) -> MutexGuard<'_, ConfigHistory> {
        lock(&self.config_history)
    }

    /// The lists and maps in force.
    pub fn patterns(&self) -> Arc<Store> {
        Arc::clone(&lock(&self.patterns))
    }

    pub(crate) fn set_patterns(&self, store: &Arc<Store>) {
        *lock(&self.patterns) = Arc::clone(store);
    }

    /// What the machine answered when files were last read.
    pub(crate) fn machine_answers(&self) -> Arc<MachineAnswers> {
        Arc::clone(&lock(&self.machine_answers))
    }

    pub(crate) fn set_machine_answers(&self, answers: Arc<MachineAnswers>) {
        *lock(&self.machine_answers) = answers;
    }

    /// The sections of the files that were last read or rolled back to.
    pub(crate) fn last_sections(&self) -> SectionMap {
        lock(&self.sections).clone()
    }

    pub(crate) fn set_sections(&self, sections: SectionMap) {
        *lock(&self.sections) = sections;
    }

    /// What the files of the start held when they were last read or written.
    pub(crate) fn disk(&self) -> Arc<Files> {
        Arc::clone(&lock(&self.disk))
    }

    pub(crate) fn set_disk(&self, files: Arc<Files>) {
        *lock(&self.disk) = files;
    }

    /// An override that a command sets now.
    pub(crate) fn note(&self, key: OverrideKey, value: &str, command: &str) {
        let entry = Override {
            value: key.setting.value.read(value),
            at_unix_s: now_unix_s(),
            command: command.to_owned(),
        };
        self.config_history().note(key, entry);
    }

    /// What operators did that no file says, beside what runs `now`: for the process that follows.
    pub fn memory(&self, now: &Config) -> Memory {
        let (written, overrides) = {
            let history = self.config_history();
            let overrides = history.overrides();
            let overrides = overrides.map(|(key, entry)| (key.clone(), entry.clone()));
            (history.written().clone(), overrides.collect())
        };
        let removed = diff(&written.with_edits, now).into_iter();
        let removed = removed.filter_map(|change| match change {
            Change::RemoveServer(backend, server) => Some((backend, server)),
            _ => None,
        });
        let sections = self.last_sections();
        Memory {
            section_edits: written.section_edits,
            overrides,
            removed: removed.collect(),
            marks: sections.marks_of_backends(),
            lists: lock(&self.lists).look(&self.patterns()),
        }
    }
}
