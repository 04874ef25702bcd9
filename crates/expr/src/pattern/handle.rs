//! A compiled form of a list, as readers hold it.
//!
//! It stands behind a lock that each thread takes in a cache line of its own; a writer holds it for
//! the time one entry takes, or for a swap. Adding one entry to a large list copies nothing, and
//! lookups never wait for long.

use std::fmt;
use std::sync::PoisonError;

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};

use super::MatchMethod;
use super::index::{Index, IndexShape};

/// One compiled form of a list, for one method, case rule and kind of value.
pub struct Handle {
    pub(super) shape: IndexShape,
    index: ShardedLock<Index>,
}

impl Handle {
    /// A compiled form that holds `index`.
    pub(super) fn new(index: Index) -> Handle {
        Handle {
            shape: index.shape,
            index: ShardedLock::new(index),
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

    pub(super) fn write(&self) -> ShardedLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn replace(&self, index: Index) -> Index {
        std::mem::replace(&mut *self.write(), index)
    }

    /// Makes a filter when it is time, without keeping readers out.
    pub(super) fn refine(&self) {
        // Only holders of the list's own lock change the index, so it is still the same below.
        let filter = self.load().new_filter();
        if let Some(filter) = filter {
            self.write().filter_with(filter);
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
