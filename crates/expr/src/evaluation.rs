//! One evaluation under way: what fetches and converters work with.

use crate::facts::Facts;
use crate::needs::Needs;
use crate::scratch::Scratch;

/// One evaluation under way. In functions it is called `cx`.
pub(crate) struct Evaluation<'f, 's> {
    pub(crate) facts: &'f dyn Facts,
    pub(crate) scratch: &'s mut Scratch,
    pub(crate) iteration: ValueIteration,
    /// What may still arrive.
    pub(crate) may_still_arrive: Needs,
    /// The part of it that would change the value.
    pub(crate) missing: Needs,
}

impl<'f, 's> Evaluation<'f, 's> {
    /// An evaluation that begins.
    pub(crate) fn new(
        facts: &'f dyn Facts,
        scratch: &'s mut Scratch,
        may_still_arrive: Needs,
    ) -> Evaluation<'f, 's> {
        Evaluation {
            facts,
            scratch,
            iteration: ValueIteration::default(),
            may_still_arrive,
            missing: Needs::NONE,
        }
    }

    /// Notes that the value may be another one when more of `needs` has arrived.
    pub(crate) fn note_missing(&mut self, needs: Needs) {
        self.missing = self.missing | (needs & self.may_still_arrive);
    }

    /// Notes that no more of `needs` would bring a value.
    pub(crate) fn stop_expecting(&mut self, needs: Needs) {
        self.may_still_arrive = self.may_still_arrive.without(needs);
    }
}

/// How far the values of a fetch with several values were taken. An ACL looks at one value after the other; an
/// expression elsewhere takes the one that HAProxy calls its value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ValueIteration {
    /// All values are wanted, one after the other.
    pub(crate) wants_all: bool,
    /// How many values were given before.
    pub(crate) yielded_count: usize,
    /// The fetch may have another value.
    pub(crate) has_more: bool,
    /// The first value decides, so that nobody asks for another.
    pub(crate) first_decides: bool,
}
