//! `stick` rules: which server a request sticks to.
//!
//! Source: HAProxy configuration manual, section 4.2, "stick match" and its siblings.

use ballast_expr::Phase;
use ballast_model::{StickAction, StickRule};
use ballast_syntax::Diagnostic;

use super::expressions;
use super::words::{TableUse, TableUser};
use crate::args::Args;
use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

const ARGS: &str = "<expression> [ table <name> ] [ { if | unless } <condition> ]";

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "stick on",
        Sections::BACK_ONLY,
        ARGS,
        "stay with the server by something in the request",
        |draft, args, context| rule(draft, args, context, StickAction::On),
    )
    .examples("stick on src table b", "stick on nosuch"),
    R::new(
        "stick match",
        Sections::BACK_ONLY,
        ARGS,
        "look up the server by something in the request",
        |draft, args, context| rule(draft, args, context, StickAction::Match),
    )
    .examples("stick match src", "stick match"),
    R::new(
        "stick store-request",
        Sections::BACK_ONLY,
        ARGS,
        "remember the server by something in the request",
        |draft, args, context| rule(draft, args, context, StickAction::StoreRequest),
    )
    .examples("stick store-request src", "stick store-request"),
    R::new(
        "stick store-response",
        Sections::BACK_ONLY,
        ARGS,
        "remember the server by something in its response",
        |draft, args, context| rule(draft, args, context, StickAction::StoreResponse),
    )
    .examples("stick store-response res.cook(SID)", "stick store-response"),
];

fn rule(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    action: StickAction,
) -> Result<(), Diagnostic> {
    let phase = match action {
        StickAction::StoreResponse => Phase::StickStore,
        _ => Phase::SelectServer,
    };
    let key = expressions::expr(draft, args, context, "a fetch method", &[phase])?;
    let place = (key.to_string(), context.config_line(args.span()));
    draft.section_state.format_lines.push(place);
    let (table, span) = if args.take("table") {
        let name = args.word("a table after 'table'")?;
        (name.text().to_owned(), name.span())
    } else {
        (draft.name.clone(), args.span())
    };
    context.declarations.sticky_tables.push(table.clone());
    draft.section_state.table_uses.push(TableUse {
        table: table.clone(),
        span,
        key: key.kind,
        user: TableUser::Stick,
    });
    let condition = expressions::condition(draft, args, context, &[phase])?;
    draft.back.stick_rules.push(StickRule {
        action,
        key,
        table,
        condition,
    });
    Ok(())
}
