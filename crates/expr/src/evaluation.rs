//! One evaluation under way: what fetches and converters work with.

use ballast_message::Fields;

use crate::facts::Facts;
use crate::needs::Needs;
use crate::scratch::Scratch;

/// One evaluation under way. In functions it is called `cx`.
pub(crate) struct Evaluation<'f, 's> {
    pub(crate) facts: &'f dyn Facts,
    pub(crate) scratch: &'s mut Scratch,
    pub(crate) iteration: ValueIteration<'f>,
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
pub(crate) struct ValueIteration<'f> {
    /// All values are wanted, one after the other.
    pub(crate) wants_all: bool,
    /// Where the next value is looked for. A fetch moves it behind each value that it gives.
    pub(crate) cursor: ValueCursor<'f>,
    /// The fetch may have another value.
    pub(crate) has_more: bool,
    /// The first value decides, so that nobody asks for another.
    pub(crate) first_decides: bool,
}

/// A position among the values of a fetch. A client decides how many there are: the next one is found
/// without another look at those before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ValueCursor<'f> {
    /// The index of what is looked at next: a field, a group, or a byte. Each fetch says which.
    pub(crate) index: usize,
    /// What is left of the list that the last value was in. `None` at the start, and at the end of a
    /// list.
    pub(crate) rest: Option<&'f [u8]>,
    /// Whether there is another list behind the one under way ([`Self::next_list`]).
    pub(crate) has_more_lists: bool,
}

impl<'f> ValueCursor<'f> {
    /// What is left of the list under way, or the next field of this name, or of any where it is empty.
    /// The index is that of the next one after it.
    pub(crate) fn next_list(&mut self, fields: &'f Fields, name: &[u8]) -> Option<&'f [u8]> {
        if let Some(rest) = self.rest.take() {
            return Some(rest);
        }
        let (value, next) = fields.value_and_next(name, self.index)?;
        self.has_more_lists = next.is_some();
        self.index = next.unwrap_or(fields.len());
        Some(value)
    }
}
