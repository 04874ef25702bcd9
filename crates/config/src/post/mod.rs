//! Checks that need the whole configuration: names without a target, modes that do not fit, missing
//! lines. The wording is HAProxy's where it has one.

mod ids;
mod index;
mod modes;
mod names;
mod protocols;
mod servers;
mod states;
mod threads;
mod tls;
mod tracks;
mod write_to;

use std::collections::HashMap;
use std::sync::Arc;

use ballast_model::{CheckMethod, Global};
use ballast_syntax::{Diagnostic, Severity, Span};

use crate::build::Drafts;
use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::proxy::bound_captures;

/// Checks everything and completes what depends on other sections: ids, resolved names, options
/// that the mode does not allow.
pub(crate) fn check(drafts: &mut Drafts, context: &mut Context<'_>) {
    for draft in &mut drafts.proxies {
        servers::expand(draft);
    }
    ids::assign(drafts, context);
    names::check(drafts, context);
    names::note_asked_servers(drafts);
    write_to::check(context);
    states::set_file_names(drafts, context);
    for draft in &mut drafts.proxies {
        take_healthchecks(draft, &drafts.healthchecks);
        modes::check(draft, context);
        protocols::check(draft, context);
        bound_captures(draft, drafts.global.tune.cookie_bytes, context);
        servers::check(draft, drafts.global.server_state_file.as_deref(), context);
        tls::binds(draft, context);
        tls::servers(draft, context);
        check_external_check(draft, &drafts.global, context);
        warn_of_missing_lines(draft, context);
    }
    tracks::check(drafts, context);
    threads::check(drafts, context);
    drafts.global.tls.bases = context.bases();
}

/// Gives servers the checks of the sections that they name.
fn take_healthchecks(draft: &mut ProxyDraft, known: &HashMap<String, Arc<CheckMethod>>) {
    for one in &mut draft.servers {
        if let Some(name) = &one.healthcheck {
            one.server.checks.method = known.get(name).cloned();
        }
    }
}

/// What `option external-check` requires in the global section.
fn check_external_check(draft: &ProxyDraft, global: &Global, context: &mut Context<'_>) {
    let is_external = |check: &CheckMethod| matches!(check, CheckMethod::External { .. });
    let mut servers = draft.servers.iter();
    let runs = is_external(&draft.back.check)
        || servers.any(|one| is_external(draft.check_of(&one.server)));
    if draft.common.disabled || !runs {
        return;
    }
    let title = draft.title();
    if !global.external_check {
        let message = format!(
            "{title} : 'option external-check' unable to find required 'global.external-check'."
        );
        let mut alert = Diagnostic::alert("missing-keyword", message)
            .help("write 'external-check' into the global section");
        alert.span = draft.span;
        context.report(alert);
    }
    if !global.fork_allowed {
        let message = format!(
            "{title} : 'insecure-fork-wanted' not enabled in the global section, 'option \
             external-check' will likely fail."
        );
        let code = "missing-keyword";
        report(context, Severity::Warning, code, message, draft.span);
    }
}

/// Warns about what a proxy usually needs.
fn warn_of_missing_lines(draft: &ProxyDraft, context: &mut Context<'_>) {
    if draft.common.disabled {
        return;
    }
    let title = draft.title();
    // If there was an error, the missing bind may be in the line with the error.
    if draft.is_front() && draft.binds.is_empty() && !context.has_alerts() {
        let message = format!(
            "{title} has no 'bind' directive. Please declare it as a backend if this was intended."
        );
        report(context, Severity::Warning, "no-bind", message, draft.span);
    }
    let mut missing = Vec::new();
    if draft.is_front() && !draft.binds.is_empty() && draft.front.timeouts.client.is_none() {
        missing.push("'timeout client'");
    }
    if draft.is_back() && !draft.servers.is_empty() {
        let timeouts = &draft.back.timeouts;
        if timeouts.connect.is_none() {
            missing.push("'timeout connect'");
        }
        if timeouts.server.is_none() {
            missing.push("'timeout server'");
        }
    }
    // If there was an error, they may be in the line with the error.
    if !missing.is_empty() && !context.has_alerts() {
        let message = format!("missing timeouts for {title}.");
        let mut diagnostic = Diagnostic::warning("missing-timeouts", message)
            .note("without them a silent peer holds its connection for ever")
            .help(format!("set {}", missing.join(", ")));
        diagnostic.span = draft.span;
        context.report(diagnostic);
    }
    if draft.is_front()
        && draft.is_back()
        && draft.front.default_backend.is_some()
        && !draft.servers.is_empty()
    {
        let message =
            format!("'default_backend' of {title} takes all traffic away from its own servers");
        report(
            context,
            Severity::Warning,
            "unused-servers",
            message,
            draft.default_backend_span,
        );
    }
}

/// Reports a message at a place, which may be unknown.
pub(super) fn report(
    context: &mut Context<'_>,
    severity: Severity,
    code: &'static str,
    message: String,
    span: Option<Span>,
) {
    let mut diagnostic = Diagnostic::new(severity, code, message);
    diagnostic.span = span;
    context.report(diagnostic);
}
