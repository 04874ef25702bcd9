//! Generations that were replaced and may still have exchanges.

use std::sync::{Arc, Mutex, PoisonError};

use crate::Generation;

/// Generations that were replaced, kept until nobody uses them.
#[derive(Debug, Default)]
pub struct RetiredGenerations(Mutex<Vec<Arc<Generation>>>);

impl RetiredGenerations {
    /// Keeps a generation that was replaced, and frees those that nobody uses any more. Called by
    /// the controller after every worker has switched: freeing a hundred thousand servers takes
    /// time, which the worker whose exchange was the last must not spend.
    pub fn retire(&self, generation: Arc<Generation>) {
        let mut retired = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        retired.push(generation);
        let all = std::mem::take(&mut *retired).into_iter();
        let (needed, over): (Vec<_>, Vec<_>) = all.partition(|one| Arc::strong_count(one) > 1);
        *retired = needed;
        drop(retired);
        drop(over);
    }
}
