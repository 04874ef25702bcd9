//! What is known of the OCSP responses that are kept fresh: see [`crate::ocsp`].

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use ballast_tls::ocsp_request::OcspRequest;
use ballast_tls::ocsp_schedule::UpdateSchedule;
use ballast_tls::store::StoredCertificate;

/// How many questions of commands wait at most; further ones are refused.
const QUEUED_MAX: usize = 64;
/// Begins a thread; false where it cannot.
pub(crate) type ThreadStart = Box<dyn Fn() -> bool + Send + Sync>;

/// What is kept fresh in this process.
#[derive(Default)]
pub(crate) struct OcspResponses {
    /// Begins the thread that asks; false where it cannot.
    thread: OnceLock<ThreadStart>,
    state: Mutex<ResponsesState>,
    /// Something is to be done.
    wake: Condvar,
}

/// What is asked for, and when.
#[derive(Default)]
pub(crate) struct ResponsesState {
    /// When each response is fetched next.
    pub(crate) schedule: UpdateSchedule,
    /// By the `CertID` of OCSP, in DER.
    pub(crate) questions: BTreeMap<Vec<u8>, OcspQuestion>,
    /// Updates that commands requested, which are not sent yet; they go before the schedule.
    pub(crate) queued_by_command: VecDeque<OcspQuestion>,
    /// How many questions are under way.
    pub(crate) running: usize,
    /// The thread has begun.
    pub(crate) has_thread: bool,
    /// The certificates in use changed: they are scanned before the period ends.
    pub(crate) rescan_requested: bool,
}

/// A question, and the certificates that its answer is for.
#[derive(Clone)]
pub(crate) struct OcspQuestion {
    /// The question.
    pub(crate) request: OcspRequest,
    /// The certificates.
    pub(crate) certificates: Vec<Arc<StoredCertificate>>,
    /// The last answer, for certificates that are read again.
    pub(crate) response: Option<Arc<[u8]>>,
}

impl OcspResponses {
    /// Sets what begins the thread, once.
    pub(crate) fn set_thread_start(&self, thread: ThreadStart) {
        // A second call changes nothing.
        let _ = self.thread.set(thread);
    }

    /// Has the thread look at what is to be done; begins it the first time.
    pub(crate) fn wake(&self, state: &mut ResponsesState) {
        if let Some(thread) = self.thread.get().filter(|_| !state.has_thread) {
            state.has_thread = thread();
        }
        self.wake.notify_one();
    }

    /// Waits until it is woken, or for a time.
    pub(crate) fn wait<'s>(
        &self,
        state: MutexGuard<'s, ResponsesState>,
        limit: Duration,
    ) -> MutexGuard<'s, ResponsesState> {
        let waited = self.wake.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Notes a question of a command. False where too many wait.
    pub(crate) fn ask(&self, question: OcspQuestion) -> bool {
        let mut state = self.lock();
        if state.queued_by_command.len() >= QUEUED_MAX {
            return false;
        }
        state.queued_by_command.push_back(question);
        self.wake(&mut state);
        true
    }

    /// Shows what is kept fresh, and when it is asked for next.
    pub(crate) fn with_schedule(&self, look: &mut dyn FnMut(&UpdateSchedule)) {
        look(&self.lock().schedule);
    }

    /// What it holds.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ResponsesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for OcspResponses {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OcspResponses").finish_non_exhaustive()
    }
}
