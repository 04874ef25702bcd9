//! The actions: one file per small family. The file of a family contains everything about it: the
//! words, their arguments, what is evaluated, what must be linked, and what is done to the
//! exchange. No other file knows its members: [`FAMILIES`] names the file, once.

mod address;
mod answer;
mod auth;
mod capture;
mod connection;
mod control;
mod counter;
mod header;
mod log;
mod map;
mod normalize;
mod packet;
mod priority;
mod redirect;
mod replace;
mod reply;
mod service;
mod status;
mod uri;
mod variable;
mod waiting;

pub use connection::NO_REVERSE_HTTP;

use ballast_expr::{ExpressionError, Linker, Needs};

use crate::args::{ActionRequirements, Args};
use crate::log_profile::Profiles;
use crate::perform::{AnyAction, Pages, UnimplementedAction};
use crate::reference::RuleReference;
use crate::row::{ActionRow, WordForm};
use crate::rule_set_kind::RuleSetKind;
use crate::run_state::{ActionOutcome, RunState};

/// All families of actions.
const FAMILIES: &[&[ActionRow]] = &[
    address::ROWS,
    answer::ROWS,
    auth::ROWS,
    capture::ROWS,
    connection::ROWS,
    control::ROWS,
    counter::ROWS,
    header::ROWS,
    log::ROWS,
    map::ROWS,
    normalize::ROWS,
    packet::ROWS,
    priority::ROWS,
    waiting::ROWS,
    redirect::ROWS,
    replace::ROWS,
    service::ROWS,
    status::ROWS,
    uri::ROWS,
    variable::ROWS,
];

/// Every action, family by family.
pub fn action_rows() -> impl Iterator<Item = &'static ActionRow> {
    FAMILIES.iter().copied().flatten()
}

/// The action named by `word`, the first of a rule; arguments in parentheses may follow.
pub fn row(word: &str) -> Option<&'static ActionRow> {
    let name = word.split('(').next().unwrap_or_default();
    action_rows().find(|row| row.word == name).or_else(|| {
        action_rows().find(|row| row.form == WordForm::Prefix && name.starts_with(row.word))
    })
}

/// The actions of one rule set.
pub(crate) fn action_rows_of(rule_set: RuleSetKind) -> impl Iterator<Item = &'static ActionRow> {
    action_rows().filter(move |row| row.rule_sets.has(rule_set))
}

/// An action of a rule.
#[derive(Debug)]
pub struct Action {
    row: &'static ActionRow,
    is_implemented: bool,
    notes: ActionRequirements,
    action: Box<dyn AnyAction>,
}

impl Action {
    /// Combines the result of the parser of `row` with what was collected about its arguments.
    pub(crate) fn new(
        row: &'static ActionRow,
        action: Box<dyn AnyAction>,
        notes: ActionRequirements,
    ) -> Action {
        Action {
            row,
            is_implemented: !action.as_any().is::<UnimplementedAction>(),
            notes,
            action,
        }
    }

    /// Its row.
    pub const fn row(&self) -> &'static ActionRow {
        self.row
    }

    /// Whether the action is implemented, and not only checked.
    pub const fn is_implemented(&self) -> bool {
        self.is_implemented
    }

    /// What must be available for it to be performed as written.
    pub const fn needs(&self) -> Needs {
        self.notes.needs
    }

    /// The words in it that are checked but not implemented: its own, samples and converters.
    pub fn unimplemented(&self) -> &[&'static str] {
        &self.notes.unimplemented
    }

    /// The names in it that refer to other parts of the configuration.
    pub fn references(&self) -> &[RuleReference] {
        &self.notes.references
    }

    pub(crate) fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.action.link(linker)
    }

    pub(crate) fn link_pages(&mut self, pages: &mut Pages<'_>) {
        self.action.link_pages(pages);
    }

    /// Sets the log profile that it names. What the lines of the profile show must be there.
    pub(crate) fn link_profile(&mut self, profiles: &mut Profiles<'_>) {
        let needs = self.action.link_profile(profiles) & Needs::SERVER_ADDRESSES;
        self.notes.needs = self.notes.needs | needs;
    }

    pub(crate) fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        self.action.perform(run_state)
    }
}

impl Clone for Action {
    fn clone(&self) -> Action {
        Action {
            row: self.row,
            is_implemented: self.is_implemented,
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

/// The message that a rule changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MessageSide {
    Request,
    Response,
}

impl MessageSide {
    fn of(args: &Args<'_, '_, '_>) -> MessageSide {
        if args.rule_set.is_response() {
            MessageSide::Response
        } else {
            MessageSide::Request
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
) -> Result<T, ExpressionError> {
    let text = args.text(message)?;
    match text.parse::<T>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(args.error_before(message)),
    }
}
