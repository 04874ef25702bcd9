//! An expression in a list of them: it takes little memory, and is compiled when it is first tried.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use regex_automata::Input;
use regex_automata::nfa::thompson;
use regex_automata::nfa::thompson::backtrack::{self, BoundedBacktracker};
use regex_automata::util::syntax;

use crate::error::ExpressionError;
use crate::groups::Groups;
use crate::pcre::Pcre;
use crate::regex::Regex;
use crate::required_text::{self, TextChoice};

/// Compiled expressions that one list keeps, at most. One beyond them is compiled each time it is
/// tried.
const KEPT_EXPRESSIONS_MAX: usize = 16_384;
/// Bytes that one compiled expression may take here; a larger one gets the engine for single ones.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// Bytes that notes which states were tried may take: how long a subject may be depends on it.
const VISITED_BYTES_MAX: usize = 64 << 10;

/// An expression of a list.
#[derive(Debug)]
pub(crate) struct ListedRegex {
    source: Arc<str>,
    fold: bool,
    engine: OnceLock<ListedEngine>,
}

#[derive(Debug)]
enum ListedEngine {
    /// Compiled for memory: one state machine without tables, whose notes are shared by a list.
    /// The flag: a subject that ends in a newline needs the engine for single ones, as the
    /// expression may match before that newline.
    Small(Box<BoundedBacktracker>, bool),
    /// Compiled for speed, or in need of an engine of its own.
    Single(Regex),
    /// It was valid when it was read, and is no more: it matches nothing.
    Invalid,
}

/// What the expressions of one list share.
#[derive(Default)]
pub(super) struct RegexWorkspace {
    /// How many are compiled and kept.
    kept: AtomicUsize,
    /// Notes of searches that are over.
    caches: Mutex<Vec<backtrack::Cache>>,
}

/// Caches that are kept for later: as many as searches run at once, where that is known.
const CACHES_MAX: usize = 64;

impl RegexWorkspace {
    /// How many expressions are compiled and kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// An expression leaves the list: what it kept makes room for another.
    pub(super) fn release(&self, regex: &ListedRegex) {
        if regex.engine.get().is_some() {
            self.kept.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn take_cache(&self, regex: &BoundedBacktracker) -> backtrack::Cache {
        let kept = self.caches.try_lock().ok().and_then(|mut all| all.pop());
        match kept {
            Some(mut cache) => {
                cache.reset(regex);
                cache
            }
            None => regex.create_cache(),
        }
    }

    fn give_cache(&self, cache: backtrack::Cache) {
        if let Ok(mut all) = self.caches.try_lock()
            && all.len() < CACHES_MAX
        {
            all.push(cache);
        }
    }
}

impl Clone for ListedRegex {
    fn clone(&self) -> ListedRegex {
        ListedRegex {
            source: Arc::clone(&self.source),
            fold: self.fold,
            engine: OnceLock::new(),
        }
    }
}

impl ListedRegex {
    /// Checks `source`; `fold` ignores the case.
    ///
    /// # Errors
    /// When the pattern is not valid in any engine.
    pub(super) fn new(source: &Arc<str>, fold: bool) -> Result<ListedRegex, ExpressionError> {
        let pcre = Pcre::read(source, fold)?;
        let is_plain = !pcre.backtracks() && required_text::parse(&pcre.wide(), fold).is_some();
        // Only what is repeated can grow beyond what an engine takes.
        if !is_plain || (source.contains('{') && small(&pcre, fold).is_none()) {
            Regex::new(source, fold)?;
        }
        Ok(ListedRegex {
            source: Arc::clone(source),
            fold,
            engine: OnceLock::new(),
        })
    }

    /// The texts of which one must be there, for each choice of them.
    pub(super) fn choices(&self) -> Vec<TextChoice> {
        let pcre = Pcre::read(&self.source, self.fold).ok();
        let linear = pcre.filter(|pcre| !pcre.backtracks());
        let hir = linear.and_then(|pcre| required_text::parse(&pcre.wide(), self.fold));
        hir.map_or_else(Vec::new, |hir| required_text::choices(&hir))
    }

    /// An expression for a linear engine that matches whatever this one does, and maybe more.
    pub(super) fn wide(&self) -> Option<String> {
        let pcre = Pcre::read(&self.source, self.fold).ok()?;
        (!pcre.backtracks()).then(|| pcre.wide())
    }

    /// Whether the case is ignored.
    pub(super) const fn ignores_case(&self) -> bool {
        self.fold
    }

    /// Whether it is found in `subject`. `many`: it is one of many in its list.
    pub(super) fn is_match(&self, subject: &[u8], many: bool, shared: &RegexWorkspace) -> bool {
        self.with_engine(many, shared, |engine| match engine {
            ListedEngine::Small(regex, has_end) if is_small(regex, *has_end, subject) => {
                let mut cache = shared.take_cache(regex);
                let found = regex.try_is_match(&mut cache, subject);
                shared.give_cache(cache);
                found.unwrap_or(false)
            }
            ListedEngine::Small(..) => self.single().is_some_and(|regex| regex.is_match(subject)),
            ListedEngine::Single(regex) => regex.is_match(subject),
            ListedEngine::Invalid => false,
        })
    }

    /// The same, with the groups of the match.
    pub(super) fn groups(
        &self,
        subject: &[u8],
        many: bool,
        shared: &RegexWorkspace,
    ) -> Option<Groups> {
        self.with_engine(many, shared, |engine| match engine {
            ListedEngine::Small(regex, has_end) if is_small(regex, *has_end, subject) => {
                let mut groups = Groups::default();
                let mut ends = [None; 20];
                let mut cache = shared.take_cache(regex);
                let found = regex.try_search_slots(&mut cache, &Input::new(subject), &mut ends);
                shared.give_cache(cache);
                found.ok()??;
                for (group, ends) in groups.iter_mut().zip(ends.chunks_exact(2)) {
                    *group = ends[0]
                        .zip(ends[1])
                        .map(|(start, end)| (start.get(), end.get()));
                }
                Some(groups)
            }
            ListedEngine::Small(..) => self.single()?.groups(subject, 0),
            ListedEngine::Single(regex) => regex.groups(subject, 0),
            ListedEngine::Invalid => None,
        })
    }

    fn with_engine<T>(
        &self,
        many: bool,
        shared: &RegexWorkspace,
        work: impl FnOnce(&ListedEngine) -> T,
    ) -> T {
        if let Some(engine) = self.engine.get() {
            return work(engine);
        }
        let pcre = many
            .then(|| Pcre::read(&self.source, self.fold).ok())
            .flatten();
        let small = pcre.and_then(|pcre| Some((small(&pcre, self.fold)?, pcre.has_end())));
        let engine = match small {
            Some((regex, has_end)) => ListedEngine::Small(Box::new(regex), has_end),
            None => self
                .single()
                .map_or(ListedEngine::Invalid, ListedEngine::Single),
        };
        match self.keep(engine, shared) {
            Ok(kept) => work(kept),
            Err(engine) => work(&engine),
        }
    }

    /// Keeps what was compiled; what another thread kept meanwhile stays. Gives `engine` back where
    /// the list keeps as many as it may.
    fn keep(
        &self,
        engine: ListedEngine,
        shared: &RegexWorkspace,
    ) -> Result<&ListedEngine, ListedEngine> {
        if shared.kept.fetch_add(1, Ordering::Relaxed) >= KEPT_EXPRESSIONS_MAX {
            shared.kept.fetch_sub(1, Ordering::Relaxed);
            return Err(engine);
        }
        let mut is_kept = false;
        let engine = self.engine.get_or_init(|| {
            is_kept = true;
            engine
        });
        if !is_kept {
            // The other thread counted it.
            shared.kept.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(engine)
    }

    fn single(&self) -> Option<Regex> {
        Regex::new(&self.source, self.fold).ok()
    }
}

/// Whether the small state machine can search `subject`.
fn is_small(regex: &BoundedBacktracker, has_end: bool, subject: &[u8]) -> bool {
    subject.len() <= regex.max_haystack_len() && !(has_end && subject.last() == Some(&b'\n'))
}

/// The expression as a small state machine, if it is one.
fn small(pcre: &Pcre, fold: bool) -> Option<BoundedBacktracker> {
    if pcre.backtracks() {
        return None;
    }
    let syntax = syntax::Config::new()
        .unicode(false)
        .utf8(false)
        .case_insensitive(fold);
    let limits = thompson::Config::new()
        .utf8(false)
        .nfa_size_limit(Some(SMALL_BYTES_MAX));
    BoundedBacktracker::builder()
        .syntax(syntax)
        .thompson(limits)
        .configure(backtrack::Config::new().visited_capacity(VISITED_BYTES_MAX))
        .build(&pcre.without_newline())
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_that_two_threads_compile_at_once_counts_once() {
        let shared = RegexWorkspace::default();
        let regex = ListedRegex::new(&"^a[0-9]+$".into(), false).unwrap();
        // Both found none kept, and come with their own.
        for _ in 0..2 {
            assert!(regex.keep(ListedEngine::Invalid, &shared).is_ok());
            assert_eq!(shared.kept(), 1);
        }
    }
}
