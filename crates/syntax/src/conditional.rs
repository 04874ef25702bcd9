//! The blocks of `.if`, `.elif`, `.else` and `.endif`: which lines are active.
//!
//! ```text
//!            .if false             .elif/.else that holds
//!   (start) -----------> Waiting -------------------------> Active
//!      | .if true                                             |
//!      +----------------------> Active                        |
//!      | .if within a block that does not count               | .elif, .else
//!      +----------------------> Done <------------------------+
//! ```
//!
//! Source: HAProxy configuration manual, section 2.4.

use crate::{CONDITION_NESTING_MAX, Diagnostic, Span};

/// The open blocks of a file, outermost first.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    open: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    opened: Span,
    state: BranchState,
    has_else: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BranchState {
    /// This branch is active.
    Active,
    /// No branch was active so far.
    Waiting,
    /// No further branch can be active.
    Done,
}

impl Blocks {
    /// Whether the present lines are active.
    pub(crate) fn is_active(&self) -> bool {
        // A block that is opened in an inactive one is never active, so the innermost block
        // decides.
        self.open
            .last()
            .is_none_or(|block| block.state == BranchState::Active)
    }

    /// `.if`. The condition is evaluated only where it matters; a malformed one disables all
    /// branches.
    pub(crate) fn open(
        &mut self,
        at: Span,
        condition: impl FnOnce() -> Result<bool, Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let within_bounds = self.open.len() < CONDITION_NESTING_MAX;
        let (state, result) = match self.is_active() && within_bounds {
            true => BranchState::after(condition()),
            false => (BranchState::Done, Ok(())),
        };
        self.open.push(Block {
            opened: at,
            state,
            has_else: false,
        });
        if !within_bounds {
            let message = format!("more than {CONDITION_NESTING_MAX} nested '.if'");
            return Err(Diagnostic::alert("if-too-deep", message).at(at));
        }
        result
    }

    /// `.elif`, with a condition, or `.else`, without.
    pub(crate) fn switch(
        &mut self,
        word: &str,
        at: Span,
        condition: Option<impl FnOnce() -> Result<bool, Diagnostic>>,
    ) -> Result<(), Diagnostic> {
        let Some(block) = self.open.last_mut() else {
            return Err(unmatched(word, at));
        };
        if block.has_else {
            block.state = BranchState::Done;
            let message = format!("'{word}' after '.else'");
            return Err(Diagnostic::alert("branch-after-else", message).at(at));
        }
        block.has_else = condition.is_none();
        let (state, result) = match (block.state, condition) {
            (BranchState::Waiting, Some(condition)) => BranchState::after(condition()),
            (BranchState::Waiting, None) => (BranchState::Active, Ok(())),
            _ => (BranchState::Done, Ok(())),
        };
        block.state = state;
        result
    }

    /// `.endif`.
    pub(crate) fn close(&mut self, at: Span) -> Result<(), Diagnostic> {
        self.open
            .pop()
            .map(|_| ())
            .ok_or_else(|| unmatched(".endif", at))
    }

    /// The end of the file: blocks that are still open are errors.
    pub(crate) fn finish(self) -> impl Iterator<Item = Diagnostic> {
        self.open.into_iter().map(|block| {
            Diagnostic::alert("unterminated-if", "'.if' without '.endif'")
                .at(block.opened)
                .help("a block ends in the file it starts in")
        })
    }
}

impl BranchState {
    fn after(condition: Result<bool, Diagnostic>) -> (Self, Result<(), Diagnostic>) {
        match condition {
            Ok(true) => (Self::Active, Ok(())),
            Ok(false) => (Self::Waiting, Ok(())),
            Err(diagnostic) => (Self::Done, Err(diagnostic)),
        }
    }
}

fn unmatched(word: &str, at: Span) -> Diagnostic {
    Diagnostic::alert("lone-branch", format!("'{word}' without '.if'")).at(at)
}
