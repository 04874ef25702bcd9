//! `http-errors`: groups of error pages.
//!
//! Source: HAProxy configuration manual, section 3.8.

use ballast_model::ErrorPage;

use super::PlainSectionDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<PlainSectionDraft>;

/// The statuses that may have a page.
const STATUSES: &[i64] = &[
    200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 414, 421, 422, 425, 429, 431, 500, 501, 502,
    503, 504,
];

/// The rows.
pub(super) const ROWS: &[R] = &[R::new(
    "errorfile",
    Sections::HTTP_ERRORS,
    "<code> <file>",
    "the page of a status",
    |draft, args, context| {
        let code = args.number("a status code", 100..=599)?;
        if !STATUSES.contains(&code) {
            let message = format!("status code {code} not handled by 'errorfile'. Error customization will be ignored.");
            context.warn("unused-page", message, args.span());
            args.rest();
            return Ok(());
        }
        let word = args.word("a status code and a file")?;
        let bytes = context.read(word.text(), "errorfile", word.span())?;
        let page = ErrorPage::Raw {
            file: word.text().to_owned(),
            bytes,
        };
        let status = u16::try_from(code).expect("statuses fit 16 bits");
        draft.pages.set(status, page);
        args.end()
    },
)
.examples("errorfile 503 /etc/errors/503.http", "errorfile 503")];
