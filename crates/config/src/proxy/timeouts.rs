//! `timeout ...`: how long each side may be silent.
//!
//! Source: HAProxy configuration manual, section 4.2, "timeout".

use std::time::Duration;

use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "timeout client",
        Sections::FRONT,
        "<time>",
        "longest silence of a client",
        |draft, args, context| {
            let time = limit(args, context)?;
            draft.front.timeouts.client = time;
            Ok(())
        },
    )
    .examples("timeout client 30s", "timeout client 30x"),
    R::new(
        "timeout server",
        Sections::BACK,
        "<time>",
        "longest silence of a server",
        |draft, args, context| {
            let time = limit(args, context)?;
            draft.back.timeouts.server = time;
            Ok(())
        },
    )
    .examples("timeout server 30s", "timeout server"),
    R::new(
        "timeout connect",
        Sections::BACK,
        "<time>",
        "longest wait for a connection to a server",
        |draft, args, context| {
            let time = limit(args, context)?;
            draft.back.timeouts.connect = time;
            Ok(())
        },
    )
    .examples("timeout connect 5s", "timeout connect 5s 6s"),
];

/// A time; zero is none.
fn limit(args: &mut Args<'_>, _: &mut Context<'_>) -> Result<Option<Duration>, Diagnostic> {
    let time = args.time("a time")?;
    args.end()?;
    Ok((!time.is_zero()).then_some(time))
}
