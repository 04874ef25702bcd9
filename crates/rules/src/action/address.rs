//! `set-src`, `set-dst` and their ports.

use ballast_expr::Error;

use crate::args::Args;
use crate::row::ActionRow;

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::later(
        "set-dst",
        ".XXX.X..",
        "<expr>",
        "set the destination address",
        one,
    )
    .examples(
        &["set-dst dst,ipmask(24)"],
        &["set-dst", "set-dst dst ipmask(24)"],
    ),
    ActionRow::later(
        "set-dst-port",
        ".XXX.X..",
        "<expr>",
        "set the destination port",
        one,
    )
    .examples(&["set-dst-port int(80)"], &["set-dst-port"]),
    ActionRow::later(
        "set-src",
        ".XXX.X..",
        "<expr>",
        "set the source address",
        one,
    )
    .examples(&["set-src src"], &["set-src", "set-src nothing"]),
    ActionRow::later(
        "set-src-port",
        ".XXX.X..",
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
