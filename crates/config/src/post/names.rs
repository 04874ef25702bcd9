//! References by name: backends, servers, sections, user lists.

use std::collections::{BTreeSet, HashSet};

use ballast_expr::{ExpressionReference, kind_of_keys, missing_cast};
use ballast_model::{Mode, RouteTarget, UseServerTarget, Userlist};
use ballast_syntax::{Diagnostic, SectionKind, Severity, Span};

use super::index::DraftIndex;
use crate::build::Drafts;
use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::proxy::TableUser;

/// The backends that some frontend sends exchanges to.
#[derive(Default)]
struct RoutedBackends {
    names: BTreeSet<String>,
    /// A rule computes the name: it may be any backend.
    has_dynamic: bool,
}

/// Checks every reference.
pub(super) fn check(drafts: &Drafts, context: &mut Context<'_>) {
    let mut routed = RoutedBackends::default();
    let index = DraftIndex::new(drafts);
    for draft in &drafts.proxies {
        check_routes((drafts, &index), draft, &mut routed, context);
        check_use_servers(draft, context);
        check_references((drafts, &index), draft, context);
        check_tables(draft, context);
    }
    report_unused_backends(drafts, &routed, context);
    check_sections(&index, context);
}

fn back_names(drafts: &Drafts) -> impl Iterator<Item = &str> {
    let backs = drafts.proxies.iter().filter(|draft| draft.is_back());
    backs.map(|draft| draft.name.as_str())
}

/// The targets of `use_backend` and `default_backend`.
fn check_routes(
    (drafts, index): (&Drafts, &DraftIndex<'_>),
    draft: &ProxyDraft,
    routed: &mut RoutedBackends,
    context: &mut Context<'_>,
) {
    if !draft.is_front() {
        return;
    }
    let static_routes = draft.front.routes.iter().enumerate();
    let static_routes = static_routes.filter_map(|(at, route)| match &route.target {
        RouteTarget::Static(name) => Some((
            name.as_str(),
            "use_backend",
            draft.route_spans.get(at).copied(),
        )),
        RouteTarget::Dynamic(_) => None,
    });
    let is_dynamic = |route: &ballast_model::Route| matches!(route.target, RouteTarget::Dynamic(_));
    routed.has_dynamic |= draft.front.routes.iter().any(is_dynamic);
    let default = draft.front.default_backend.as_deref();
    let default = default.map(|name| (name, "default_backend", draft.default_backend_span));
    for (name, word, span) in static_routes.chain(default) {
        routed.names.insert(name.to_owned());
        let Some(target) = index.backend(name) else {
            let message = format!(
                "Proxy '{}': unable to find required {word}: '{name}'.",
                draft.name
            );
            let hint = context.hint(name, back_names(drafts));
            report_unknown_name(context, "unknown-backend", message, span, hint);
            continue;
        };
        let (front_mode, back_mode) = (draft.common.mode, target.common.mode);
        if front_mode == back_mode {
            continue;
        }
        let rule = if word == "use_backend" {
            "in a 'use_backend' rule"
        } else {
            "as the default backend"
        };
        // A TCP session switches to HTTP when its backend is in HTTP mode.
        if front_mode == Mode::Tcp && back_mode == Mode::Http {
            continue;
        }
        let message = format!(
            "{} {} tries to use incompatible {} {} {rule} (see 'mode').",
            front_mode.word(),
            draft.title(),
            back_mode.word(),
            target.title(),
        );
        super::report(context, Severity::Alert, "mode-mismatch", message, span);
    }
}

/// The targets of `use-server`.
fn check_use_servers(draft: &ProxyDraft, context: &mut Context<'_>) {
    if !draft.is_back() || draft.back.use_servers.is_empty() {
        return;
    }
    let servers = draft.servers.iter();
    let known: HashSet<&str> = servers.map(|one| one.server.name.as_str()).collect();
    for (at, rule) in draft.back.use_servers.iter().enumerate() {
        let UseServerTarget::Static(name) = &rule.target else {
            continue;
        };
        if known.contains(name.as_str()) {
            continue;
        }
        let message = format!(
            "{} : unable to find server '{name}' referenced in a 'use-server' rule.",
            draft.title()
        );
        let span = draft.use_server_spans.get(at).copied();
        let names = draft.servers.iter().map(|one| one.server.name.as_str());
        let hint = context.hint(name, names);
        report_unknown_name(context, "unknown-server", message, span, hint);
    }
}

/// Notes the servers that the expressions of each proxy name.
pub(super) fn note_asked_servers(drafts: &mut Drafts) {
    for draft in &mut drafts.proxies {
        let references = draft.section_state.references.iter();
        let mut asked: Vec<_> = references
            .filter_map(|(reference, _)| match reference {
                ExpressionReference::Server { backend, server } => {
                    let backend = backend.as_ref().unwrap_or(&draft.name);
                    Some((backend.clone(), server.clone()))
                }
                _ => None,
            })
            .collect();
        asked.sort();
        asked.dedup();
        draft.common.asked_servers = asked;
    }
}

/// The proxies, servers, tables and user lists that expressions name.
fn check_references(
    (drafts, index): (&Drafts, &DraftIndex<'_>),
    draft: &ProxyDraft,
    context: &mut Context<'_>,
) {
    let title = draft.title();
    for (reference, span) in &draft.section_state.references {
        let span = Some(*span);
        match reference {
            ExpressionReference::Backend(name) if name.is_empty() && !draft.is_back() => {
                report_missing_capability(context, draft, "backend", span);
            }
            ExpressionReference::Frontend(name) if name.is_empty() && !draft.is_front() => {
                report_missing_capability(context, draft, "frontend", span);
            }
            ExpressionReference::Backend(name)
                if !name.is_empty() && index.backend(name).is_none() =>
            {
                let message = format!(
                    "unable to find backend '{name}' referenced in an expression of {title}."
                );
                let hint = context.hint(name, back_names(drafts));
                report_unknown_name(context, "unknown-backend", message, span, hint);
            }
            ExpressionReference::Frontend(name)
                if !name.is_empty() && !index.has_frontend(name) =>
            {
                let message = format!(
                    "unable to find frontend '{name}' referenced in an expression of {title}."
                );
                let fronts = drafts.proxies.iter().filter(|one| one.is_front());
                let names = fronts.map(|one| one.name.as_str());
                let hint = context.hint(name, names);
                report_unknown_name(context, "unknown-frontend", message, span, hint);
            }
            ExpressionReference::Server { backend, server } => {
                let owner = match backend {
                    Some(name) => Some(name),
                    None => draft.is_back().then_some(&draft.name),
                };
                let known = owner.is_some_and(|owner| index.server(owner, server).is_some());
                if !known {
                    let path = match backend {
                        Some(backend) => format!("{backend}/{server}"),
                        None => server.clone(),
                    };
                    let message = format!(
                        "unable to find server '{path}' referenced in an expression of {title}."
                    );
                    let servers = drafts.proxies.iter().filter(|one| {
                        one.is_back() && backend.as_ref().is_none_or(|name| one.name == *name)
                    });
                    let names = servers.flat_map(|one| &one.servers);
                    let names = names.map(|one| one.server.name.as_str());
                    // Of a backend that is unknown itself, that is what was meant.
                    let hint = match backend {
                        Some(name) if index.backend(name).is_none() => {
                            context.hint(name, back_names(drafts))
                        }
                        _ => context.hint(server, names),
                    };
                    report_unknown_name(context, "unknown-server", message, span, hint);
                }
            }
            ExpressionReference::Table(name) => {
                let name = if name.is_empty() { &draft.name } else { name };
                if !context.declarations.tables.contains_key(name) {
                    let message = format!(
                        "unable to find table '{name}' referenced in an expression of {title}."
                    );
                    let names = context.declarations.tables.keys();
                    let hint = context.hint(name, names.map(String::as_str));
                    report_unknown_name(context, "unknown-table", message, span, hint);
                }
            }
            ExpressionReference::Userlist(name)
                if !context.declarations.declares(SectionKind::Userlist, name) =>
            {
                let message = format!("unable to find userlist '{name}' referenced in {title}.");
                report_unknown_section(context, (SectionKind::Userlist, name), message, span);
            }
            ExpressionReference::Groups { list, groups } => {
                let lists = &drafts.config.userlists;
                if let Some(list) = lists.iter().find(|one| one.name == *list) {
                    check_groups((list, groups), &title, span, context);
                }
            }
            _ => {}
        }
    }
}

/// The groups that an ACL compares with: without one it compares with nothing that a user can have.
fn check_groups(
    (list, groups): (&Userlist, &[String]),
    title: &str,
    span: Option<Span>,
    context: &mut Context<'_>,
) {
    if groups.is_empty() {
        let message = format!("http_auth_group() of {title}: no groups specified.");
        super::report(context, Severity::Alert, "unknown-group", message, span);
    }
    for group in groups {
        if !list.groups.contains(group) {
            let message = format!("http_auth_group() of {title}: invalid group '{group}'.");
            let hint = context.hint(group, list.groups.iter().map(String::as_str));
            report_unknown_name(context, "unknown-group", message, span, hint);
        }
    }
}

/// The tables that rules look keys up in: whether they exist, and take such keys.
fn check_tables(draft: &ProxyDraft, context: &mut Context<'_>) {
    let proxy = &draft.name;
    for used in &draft.section_state.table_uses {
        let (name, span) = (&used.table, Some(used.span));
        let mut tables = context.declarations.stick_tables.iter();
        let Some(table) = tables.find(|table| table.name == *name) else {
            let message = match &used.user {
                TableUser::Track(rule) => {
                    format!("Proxy '{proxy}': unable to find table '{name}' referenced by {rule}.")
                }
                TableUser::Stick => {
                    format!("Proxy '{proxy}': unable to find stick-table '{name}'.")
                }
            };
            let names = context.declarations.tables.keys();
            let hint = context.hint(name, names.map(String::as_str));
            report_unknown_name(context, "unknown-table", message, span, hint);
            continue;
        };
        if used.key.casts_to(kind_of_keys(table.settings.key)) {
            continue;
        }
        let wanted = kind_of_keys(table.settings.key);
        let types = format!(
            "the key is {} and the table's are {wanted}{}",
            used.key,
            missing_cast(used.key, wanted)
        );
        let message = match &used.user {
            TableUser::Track(rule) => format!(
                "Proxy '{proxy}': stick-table '{name}' uses a type incompatible with the '{rule}' \
                 rule: {types}."
            ),
            TableUser::Stick => format!(
                "Proxy '{proxy}': type of fetch not usable with type of stick-table '{name}': \
                 {types}."
            ),
        };
        super::report(context, Severity::Alert, "wrong-key-type", message, span);
    }
}

/// Reports an expression that refers to its own proxy, which is no `what`.
fn report_missing_capability(
    context: &mut Context<'_>,
    draft: &ProxyDraft,
    what: &str,
    span: Option<Span>,
) {
    let message = format!(
        "proxy '{}', referenced in an expression of {}, has not {what} capability: name a {what}",
        draft.name,
        draft.title()
    );
    super::report(context, Severity::Alert, "wrong-proxy", message, span);
}

/// The sections that keywords name.
fn check_sections(index: &DraftIndex<'_>, context: &mut Context<'_>) {
    let uses = std::mem::take(&mut context.declarations.references);
    for (kind, name, keyword, span) in uses {
        // HAProxy creates a resolvers section of this name by itself.
        let is_builtin = kind == SectionKind::Resolvers && name == "default";
        let is_known = is_builtin
            || context.declarations.declares(kind, &name)
            || (kind == SectionKind::Backend && index.backend(&name).is_some());
        if is_known {
            continue;
        }
        let message = format!("'{keyword}' : unable to find {} '{name}'", kind.word());
        if kind == SectionKind::Ring {
            // HAProxy accepts it; nothing would be logged.
            super::report(
                context,
                Severity::Warning,
                "unknown-section",
                message,
                Some(span),
            );
            continue;
        }
        report_unknown_section(context, (kind, &name), message, Some(span));
    }
}

/// A remark about backends that are never used.
fn report_unused_backends(drafts: &Drafts, routed: &RoutedBackends, context: &mut Context<'_>) {
    if routed.has_dynamic {
        return;
    }
    for draft in &drafts.proxies {
        if draft.kind == SectionKind::Backend
            && !draft.servers.is_empty()
            && !routed.names.contains(&draft.name)
        {
            let message = format!("{} is named by no frontend", draft.title());
            super::report(
                context,
                Severity::Diag,
                "unused-backend",
                message,
                draft.span,
            );
        }
    }
}

/// Reports a section that is not declared, with the most similar name.
fn report_unknown_section(
    context: &mut Context<'_>,
    (kind, name): (SectionKind, &str),
    message: String,
    span: Option<Span>,
) {
    let code = match kind {
        SectionKind::Userlist => "unknown-userlist",
        _ => "unknown-section",
    };
    let hint = context.hint(name, context.declarations.sections.of_kind(kind));
    report_unknown_name(context, code, message, span, hint);
}

/// Reports a name that nothing has, with the most similar one.
fn report_unknown_name(
    context: &mut Context<'_>,
    code: &'static str,
    message: String,
    span: Option<Span>,
    hint: Option<String>,
) {
    let mut diagnostic = Diagnostic::alert(code, message);
    diagnostic.span = span;
    diagnostic.help = hint.map(|hint| format!("did you mean '{hint}'?"));
    context.report(diagnostic);
}
