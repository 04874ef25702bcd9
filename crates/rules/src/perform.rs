//! What every action can do: be performed, be linked, be compared.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use ballast_expr::{Expr, ExpressionError, Linker, LogFormat, Needs};

use crate::log_profile::Profiles;
use crate::run_state::{ActionOutcome, RunState};
use crate::verdict::{LocalResponse, Verdict};

/// Returns the page of an `http-errors` section for a status.
pub(crate) type Pages<'a> = dyn FnMut(&str, u16) -> Option<Arc<[u8]>> + 'a;

/// A parsed action. The file of its family implements this.
pub(crate) trait Perform: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// Performs it.
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome;

    /// Links its expressions to the lists and maps they name.
    fn link(&mut self, _linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        Ok(())
    }

    /// Sets the pages that `errorfiles` arguments name.
    fn link_pages(&mut self, _pages: &mut Pages<'_>) {}

    /// Sets the log profile that it names, and returns what that needs.
    fn link_profile(&mut self, _profiles: &mut Profiles<'_>) -> Needs {
        Needs::NONE
    }
}

/// The same with the type erased, as rules store it.
pub(crate) trait AnyAction: Debug + Send + Sync {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome;
    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError>;
    fn link_pages(&mut self, pages: &mut Pages<'_>);
    fn link_profile(&mut self, profiles: &mut Profiles<'_>) -> Needs;
    fn boxed_clone(&self) -> Box<dyn AnyAction>;
    fn equals(&self, other: &dyn AnyAction) -> bool;
    fn as_any(&self) -> &dyn Any;
}

impl<T: Perform> AnyAction for T {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        Perform::perform(self, run_state)
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        Perform::link(self, linker)
    }

    fn link_pages(&mut self, pages: &mut Pages<'_>) {
        Perform::link_pages(self, pages);
    }

    fn link_profile(&mut self, profiles: &mut Profiles<'_>) -> Needs {
        Perform::link_profile(self, profiles)
    }

    fn boxed_clone(&self) -> Box<dyn AnyAction> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn AnyAction) -> bool {
        other.as_any().downcast_ref::<T>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The result of a row's parser.
pub(crate) type ParsedAction = Result<Box<dyn AnyAction>, ExpressionError>;

/// Converts an action of its family's type to [`ParsedAction`].
pub(crate) fn boxed<T: Perform>(parsed: Result<T, ExpressionError>) -> ParsedAction {
    Ok(Box::new(parsed?))
}

/// An action that is checked but not implemented: its expressions are linked only to find errors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UnimplementedAction {
    pub(crate) exprs: Vec<Expr>,
    pub(crate) formats: Vec<LogFormat>,
}

impl Perform for UnimplementedAction {
    /// A configuration with such a rule is not started. If it were run nevertheless, doing nothing
    /// could let through what the rule should have stopped.
    fn perform(&self, _run_state: &mut RunState<'_>) -> ActionOutcome {
        ActionOutcome::Stop(Verdict::Respond(LocalResponse::fault()))
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.exprs
            .iter_mut()
            .try_for_each(|expr| expr.link(linker))?;
        self.formats
            .iter_mut()
            .try_for_each(|format| format.link(linker))
    }
}
