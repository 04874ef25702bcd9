//! What the next process gets of certificates and keys, in a sealed file in memory: nothing of it is
//! in snapshots, on a disk or in a log.
//!
//! Under a master the worker sends the file, and the master holds it. Without one this process keeps
//! it open, and a process that takes over (`-sf`) copies the descriptor.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballast_handover::{MemoryFile, read_pairs, write_pairs};
use ballast_tls::handed_over;
use ballast_tls::shared_store::{SharedStore, StoreState};

use crate::console;
use crate::old_processes::OldProcesses;
use crate::threads;

/// Writes what the next process needs.
///
/// # Errors
/// The system's refusal of memory.
pub(crate) fn write(context: &SharedStore) -> io::Result<MemoryFile> {
    // The lock is not held while keys are compared and written: commands of a worker take it.
    let records = handed_over::records(&context.copy());
    let pairs = records
        .iter()
        .map(|(name, content)| (&name[..], &content[..]));
    MemoryFile::write_secrets(&write_pairs(pairs))
}

/// Reads what the former process wrote.
pub(crate) fn read(file: &MemoryFile) -> SharedStore {
    let mut state = StoreState::default();
    let mut unknown_count = 0;
    let read = file.read().map_err(|error| error.to_string());
    let read = read.and_then(|bytes| {
        let each = |name: &[u8], content: &[u8]| {
            unknown_count += usize::from(!handed_over::add(&mut state, (name, content)));
        };
        read_pairs(&bytes, each).map_err(|error| error.to_string())
    });
    if let Err(error) = read {
        console::warn(&format!(
            "the keys of the former process are known in part: {error}."
        ));
    }
    if unknown_count > 0 {
        console::warn(&format!(
            "the former program handed over {unknown_count} records about certificates that this \
             version does not know: what commands did there is lost."
        ));
    }
    SharedStore::new(state)
}

/// What a process hands over that this one replaces. Empty without the right to look.
pub(crate) fn of_former(former: &OldProcesses) -> SharedStore {
    let pids = former.pids_with_descendants().into_iter();
    let file = pids.filter_map(MemoryFile::secrets_of).next();
    file.as_ref().map(read).unwrap_or_default()
}

/// The file of a process without a master: open for a process that takes over.
#[derive(Debug, Default)]
pub(crate) struct OwnSecrets {
    /// The version that the file has, or gets now.
    version: AtomicU64,
    state: Mutex<OwnSecretsState>,
}

#[derive(Debug, Default)]
struct OwnSecretsState {
    file: Option<MemoryFile>,
    /// No connection is accepted any more.
    has_stopped: bool,
}

impl OwnSecrets {
    /// Writes the file again, if something changed. It takes time where commands changed thousands of
    /// certificates: a thread does it.
    pub(crate) fn update(self: &Arc<Self>, context: &SharedStore) {
        let version = context.version();
        if self.version.swap(version, Ordering::AcqRel) == version {
            return;
        }
        let (own, context) = (Arc::clone(self), context.clone());
        let started = threads::start("ballast-secrets", move || own.write(&context));
        if started.is_err() {
            // The next call tries again.
            self.version.store(0, Ordering::Release);
        }
    }

    /// Notes that no connection is accepted any more: commands change the process that follows, and
    /// whoever replaces both must not find the file of this one.
    pub(crate) fn stopped(&self) {
        let mut state = self.state();
        state.has_stopped = true;
        state.file = None;
    }

    fn state(&self) -> MutexGuard<'_, OwnSecretsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, context: &SharedStore) {
        let mut state = self.state();
        if state.has_stopped {
            return;
        }
        match write(context) {
            Ok(written) => state.file = Some(written),
            Err(error) => console::warn(&format!(
                "a process that takes over gets no keys of this one: {error}."
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_stopped_offers_no_keys() {
        let (own, context) = (OwnSecrets::default(), SharedStore::default());
        let found = || MemoryFile::secrets_of(ballast_net::process_id()).is_some();
        own.write(&context);
        assert!(found());
        own.stopped();
        assert!(!found());
        // A thread that began before it stopped changes nothing.
        own.write(&context);
        assert!(!found());
    }
}
