//! How long a search for an expression that turns back may take.
//!
//! Rules, lists and actions search in many places, so the limit and what is counted are the
//! process's, not an argument of each.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Steps of a search, when the configuration says nothing: PCRE2's match limit.
const STEPS_MAX_DEFAULT: u64 = 10_000_000;

static STEPS_MAX: AtomicU64 = AtomicU64::new(STEPS_MAX_DEFAULT);
static EXHAUSTED_TOTAL: AtomicU64 = AtomicU64::new(0);
static LAST_EXHAUSTED: Mutex<Option<Arc<str>>> = Mutex::new(None);

thread_local! {
    /// What is left of the steps that searches of this thread share, where they do.
    static SHARED_STEPS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// While it lives, all searches of this thread together take no more steps than one may. A client chooses
/// how many values a header has, and where a text is replaced: without it each of them would cost a
/// whole search.
#[derive(Debug)]
#[must_use = "searches share steps as long as this lives"]
pub struct SharedSteps {
    /// Searches already shared steps when it began, and do so when it ends.
    is_inner: bool,
    /// It belongs to its thread.
    of_thread: PhantomData<*const ()>,
}

impl Drop for SharedSteps {
    fn drop(&mut self) {
        if !self.is_inner {
            SHARED_STEPS.set(None);
        }
    }
}

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

    /// Has the searches that follow share their steps.
    pub fn share() -> SharedSteps {
        let is_inner = SHARED_STEPS.get().is_some();
        if !is_inner {
            SHARED_STEPS.set(Some(Self::steps_max()));
        }
        SharedSteps {
            is_inner,
            of_thread: PhantomData,
        }
    }

    /// Searches with the steps that there are.
    pub(crate) fn within<T>(search: impl FnOnce(&mut u64) -> T) -> T {
        let shared = SHARED_STEPS.get();
        let mut steps = shared.unwrap_or_else(Self::steps_max);
        let found = search(&mut steps);
        SHARED_STEPS.set(shared.map(|_| steps));
        found
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
