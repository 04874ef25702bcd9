//! Changes of certificates by command beside changes of the configuration.
//!
//! A command changes the lines in force at once, and waits for nobody. A change of the configuration
//! that is compiled at that moment may have read the same lines before: what the command did is
//! noted while one is made, and done again to its generation before that is put in force.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballast_engine::Generation;

/// The generation that is put in force.
#[derive(Clone, Copy, Debug)]
pub struct NextGeneration<'g> {
    /// The generation.
    pub generation: &'g Arc<Generation>,
    /// The notes of commands were carried over to it: those of lists, and what they brought.
    pub keeps_commands: bool,
}

/// Does again to the next generation what a command did to the one before it. It may find the work
/// done already, for the two share what did not differ when it was read.
pub type CertificateReplay = Arc<dyn Fn(NextGeneration<'_>) + Send + Sync>;

/// What commands did while a change is made.
#[derive(Default)]
pub(crate) struct CertificateJournal(Mutex<JournalState>);

#[derive(Default)]
struct JournalState {
    is_open: bool,
    last: u64,
    /// The index of what each object got last: no list grows with the number of commands.
    indexes: HashMap<String, u64>,
    replays: BTreeMap<u64, CertificateReplay>,
}

impl CertificateJournal {
    /// The turn of a command, or of the change that is put in force: one at a time.
    pub(crate) fn turn(&self) -> CertificateChangeLock<'_> {
        CertificateChangeLock(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes what commands do, until the guard is dropped.
    pub(crate) fn open(&self) -> OpenJournal<'_> {
        self.turn().0.is_open = true;
        OpenJournal(self)
    }
}

/// A change of the configuration is made.
pub(crate) struct OpenJournal<'j>(&'j CertificateJournal);

impl Drop for OpenJournal<'_> {
    fn drop(&mut self) {
        *self.0.turn().0 = JournalState::default();
    }
}

/// While it is held, no other configuration is put in force, and no other command changes
/// certificates. It is held by threads that serve: never while anybody waits for a disk or a worker.
pub struct CertificateChangeLock<'j>(MutexGuard<'j, JournalState>);

impl fmt::Debug for CertificateChangeLock<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("CertificateTurn")
    }
}

impl CertificateChangeLock<'_> {
    /// Notes what was done to an object, in place of what was done to it before.
    pub fn record(&mut self, object: String, replay: CertificateReplay) {
        let state = &mut *self.0;
        if !state.is_open {
            return;
        }
        state.last += 1;
        if let Some(former) = state.indexes.insert(object, state.last) {
            state.replays.remove(&former);
        }
        state.replays.insert(state.last, replay);
    }

    /// Does again what was noted, in order.
    pub(crate) fn replay(&self, next: NextGeneration<'_>) {
        self.0.replays.values().for_each(|replay| replay(next));
    }
}
