//! `allow`, `accept`, `reject`, `strict-mode`: what is done with the rules themselves.

use ballast_expr::Error;

use super::Action;
use crate::args::Args;
use crate::row::Row;

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "accept",
        "XXXXX...",
        "",
        "pass over the rest of the rules of this place",
        |_| Ok(Action::Allow),
    )
    .examples(&["accept", "accept if TRUE"], &["accept now"]),
    Row::new(
        "allow",
        ".....XXX",
        "",
        "pass over the rest of the rules of this place",
        |_| Ok(Action::Allow),
    )
    .examples(&["allow", "allow unless FALSE"], &["allow it", "allow if"]),
    Row::new(
        "reject",
        "XXXXXX..",
        "",
        "close the connection without an answer",
        |_| Ok(Action::Reject),
    )
    .examples(&["reject", "reject if { src 10.0.0.0/8 }"], &["reject 403"]),
    Row::new(
        "strict-mode",
        ".....XXX",
        "{ on | off }",
        "whether a failed rewrite ends the exchange",
        strict_mode,
    )
    .examples(
        &["strict-mode on", "strict-mode off if TRUE"],
        &["strict-mode", "strict-mode maybe"],
    ),
];

fn strict_mode(args: &mut Args<'_, '_, '_>) -> Result<Action, Error> {
    match args.text("expects exactly 1 arguments")? {
        "on" => Ok(Action::StrictMode(true)),
        "off" => Ok(Action::StrictMode(false)),
        other => Err(args.error_before(format!(
            "Unexpected value '{other}'. Only 'on' and 'off' are supported"
        ))),
    }
}
