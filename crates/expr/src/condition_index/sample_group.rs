//! Conditions that ask one sample: all their patterns together.

use std::sync::Arc;

use super::NONE;
use super::guard::Guard;
use crate::evaluation::Evaluation;
use crate::expr::Expr;
use crate::facts::Facts;
use crate::needs::Needs;
use crate::pattern::{ChangedRules, MatchMethod, PatternUnion};
use crate::scratch::Scratch;
use crate::value::{Sample, SampleKind};

/// Conditions that cannot hold unless a sample matches one of their patterns.
pub(super) struct SampleGroup {
    expr: Expr,
    /// Its conditions, in order.
    rules: Vec<u32>,
    /// The patterns by the type that the sample is cast to before it is compared.
    unions: Vec<(SampleKind, PatternUnion)>,
}

impl SampleGroup {
    pub(super) fn new(expr: &Expr) -> SampleGroup {
        SampleGroup {
            expr: expr.clone(),
            rules: Vec::new(),
            unions: Vec::new(),
        }
    }

    /// Adds a condition by its guard.
    pub(super) fn add(&mut self, rule: u32, guard: &Guard<'_>, changed: &Arc<ChangedRules>) {
        self.rules.push(rule);
        for criterion in &guard.criteria {
            let kind = MatchMethod::takes(criterion.method);
            let at = match self.unions.iter().position(|(known, _)| *known == kind) {
                Some(at) => at,
                None => {
                    self.unions.push((kind, PatternUnion::default()));
                    self.unions.len() - 1
                }
            };
            for list in criterion.matchers.filled().into_iter().flatten() {
                // First the watch, then the look: what is changed in between is seen.
                list.watch(changed, rule);
                list.load().join(&mut self.unions[at].1, rule);
            }
        }
    }

    /// All conditions were added.
    pub(super) fn finish(&mut self) {
        self.unions.iter_mut().for_each(|(_, union)| union.finish());
    }

    /// Its first condition from `from` on.
    pub(super) fn next_rule(&self, from: u32) -> u32 {
        let at = self.rules.partition_point(|rule| *rule < from);
        self.rules.get(at).copied().unwrap_or(NONE)
    }

    /// Appends the conditions from `from` on that a value of the sample matches. It walks over the
    /// values as a criterion does that none of them matches.
    pub(super) fn look_up(
        &self,
        facts: &dyn Facts,
        scratch: &mut Scratch,
        from: u32,
        named: &mut Vec<u32>,
    ) {
        let mark = scratch.mark();
        let mut cx = Evaluation::new(facts, scratch, Needs::NONE);
        cx.iteration.wants_all = true;
        // Each value may name the same conditions: a client decides how many values there are.
        let named_max = named.len() + 2 * self.rules.len();
        loop {
            cx.iteration.has_more = false;
            let Some(sample) = self.expr.sample_walking::<false>(&mut cx) else {
                break;
            };
            self.look_up_value(sample, cx.scratch, from, named);
            if named.len() > named_max {
                named.sort_unstable();
                named.dedup();
            }
            if !cx.iteration.has_more {
                break;
            }
            cx.scratch.rewind(mark);
        }
        cx.scratch.rewind(mark);
    }

    fn look_up_value(
        &self,
        sample: Sample<'_>,
        scratch: &mut Scratch,
        from: u32,
        named: &mut Vec<u32>,
    ) {
        for (kind, union) in &self.unions {
            let Some(sample) = sample.cast(*kind, scratch) else {
                continue;
            };
            let mut spare = scratch.open();
            union.look_up(sample.value(scratch), &mut spare, &mut |rule| {
                if rule >= from {
                    named.push(rule);
                }
            });
            scratch.discard(spare);
        }
    }
}
