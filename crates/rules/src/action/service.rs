//! Actions that pass work to something else: services, caches, agents, name servers, scripts.

use ballast_expr::{ExpressionError, ExpressionReference, Needs};

use crate::args::Args;
use crate::perform::{ParsedAction, Perform, boxed};
use crate::reference::RuleReference;
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::verdict::{LocalResponse, Service, Verdict};

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "use-service",
        RuleSetFlags::of(&[RuleSetKind::TcpContent, RuleSetKind::HttpRequest]),
        "<service-name>",
        "let a service answer",
        use_service,
    )
    .examples(
        &["use-service prometheus-exporter if FALSE"],
        &["use-service", "use-service nothing"],
    ),
    ActionRow::unimplemented(
        "cache-use",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
        "<name>",
        "answer from a cache",
        cache,
    )
    .examples(&["cache-use c if TRUE"], &["cache-use"]),
    ActionRow::unimplemented(
        "cache-store",
        RuleSetFlags::of(&[RuleSetKind::HttpResponse]),
        "<name>",
        "keep the response in a cache",
        cache,
    )
    .examples(&["cache-store c"], &["cache-store"]),
    ActionRow::unimplemented(
        "send-spoe-group",
        RuleSetFlags::of(&[
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
        ]),
        "<engine-name> <group-name>",
        "send a group of messages to an agent",
        |args| {
            const EXPECTS_TWO: &str = "expects 2 arguments: <engine-id> <group-id>";
            let engine = args.text(EXPECTS_TWO)?.to_owned();
            if args.is_at_end() {
                return Err(args.error(EXPECTS_TWO));
            }
            let group = args.text(EXPECTS_TWO)?.to_owned();
            args.refer_to(RuleReference::SpoeGroup { engine, group });
            Ok(())
        },
    )
    .examples(
        &["send-spoe-group e g"],
        &["send-spoe-group e", "send-spoe-group e if TRUE"],
    ),
    ActionRow::unimplemented(
        "do-resolve",
        RuleSetFlags::of(&[RuleSetKind::TcpContent, RuleSetKind::HttpRequest]),
        "(<var>,<resolvers>[,{ ipv4 | ipv6 }]) <expr>",
        "resolve a name into a variable",
        do_resolve,
    )
    .needs(Needs::RESOLUTION)
    .parens()
    .examples(
        &["do-resolve(txn.ip,dns,ipv4) src"],
        &[
            "do-resolve(txn.ip) src",
            "do-resolve(txn.ip,dns,ipv5) src",
            "do-resolve(txn.ip,dns)",
        ],
    ),
    ActionRow::unimplemented(
        "lua.",
        RuleSetFlags::of(&[
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
        ]),
        "<args>",
        "run a script's action",
        |args| {
            while !args.is_at_end() {
                args.next();
            }
            Ok(())
        },
    )
    .prefix()
    .examples(&["lua.check a b if TRUE"], &[]),
];

fn use_service(args: &mut Args<'_, '_, '_>) -> ParsedAction {
    let name = args.text("'use-service' expects a service name")?;
    match name {
        "prometheus-exporter" if args.rule_set != RuleSetKind::HttpRequest => Err(args
            .error_before("Prometheus exporter service only available on 'http-request' rulesets")),
        "prometheus-exporter" => boxed(Ok(Service::Metrics)),
        _ if name.starts_with("lua.") => Ok(args.finish_unimplemented()),
        _ => Err(args.unknown("service", ["prometheus-exporter"])),
    }
}

impl Perform for Service {
    fn perform(&self, _run_state: &mut RunState<'_>) -> ActionOutcome {
        ActionOutcome::Stop(Verdict::Respond(LocalResponse::service(*self)))
    }
}

fn cache(args: &mut Args<'_, '_, '_>) -> Result<(), ExpressionError> {
    if args.is_at_end() {
        return Err(args.error("expects a cache name"));
    }
    let name = args.text("expects a cache name")?.to_owned();
    args.refer_to(RuleReference::Cache(name));
    Ok(())
}

fn do_resolve(args: &mut Args<'_, '_, '_>) -> Result<(), ExpressionError> {
    const EXPECTS: &str = "do-resolve(<varname>,<resolvers>[,<options>]) <expr>";
    let all = args.paren_args(EXPECTS)?;
    let wrong = |at: usize, len: usize| {
        ExpressionError::new(
            format!("Expects '{EXPECTS}'. Available options are 'ipv4' and 'ipv6'"),
            at..at + len,
        )
    };
    let [(variable, at), (resolvers, resolvers_at), options @ ..] = all.as_slice() else {
        return Err(wrong(0, args.head().len()));
    };
    if resolvers.is_empty() {
        return Err(wrong(*resolvers_at, 0));
    }
    if let Some((option, at)) = options
        .iter()
        .find(|(one, _)| !matches!(*one, "ipv4" | "ipv6"))
    {
        return Err(wrong(*at, option.len()));
    }
    let name = args.variable(variable, *at)?;
    if args.is_at_end() {
        return Err(args.error(format!("Expects '{EXPECTS}'")));
    }
    args.refer_to(RuleReference::Resolvers((*resolvers).to_owned()));
    args.refer_to(RuleReference::FromExpression(
        ExpressionReference::Variable(name),
    ));
    args.expr().map(drop)
}
