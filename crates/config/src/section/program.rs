//! `program`: removed in HAProxy 3.3.

use ballast_syntax::{Diagnostic, Span};

use super::OtherDraft;
use crate::check;
use crate::keyword::{Row, Sections};

type R = Row<OtherDraft>;

const P: Sections = Sections::PROGRAM;
const REASON: &str = "belongs to a section that is not supported any more since HAProxy 3.3";
const INSTEAD: &str = "a systemd unit for the program";

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "command",
        P,
        "<command> [arguments*]",
        "the program",
        check::any,
    )
    .refused(REASON, INSTEAD),
    R::new("group", P, "<group name>", "its group", check::any).refused(REASON, INSTEAD),
    R::new(
        "option start-on-reload",
        P,
        "",
        "starts it again at each reload",
        check::any,
    )
    .with_no()
    .refused(REASON, INSTEAD),
    R::new("user", P, "<user name>", "its user", check::any).refused(REASON, INSTEAD),
];

/// The message about the section; its lines are not parsed.
pub(super) fn refusal(span: Span) -> Diagnostic {
    Diagnostic::warning(
        "refused-keyword",
        "the 'program' section is not supported any more since HAProxy 3.3",
    )
    .at(span)
    .help(format!("run the program by itself, as {INSTEAD}"))
}
