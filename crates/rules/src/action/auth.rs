//! `auth`: a request for credentials.

use std::sync::Arc;

use ballast_expr::ExpressionError;

use crate::args::Args;
use crate::perform::{Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::verdict::{LocalResponse, ResponseCause, ResponseContent, Verdict};

pub(crate) const ROWS: &[ActionRow] = &[ActionRow::new(
    "auth",
    RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
    "[ realm <realm> ]",
    "ask for a name and a password",
    |args| boxed(parse(args)),
)
.ends_the_set()
.examples(
    &["auth", "auth realm private unless FALSE"],
    &["auth realm", "auth private"],
)];

/// `auth`, with its realm: by default the name of the proxy.
#[derive(Clone, Debug, PartialEq)]
struct Auth(Option<Arc<str>>);

fn parse(args: &mut Args<'_, '_, '_>) -> Result<Auth, ExpressionError> {
    if !args.take("realm") {
        return Ok(Auth(None));
    }
    let realm = args.text("missing realm value")?;
    if !ballast_message::is_field_value_lenient(realm.as_bytes()) {
        return Err(args.error_before("a realm has no line ends"));
    }
    Ok(Auth(Some(realm.into())))
}

impl Perform for Auth {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        let mut asks_as_proxy = false;
        run_state
            .transaction
            .with_facts(&mut |facts| asks_as_proxy = facts.exchange().asks_as_proxy());
        ActionOutcome::Stop(Verdict::Respond(LocalResponse {
            cause: ResponseCause::Return,
            status: if asks_as_proxy { 407 } else { 401 },
            page: ResponseContent::Challenge(self.0.clone()),
        }))
    }
}
