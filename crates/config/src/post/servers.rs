//! Servers: templates, names, addresses, checks.

use std::collections::HashMap;
use std::net::IpAddr;

use ballast_model::{Address, CheckMethod, CheckRule, RetryOn};
use ballast_syntax::{Diagnostic, Severity};

use super::states;
use crate::context::Context;
use crate::draft::{ProxyDraft, ServerDraft};

/// Creates the servers of each template.
pub(super) fn expand(draft: &mut ProxyDraft) {
    if draft
        .servers
        .iter()
        .all(|server_draft| server_draft.template.is_none())
    {
        return;
    }
    let mut servers = Vec::with_capacity(draft.servers.len());
    for server_draft in std::mem::take(&mut draft.servers) {
        let Some((first, last)) = server_draft.template else {
            servers.push(server_draft);
            continue;
        };
        for number in first..=last {
            let mut copy = server_draft.clone();
            copy.server.name = format!("{}{number}", server_draft.server.name);
            if server_draft.server.id > 0 {
                copy.server.id = server_draft.server.id.saturating_add(number - first);
            }
            servers.push(copy);
        }
    }
    draft.servers = servers;
}

/// Checks the servers of a proxy and resolves their names. `global_states` is the state file of the
/// process.
pub(super) fn check(
    draft: &mut ProxyDraft,
    global_states: Option<&str>,
    context: &mut Context<'_>,
) {
    if !draft.is_back() {
        return;
    }
    report_duplicates(draft, context);
    let title = draft.title();
    let mut servers = std::mem::take(&mut draft.servers);
    let mut failed: HashMap<String, String> = HashMap::new();
    let states = states::file(draft, global_states);
    for server_draft in &mut servers {
        let last = states.and_then(|file| {
            let server = &server_draft.server.name;
            context.machine.saved_address(file, &draft.name, server)
        });
        resolve(server_draft, &title, last, &mut failed, context);
        let check_port = connects_to_port(draft.check_of(&server_draft.server));
        ports(server_draft, &title, check_port, context);
        agent(server_draft);
        checks(server_draft, (&title, &draft.name), context);
        fast_open(server_draft, &draft.name, &draft.back.retry_on, context);
        if server_draft.server.source.is_none() && draft.back.source.is_some() {
            server_draft.server.source.clone_from(&draft.back.source);
        }
    }
    draft.servers = servers;
}

/// What is sent within the first packet may be lost with it: the backend must be able to send it again.
fn fast_open(
    server_draft: &ServerDraft,
    backend: &str,
    retry_on: &RetryOn,
    context: &mut Context<'_>,
) {
    let repeats = retry_on.conn_failure && retry_on.empty_response && retry_on.response_timeout;
    if !server_draft.server.tcp_fast_open || repeats {
        return;
    }
    let message = format!(
        "'server {backend}/{}' : with 'tfo' the backend needs 'retry-on' with at least 'conn-failure', 'empty-response' \
         and 'response-timeout', or a connection that fails is not tried again",
        server_draft.server.name
    );
    let span = server_draft.span;
    super::report(context, Severity::Warning, "tfo-retries", message, span);
}

/// Reports two servers with one name, or with one cookie.
fn report_duplicates(draft: &ProxyDraft, context: &mut Context<'_>) {
    let mut names: HashMap<&str, &ServerDraft> = HashMap::new();
    let mut cookies: HashMap<&str, &ServerDraft> = HashMap::new();
    for server_draft in &draft.servers {
        let name = server_draft.server.name.as_str();
        if let Some(other) = names.get(name) {
            let line = other
                .span
                .map_or_else(String::new, |span| context.file_and_line(span));
            let message = format!(
                "{}, another server named '{name}' was already defined at {line}, please use \
                 distinct names.",
                draft.title()
            );
            super::report(
                context,
                Severity::Alert,
                "duplicate-name",
                message,
                server_draft.span,
            );
        } else {
            names.insert(name, server_draft);
        }
        let Some(cookie) = &server_draft.server.cookie else {
            continue;
        };
        if server_draft.template.is_some() {
            continue;
        }
        if let Some(other) = cookies.insert(cookie, server_draft) {
            let message = format!(
                "{} : servers '{}' and '{name}' have the same cookie '{cookie}'",
                draft.title(),
                other.server.name
            );
            super::report(
                context,
                Severity::Warning,
                "duplicate-cookie",
                message,
                server_draft.span,
            );
        }
    }
}

/// Replaces a host name by its address. A name that failed once is not resolved again.
fn resolve(
    server_draft: &mut ServerDraft,
    title: &str,
    last: Option<IpAddr>,
    failed: &mut HashMap<String, String>,
    context: &mut Context<'_>,
) {
    let Address::Name { host, .. } = &server_draft.server.address else {
        return;
    };
    let host = host.clone();
    server_draft.server.host_name = Some(host.clone());
    let result = match failed.get(&host) {
        Some(error) if server_draft.server.init_addr.is_empty() && last.is_none() => {
            Err(error.clone())
        }
        _ => crate::server::resolve(server_draft, last, context),
    };
    match result {
        Ok(Some(address)) => server_draft.server.address = address,
        // It starts without an address, until a command sets one.
        Ok(None) => {}
        Err(error) => {
            failed.insert(host, error.clone());
            let message = format!("{title} : 'server {}' : {error}.", server_draft.server.name);
            let mut diagnostic = Diagnostic::alert("unresolved-name", message)
                .help("'init-addr last,libc,none' lets the server start without an address");
            diagnostic.span = server_draft.address_span.or(server_draft.span);
            context.report(diagnostic);
        }
    }
}

/// Whether the checks of the backend set their own port.
fn connects_to_port(check: &CheckMethod) -> bool {
    let (CheckMethod::Http { rules, .. } | CheckMethod::Tcp { rules, .. }) = check else {
        return false;
    };
    let first = rules.iter().find_map(|rule| match rule {
        CheckRule::Connect(connect) => Some(connect.port.is_some()),
        _ => None,
    });
    first.unwrap_or(false)
}

/// A checked server needs a port to check.
fn ports(server_draft: &ServerDraft, title: &str, check_port: bool, context: &mut Context<'_>) {
    let checks = &server_draft.server.checks;
    let is_inet = match &server_draft.server.address {
        // No address of its own: the client's destination is used, port included.
        Address::Inet(address) => !address.ip().is_unspecified(),
        // An address that is not known yet, or will not be, may come with a port.
        _ => false,
    };
    if !checks.enabled || !is_inet || server_draft.has_port || checks.port.is_some() || check_port {
        return;
    }
    let message = format!(
        "{title}: server '{}' has neither service port nor check port nor tcp_check rule 'connect' \
         with port information.",
        server_draft.server.name
    );
    let mut diagnostic = Diagnostic::alert("missing-port", message)
        .help("give the server a port, or the check one with 'port <port>'");
    diagnostic.span = server_draft.address_span.or(server_draft.span);
    context.report(diagnostic);
}

/// `addr` and `port` also apply to the agent, unless it has its own (configuration manual, section
/// 5.2, "addr", "port").
fn agent(server_draft: &mut ServerDraft) {
    let written = &server_draft.server.checks;
    if written.address.is_none() && written.port.is_none() {
        return;
    }
    let checks = &mut server_draft.server.checks;
    checks.agent_address = checks.agent_address.take().or(checks.address.clone());
    checks.agent_port = checks.agent_port.or(checks.port);
}

/// Check options that do not fit together.
fn checks(server_draft: &ServerDraft, (title, backend): (&str, &str), context: &mut Context<'_>) {
    let checks = &server_draft.server.checks;
    let name = &server_draft.server.name;
    if checks.agent_enabled && checks.agent_port.is_none() {
        let message = format!(
            "'server {backend}/{name}' : server {name} does not have agent port. Agent check has \
             been disabled."
        );
        super::report(
            context,
            Severity::Alert,
            "missing-port",
            message,
            server_draft.span,
        );
    }
    if checks.enabled && server_draft.server.track.is_some() {
        let message = format!(
            "'server {backend}/{name}' : unable to enable checks and tracking at the same time!"
        );
        super::report(
            context,
            Severity::Alert,
            "bad-value",
            message,
            server_draft.track_span,
        );
    }
    let (max, min) = (
        server_draft.server.connection_count_max,
        server_draft.server.connection_count_min,
    );
    if max > 0 && min > max {
        let message =
            format!("{title} : 'server {name}' : minconn {min} is higher than maxconn {max}");
        super::report(
            context,
            Severity::Warning,
            "bad-value",
            message,
            server_draft.span,
        );
    }
}
