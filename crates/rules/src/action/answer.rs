//! `deny`, `return`, `tarpit`: responses made by rules.

use ballast_expr::{ExpressionError, Linker, Needs};

use super::reply::Reply;
use crate::args::Args;
use crate::perform::{Pages, Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::verdict::ResponseCause;

const REPLY: &str = "[ status <code> ] [ content-type <type> ] [ default-errorfiles | errorfile \
     <file> | errorfiles <name> | file <file> | lf-file <file> | string <str> | lf-string <fmt> ] \
     [ hdr <name> <fmt> ]*";

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "deny",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest, RuleSetKind::HttpResponse]),
        "[ deny_status <code> ] ...",
        "refuse the request, or the response, with an error",
        |args| boxed(deny(args)),
    )
    .ends_the_set()
    .examples(
        &[
            "deny",
            "deny deny_status 429 if { src 10.0.0.1 }",
            "deny status 404 content-type text/plain string gone hdr x-why %[src]",
        ],
        &[
            "deny deny_status 1000",
            "deny deny_status",
            "deny deny_status 418",
            "deny string gone",
            "deny now",
        ],
    ),
    ActionRow::new(
        "return",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest, RuleSetKind::HttpResponse]),
        REPLY,
        "answer in place of a server",
        |args| {
            boxed(Reply::parse(args, 200).map(|reply| RuleResponse {
                cause: ResponseCause::Return,
                reply,
            }))
        },
    )
    .ends_the_set()
    .examples(
        &[
            "return",
            "return status 200 content-type text/plain lf-string \"hello %[src]\"",
            "return status 503 default-errorfiles",
        ],
        &[
            "return status 600",
            "return status 200 string hello",
            "return hdr x-one",
            "return content-type a string b string c",
        ],
    ),
    ActionRow::new(
        "tarpit",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
        "[ deny_status <code> ] ...",
        "keep the client waiting, then refuse its request",
        |args| {
            boxed(refusal(args, 500).map(|reply| RuleResponse {
                cause: ResponseCause::Tarpit,
                reply,
            }))
        },
    )
    .ends_the_set()
    .needs(Needs::TIME)
    .examples(
        &["tarpit", "tarpit deny_status 429"],
        &["tarpit status 600", "tarpit 500"],
    ),
];

/// A deny, a return or a tarpit.
#[derive(Clone, Debug, PartialEq)]
struct RuleResponse {
    cause: ResponseCause,
    reply: Reply,
}

fn deny(args: &mut Args<'_, '_, '_>) -> Result<RuleResponse, ExpressionError> {
    let status = if args.rule_set.is_response() {
        502
    } else {
        403
    };
    Ok(RuleResponse {
        cause: ResponseCause::Deny,
        reply: refusal(args, status)?,
    })
}

/// Without arguments, or with `deny_status` alone, the proxy's error page is used.
fn refusal(args: &mut Args<'_, '_, '_>, status: u16) -> Result<Reply, ExpressionError> {
    if args.is_at_end() {
        return Ok(Reply::page(status));
    }
    Reply::parse(args, status)
}

impl Perform for RuleResponse {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        self.reply.make(run_state, self.cause)
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.reply.link(linker)
    }

    fn link_pages(&mut self, pages: &mut Pages<'_>) {
        self.reply.link_page(pages);
    }
}
