//! `set-src`, `set-dst` and their ports.

use ballast_expr::Error;

use crate::args::Args;
use crate::row::ActionRow;
use crate::ruleset::{RuleSet, RuleSetFlags};

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::unimplemented(
        "set-dst",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::HttpRequest,
        ]),
        "<expr>",
        "set the destination address",
        one,
    )
    .examples(
        &["set-dst dst,ipmask(24)"],
        &["set-dst", "set-dst dst ipmask(24)"],
    ),
    ActionRow::unimplemented(
        "set-dst-port",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::HttpRequest,
        ]),
        "<expr>",
        "set the destination port",
        one,
    )
    .examples(&["set-dst-port int(80)"], &["set-dst-port"]),
    ActionRow::unimplemented(
        "set-src",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::HttpRequest,
        ]),
        "<expr>",
        "set the source address",
        one,
    )
    .examples(&["set-src src"], &["set-src", "set-src nothing"]),
    ActionRow::unimplemented(
        "set-src-port",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::HttpRequest,
        ]),
        "<expr>",
        "set the source port",
        one,
    )
    .examples(&["set-src-port int(1024)"], &["set-src-port"]),
];

fn one(args: &mut Args<'_, '_, '_>) -> Result<(), Error> {
    let before = args.at();
    args.expr()?;
    if args.at() - before > 1 {
        // HAProxy reads one word here; converters must be joined to it by commas.
        return Err(
            args.error_before("expects one expression: converters follow the sample after a comma")
        );
    }
    Ok(())
}
