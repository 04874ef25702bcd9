//! Many conditions over few samples: which of them may hold.
//!
//! A thousand `use_backend X if { hdr(host) -i x.example }` lines ask for one header a thousand
//! times. A [`ConditionIndex`] is made of the conditions of such a list. It asks for the header once,
//! looks it up in the patterns of all lines together, and names the lines whose pattern matches.
//! What it names may still be false, for its other terms; what it passes over is false. So the
//! caller evaluates the named conditions whole, in their order, and gets what it would get from
//! evaluating all.
//!
//! A lookup is good until something is changed that samples may depend on. Who performs an action
//! calls [`Candidates::forget`] afterwards. Lists that the Runtime API or a rule changes are
//! watched: the conditions that read them are evaluated from then on as if there were no index.

mod guard;
mod sample_group;
mod stable;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::acl::Condition;
use crate::facts::Facts;
use crate::needs::Needs;
use crate::pattern::ChangedRules;
use crate::scratch::Scratch;
use guard::{Guard, guards};
use sample_group::SampleGroup;

/// Below this many conditions over one sample, one after the other is as fast.
const GROUP_CONDITIONS_MIN: usize = 8;

/// Samples that one index looks up, at most.
const GROUPS_MAX: usize = 8;

/// Patterns that one index holds, at most. Conditions with more are evaluated one by one.
const PATTERNS_MAX: usize = 1 << 20;

/// Lookups of one run, at most: a list that changes its samples again and again is faster without.
const RUN_LOOKUPS_MAX: u32 = 32;

/// No condition.
const NONE: u32 = u32::MAX;

/// Which conditions of a list may hold, found by looking up the samples that many of them ask.
pub struct ConditionIndex {
    groups: Vec<SampleGroup>,
    /// Those that are in no group, in order: they are always evaluated.
    others: Vec<u32>,
    needs: Needs,
    changed: Arc<ChangedRules>,
}

impl ConditionIndex {
    /// The index of a list of linked conditions; `None` where it would not help.
    pub fn new<'c>(
        conditions: impl ExactSizeIterator<Item = Option<&'c Condition>> + Clone,
    ) -> Option<Arc<ConditionIndex>> {
        let count = u32::try_from(conditions.len()).ok()?;
        if conditions.len() < GROUP_CONDITIONS_MIN {
            return None;
        }
        // A condition that sets a variable or captures changes what those behind it see.
        if conditions.clone().flatten().any(stable::changes_samples) {
            return None;
        }
        let guards: Vec<Vec<Guard<'_>>> = conditions
            .map(|condition| condition.map_or_else(Vec::new, guards))
            .collect();
        let mut index = ConditionIndex {
            groups: Vec::new(),
            others: Vec::new(),
            needs: Needs::NONE,
            changed: Arc::default(),
        };
        let group_indexes = index.open_groups(&guards);
        let mut uses: HashMap<String, usize> = HashMap::new();
        for guard in guards.iter().flatten() {
            *uses.entry(guard.text()).or_default() += 1;
        }
        let mut patterns = 0;
        for (rule, guards) in (0..count).zip(&guards) {
            // The patterns that the fewest conditions have name the fewest in vain.
            let guard = guards
                .iter()
                .filter(|guard| group_indexes.contains_key(&*guard.sample))
                .filter(|guard| patterns + guard.pattern_count() <= PATTERNS_MAX)
                .min_by_key(|guard| uses.get(&guard.text()));
            match guard {
                Some(guard) => {
                    patterns += guard.pattern_count();
                    index.groups[group_indexes[&*guard.sample]].add(rule, guard, &index.changed);
                }
                None => index.others.push(rule),
            }
        }
        index.groups.iter_mut().for_each(SampleGroup::finish);
        (!index.groups.is_empty()).then(|| Arc::new(index))
    }

    /// What the samples need that are looked up: while some of it may still arrive, the index must not
    /// be used.
    pub const fn needs(&self) -> Needs {
        self.needs
    }

    /// Opens a group for each of the samples that most conditions ask; gives their indexes.
    fn open_groups(&mut self, guards: &[Vec<Guard<'_>>]) -> HashMap<String, usize> {
        let mut counts: HashMap<&str, (usize, usize, &Guard<'_>)> = HashMap::new();
        for (at, guard) in guards.iter().flatten().enumerate() {
            counts.entry(&guard.sample).or_insert((0, at, guard)).0 += 1;
        }
        let mut samples: Vec<_> = counts
            .into_values()
            .filter(|(count, ..)| *count >= GROUP_CONDITIONS_MIN)
            .collect();
        samples.sort_by_key(|(count, at, _)| (std::cmp::Reverse(*count), *at));
        samples.truncate(GROUPS_MAX);
        let mut group_indexes = HashMap::new();
        for (_, _, guard) in samples {
            group_indexes.insert(guard.sample.clone(), self.groups.len());
            self.needs = self.needs | guard.expr().needs();
            self.groups.push(SampleGroup::new(guard.expr()));
        }
        group_indexes
    }
}

impl fmt::Debug for ConditionIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (groups, others) = (self.groups.len(), self.others.len());
        write!(f, "ConditionIndex({groups} samples, {others} others)")
    }
}

/// The conditions of a list that have to be evaluated, in order: the state of one run, with memory
/// that is reused by the next.
#[derive(Debug, Default)]
pub struct Candidates {
    /// The first condition that was not given or passed over.
    next: u32,
    /// Those that lookups named, in order, and how many of them are behind `next`.
    named: Vec<u32>,
    named_before: usize,
    others_before: usize,
    /// The next condition of each group, where the group has not been looked up.
    unasked: [u32; GROUPS_MAX],
    lookups: u32,
}

impl Candidates {
    /// Begins at condition `from` of a list.
    #[inline]
    pub fn begin(&mut self, index: Option<&ConditionIndex>, from: usize) {
        self.lookups = 0;
        self.forget(index, from);
    }

    /// Forgets what was looked up, and goes on with condition `from`: something was done that
    /// samples may depend on.
    #[inline]
    pub fn forget(&mut self, index: Option<&ConditionIndex>, from: usize) {
        self.next = u32::try_from(from).unwrap_or(NONE);
        if let Some(index) = index {
            self.forget_lookups(index);
        }
    }

    fn forget_lookups(&mut self, index: &ConditionIndex) {
        self.named.clear();
        self.named_before = 0;
        self.others_before = index.others.partition_point(|rule| *rule < self.next);
        self.unasked = [NONE; GROUPS_MAX];
        for (slot, group) in self.unasked.iter_mut().zip(&index.groups) {
            *slot = group.next_rule(self.next);
        }
        index.changed.append_to(&mut self.named, self.next);
    }

    /// The next of `count` conditions that has to be evaluated. `ask` calls its argument once, with
    /// the facts.
    #[inline]
    pub fn next(
        &mut self,
        index: Option<&ConditionIndex>,
        count: usize,
        scratch: &mut Scratch,
        ask: impl FnMut(&mut dyn FnMut(&dyn Facts)),
    ) -> Option<usize> {
        let index = index.filter(|_| self.lookups < RUN_LOOKUPS_MAX);
        let Some(index) = index else {
            let at = self.next as usize;
            self.next += u32::from(at < count);
            return (at < count).then_some(at);
        };
        self.next_indexed(index, count, scratch, ask)
    }

    #[inline(never)]
    fn next_indexed(
        &mut self,
        index: &ConditionIndex,
        count: usize,
        scratch: &mut Scratch,
        mut ask: impl FnMut(&mut dyn FnMut(&dyn Facts)),
    ) -> Option<usize> {
        loop {
            let named = first_from(&self.named, &mut self.named_before, self.next);
            let other = first_from(&index.others, &mut self.others_before, self.next);
            let (group, unasked) = self.first_unasked();
            let rule = named.min(other);
            if unasked > rule || unasked == NONE {
                self.next = rule.saturating_add(1);
                return Some(rule as usize).filter(|at| *at < count);
            }
            self.unasked[group] = NONE;
            self.lookups += 1;
            let group = &index.groups[group];
            self.named.drain(..self.named_before);
            self.named_before = 0;
            let (from, named) = (unasked, &mut self.named);
            ask(&mut |facts| group.look_up(facts, scratch, from, named));
            self.named.sort_unstable();
            self.named.dedup();
        }
    }

    /// The group whose next condition comes first, among those not looked up.
    fn first_unasked(&self) -> (usize, u32) {
        let slots = self.unasked.iter().enumerate();
        let first = slots.min_by_key(|(_, rule)| **rule);
        first.map_or((0, NONE), |(group, rule)| (group, *rule))
    }
}

/// The first of the sorted `rules` that is not before `from`; `before` counts those that are.
fn first_from(rules: &[u32], before: &mut usize, from: u32) -> u32 {
    while let Some(rule) = rules.get(*before) {
        if *rule >= from {
            return *rule;
        }
        *before += 1;
    }
    NONE
}
