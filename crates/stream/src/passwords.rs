//! Passwords that are compared with hashes. A hash may take a second of processor time: it is computed
//! on threads of its own where the exchange can wait for it, so that no other exchange waits.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ballast_expr::PasswordCheck;
use ballast_worker::{ThreadPool, timeout};

/// Threads that hash passwords: one for each processor but one, so that traffic keeps one.
static THREADS: LazyLock<ThreadPool> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    ThreadPool::new(
        "ballast-crypt",
        processors.saturating_sub(1),
        QUEUE_COUNT_MAX,
        Arc::new(AtomicU64::new(0)),
    )
});

/// Passwords that may wait for a thread; further exchanges wait for a place.
const QUEUE_COUNT_MAX: usize = 1024;

/// How long the result is waited for where no timeout says it.
const HASH_WAIT_MAX: Duration = Duration::from_secs(60);

/// How many results an exchange keeps.
const RESULT_COUNT_MAX: usize = 16;

/// The passwords that an exchange has compared with hashes: a rule asks again after it waited, and
/// others ask the same.
#[derive(Debug, Default)]
pub(crate) struct PasswordResults {
    asked: RefCell<Option<Comparison>>,
    known: RefCell<Vec<(Comparison, bool)>>,
}

/// A password, and the hash that it is compared with.
#[derive(Clone, PartialEq)]
struct Comparison {
    hash: Arc<str>,
    password: Box<[u8]>,
}

/// Without the password: it must not come into a log.
impl fmt::Debug for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Comparison").finish_non_exhaustive()
    }
}

impl PasswordResults {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.asked.get_mut().take();
        self.known.get_mut().clear();
    }

    /// Computes what a rule waits for. Returns whether there is anything.
    pub(crate) async fn compute(&self, patience: Option<Duration>) -> bool {
        let Some(asked) = self.asked.take() else {
            return false;
        };
        let work = asked.clone();
        let hashing =
            THREADS.run(move || ballast_net::password_matches(&work.password, &work.hash));
        // A result that does not come in time is that of a wrong password: it lets nobody in.
        let patience = patience.unwrap_or(HASH_WAIT_MAX);
        let matches = matches!(timeout(patience, hashing).await, Ok(Ok(true)));
        self.keep(asked, matches);
        true
    }

    fn keep(&self, comparison: Comparison, matches: bool) {
        let mut known = self.known.borrow_mut();
        if known.len() >= RESULT_COUNT_MAX {
            known.remove(0);
        }
        known.push((comparison, matches));
    }

    /// Compares a password with a hash: at once, or by [`Self::compute`] where the exchange may wait.
    pub(crate) fn check(&self, hash: &Arc<str>, password: &[u8], may_wait: bool) -> PasswordCheck {
        let known = self.known.borrow();
        let found = known
            .iter()
            .find(|(comparison, _)| comparison.hash == *hash && *comparison.password == *password);
        if let Some((_, matches)) = found {
            return verdict(*matches);
        }
        drop(known);
        let comparison = Comparison {
            hash: Arc::clone(hash),
            password: password.into(),
        };
        if may_wait {
            self.asked.replace(Some(comparison));
            return PasswordCheck::Pending;
        }
        let matches = ballast_net::password_matches(password, hash);
        self.keep(comparison, matches);
        verdict(matches)
    }
}

/// The answer of a comparison.
pub(crate) fn verdict(is_right: bool) -> PasswordCheck {
    match is_right {
        true => PasswordCheck::Right,
        false => PasswordCheck::Wrong,
    }
}
