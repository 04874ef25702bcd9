//! The actions: one file per small family. The file of a family contains everything about it: the
//! words, their arguments, what is evaluated, what must be linked, and what is done to the
//! exchange. No other file knows its members: [`FAMILIES`] names the file, once.

mod address;
mod answer;
mod capture;
mod connection;
mod control;
mod counter;
mod header;
mod log;
mod map;
mod packet;
mod patience;
mod redirect;
mod replace;
mod reply;
mod service;
mod status;
mod uri;
mod variable;

use std::any::Any;
use std::fmt::Debug;

use ballast_expr::{Error, Expr, Linker, LogFormat, Needs};

use crate::args::Args;
use crate::reference::Reference;
use crate::row::Row;
use crate::run::{ActionOutcome, Answer, Stage, Verdict};

pub(crate) use reply::Pages;

/// All families of actions.
pub(crate) const FAMILIES: &[&[Row]] = &[
    address::ROWS,
    answer::ROWS,
    capture::ROWS,
    connection::ROWS,
    control::ROWS,
    counter::ROWS,
    header::ROWS,
    log::ROWS,
    map::ROWS,
    packet::ROWS,
    patience::ROWS,
    redirect::ROWS,
    replace::ROWS,
    service::ROWS,
    status::ROWS,
    uri::ROWS,
    variable::ROWS,
];

/// A parsed action. The file of its family implements this.
pub(crate) trait Perform: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// Performs it.
    fn perform(&self, stage: &mut Stage<'_>) -> ActionOutcome;

    /// Links its expressions to the lists and maps they name.
    fn link(&mut self, _linker: &mut Linker<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Sets the pages that `errorfiles` arguments name.
    fn link_pages(&mut self, _pages: &mut Pages<'_>) {}
}

/// The same with the type erased, as rules store it.
pub(crate) trait AnyAction: Debug + Send + Sync {
    fn perform(&self, stage: &mut Stage<'_>) -> ActionOutcome;
    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), Error>;
    fn link_pages(&mut self, pages: &mut Pages<'_>);
    fn boxed_clone(&self) -> Box<dyn AnyAction>;
    fn equals(&self, other: &dyn AnyAction) -> bool;
    fn as_any(&self) -> &dyn Any;
}

impl<T: Perform> AnyAction for T {
    fn perform(&self, stage: &mut Stage<'_>) -> ActionOutcome {
        Perform::perform(self, stage)
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), Error> {
        Perform::link(self, linker)
    }

    fn link_pages(&mut self, pages: &mut Pages<'_>) {
        Perform::link_pages(self, pages);
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
pub(crate) type Parsed = Result<Box<dyn AnyAction>, Error>;

/// Converts an action of its family's type to [`Parsed`].
pub(crate) fn does<T: Perform>(parsed: Result<T, Error>) -> Parsed {
    Ok(Box::new(parsed?))
}

/// What others must know about the arguments of an action; collected by [`Args`] while they are
/// read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ActionRequirements {
    /// What must be available for it to be performed.
    pub(crate) needs: Needs,
    /// The words in it that are checked but not implemented: the action's own, samples and
    /// converters.
    pub(crate) unserved: Vec<&'static str>,
    /// The names in it that refer to other parts of the configuration.
    pub(crate) references: Vec<Reference>,
}

/// An action of a rule.
#[derive(Debug)]
pub struct Action {
    row: &'static Row,
    is_served: bool,
    notes: ActionRequirements,
    action: Box<dyn AnyAction>,
}

impl Action {
    /// Combines the result of the parser of `row` with what was collected about its arguments.
    pub(crate) fn new(
        row: &'static Row,
        action: Box<dyn AnyAction>,
        notes: ActionRequirements,
    ) -> Action {
        Action {
            row,
            is_served: !action.as_any().is::<CheckedAction>(),
            notes,
            action,
        }
    }

    /// Its row.
    pub const fn row(&self) -> &'static Row {
        self.row
    }

    /// Whether the action is implemented, and not only checked.
    pub const fn is_served(&self) -> bool {
        self.is_served
    }

    /// What must be available for it to be performed as written.
    pub const fn needs(&self) -> Needs {
        self.notes.needs
    }

    /// The words in it that are checked but not implemented: its own, samples and converters.
    pub fn unserved(&self) -> &[&'static str] {
        &self.notes.unserved
    }

    /// The names in it that refer to other parts of the configuration.
    pub fn references(&self) -> &[Reference] {
        &self.notes.references
    }

    pub(crate) fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), Error> {
        self.action.link(linker)
    }

    pub(crate) fn link_pages(&mut self, pages: &mut Pages<'_>) {
        self.action.link_pages(pages);
    }

    pub(crate) fn perform(&self, stage: &mut Stage<'_>) -> ActionOutcome {
        self.action.perform(stage)
    }
}

impl Clone for Action {
    fn clone(&self) -> Action {
        Action {
            row: self.row,
            is_served: self.is_served,
            notes: self.notes.clone(),
            action: self.action.boxed_clone(),
        }
    }
}

impl PartialEq for Action {
    fn eq(&self, other: &Action) -> bool {
        self.row.word == other.row.word
            && self.notes == other.notes
            && self.action.equals(&*other.action)
    }
}

/// An action that is checked but not implemented: its expressions are linked only to find errors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CheckedAction {
    pub(crate) exprs: Vec<Expr>,
    pub(crate) formats: Vec<LogFormat>,
}

impl Perform for CheckedAction {
    /// A configuration with such a rule is not started. If it were run nevertheless, doing nothing
    /// could let through what the rule should have stopped.
    fn perform(&self, _stage: &mut Stage<'_>) -> ActionOutcome {
        ActionOutcome::Stop(Verdict::Answer(Answer::fault()))
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), Error> {
        self.exprs
            .iter_mut()
            .try_for_each(|expr| expr.link(linker))?;
        self.formats
            .iter_mut()
            .try_for_each(|format| format.link(linker))
    }
}

/// The message that a rule changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Request,
    Response,
}

impl Side {
    fn of(args: &Args<'_, '_, '_>) -> Side {
        if args.place.is_response() {
            Side::Response
        } else {
            Side::Request
        }
    }
}

/// Makes a text valid as a header's value: no space around it, and no line end.
fn header_value(text: &[u8]) -> Option<&[u8]> {
    let value = ballast_message::trim_ows(text);
    ballast_message::is_field_value_lenient(value).then_some(value)
}

/// An integer in the range, or the error message.
fn integer<T: std::str::FromStr + PartialOrd>(
    args: &mut Args<'_, '_, '_>,
    range: std::ops::RangeInclusive<T>,
    message: &str,
) -> Result<T, Error> {
    let text = args.text(message)?;
    match text.parse::<T>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(args.error_before(message)),
    }
}
