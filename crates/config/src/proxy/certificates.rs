//! `ssl-f-use`: certificates for every bind of the frontend with `ssl`.
//!
//! Source: HAProxy configuration manual, section 4.2; the wording of errors is HAProxy's.

use ballast_model::CertificateListLine;
use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};
use crate::tls::crt_list::{PARTS, complete, part};
use crate::tls::{Options, PLAIN, VALUED};
use crate::tls_words as tls;

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The row.
pub(super) const ROWS: &[R] = &[R::new(
    "ssl-f-use",
    Sections::FRONT_ONLY,
    "[<sslbindconf> ...]*",
    "a certificate of the frontend and its settings",
    line,
)
.examples("ssl-f-use crt a.pem", "ssl-f-use")];

fn line(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let span = args.span();
    let origin = context.origin(span);
    let bases = context.bases();
    let mut line = CertificateListLine::default();
    let mut own = Options::default();
    while let Some(word) = args.next() {
        if PARTS.contains(&word) {
            let value = args.text("a value")?;
            part(&mut line, word, value, &bases, &origin).map_err(|error| args.wrong(error))?;
        } else if PLAIN.contains(&word) || VALUED.contains(&word) {
            let value = match VALUED.contains(&word) {
                true => args.next(),
                false => None,
            };
            own.set(word, value, &bases, &origin)
                .map_err(|error| args.wrong(error))?;
        } else {
            return Err(args.wrong(format!("unknown crt keyword '{word}'")));
        }
    }
    if line.certificate.path.is_empty() {
        let message = "Trying to load a certificate but no 'crt' keyword specified.";
        return Err(Diagnostic::alert("missing-argument", message).at(span));
    }
    line.options = complete(own, &origin).map_err(|error| args.wrong(error))?;
    tls::line_files_exist(&line, span, context)?;
    if draft.certificates.lines.is_empty() {
        draft.certificates.path = format!("@{}", draft.name);
        draft.certificates.origin = origin;
    }
    draft.certificates.lines.push(line);
    Ok(())
}
