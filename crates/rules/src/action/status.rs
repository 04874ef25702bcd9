//! `set-status`.

use ballast_expr::ExpressionError;

use super::integer;
use crate::args::Args;
use crate::perform::{Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::setting::ExchangeSetting;

pub(crate) const ROWS: &[ActionRow] = &[ActionRow::new(
    "set-status",
    RuleSetFlags::of(&[RuleSetKind::HttpResponse, RuleSetKind::HttpAfterResponse]),
    "<status> [ reason <str> ]",
    "set the status of the response",
    |args| boxed(parse(args)),
)
.examples(
    &["set-status 431", "set-status 503 reason \"Slow Down\""],
    &[
        "set-status",
        "set-status 99",
        "set-status 200 reason",
        "set-status 200 OK",
    ],
)];

/// A status and its reason phrase.
#[derive(Clone, Debug, PartialEq)]
struct Status {
    status: u16,
    /// The usual one if `None`.
    reason: Option<String>,
}

fn parse(args: &mut Args<'_, '_, '_>) -> Result<Status, ExpressionError> {
    if args.is_at_end() {
        return Err(
            args.error("expects 1 argument: <status>; or 3 arguments: <status> reason <fmt>")
        );
    }
    let status = integer(
        args,
        100..=999,
        "expects an integer status code between 100 and 999",
    )?;
    let mut reason = None;
    if args.peek() == Some("reason") && args.rest().get(1).is_some_and(|word| !word.is_empty()) {
        args.take("reason");
        let text = args.text("expects a reason")?;
        if !ballast_message::is_field_value_lenient(text.as_bytes()) {
            return Err(args.error_before("a reason cannot hold line ends"));
        }
        reason = Some(text.to_owned());
    }
    Ok(Status { status, reason })
}

impl Perform for Status {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        let Some(response) = run_state.transaction.response_mut() else {
            return ActionOutcome::Next;
        };
        let set = match &self.reason {
            Some(reason) => response.set_status_and_reason(self.status, reason.as_bytes()),
            None => response.set_status(self.status),
        };
        if set.is_ok() {
            let setting = ExchangeSetting::ResponseStatus(self.status);
            run_state.transaction.set(setting);
        }
        set.into()
    }
}
