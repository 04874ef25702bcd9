//! The actions: one file per tight family, each with its rows, its parsing and its deeds.

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

use ballast_expr::{Error, Expr, LogFormat, Store};

use crate::args::Args;
use crate::reference::Reference;
use crate::row::Row;
use crate::run::{Service, Stage, Step, Verdict};
use crate::transaction::LogLevel;

pub(crate) use reply::{Pages, Reply};

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

/// What a rule does: a row's handler with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// `allow`, `accept`.
    Allow,
    /// `deny`, `return`.
    Answer(Box<answer::Answer>),
    /// `capture`.
    Capture(Box<capture::Capture>),
    /// `set-header`, `add-header`, `del-header`.
    Header(Box<header::Header>),
    /// `set-map`, `del-map`, `add-acl`, `del-acl`.
    List(Box<map::List>),
    /// `set-log-level`.
    LogLevel(LogLevel),
    /// `redirect`.
    Redirect(Box<redirect::Redirect>),
    /// `reject`.
    Reject,
    /// `replace-header`, `replace-value`, `replace-path`, `replace-pathq`, `replace-uri`.
    Replace(Box<replace::Replace>),
    /// `use-service`.
    Service(Service),
    /// `set-status`.
    Status(Box<status::Status>),
    /// `strict-mode`.
    StrictMode(bool),
    /// A word of the table that is checked and not carried out yet: the configuration that
    /// holds it is not started.
    Unserved(Box<Unserved>),
    /// `set-path`, `set-pathq`, `set-query`, `set-uri`, `set-method`.
    Uri(Box<uri::Uri>),
    /// `set-var`, `set-var-fmt`, `unset-var`.
    Variable(Box<variable::Variable>),
}

/// An action that is checked and not carried out yet, with what it asks and names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unserved {
    /// The word.
    pub word: &'static str,
    /// Its expressions.
    pub exprs: Vec<Expr>,
    /// Its formats.
    pub formats: Vec<LogFormat>,
    /// What it names elsewhere.
    pub references: Vec<Reference>,
    reply: Option<Reply>,
}

impl Unserved {
    fn of(word: &'static str) -> Unserved {
        Unserved {
            word,
            ..Unserved::default()
        }
    }

    fn expr(mut self, expr: Expr) -> Unserved {
        self.exprs.push(expr);
        self
    }

    fn format(mut self, format: LogFormat) -> Unserved {
        self.formats.push(format);
        self
    }

    fn names(mut self, reference: Reference) -> Unserved {
        self.references.push(reference);
        self
    }

    fn done(self) -> Result<Action, Error> {
        Ok(Action::Unserved(Box::new(self)))
    }
}

/// Something in an action that is evaluated.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// A sample expression.
    Expr(&'a Expr),
    /// A format.
    Format(&'a LogFormat),
}

/// The same, to be joined to what it names.
#[derive(Debug)]
pub(crate) enum PartMut<'a> {
    Expr(&'a mut Expr),
    Format(&'a mut LogFormat),
}

/// Walks the parts of an action; the same walk for looking and for changing.
macro_rules! walk {
    ($name:ident, $part:ident, $($mutable:tt)?) => {
        pub(crate) fn $name<'a>(&'a $($mutable)? self, visit: &mut dyn FnMut($part<'a>)) {
            match self {
                Action::Allow
                | Action::LogLevel(_)
                | Action::Reject
                | Action::Service(_)
                | Action::Status(_)
                | Action::StrictMode(_) => {}
                Action::Answer(answer) => walk!(reply answer.reply, visit, $part, $($mutable)?),
                Action::Capture(capture) => visit($part::Expr(& $($mutable)? capture.expr)),
                Action::Header(header) => {
                    if let Some(value) = & $($mutable)? header.value {
                        visit($part::Format(value));
                    }
                }
                Action::List(list) => {
                    visit($part::Format(& $($mutable)? list.key));
                    if let Some(value) = & $($mutable)? list.value {
                        visit($part::Format(value));
                    }
                }
                Action::Redirect(redirect) => {
                    visit($part::Format(& $($mutable)? redirect.target));
                }
                Action::Replace(replace) => visit($part::Format(& $($mutable)? replace.template)),
                Action::Unserved(unserved) => {
                    for expr in & $($mutable)? unserved.exprs {
                        visit($part::Expr(expr));
                    }
                    for format in & $($mutable)? unserved.formats {
                        visit($part::Format(format));
                    }
                    if let Some(reply) = & $($mutable)? unserved.reply {
                        walk!(reply reply, visit, $part, $($mutable)?);
                    }
                }
                Action::Uri(uri) => visit($part::Format(& $($mutable)? uri.value)),
                Action::Variable(variable) => match & $($mutable)? variable.value {
                    variable::Source::Expr(expr) => visit($part::Expr(expr)),
                    variable::Source::Format(format) => visit($part::Format(format)),
                    variable::Source::Nothing => {}
                },
            }
        }
    };
    (reply $reply:expr, $visit:ident, $part:ident, $($mutable:tt)?) => {{
        if let reply::Body::Format(format) = & $($mutable)? $reply.body {
            $visit($part::Format(format));
        }
        for (_, format) in & $($mutable)? $reply.headers {
            $visit($part::Format(format));
        }
    }};
}

impl Action {
    walk!(walk_parts, Part,);
    walk!(parts_mut, PartMut, mut);

    /// Hands every expression and format of the action to `visit`, in order.
    pub fn parts<'a>(&'a self, visit: &mut dyn FnMut(Part<'a>)) {
        self.walk_parts(visit);
    }

    /// The word, when the action is not carried out yet.
    pub fn unserved(&self) -> Option<&'static str> {
        match self {
            Action::Unserved(unserved) => Some(unserved.word),
            _ => None,
        }
    }

    /// Appends what the action itself names elsewhere, its expressions left out.
    pub(crate) fn references(&self, all: &mut Vec<Reference>) {
        match self {
            Action::Answer(answer) => all.extend(answer.reply.reference()),
            Action::Capture(capture) => all.extend(capture.reference()),
            Action::Unserved(unserved) => {
                all.extend(unserved.references.iter().cloned());
                all.extend(unserved.reply.as_ref().and_then(Reply::reference));
            }
            _ => {}
        }
    }

    pub(crate) fn link_pages(&mut self, page: &mut Pages<'_>) {
        match self {
            Action::Answer(answer) => answer.reply.link_page(page),
            Action::Unserved(unserved) => {
                if let Some(reply) = &mut unserved.reply {
                    reply.link_page(page);
                }
            }
            _ => {}
        }
    }

    /// Joins the action to the list it changes.
    pub(crate) fn link_list(&mut self, store: &Store) {
        if let Action::List(list) = self {
            list.link(store);
        }
    }

    /// Does it.
    pub(crate) fn perform(&self, stage: &mut Stage<'_>) -> Step {
        match self {
            Action::Allow => Step::Stop(Verdict::Allow),
            Action::Answer(answer) => answer.perform(stage),
            Action::Capture(capture) => capture.perform(stage),
            Action::Header(header) => header.perform(stage),
            Action::List(list) => list.perform(stage),
            Action::LogLevel(level) => {
                stage.transaction.set_log_level(*level);
                Step::Next
            }
            Action::Redirect(redirect) => redirect.perform(stage),
            Action::Reject => Step::Stop(Verdict::Close),
            Action::Replace(replace) => replace.perform(stage),
            Action::Service(service) => {
                Step::Stop(Verdict::Answer(crate::run::Answer::service(*service)))
            }
            Action::Status(status) => status.perform(stage),
            Action::StrictMode(on) => {
                stage.strict = *on;
                Step::Next
            }
            // A configuration with such a rule is not started; were it run all the same, doing
            // nothing could let through what the rule would have stopped.
            Action::Unserved(_) => Step::Stop(Verdict::Answer(crate::run::Answer::fault())),
            Action::Uri(uri) => uri.perform(stage),
            Action::Variable(variable) => variable.perform(stage),
        }
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

/// An action of one word.
fn alone(word: &'static str) -> Result<Action, Error> {
    Unserved::of(word).done()
}
