//! `peers`: the processes that share stick tables.
//!
//! Source: HAProxy configuration manual, section 3.5.

use ballast_model::StickTable;
use ballast_syntax::{Diagnostic, Span};

use super::PlainSectionDraft;
use crate::address::{self, AddressForm};
use crate::args::Args;
use crate::check;
use crate::context::Context;
use crate::keyword::{Row, Sections};
use crate::proxy::{declare_table, table_settings};

/// A row of this file's table.
type R = Row<PlainSectionDraft>;

const FEATURE: &str = "peers";

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "bind",
        Sections::PEERS,
        "[<address>]:port [param*]",
        "where the local peer listens",
        check::some,
    )
    .examples("bind :10000", "bind")
    .unimplemented(FEATURE),
    R::new(
        "default-bind",
        Sections::PEERS,
        "[param*]",
        "words of the local peer's bind",
        check::any,
    )
    .examples("default-bind ssl", "")
    .unimplemented(FEATURE),
    R::new(
        "default-server",
        Sections::PEERS,
        "[param*]",
        "words of all peers",
        check::any,
    )
    .examples("default-server ssl", "")
    .unimplemented(FEATURE),
    R::new(
        "disabled",
        Sections::PEERS,
        "",
        "the section does nothing",
        check::none,
    )
    .unimplemented(FEATURE),
    R::new(
        "enabled",
        Sections::PEERS,
        "",
        "undoes disabled",
        check::none,
    )
    .unimplemented(FEATURE),
    R::new(
        "log",
        Sections::PEERS,
        "<target> <facility>",
        "where events of peers are logged",
        |_, args, context| {
            if args.take("global") {
                return args.end();
            }
            crate::log_line::target(args, context).map(|_| ())
        },
    )
    .with_no()
    .examples("log 127.0.0.1 local0", "log 127.0.0.1")
    .unimplemented(FEATURE),
    R::new(
        "peer",
        Sections::PEERS,
        "<peername> [<address>]:port [param*]",
        "a peer",
        peer,
    )
    .examples("peer a 192.0.2.1:10000", "peer")
    .unimplemented(FEATURE),
    R::new(
        "server",
        Sections::PEERS,
        "<peername> [<address>:<port>] [param*]",
        "a peer, in the words of servers",
        peer,
    )
    .examples("server a 192.0.2.1:10000", "server")
    .unimplemented(FEATURE),
    R::new(
        "shards",
        Sections::PEERS,
        "<number>",
        "parts the tables are split into",
        check::number,
    )
    .examples("shards 2", "shards x")
    .unimplemented(FEATURE),
    R::new(
        "table",
        Sections::PEERS,
        "<tablename> type <type> size <size> [param*]",
        "a table of the section",
        table,
    )
    .examples("table t type ip size 1k", "table t type ip"),
];

fn peer(
    draft: &mut PlainSectionDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let name = args.text("<name> and <addr>:<port>")?;
    if draft.members.iter().any(|known| known == name) {
        return Err(args.wrong(format!("peer '{name}' is declared twice")));
    }
    draft.members.push(name.to_owned());
    if let Some(text) = args.next() {
        // The local peer needs no address or port when a 'bind' line has them.
        address::parse(text, AddressForm::default(), &context.environment)
            .map_err(|error| args.wrong(format!("'{}' : {error}", args.keyword())))?;
    }
    args.rest();
    Ok(())
}

/// Whether the section has no other peers: then it has no effect. HAProxy drops a section that does
/// not name the local peer.
pub(super) fn is_alone(draft: &PlainSectionDraft, span: Span, context: &mut Context<'_>) -> bool {
    let local = context.local_peer();
    if !draft.members.contains(&local) {
        let message = format!(
            "Removing incomplete section 'peers {}' (no peer named '{local}').",
            draft.name
        );
        context.warn("no-local-peer", message, span);
        return true;
    }
    draft.members.len() == 1
}

fn table(
    draft: &mut PlainSectionDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let name = args.next().unwrap_or_default();
    let name = format!("{}/{name}", draft.name);
    let title = format!("peers '{}'", draft.name);
    declare_table(&name, &title, args.span(), context)?;
    let settings = table_settings("table", &name, args, context)?;
    let tables = &mut context.declarations.stick_tables;
    tables.push(StickTable { name, settings });
    Ok(())
}
