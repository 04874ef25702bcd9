//! What is known of the configuration, and the queue of requests to change it.
//!
//! Commands read it from any thread; one thread carries out requests. Traffic does not wait for files
//! that are read, for the compiler or for other workers.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballast_edit::{ConfigFiles, Refusal, SectionMap};
use ballast_engine::RetiredGenerations;
use ballast_expr::Store;
use ballast_model::change::diff;
use ballast_model::{Change, Config};

use crate::certificate_changes::{CertificateChangeLock, CertificateJournal};
use crate::handover::ConfigChanges;
use crate::history::ConfigHistory;
use crate::machine_answers::MachineAnswers;
use crate::now_unix_s;
use crate::operator_changes::{ListOverrideCache, OperatorChanges};
use crate::override_value::OverrideValue;
use crate::overrides::{Override, OverrideKey};
use crate::read::ReadOptions;
use crate::request::{ChangeReport, ChangeRequest};
use crate::start::StartRecord;

/// How many requests may wait. One more is refused.
const CHANGE_REQUEST_COUNT_MAX: usize = 1024;

/// Called with the outcome of a request; dropped without a call when the change was given up.
pub(crate) type OutcomeCallback = Box<dyn FnOnce(Result<ChangeReport, Refusal>) + Send>;

/// A job of the thread.
pub(crate) enum ControllerJob {
    /// A change.
    Request(ChangeRequest, OutcomeCallback),
    /// Overrides are to be written to the files (`persist on`).
    Persist,
}

/// The jobs, for the thread that carries them out.
pub struct RequestQueue(pub(crate) mpsc::Receiver<ControllerJob>);

impl fmt::Debug for RequestQueue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("RequestQueue")
    }
}

/// The history of the configuration, overrides, and the queue of requests.
pub struct Controller {
    jobs: mpsc::SyncSender<ControllerJob>,
    config_history: Mutex<ConfigHistory>,
    patterns: Mutex<Arc<Store>>,
    /// The files that were last read, and where their sections stand.
    sections: Mutex<SectionMap>,
    /// What the files of the start held when they were last read or written.
    disk: Mutex<Arc<ConfigFiles>>,
    /// What the machine answered then.
    machine_answers: Mutex<Arc<MachineAnswers>>,
    lists: Mutex<ListOverrideCache>,
    /// What commands did to certificates while a change is made.
    pub(crate) certificate_journal: CertificateJournal,
    pub(crate) retired: RetiredGenerations,
    pub(crate) options: ReadOptions,
    /// Each override is written to the files (`persist on`).
    pub(crate) persists: AtomicBool,
    /// A job that does so is in the queue.
    pub(crate) persist_is_queued: AtomicBool,
    /// What the last such job left in the process.
    pub(crate) unwritten: Mutex<Unwritten>,
}

/// What `persist` left in the process.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    /// Why nothing was written at the last attempt.
    pub(crate) failure: Option<String>,
    /// What no file can have, a line each.
    pub(crate) notes: Vec<String>,
    /// The lines of it that no answer named yet.
    pub(crate) news: Vec<String>,
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
    /// The controller of a process that starts with `config`, and its queue.
    pub fn new(
        config: Arc<Config>,
        record: StartRecord,
        options: ReadOptions,
    ) -> (Self, RequestQueue) {
        let mut config_history = ConfigHistory::begin(config, record.written, now_unix_s());
        for (key, entry) in record.overrides {
            config_history.note(key, entry);
        }
        let (jobs, work) = mpsc::sync_channel(CHANGE_REQUEST_COUNT_MAX);
        let controller = Self {
            jobs,
            config_history: Mutex::new(config_history),
            patterns: Mutex::new(record.store),
            disk: Mutex::new(Arc::clone(&record.sections.files)),
            sections: Mutex::new(record.sections),
            machine_answers: Mutex::new(record.machine_answers),
            lists: Mutex::default(),
            certificate_journal: CertificateJournal::default(),
            retired: RetiredGenerations::default(),
            options,
            persists: AtomicBool::new(false),
            persist_is_queued: AtomicBool::new(false),
            unwritten: Mutex::default(),
        };
        (controller, RequestQueue(work))
    }

    /// Queues a request; `answer` is called with the outcome, or dropped when the change was given up.
    ///
    /// # Errors
    /// Too many requests wait.
    pub fn submit(
        &self,
        request: ChangeRequest,
        answer: impl FnOnce(Result<ChangeReport, Refusal>) + Send + 'static,
    ) -> Result<(), Refusal> {
        let sent = self
            .jobs
            .try_send(ControllerJob::Request(request, Box::new(answer)));
        sent.map_err(|refused| match refused {
            TrySendError::Full(_) => Refusal("Too many changes wait for their turn.".into()),
            TrySendError::Disconnected(_) => Refusal("The process ends.".into()),
        })
    }

    /// As [`Self::submit`], for threads that may wait.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub fn submit_and_wait(&self, request: ChangeRequest) -> Result<ChangeReport, Refusal> {
        let (sender, receiver) = mpsc::channel();
        let answer = Box::new(move |outcome| {
            // The caller may be gone; the change is made all the same.
            let _ = sender.send(outcome);
        });
        let sent = self.jobs.send(ControllerJob::Request(request, answer));
        sent.map_err(|_| Refusal("The process ends.".into()))?;
        let outcome = receiver.recv();
        outcome.map_err(|_| Refusal("The change was given up.".into()))?
    }

    /// Notes an override that a command sets now.
    pub fn note_override(&self, key: OverrideKey, value: OverrideValue, command: String) {
        debug_assert!(
            key.setting.value.has(&value),
            "{key} has no value '{value}'"
        );
        let entry = Override::now(value, command);
        self.config_history().note(key, entry);
        self.queue_persist();
    }

    /// Whether each override is written to the files (`persist on`).
    pub fn persists(&self) -> bool {
        self.persists.load(Ordering::Relaxed)
    }

    /// Has overrides written, where `persist` is on.
    pub fn queue_persist(&self) {
        let waits = &self.persist_is_queued;
        if !self.persists.load(Ordering::Relaxed) || waits.swap(true, Ordering::AcqRel) {
            return;
        }
        if self.jobs.try_send(ControllerJob::Persist).is_err() {
            // The next override tries again.
            waits.store(false, Ordering::Release);
        }
    }

    /// What `persist` left in the process.
    pub(crate) fn unwritten(&self) -> MutexGuard<'_, Unwritten> {
        lock(&self.unwritten)
    }

    /// The turn of a command that changes certificates. The generation in force is looked at, and
    /// changed, while it is held.
    pub fn certificate_change_lock(&self) -> CertificateChangeLock<'_> {
        self.certificate_journal.turn()
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
    pub(crate) fn disk(&self) -> Arc<ConfigFiles> {
        Arc::clone(&lock(&self.disk))
    }

    pub(crate) fn set_disk(&self, files: Arc<ConfigFiles>) {
        *lock(&self.disk) = files;
    }

    /// What operators changed that no file says, for the next process. `now` is in force.
    pub fn operator_changes(&self, now: &Config) -> OperatorChanges {
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
        OperatorChanges {
            overrides,
            config: ConfigChanges {
                section_edits: written.section_edits,
                section_marks: sections.marks_of_backends(),
                removed_servers: removed.collect(),
                lists: lock(&self.lists).changed_lists(&self.patterns()),
            },
        }
    }
}
