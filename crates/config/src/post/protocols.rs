//! Whether `proto` of binds and servers fits the mode of their section. The wording is HAProxy's.

use ballast_model::CheckMethod;
use ballast_syntax::Diagnostic;

use crate::context::Context;
use crate::draft::ProxyDraft;

/// Checks the lines of a proxy.
pub(super) fn check(draft: &ProxyDraft, context: &mut Context<'_>) {
    let (title, mode) = (draft.title(), draft.common.mode);
    for bind in &draft.binds {
        if let Some((protocol, span)) = bind.protocol
            && !protocol.fits_bind(mode)
        {
            let message = format!(
                "{title} : MUX protocol '{}' is not usable for 'bind {}' at [{}].",
                protocol.word(),
                bind.tls.argument,
                context.file_and_line(bind.span)
            );
            context.report(Diagnostic::alert("bad-protocol", message).at(span));
        }
    }
    for server in &draft.servers {
        let check = draft.check_of(&server.server);
        let is_http_check = matches!(check, CheckMethod::Http { .. });
        if let Some(protocol) = server.protocol
            && !protocol.fits_server(mode)
        {
            let at = server.span.map(|span| context.file_and_line(span));
            let message = format!(
                "{title} : MUX protocol '{}' is not usable for server '{}' at [{}].",
                protocol.word(),
                server.server.name,
                at.unwrap_or_default()
            );
            let mut alert = Diagnostic::alert("bad-protocol", message);
            alert.span = server.span;
            context.report(alert);
        }
        if let Some(protocol) = server.check_protocol
            && server.server.checks.enabled
            && !protocol.fits_check(is_http_check)
        {
            let message = format!(
                "config: {title}: server '{}' uses an incompatible MUX protocol for the selected \
                 check type",
                server.server.name
            );
            let mut alert = Diagnostic::alert("bad-protocol", message);
            alert.span = server.span;
            context.report(alert);
        }
    }
}
