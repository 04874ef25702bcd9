//! The guards of a condition: criteria without which it cannot hold.

use super::stable;
use crate::acl::{Condition, Criterion, Polarity, Term, TermTarget};
use crate::expr::Expr;

/// Patterns of one list that an index holds, at most.
const LIST_PATTERNS_MAX: usize = 10_000;

/// Criteria that ask one sample; where none of them holds, the condition does not.
pub(super) struct Guard<'c> {
    /// The sample as written.
    pub(super) sample: String,
    pub(super) criteria: Vec<&'c Criterion>,
}

impl Guard<'_> {
    pub(super) fn expr(&self) -> &Expr {
        // There is one at least: no guard is made of none.
        &self.criteria[0].expr
    }

    /// Its criteria as written.
    pub(super) fn text(&self) -> String {
        let criteria = self.criteria.iter();
        criteria.map(|criterion| format!("{criterion} ")).collect()
    }

    pub(super) fn pattern_count(&self) -> usize {
        let criteria = self.criteria.iter();
        criteria.map(|criterion| count(criterion)).sum()
    }
}

/// The guards of a condition, one a sample.
pub(super) fn guards(condition: &Condition) -> Vec<Guard<'_>> {
    // A term that is skipped must not be missed for what it does.
    if !condition.effects().is_none() {
        return Vec::new();
    }
    match condition.polarity {
        Polarity::If => {
            let Some((first, rest)) = condition.rows.split_first() else {
                return Vec::new();
            };
            let mut all: Vec<Guard<'_>> = Vec::new();
            for guard in first.iter().filter_map(positive) {
                if all.iter().all(|known| known.sample != guard.sample) {
                    all.push(guard);
                }
            }
            // One row of several holds: each must have the guard.
            for row in rest {
                all.retain_mut(|guard| {
                    let mut terms = row.iter().filter_map(positive);
                    match terms.find(|other| other.sample == guard.sample) {
                        Some(other) => {
                            guard.criteria.extend(other.criteria);
                            true
                        }
                        None => false,
                    }
                });
            }
            all
        }
        // No row holds: of each, one term does not. Where all terms are negated, one criterion holds.
        Polarity::Unless => {
            let rows = condition.rows.iter();
            let mut all: Vec<Guard<'_>> = Vec::new();
            for guard in rows.filter_map(|row| all_negated(row)) {
                if all.iter().all(|known| known.sample != guard.sample) {
                    all.push(guard);
                }
            }
            all
        }
    }
}

/// The guard of a term that must hold.
fn positive(term: &Term) -> Option<Guard<'_>> {
    if term.negated { None } else { criteria(term) }
}

/// The guard of a row of terms of which one must not hold, if all are negated.
fn all_negated(row: &[Term]) -> Option<Guard<'_>> {
    let mut whole: Option<Guard<'_>> = None;
    for term in row {
        if !term.negated {
            return None;
        }
        let guard = criteria(term)?;
        match &mut whole {
            None => whole = Some(guard),
            Some(whole) if whole.sample == guard.sample => whole.criteria.extend(guard.criteria),
            Some(_) => return None,
        }
    }
    whole
}

/// The criteria of a term, if all ask the same sample and can be looked up.
fn criteria(term: &Term) -> Option<Guard<'_>> {
    let criteria: Vec<&Criterion> = match &term.target {
        TermTarget::Inline(criterion) => vec![criterion],
        TermTarget::Named(_, slot) => slot.filled()?.criteria.iter().collect(),
    };
    let first = criteria.first()?;
    let is_fit = |criterion: &&Criterion| criterion.expr == first.expr && is_indexable(criterion);
    criteria.iter().all(is_fit).then(|| Guard {
        sample: first.expr.to_string(),
        criteria,
    })
}

fn is_indexable(criterion: &Criterion) -> bool {
    let Some(matchers) = criterion.matchers.filled() else {
        return false;
    };
    criterion.method.takes_patterns()
        && stable::is_stable(&criterion.expr)
        && matchers.iter().all(|list| {
            let index = list.load();
            index.len() <= LIST_PATTERNS_MAX && index.is_united()
        })
}

fn count(criterion: &Criterion) -> usize {
    let lists = criterion.matchers.filled().into_iter().flatten();
    lists.map(|list| list.load().len()).sum()
}
