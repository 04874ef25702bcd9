//! `set-header`, `add-header`, `del-header`, and the forms for a whole block of headers.

use ballast_expr::{ExpressionError, Linker, LogFormat, Regex, SearchLimit, Usage};
use ballast_message::{Field, FieldName, Fields, is_field_name};

use super::{MessageSide, header_value};
use crate::args::Args;
use crate::perform::{Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::verdict::{LocalResponse, Verdict};

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "add-header",
        RuleSetFlags::of(&[
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "<name> <fmt>",
        "append a header",
        |args| boxed(change(args, HeaderChange::Add)),
    )
    .examples(
        &["add-header x-client %[src]", "add-header x-a b if TRUE"],
        &["add-header x-client", "add-header x-a b c"],
    ),
    ActionRow::new(
        "set-header",
        RuleSetFlags::of(&[
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "<name> <fmt>",
        "replace all headers of a name by one",
        |args| boxed(change(args, HeaderChange::Set)),
    )
    .examples(
        &[
            "set-header x-client %[src]",
            "set-header x-proto https unless FALSE",
        ],
        &[
            "set-header",
            "set-header x-client",
            "set-header x %[nothing]",
            "set-header x %bad",
        ],
    ),
    ActionRow::new(
        "del-header",
        RuleSetFlags::of(&[
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "<name> [ -m { str | beg | end | sub | reg } ]",
        "remove all headers of a name",
        |args| boxed(remove(args)),
    )
    .examples(
        &[
            "del-header server",
            "del-header ^x- -m reg",
            "del-header x- -m beg if TRUE",
        ],
        &[
            "del-header",
            "del-header a -m",
            "del-header a -m int",
            "del-header ( -m reg",
        ],
    ),
    ActionRow::unimplemented(
        "add-headers-bin",
        RuleSetFlags::of(&[
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "<expr> [ prefix <str> ]",
        "append the headers that a binary sample lists",
        |args| block(args, false),
    )
    .examples(
        &["add-headers-bin var(txn.h)"],
        &["add-headers-bin", "add-headers-bin src prefix"],
    ),
    ActionRow::unimplemented(
        "set-headers-bin",
        RuleSetFlags::of(&[
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "<expr> [ prefix <str> ]",
        "set the headers that a binary sample lists",
        |args| block(args, false),
    )
    .examples(
        &["set-headers-bin var(txn.h) prefix x-"],
        &["set-headers-bin"],
    ),
    ActionRow::unimplemented(
        "del-headers-bin",
        RuleSetFlags::of(&[
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "<expr> [ prefix <str> ] [ -m { str | beg | end | sub } ]",
        "remove the headers that a binary sample lists",
        |args| block(args, true),
    )
    .examples(
        &["del-headers-bin var(txn.h) -m beg"],
        &["del-headers-bin", "del-headers-bin src -m reg"],
    ),
    ActionRow::new(
        "early-hint",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
        "<name> <fmt>",
        "add a header to a 103 response sent at once",
        |args| boxed(early_hint(args)),
    )
    .performed_as_group()
    .examples(&["early-hint link </a.css>"], &["early-hint link"]),
];

const EXPECTS_TWO: &str = "expects exactly 2 arguments";

/// A header that is set, added or removed.
#[derive(Clone, Debug, PartialEq)]
struct HeaderEdit {
    /// The name in lower case, or the pattern for names.
    name: Vec<u8>,
    how: HeaderChange,
    side: MessageSide,
    /// Its new value.
    value: Option<LogFormat>,
}

/// The kind of change.
#[derive(Clone, Debug, PartialEq)]
enum HeaderChange {
    Add(FieldName),
    /// Nothing: the name cannot be sent, and the parser has warned.
    Nothing,
    Remove(NameMatching),
    Set(FieldName),
}

/// How names are matched.
#[derive(Clone, Debug, PartialEq)]
enum NameMatching {
    Begin,
    End,
    Regex(Regex),
    Whole,
    Within,
}

fn change(
    args: &mut Args<'_, '_, '_>,
    how: fn(FieldName) -> HeaderChange,
) -> Result<HeaderEdit, ExpressionError> {
    let name = args.text(EXPECTS_TWO)?;
    let known = FieldName::new(name.as_bytes());
    if known.is_none() {
        args.warn(format!("'{name}' is not a header name: it is not sent"));
    }
    Ok(HeaderEdit {
        name: name.to_ascii_lowercase().into_bytes(),
        how: known.map_or(HeaderChange::Nothing, how),
        side: MessageSide::of(args),
        value: Some(args.format(Usage::Http, EXPECTS_TWO)?),
    })
}

fn remove(args: &mut Args<'_, '_, '_>) -> Result<HeaderEdit, ExpressionError> {
    let name = args.text("expects at least 1 argument")?;
    let name_at = args.at() - 1;
    let mut matching = NameMatching::Whole;
    if args.take("-m") {
        matching = match args.text("-m flag expects exactly 1 argument")? {
            "str" => NameMatching::Whole,
            "beg" => NameMatching::Begin,
            "end" => NameMatching::End,
            "sub" => NameMatching::Within,
            "reg" => {
                // Names are in lower case here, but the regular expression may be case-sensitive.
                NameMatching::Regex(
                    Regex::new(name, false).map_err(|error| error.in_word(name_at))?,
                )
            }
            _ => {
                let known = ["str", "beg", "end", "sub", "reg"];
                return Err(args.unknown("matching method", known));
            }
        };
    }
    Ok(HeaderEdit {
        name: name.to_ascii_lowercase().into_bytes(),
        how: HeaderChange::Remove(matching),
        side: MessageSide::of(args),
        value: None,
    })
}

fn block(args: &mut Args<'_, '_, '_>, matches: bool) -> Result<(), ExpressionError> {
    args.expr()?;
    while !args.is_at_end() {
        if args.take("prefix") {
            args.text("'prefix' expects a string")?;
        } else if matches && args.take("-m") {
            let method = args.text("-m flag expects exactly 1 argument")?;
            if !matches!(method, "str" | "beg" | "end" | "sub") {
                return Err(args.unknown("matching method", ["str", "beg", "end", "sub"]));
            }
        } else {
            break;
        }
    }
    Ok(())
}

impl Perform for HeaderEdit {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        if let Some(format) = &self.value {
            run_state.render(format);
        }
        let step = self.change(run_state);
        let writes = matches!(self.how, HeaderChange::Add(_) | HeaderChange::Set(_));
        if writes && self.name == b"host" && self.side == MessageSide::Request {
            return after_host_change(run_state, step);
        }
        step
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.value
            .iter_mut()
            .try_for_each(|value| value.link(linker))
    }
}

impl HeaderEdit {
    fn change(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        let Some((fields, text)) = fields(run_state, self.side) else {
            return ActionOutcome::Next;
        };
        match &self.how {
            HeaderChange::Nothing => ActionOutcome::Next,
            HeaderChange::Remove(matching) => {
                match matching {
                    NameMatching::Whole => fields.remove(&self.name),
                    _ => {
                        let _shared = SearchLimit::share();
                        fields.remove_matching(|field| matching.holds(field, &self.name))
                    }
                };
                ActionOutcome::Next
            }
            HeaderChange::Add(name) => match header_value(text) {
                Some(value) => fields.add_named(name, value).into(),
                None => ActionOutcome::Failed,
            },
            HeaderChange::Set(name) => match header_value(text) {
                Some(value) => fields.set_named(name, value).into(),
                None => ActionOutcome::Failed,
            },
        }
    }
}

impl NameMatching {
    fn holds(&self, field: Field<'_>, wanted: &[u8]) -> bool {
        match self {
            NameMatching::Begin => field.name.starts_with(wanted),
            NameMatching::End => field.name.ends_with(wanted),
            NameMatching::Regex(regex) => regex.is_match(field.name),
            NameMatching::Whole => field.name == wanted,
            NameMatching::Within => {
                wanted.is_empty() || field.name.windows(wanted.len()).any(|part| part == wanted)
            }
        }
    }
}

/// What remains to be done after a rule has written `Host`.
pub(super) fn after_host_change(
    run_state: &mut RunState<'_>,
    step: ActionOutcome,
) -> ActionOutcome {
    match (step, run_state.transaction.request_mut()) {
        (ActionOutcome::Next, Some(request)) => {
            super::uri::target_after_host(request, &mut run_state.workspace.out).into()
        }
        (step, _) => step,
    }
}

/// The fields that a rule changes, and the text rendered before.
fn fields<'s>(
    run_state: &'s mut RunState<'_>,
    side: MessageSide,
) -> Option<(&'s mut Fields, &'s [u8])> {
    let fields = match side {
        MessageSide::Request => run_state.transaction.request_mut()?.fields_mut(),
        MessageSide::Response => run_state.transaction.response_mut()?.fields_mut(),
    };
    Some((fields, &run_state.workspace.text))
}

/// `early-hint`: a field of a 103 response.
#[derive(Clone, Debug, PartialEq)]
struct EarlyHint {
    /// In lower case.
    name: Vec<u8>,
    value: LogFormat,
}

fn early_hint(args: &mut Args<'_, '_, '_>) -> Result<EarlyHint, ExpressionError> {
    let name = args.text(EXPECTS_TWO)?.to_ascii_lowercase().into_bytes();
    let value = args.format(Usage::Http, EXPECTS_TWO)?;
    Ok(EarlyHint { name, value })
}

impl Perform for EarlyHint {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        run_state.render(&self.value);
        let group = run_state.group;
        if let Some(value) = header_value(&run_state.workspace.text)
            && is_field_name(&self.name)
        {
            let added = run_state.transaction.early_hint(group, &self.name, value);
            if added.is_err() {
                // As in HAProxy, whatever `strict-mode` says.
                return ActionOutcome::Stop(Verdict::Respond(LocalResponse::fault()));
            }
        }
        ActionOutcome::Next
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.value.link(linker)
    }
}
