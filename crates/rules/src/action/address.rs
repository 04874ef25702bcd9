//! `set-src`, `set-dst` and their ports.

use ballast_expr::{Error, Expr};

use super::{Action, Unserved};
use crate::args::Args;
use crate::row::Row;

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "set-dst",
        ".XXX.X..",
        "<expr>",
        "set the destination address",
        |args| one(args, "set-dst"),
    )
    .examples(
        &["set-dst dst,ipmask(24)"],
        &["set-dst", "set-dst dst ipmask(24)"],
    ),
    Row::new(
        "set-dst-port",
        ".XXX.X..",
        "<expr>",
        "set the destination port",
        |args| one(args, "set-dst-port"),
    )
    .examples(&["set-dst-port int(80)"], &["set-dst-port"]),
    Row::new(
        "set-src",
        ".XXX.X..",
        "<expr>",
        "set the source address",
        |args| one(args, "set-src"),
    )
    .examples(&["set-src src"], &["set-src", "set-src nothing"]),
    Row::new(
        "set-src-port",
        ".XXX.X..",
        "<expr>",
        "set the source port",
        |args| one(args, "set-src-port"),
    )
    .examples(&["set-src-port int(1024)"], &["set-src-port"]),
];

fn one(args: &mut Args<'_, '_, '_>, word: &'static str) -> Result<Action, Error> {
    let before = args.at();
    let expr: Expr = args.expr()?;
    if args.at() - before > 1 {
        // HAProxy takes one word here; converters must be joined to it by commas.
        return Err(
            args.error_before("expects one expression: converters follow the sample after a comma")
        );
    }
    Unserved::of(word).expr(expr).done()
}
