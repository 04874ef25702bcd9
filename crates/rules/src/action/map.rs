//! `set-map`, `del-map`, `add-acl`, `del-acl`: lists and maps changed by traffic.

use ballast_expr::{Error, Usage};

use super::{Action, Unserved};
use crate::args::Args;
use crate::row::Row;

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "set-map",
        ".....XXX",
        "(<file-name>) <key fmt> <value fmt>",
        "set the value of a key of a map",
        |args| keyed(args, "set-map", true),
    )
    .parens()
    .examples(
        &["set-map(a.map) %[src] x"],
        &["set-map(a.map) %[src]", "set-map a b"],
    ),
    Row::new(
        "del-map",
        ".....XXX",
        "(<file-name>) <key fmt>",
        "remove a key from a map",
        |args| keyed(args, "del-map", false),
    )
    .parens()
    .examples(
        &["del-map(a.map) %[src]"],
        &["del-map(a.map)", "del-map(a.map) a b"],
    ),
    Row::new(
        "add-acl",
        ".....XX.",
        "(<file-name>) <key fmt>",
        "add a pattern to a list",
        |args| keyed(args, "add-acl", false),
    )
    .parens()
    .examples(&["add-acl(a.lst) %[src]"], &["add-acl(a.lst)"]),
    Row::new(
        "del-acl",
        ".....XX.",
        "(<file-name>) <key fmt>",
        "remove a pattern from a list",
        |args| keyed(args, "del-acl", false),
    )
    .parens()
    .examples(&["del-acl(a.lst) %[src]"], &["del-acl(a.lst)"]),
];

fn keyed(args: &mut Args<'_, '_, '_>, word: &'static str, valued: bool) -> Result<Action, Error> {
    args.parens(&format!("{word}(<file-name>)"))?;
    let missing = if valued {
        "expects exactly 2 arguments"
    } else {
        "expects exactly 1 arguments"
    };
    let mut unserved = Unserved::of(word).format(args.format(Usage::Http, missing)?);
    if valued {
        unserved = unserved.format(args.format(Usage::Http, missing)?);
    }
    unserved.done()
}
