//! The rules of one rule set, and what finds among them those that may apply.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use ballast_expr::{ConditionIndex, LinkSlot};

use crate::rule::Rule;

/// The rules of one rule set, in file order. [`crate::RuleSets::make_indexes`] gives long lists an
/// index of their conditions; whoever changes the list afterwards loses it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleList {
    rules: Vec<Rule>,
    index: LinkSlot<Arc<ConditionIndex>>,
}

impl RuleList {
    /// Makes the index. The rules must be linked.
    pub(crate) fn make_index(&mut self) {
        let conditions = self.rules.iter().map(|rule| rule.condition.as_ref());
        self.index = ConditionIndex::new(conditions).into();
    }

    /// The rules, for changes that leave their conditions as they are.
    pub(crate) fn iter_mut_keeping_conditions(&mut self) -> impl Iterator<Item = &mut Rule> {
        self.rules.iter_mut()
    }
}

impl From<Vec<Rule>> for RuleList {
    fn from(rules: Vec<Rule>) -> RuleList {
        RuleList {
            rules,
            index: LinkSlot::empty(),
        }
    }
}

impl Deref for RuleList {
    type Target = Vec<Rule>;
    fn deref(&self) -> &Vec<Rule> {
        &self.rules
    }
}

impl DerefMut for RuleList {
    fn deref_mut(&mut self) -> &mut Vec<Rule> {
        self.index = LinkSlot::empty();
        &mut self.rules
    }
}

impl<'l> IntoIterator for &'l RuleList {
    type Item = &'l Rule;
    type IntoIter = std::slice::Iter<'l, Rule>;
    fn into_iter(self) -> Self::IntoIter {
        self.rules.iter()
    }
}

/// Rules to be run, with their index if they have one.
#[derive(Clone, Copy, Debug)]
pub struct IndexedRules<'r> {
    pub(crate) rules: &'r [Rule],
    pub(crate) index: Option<&'r ConditionIndex>,
}

impl<'r> From<&'r RuleList> for IndexedRules<'r> {
    fn from(list: &'r RuleList) -> IndexedRules<'r> {
        IndexedRules {
            rules: &list.rules,
            index: list.index.filled().map(|index| &**index),
        }
    }
}

impl<'r> From<&'r [Rule]> for IndexedRules<'r> {
    fn from(rules: &'r [Rule]) -> IndexedRules<'r> {
        IndexedRules { rules, index: None }
    }
}

impl<'r> From<&'r Vec<Rule>> for IndexedRules<'r> {
    fn from(rules: &'r Vec<Rule>) -> IndexedRules<'r> {
        IndexedRules::from(rules.as_slice())
    }
}

impl<'r, const COUNT: usize> From<&'r [Rule; COUNT]> for IndexedRules<'r> {
    fn from(rules: &'r [Rule; COUNT]) -> IndexedRules<'r> {
        IndexedRules::from(rules.as_slice())
    }
}
