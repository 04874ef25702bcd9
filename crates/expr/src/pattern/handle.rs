//! A compiled form of a list, as readers hold it.
//!
//! It stands behind a lock that each thread takes in a cache line of its own; a writer holds it for
//! the time one entry takes, or for a swap. Adding one entry to a large list copies nothing, and
//! lookups never wait for long. Of a short list there is a copy that never changes: most lists are a
//! few words of the configuration, and two atomic operations cost more than to find one of those.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};

use super::MatchMethod;
use super::changed_rules::ChangedRules;
use super::index::{Index, IndexShape};

/// One compiled form of a list, for one method, case rule and kind of value.
pub struct Handle {
    pub(super) shape: IndexShape,
    index: ShardedLock<Index>,
    /// A short list as it was at first.
    original: Option<Index>,
    /// The list was changed since: `original` is void.
    is_changed: AtomicBool,
    /// Who wants to know of the next change.
    watchers: Mutex<Vec<Watcher>>,
}

/// A condition that was indexed with what the list held then.
struct Watcher {
    changed: Weak<ChangedRules>,
    rule: u32,
}

impl Handle {
    /// A compiled form that holds `index`; `original` is another one of the same entries.
    pub(super) fn new(index: Index, original: Option<Index>) -> Handle {
        Handle {
            shape: index.shape,
            index: ShardedLock::new(index),
            original,
            is_changed: AtomicBool::new(false),
            watchers: Mutex::default(),
        }
    }

    /// How the list is compared.
    pub fn method(&self) -> MatchMethod {
        self.shape.method
    }

    /// Whether the case is ignored.
    pub fn ignores_case(&self) -> bool {
        self.shape.fold
    }

    /// The index as it is; changes wait until it is dropped.
    pub(crate) fn load(&self) -> ShardedLockReadGuard<'_, Index> {
        // Every change leaves the index whole before anything that might panic.
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks something up in the index as it is.
    #[inline]
    pub(crate) fn look_up<R>(&self, look: impl FnOnce(&Index) -> R) -> R {
        match &self.original {
            Some(original) if !self.is_changed.load(Ordering::Acquire) => look(original),
            _ => look(&self.load()),
        }
    }

    /// Whether a text matches one of a few words; `None` where they are many, or were changed, or are
    /// no words.
    #[inline]
    pub(crate) fn is_among_few(&self, text: &[u8]) -> Option<bool> {
        let original = self.original.as_ref()?;
        match self.is_changed.load(Ordering::Acquire) {
            true => None,
            false => original.is_among_few(text),
        }
    }

    /// Has `changed` be told, as of `rule`, before the list is changed for the next time.
    pub(crate) fn watch(&self, changed: &Arc<ChangedRules>, rule: u32) {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        if watchers.len() == watchers.capacity() {
            // Configurations come and go while a list stays.
            watchers.retain(|watcher| watcher.changed.strong_count() > 0);
        }
        watchers.push(Watcher {
            changed: Arc::downgrade(changed),
            rule,
        });
    }

    fn tell_watchers(&self) {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        for watcher in watchers.drain(..) {
            if let Some(changed) = watcher.changed.upgrade() {
                changed.note(watcher.rule);
            }
        }
    }

    /// The index to change it.
    pub(super) fn write(&self) -> ShardedLockWriteGuard<'_, Index> {
        self.tell_watchers();
        self.is_changed.store(true, Ordering::Release);
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn replace(&self, index: Index) -> Index {
        std::mem::replace(&mut *self.write(), index)
    }

    /// Makes what helps to look up in many entries when it is time, without keeping readers out.
    pub(super) fn refine(&self) {
        // Only holders of the list's own lock change the index, so it is still the same below.
        let segment = self.load().new_segment();
        if let Some(segment) = segment {
            self.write().add_segment(segment);
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Handle({}, fold {})",
            self.method().text(),
            self.ignores_case()
        )
    }
}
