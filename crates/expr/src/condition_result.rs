//! The answer of a condition.

use crate::needs::Needs;

/// The answer to a question that is asked while something may still come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConditionResult {
    /// No, whatever comes.
    No,
    /// Not known before more of this has come.
    NotYet(Needs),
    /// Yes.
    Yes,
}

impl ConditionResult {
    /// The opposite where `negate`.
    pub(crate) const fn negated_if(self, negate: bool) -> ConditionResult {
        match self {
            ConditionResult::No if negate => ConditionResult::Yes,
            ConditionResult::Yes if negate => ConditionResult::No,
            same => same,
        }
    }

    /// Whether one of the answers is yes. No question is asked after the first yes.
    pub(crate) fn any(answers: impl Iterator<Item = ConditionResult>) -> ConditionResult {
        let mut missing = Needs::NONE;
        for answer in answers {
            match answer {
                ConditionResult::Yes => return ConditionResult::Yes,
                ConditionResult::NotYet(needs) => missing = missing | needs,
                ConditionResult::No => {}
            }
        }
        ConditionResult::no_unless(missing)
    }

    /// Whether all of the answers are yes. No question is asked after the first no.
    pub(crate) fn all(answers: impl Iterator<Item = ConditionResult>) -> ConditionResult {
        ConditionResult::any(answers.map(|answer| answer.negated_if(true))).negated_if(true)
    }

    pub(crate) const fn no_unless(missing: Needs) -> ConditionResult {
        if missing.is_none() {
            ConditionResult::No
        } else {
            ConditionResult::NotYet(missing)
        }
    }
}
