//! What was found for subjects, until the list is changed.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Results that are kept, at most: a new one takes the place of another with a like hash.
const RESULTS_MAX: usize = 4096;
/// Bytes of a subject whose result is kept, at most.
const SUBJECT_BYTES_MAX: usize = 256;

/// The results of searches in a list of expressions, or of those that had to try many patterns: a
/// list whose patterns need no text would else be tried from end to end for each request.
#[derive(Default)]
pub(super) struct SearchCache {
    /// There is one: lists that keep no results pay nothing.
    is_used: AtomicBool,
    results: Mutex<Vec<SearchResult>>,
    hasher: foldhash::fast::RandomState,
}

/// What a subject matched.
#[derive(Clone, Default)]
struct SearchResult {
    is_known: bool,
    subject: Vec<u8>,
    /// The id of the pattern; none if it matched none.
    found: Option<u64>,
}

impl SearchCache {
    /// The id of the pattern that a subject matched, or that it matched none; `None` when that is not
    /// known. It never waits for another search.
    pub(super) fn get(&self, subject: &[u8]) -> Option<Option<u64>> {
        if !self.is_used.load(Ordering::Relaxed) {
            return None;
        }
        let results = self.results.try_lock().ok()?;
        let known = results.get(self.slot_of(subject))?;
        (known.is_known && known.subject == subject).then_some(known.found)
    }

    /// Keeps a result.
    pub(super) fn put(&self, subject: &[u8], found: Option<u64>) {
        if subject.len() > SUBJECT_BYTES_MAX {
            return;
        }
        let Ok(mut results) = self.results.try_lock() else {
            return;
        };
        if results.is_empty() {
            results.resize_with(RESULTS_MAX, SearchResult::default);
        }
        if let Some(result) = results.get_mut(self.slot_of(subject)) {
            result.is_known = true;
            result.found = found;
            result.subject.clear();
            result.subject.extend_from_slice(subject);
        }
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Forgets everything: the list is changed.
    pub(super) fn clear(&mut self) {
        if std::mem::take(self.is_used.get_mut()) {
            let results = self
                .results
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner);
            results
                .iter_mut()
                .for_each(|result| result.is_known = false);
        }
    }

    fn slot_of(&self, subject: &[u8]) -> usize {
        self.hasher.hash_one(subject) as usize % RESULTS_MAX
    }
}
