//! Conditions whose lists were changed since they were indexed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

/// Conditions that have to be evaluated whatever an index says: a list they read holds something
/// else than the index.
#[derive(Debug, Default)]
pub(crate) struct ChangedRules {
    any: AtomicBool,
    /// In order.
    rules: RwLock<Vec<u32>>,
}

impl ChangedRules {
    /// Notes that a list that `rule` reads is about to be changed.
    pub(crate) fn note(&self, rule: u32) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        if let Err(at) = rules.binary_search(&rule) {
            rules.insert(at, rule);
        }
        self.any.store(true, Ordering::Release);
    }

    /// Appends those from `from` on to `named`.
    pub(crate) fn append_to(&self, named: &mut Vec<u32>, from: u32) {
        if self.any.load(Ordering::Acquire) {
            let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
            let at = rules.partition_point(|rule| *rule < from);
            named.extend_from_slice(&rules[at..]);
        }
    }
}
