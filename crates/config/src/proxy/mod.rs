//! Lines of `defaults`, `frontend`, `listen` and `backend`, except for `bind` and `server`.

mod balance;
mod capture;
mod certificates;
mod check;
mod direct;
mod errors;
mod expressions;
mod forwarding;
mod general;
mod logs;
mod options;
mod persistence;
mod removed;
mod route;
mod rules;
mod stats;
mod stick_rules;
mod stick_table;
#[cfg(test)]
mod tests;
mod timeouts;
mod unimplemented;
mod words;

use std::sync::LazyLock;

use ballast_expr::{Condition, ConfigLine, Expr, Linker, LogFormat};
use ballast_model::{
    Balance, ForwardedNode, ProxyProtocol, RouteTarget, Server, SourceAddress, TransparentSource,
    UseServerTarget,
};
use ballast_syntax::{Diagnostic, SectionKind, Severity, SourceLine};

use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::keyword::{Keyword, KeywordState, Row, Sections};
use crate::table::{RowMatch, Table};

pub(crate) use capture::bound as bound_captures;
pub(crate) use stick_table::{declare as declare_table, settings as table_settings};
pub(crate) use words::{ProxySectionState, TableUser};

/// All families of proxy keywords.
const FAMILIES: &[&[Row<ProxyDraft>]] = &[
    crate::bind::LINES,
    crate::server::LINES,
    certificates::ROWS,
    general::ROWS,
    route::ROWS,
    balance::ROWS,
    persistence::ROWS,
    timeouts::ROWS,
    options::ROWS,
    forwarding::ROWS,
    check::OPTIONS,
    check::HTTP,
    check::TCP,
    logs::ROWS,
    capture::ROWS,
    errors::ROWS,
    rules::ROWS,
    stats::ROWS,
    stick_table::ROWS,
    stick_rules::ROWS,
    unimplemented::ROWS,
    direct::ROWS,
    removed::ROWS,
];

static TABLE: LazyLock<Table<ProxyDraft>> = LazyLock::new(|| Table::new(FAMILIES));

/// The rows, for the keyword table.
pub(crate) fn keywords() -> Vec<Keyword> {
    TABLE.keywords().collect()
}

/// Lowers one line of a proxy section.
///
/// # Errors
/// With the diagnostic to report.
pub(crate) fn line(
    draft: &mut ProxyDraft,
    line: &SourceLine,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let section = draft.section();
    let found = TABLE.find(line, section)?;
    let keyword = &found.row.keyword;
    if !keyword.sections.has(section) {
        let diagnostic = misplaced(draft, keyword, line, found.first);
        if diagnostic.severity == Severity::Alert
            || matches!(keyword.state, KeywordState::Refused { .. })
        {
            return Err(diagnostic);
        }
        context.report(diagnostic);
        if UNREAD_ELSEWHERE.contains(&keyword.word) {
            return Ok(());
        }
        return elsewhere(draft, &found, line, context);
    }
    let span = line.words[found.first].span();
    if keyword.http && section != Sections::DEFAULTS {
        draft.http_words.push((keyword.word, span));
    }
    found.perform(draft, line, context)
}

/// A line that is ignored must still be valid: it is applied to a proxy of the other kind, which is
/// discarded.
fn elsewhere(
    draft: &ProxyDraft,
    found: &RowMatch<ProxyDraft>,
    line: &SourceLine,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let mut other = draft.clone();
    other.kind = match draft.kind {
        SectionKind::Frontend => SectionKind::Backend,
        _ => SectionKind::Frontend,
    };
    let unimplemented = context.unimplemented.len();
    let result = found.perform(&mut other, line, context);
    context.unimplemented.truncate(unimplemented);
    result
}

/// HAProxy's message for a keyword of another kind of proxy: it ignores the line with a warning,
/// but refuses servers in frontends and everything that `defaults` cannot contain.
fn misplaced(draft: &ProxyDraft, keyword: &Keyword, line: &SourceLine, first: usize) -> Diagnostic {
    let word = keyword.word;
    let span = line.words[first].span();
    let section = draft.section();
    if section == Sections::DEFAULTS || section == Sections::HEALTHCHECK {
        let kind = draft.kind.word();
        let message = format!("'{word}' not allowed in '{kind}' section.");
        return Diagnostic::alert("misplaced-keyword", message)
            .at(span)
            .help(format!("it belongs to: {}", keyword.sections));
    }
    let lacking = if section == Sections::FRONTEND {
        "backend"
    } else {
        "frontend"
    };
    let title = draft.title();
    if matches!(word, "server" | "server-template" | "default-server") {
        let message = format!("'{word}' not allowed because {title} has no {lacking} capability.");
        return Diagnostic::alert("misplaced-keyword", message).at(span);
    }
    if REFUSED_ELSEWHERE.contains(&word) {
        let message = format!("'{word}' is not allowed because {title} is not a {lacking}");
        return Diagnostic::alert("misplaced-keyword", message)
            .at(span)
            .help(format!("it belongs to: {}", keyword.sections));
    }
    let mut message = format!("'{word}' ignored because {title} has no {lacking} capability.");
    match (word, section) {
        ("maxconn", Sections::BACKEND) => message.push_str(" Maybe you want 'fullconn' instead ?"),
        ("fullconn", Sections::FRONTEND) => message.push_str(" Maybe you want 'maxconn' instead ?"),
        _ => {}
    }
    Diagnostic::warning("misplaced-keyword", message)
        .at(span)
        .help(format!("it belongs to: {}", keyword.sections))
}

/// Keywords that route requests: ignoring them would send requests elsewhere.
const REFUSED_ELSEWHERE: &[&str] = &[
    "declare capture",
    "retry-on",
    "tcp-request connection",
    "tcp-request session",
    "tcp-response content",
    "tcp-response inspect-delay",
    "use-fcgi-app",
    "use-server",
];

/// Keywords that HAProxy does not even parse where it ignores them.
const UNREAD_ELSEWHERE: &[&str] = &[
    "log-format",
    "log-format-sd",
    "log-steps",
    "option forwarded",
];

/// Checks after all lines of the section are read.
pub(crate) fn finish(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    check::finish(draft, context);
    logs::finish(draft, context);
    rules::finish(draft, context);
    stats::finish(draft, context);
    route::finish(draft, context);
    direct::finish(draft, context);
}

/// Links every expression of the draft to its ACLs, lists and maps. A new field with expressions in
/// the draft must be added here.
pub(crate) fn link(
    draft: &mut ProxyDraft,
    section_line: ConfigLine,
    linker: &mut Linker<'_>,
) -> Vec<ballast_expr::ExpressionError> {
    let mut errors = draft.common.rules.link(linker).err().unwrap_or_default();
    let mut own_lines = draft.section_state.format_lines.clone();
    let inherited_lines = &draft.section_state.inherited_format_lines;
    let mut stick_keys: Vec<&mut Expr> = Vec::new();
    let (front, back) = (&mut draft.front, &mut draft.back);
    let mut conditions: Vec<&mut Condition> = Vec::new();
    let mut formats: Vec<&mut LogFormat> = Vec::new();
    let mut exprs: Vec<&mut Expr> = Vec::new();
    for route in &mut front.routes {
        conditions.extend(route.condition.as_mut());
        if let RouteTarget::Dynamic(format) = &mut route.target {
            formats.push(format);
        }
    }
    conditions.extend(front.monitor.fail.iter_mut());
    for rule in &mut back.use_servers {
        conditions.extend(rule.condition.as_mut());
        if let UseServerTarget::Dynamic(format) = &mut rule.target {
            formats.push(format);
        }
    }
    let persistence = back.persistence_rules.iter_mut();
    conditions.extend(persistence.map(|rule| &mut rule.condition));
    for rule in &mut back.stick_rules {
        conditions.extend(rule.condition.as_mut());
        stick_keys.push(&mut rule.key);
    }
    let log = &mut front.log;
    formats.extend(log.format.as_mut());
    formats.extend(log.structured_data.as_mut());
    formats.extend(log.error_format.as_mut());
    formats.extend(draft.common.unique_id_format.as_mut());
    conditions.extend(stats::conditions(&mut draft.common.stats));
    let (check_formats, check_exprs) = check::formats_and_expressions(&mut back.check);
    formats.extend(check_formats);
    exprs.extend(check_exprs);
    for server in &mut draft.servers {
        // What servers share must not be borrowed for writing without need.
        if has_expressions(&server.server) {
            let settings = &mut *server.server.settings;
            if let Some(proxy) = &mut settings.send_proxy {
                formats.extend(proxy.tlvs.iter_mut().map(|(_, format)| format));
            }
            exprs.extend(source_expr(&mut settings.source));
            exprs.extend(settings.pool_connection_name.as_mut());
        }
        if server.tls.sni.is_some() {
            exprs.extend(server.tls.sni.as_mut());
        }
    }
    exprs.extend(source_expr(&mut back.source));
    if let Balance::Hash(expr) = &mut back.balance {
        exprs.push(expr);
    }
    if let Some(header) = &mut back.forwarded {
        let nodes = [
            &mut header.host,
            &mut header.by,
            &mut header.by_port,
            &mut header.for_,
            &mut header.for_port,
        ];
        for node in nodes.into_iter().flatten() {
            if let ForwardedNode::Expression(expr) = node {
                exprs.push(expr);
            }
        }
    }
    for condition in conditions {
        errors.extend(condition.link(linker).err());
    }
    // Of equal texts each has a line.
    let mut line_of = |text: &str| {
        let own = own_lines.iter().position(|(known, _)| known == text);
        if let Some(at) = own {
            return Some(own_lines.remove(at).1);
        }
        let mut inherited = inherited_lines.iter().rev();
        inherited
            .find(|(known, _)| known == text)
            .map(|(_, line)| *line)
    };
    for key in stick_keys {
        if let Some(line) = line_of(&key.to_string()) {
            linker.store.set_config_line(&line);
        }
        errors.extend(key.link(linker).err());
    }
    linker.store.set_late();
    if draft.kind == SectionKind::Defaults {
        // Who uses the section uses them.
        formats.clear();
    }
    for format in formats {
        let line = line_of(&format.source).unwrap_or(section_line);
        linker.store.set_config_line(&line);
        errors.extend(format.link(linker).err());
    }
    linker.store.set_config_line(&section_line);
    for expr in exprs {
        errors.extend(expr.link(linker).err());
    }
    errors
}

/// Whether words of a server, those of TLS apart, are expressions.
fn has_expressions(server: &Server) -> bool {
    let source = server.source.as_ref();
    let source = source.and_then(|source| source.transparent.as_ref());
    let has_tlvs = |proxy: &ProxyProtocol| !proxy.tlvs.is_empty();
    server.send_proxy.as_ref().is_some_and(has_tlvs)
        || matches!(source, Some(TransparentSource::Header(_)))
        || server.pool_connection_name.is_some()
}

/// The expression of a `source` that reads the address from the request.
fn source_expr(source: &mut Option<SourceAddress>) -> Option<&mut Expr> {
    match &mut source.as_mut()?.transparent {
        Some(TransparentSource::Header(expr)) => Some(expr),
        _ => None,
    }
}
