//! `program`: removed in HAProxy 3.3.

use ballast_syntax::{Diagnostic, Span};

use super::PlainSectionDraft;
use crate::check;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<PlainSectionDraft>;

const REASON: &str = "belongs to a section that is not supported any more since HAProxy 3.3";
const INSTEAD: &str = "a systemd unit for the program";

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "command",
        Sections::PROGRAM,
        "<command> [arguments*]",
        "the program",
        check::any,
    )
    .refused(REASON, INSTEAD),
    R::new(
        "group",
        Sections::PROGRAM,
        "<group name>",
        "its group",
        check::any,
    )
    .refused(REASON, INSTEAD),
    R::new(
        "option start-on-reload",
        Sections::PROGRAM,
        "",
        "starts it again at each reload",
        check::any,
    )
    .with_no()
    .refused(REASON, INSTEAD),
    R::new(
        "user",
        Sections::PROGRAM,
        "<user name>",
        "its user",
        check::any,
    )
    .refused(REASON, INSTEAD),
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
