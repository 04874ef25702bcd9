//! The passwords that an exchange has compared with hashes. A hash may take a second of processor time:
//! it is computed on threads of its own where the exchange can wait for it, so that no other waits.

use std::cell::{Cell, RefCell};
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

/// How long a result is waited for at most, and where no timeout says it.
const HASH_WAIT_MAX: Duration = Duration::from_secs(60);

/// How many passwords are hashed for an exchange. Any further one is wrong: none is forgotten for it,
/// because a condition is evaluated anew after each, and would ask for that one again.
const RESULT_COUNT_MAX: usize = 32;

/// The passwords that an exchange has compared with hashes: a rule asks again after it waited, and
/// others ask the same.
#[derive(Debug, Default)]
pub(crate) struct PasswordResults {
    pending_comparison: RefCell<Option<Comparison>>,
    results: RefCell<Vec<(Comparison, bool)>>,
    /// What is asked is only noted: see `passwords::settle`.
    pub(crate) only_notes: Cell<bool>,
}

/// What came of a wait for a hash.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HashWait {
    /// Nothing was asked for.
    Nothing,
    /// The result is known.
    Known,
    /// The client left. Its password is wrong.
    ClientLeft,
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
        self.pending_comparison.get_mut().take();
        self.results.get_mut().clear();
        self.only_notes.set(false);
    }

    /// Whether a comparison waits for [`Self::compute`].
    pub(crate) fn has_pending(&self) -> bool {
        self.pending_comparison.borrow().is_some()
    }

    /// Computes what a rule waits for, unless `left` is ready first.
    pub(crate) async fn compute(
        &self,
        time_limit: Option<Duration>,
        left: impl Future<Output = ()>,
    ) -> HashWait {
        let Some(pending_comparison) = self.pending_comparison.take() else {
            return HashWait::Nothing;
        };
        let work = pending_comparison.clone();
        let hashing =
            THREADS.run(move || ballast_net::password_matches(&work.password, &work.hash));
        // A result that does not come in time is that of a wrong password: it lets nobody in.
        let time_limit = time_limit.map_or(HASH_WAIT_MAX, |time| time.min(HASH_WAIT_MAX));
        let (matches, wait) = ballast_worker::select! {
            biased;
            () = left => (false, HashWait::ClientLeft),
            result = timeout(time_limit, hashing) => (matches!(result, Ok(Ok(true))), HashWait::Known),
        };
        self.store_result(pending_comparison, matches);
        wait
    }

    fn store_result(&self, comparison: Comparison, matches: bool) {
        self.results.borrow_mut().push((comparison, matches));
    }

    /// Compares a password with a hash: at once, or by [`Self::compute`] where the exchange may wait.
    pub(crate) fn check(&self, hash: &Arc<str>, password: &[u8], may_wait: bool) -> PasswordCheck {
        let results = self.results.borrow();
        let found = results
            .iter()
            .find(|(comparison, _)| comparison.hash == *hash && *comparison.password == *password);
        if let Some((_, matches)) = found {
            return password_check(*matches);
        }
        if results.len() >= RESULT_COUNT_MAX {
            return PasswordCheck::Wrong;
        }
        drop(results);
        let comparison = Comparison {
            hash: Arc::clone(hash),
            password: password.into(),
        };
        if may_wait {
            self.pending_comparison.replace(Some(comparison));
            return PasswordCheck::Pending;
        }
        if self.only_notes.get() {
            self.pending_comparison
                .borrow_mut()
                .get_or_insert(comparison);
            return PasswordCheck::Wrong;
        }
        let matches = ballast_net::password_matches(password, hash);
        self.store_result(comparison, matches);
        password_check(matches)
    }
}

/// The answer of a comparison.
pub(crate) fn password_check(is_right: bool) -> PasswordCheck {
    match is_right {
        true => PasswordCheck::Right,
        false => PasswordCheck::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use ballast_worker::block_on;

    use super::*;

    /// A hash of "secret"; `index` makes it another one.
    fn hash(index: usize) -> Arc<str> {
        format!("$1$abcdef{index:02}$cHJi5PXp/ki/ktXzqlk6I1").into()
    }

    #[test]
    fn more_hashes_than_are_kept_come_to_an_end() {
        let results = PasswordResults::default();
        let mut computed = 0;
        block_on(async {
            // As a condition does that has many lists: all is asked again after each hash.
            loop {
                let mut checks = (0..RESULT_COUNT_MAX + 5)
                    .map(|index| results.check(&hash(index), b"wrong", true));
                if !checks.any(|check| matches!(check, PasswordCheck::Pending)) {
                    break;
                }
                assert_eq!(results.compute(None, pending()).await, HashWait::Known);
                computed += 1;
                assert!(computed <= RESULT_COUNT_MAX, "the same again");
            }
        })
        .unwrap();
        assert_eq!(computed, RESULT_COUNT_MAX);
        let beyond = results.check(&hash(RESULT_COUNT_MAX), b"secret", false);
        assert!(matches!(beyond, PasswordCheck::Wrong));
    }

    #[test]
    fn a_client_that_left_is_not_waited_for_and_not_let_in() {
        let results = PasswordResults::default();
        block_on(async {
            let right: Arc<str> = "$1$abcdefgh$cHJi5PXp/ki/ktXzqlk6I1".into();
            let pending_comparison = results.check(&right, b"secret", true);
            assert!(matches!(pending_comparison, PasswordCheck::Pending));
            assert_eq!(results.compute(None, ready(())).await, HashWait::ClientLeft);
            let after = results.check(&right, b"secret", true);
            assert!(matches!(after, PasswordCheck::Wrong));
            assert_eq!(results.compute(None, pending()).await, HashWait::Nothing);
        })
        .unwrap();
    }

    #[test]
    fn what_is_only_noted_is_known_afterwards() {
        if !ballast_net::can_hash_passwords() {
            eprintln!("SKIPPED: this machine has no libcrypt");
            return;
        }
        let results = PasswordResults::default();
        block_on(async {
            let right: Arc<str> = "$1$abcdefgh$cHJi5PXp/ki/ktXzqlk6I1".into();
            results.only_notes.set(true);
            let noted = results.check(&right, b"secret", false);
            assert!(matches!(noted, PasswordCheck::Wrong));
            assert!(
                results.results.borrow().is_empty(),
                "nothing is computed here"
            );
            assert_eq!(results.compute(None, pending()).await, HashWait::Known);
            let results = results.check(&right, b"secret", false);
            assert!(matches!(results, PasswordCheck::Right));
        })
        .unwrap();
    }
}
