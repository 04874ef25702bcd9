//! The actions: one file per tight family, whole. A family's file holds the words, their
//! arguments, what is evaluated, what must be linked, and what is done to the exchange. Nothing
//! outside of the file knows its members: [`FAMILIES`] names the file, once.

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
use crate::run::{Answer, Stage, Step, Verdict};

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

/// What an action does, with its arguments. The file of its family implements it.
pub(crate) trait Perform: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// Does it.
    fn perform(&self, stage: &mut Stage<'_>) -> Step;

    /// Joins what it evaluates to the lists and maps that are named there.
    fn link(&mut self, _linker: &mut Linker<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Brings the pages that `errorfiles` arguments name.
    fn link_pages(&mut self, _pages: &mut Pages<'_>) {}
}

/// The same without its type, as rules hold it.
pub(crate) trait AnyAction: Debug + Send + Sync {
    fn perform(&self, stage: &mut Stage<'_>) -> Step;
    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), Error>;
    fn link_pages(&mut self, pages: &mut Pages<'_>);
    fn boxed_clone(&self) -> Box<dyn AnyAction>;
    fn equals(&self, other: &dyn AnyAction) -> bool;
    fn as_any(&self) -> &dyn Any;
}

impl<T: Perform> AnyAction for T {
    fn perform(&self, stage: &mut Stage<'_>) -> Step {
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

/// What the parser of a row gives.
pub(crate) type Parsed = Result<Box<dyn AnyAction>, Error>;

/// An action of its family's type, as [`Parsed`].
pub(crate) fn does<T: Perform>(parsed: Result<T, Error>) -> Parsed {
    Ok(Box::new(parsed?))
}

/// What the arguments of an action hold for others to know, noted by [`Args`] while they are
/// read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Notes {
    /// What must be there for it to be carried out.
    pub(crate) needs: Needs,
    /// The words of it that are checked and not carried out yet: the action's own, samples and
    /// converters.
    pub(crate) unserved: Vec<&'static str>,
    /// What it names elsewhere in the configuration.
    pub(crate) references: Vec<Reference>,
}

/// What a rule does.
#[derive(Debug)]
pub struct Action {
    row: &'static Row,
    is_served: bool,
    notes: Notes,
    action: Box<dyn AnyAction>,
}

impl Action {
    /// Puts together what the parser of `row` gave and what was noted beside it.
    pub(crate) fn new(row: &'static Row, action: Box<dyn AnyAction>, notes: Notes) -> Action {
        Action {
            row,
            is_served: !action.as_any().is::<Later>(),
            notes,
            action,
        }
    }

    /// Its row.
    pub const fn row(&self) -> &'static Row {
        self.row
    }

    /// Whether the action is carried out, not only checked.
    pub const fn is_served(&self) -> bool {
        self.is_served
    }

    /// What must be there for it to be carried out, as it wants to be.
    pub const fn needs(&self) -> Needs {
        self.notes.needs
    }

    /// The words of it that are checked and not carried out yet: its own, samples and
    /// converters.
    pub fn unserved(&self) -> &[&'static str] {
        &self.notes.unserved
    }

    /// What it names elsewhere in the configuration.
    pub fn references(&self) -> &[Reference] {
        &self.notes.references
    }

    pub(crate) fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), Error> {
        self.action.link(linker)
    }

    pub(crate) fn link_pages(&mut self, pages: &mut Pages<'_>) {
        self.action.link_pages(pages);
    }

    pub(crate) fn perform(&self, stage: &mut Stage<'_>) -> Step {
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

/// An action that is checked and not carried out yet: what it evaluates is linked, so that
/// errors are found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Later {
    pub(crate) exprs: Vec<Expr>,
    pub(crate) formats: Vec<LogFormat>,
}

impl Perform for Later {
    /// A configuration with such a rule is not started; were it run all the same, doing nothing
    /// could let through what the rule would have stopped.
    fn perform(&self, _stage: &mut Stage<'_>) -> Step {
        Step::Stop(Verdict::Answer(Answer::fault()))
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

/// Which message a rule changes.
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

/// What may be in a header's value: no space around it, and nothing that ends a line.
fn header_value(text: &[u8]) -> Option<&[u8]> {
    let value = ballast_message::trim_ows(text);
    ballast_message::is_field_value_lenient(value).then_some(value)
}

/// An integer of the range, or the message.
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
