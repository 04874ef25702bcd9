//! How long a search for an expression that turns back may take.
//!
//! Rules, lists and actions search in many places, so the limit and what is counted are the
//! process's, not an argument of each.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Steps of a search, when the configuration says nothing: PCRE2's match limit.
const STEPS_MAX_DEFAULT: u64 = 10_000_000;

static STEPS_MAX: AtomicU64 = AtomicU64::new(STEPS_MAX_DEFAULT);
static EXHAUSTED_TOTAL: AtomicU64 = AtomicU64::new(0);
static LAST_EXHAUSTED: Mutex<Option<Arc<str>>> = Mutex::new(None);

/// The steps that one search for a regular expression may take (`tune.regex.max-steps`). Only
/// expressions with look-around, references to groups or atomic groups are searched for in steps;
/// what others take grows no faster than the subject.
#[derive(Clone, Copy, Debug)]
pub struct SearchLimit;

impl SearchLimit {
    /// Steps of one search, at most.
    pub fn steps_max() -> u64 {
        STEPS_MAX.load(Ordering::Relaxed)
    }

    /// Sets it for all searches that begin from now on; `None` is the default.
    pub fn set_steps_max(steps: Option<u64>) {
        STEPS_MAX.store(steps.unwrap_or(STEPS_MAX_DEFAULT), Ordering::Relaxed);
    }

    /// Searches that ended because they had taken all their steps, or too much memory, since the
    /// process began: their expressions did not match.
    pub fn exhausted_total() -> u64 {
        EXHAUSTED_TOTAL.load(Ordering::Relaxed)
    }

    /// The expression of the last of them.
    pub fn last_exhausted() -> Option<Arc<str>> {
        let last = LAST_EXHAUSTED.lock();
        last.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn count_exhausted(expression: &Arc<str>) {
        EXHAUSTED_TOTAL.fetch_add(1, Ordering::Relaxed);
        // Somebody else is naming another: one of them is enough.
        if let Ok(mut last) = LAST_EXHAUSTED.try_lock() {
            *last = Some(Arc::clone(expression));
        }
    }
}
