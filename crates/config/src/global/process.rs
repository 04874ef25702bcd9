//! The process: who it is, where it lives, how it ends.

use ballast_model::Global;

use crate::keyword::{Row, Sections};

const G: Sections = Sections::GLOBAL;

type R = Row<Global>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "daemon",
        G,
        "",
        "detaches from the terminal",
        |global, args, _| {
            global.daemon = args.prefix == crate::args::Prefix::None;
            args.end()
        },
    )
    .examples("daemon", "daemon now"),
    R::new(
        "pidfile",
        G,
        "<path>",
        "file the process number is written to",
        |global, args, _| {
            global.pidfile = Some(args.text("a file name")?.to_owned());
            args.end()
        },
    )
    .examples("pidfile /run/ballast.pid", "pidfile"),
];
