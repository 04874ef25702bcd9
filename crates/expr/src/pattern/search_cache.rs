//! What was found for the subjects that took long, until the list is changed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// From so many patterns on that a subject was compared with, its result is kept.
const COSTLY_TRIES_MIN: usize = 64;
/// Results that are kept, at most; then all are forgotten.
const RESULTS_MAX: usize = 4096;
/// Bytes of a subject whose result is kept, at most.
const SUBJECT_BYTES_MAX: usize = 512;

type Results = HashMap<Box<[u8]>, Option<u64>, foldhash::fast::RandomState>;

/// The results of searches that had to try many patterns: a list whose patterns need no text would
/// else be tried from end to end for each request.
#[derive(Default)]
pub(super) struct SearchCache {
    /// There is one: lists that are searched quickly pay nothing.
    is_used: AtomicBool,
    results: Mutex<Results>,
}

impl SearchCache {
    /// The id of the pattern that a subject matched, or that it matched none; `None` when that is not
    /// known. It never waits for another search.
    pub(super) fn get(&self, subject: &[u8]) -> Option<Option<u64>> {
        if !self.is_used.load(Ordering::Relaxed) {
            return None;
        }
        self.results.try_lock().ok()?.get(subject).copied()
    }

    /// Keeps the result of a search that tried so many patterns, if it was costly.
    pub(super) fn put(&self, subject: &[u8], found: Option<u64>, tries: usize) {
        if tries < COSTLY_TRIES_MIN || subject.len() > SUBJECT_BYTES_MAX {
            return;
        }
        let Ok(mut results) = self.results.try_lock() else {
            return;
        };
        if results.len() >= RESULTS_MAX {
            results.clear();
        }
        results.insert(subject.into(), found);
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Forgets everything: the list is changed.
    pub(super) fn clear(&mut self) {
        let results = self
            .results
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        results.clear();
        *self.is_used.get_mut() = false;
    }
}
