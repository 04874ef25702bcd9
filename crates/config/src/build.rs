//! Builds the model from drafts, once every section has been read.

use std::collections::HashMap;
use std::sync::Arc;

use ballast_expr::ConditionIndex;
use ballast_model::{
    CheckMethod, Config, ErrorPage, Global, LogProfile, LogTarget, ProxyCommon, StickTable,
};
use ballast_stick::{DataType, StoredType};
use ballast_syntax::{Diagnostic, SectionKind, Span};

use crate::context::Context;
use crate::draft::{ErrorGroupUse, LogLine, ProxyDraft};

/// All drafts.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    /// `global`.
    pub(crate) global: Global,
    /// Results of the other sections.
    pub(crate) config: Config,
    /// Frontends, backends and listens, in order.
    pub(crate) proxies: Vec<ProxyDraft>,
    /// `log-profile` sections.
    pub(crate) log_profiles: Vec<Arc<LogProfile>>,
    /// `healthcheck` sections, by name.
    pub(crate) healthchecks: HashMap<String, Arc<CheckMethod>>,
}

/// The model of all drafts.
pub(crate) fn build(drafts: Drafts, context: &mut Context<'_>) -> Config {
    let Drafts {
        mut global,
        mut config,
        proxies,
        log_profiles,
        healthchecks: _,
    } = drafts;
    let profiles = LogProfiles(log_profiles);
    profiles.complete(&mut global.log_targets);
    config.global = Arc::new(global);
    config.tables = tables(context);
    for draft in proxies {
        proxy(draft, (&mut config, &profiles), context);
    }
    config
}

/// The `log-profile` sections.
struct LogProfiles(Vec<Arc<LogProfile>>);

impl LogProfiles {
    fn of_name(&self, name: &str) -> Option<Arc<LogProfile>> {
        self.0.iter().find(|known| known.name == name).cloned()
    }

    /// Gives the targets that name a profile what it says. One that there is not says nothing.
    fn complete(&self, targets: &mut [LogTarget]) {
        for target in targets {
            let name = target.profile.as_ref().map(|profile| &profile.name);
            target.profile = name.and_then(|name| self.of_name(name));
        }
    }
}

/// The stick tables. Those in which rules store servers do so.
fn tables(context: &mut Context<'_>) -> Vec<Arc<StickTable>> {
    let declarations = &mut context.declarations;
    let mut tables = std::mem::take(&mut declarations.stick_tables);
    for table in &mut tables {
        if declarations.sticky_tables.contains(&table.name) {
            for data_type in [DataType::ServerId, DataType::ServerKey] {
                table.settings.store(StoredType::plain(data_type));
            }
        }
    }
    tables.into_iter().map(Arc::new).collect()
}

fn proxy(
    draft: ProxyDraft,
    (config, profiles): (&mut Config, &LogProfiles),
    context: &mut Context<'_>,
) {
    let (is_front, is_back) = (draft.is_front(), draft.is_back());
    let mut common = draft.common;
    let mut rules = draft.inherited_rules;
    rules.append(std::mem::take(&mut common.rules));
    rules.make_indexes();
    common.rules = rules;
    let mut missing = Vec::new();
    common.rules.link_pages(|group, status| {
        let page = page_bytes(group, status, context);
        let is_missing = page.is_none() && !missing.contains(&(group.to_owned(), status));
        if is_missing && context.declarations.error_groups.contains_key(group) {
            missing.push((group.to_owned(), status));
        }
        page
    });
    warn_of_missing_pages(&common.name, &missing, draft.span, context);
    common.rules.link_profiles(|name| profiles.of_name(name));
    let has_format = is_front && draft.front.log.format.is_some();
    logs(&mut common, draft.logs, has_format, &config.global, context);
    profiles.complete(&mut common.log_targets);
    for used in &draft.error_groups {
        pages(&mut common, used, context);
    }
    if is_front {
        let mut front = draft.front;
        let routes = front.routes.iter().map(|route| route.condition.as_ref());
        front.route_index = ConditionIndex::new(routes).into();
        // As in HAProxy, a frontend inherits no `timeout connect` to wait for instead.
        if is_back {
            let connect = draft.back.timeouts.connect;
            front.timeouts.tarpit = front.timeouts.tarpit.or(connect);
        }
        front.common = common.clone();
        front.binds = draft.binds.into_iter().map(|bind| bind.bind).collect();
        if draft.kind == SectionKind::Listen && front.default_backend.is_none() {
            front.default_backend = Some(draft.name.clone());
        }
        config.frontends.push(Arc::new(front));
    }
    if is_back {
        let mut back = draft.back;
        let rules = back.use_servers.iter().map(|rule| rule.condition.as_ref());
        back.use_server_index = ConditionIndex::new(rules).into();
        back.common = common;
        let name = &back.common.name;
        // Not collected: the model would keep the memory of the drafts.
        back.servers.reserve_exact(draft.servers.len());
        for one in draft.servers {
            let mut server = one.server;
            let is_own = |track: &(String, String)| track.0.is_empty();
            if server.track.as_ref().is_some_and(is_own)
                && let Some((backend, _)) = &mut server.track
            {
                backend.clone_from(name);
            }
            back.servers.push(Arc::new(server));
        }
        config.backends.push(Arc::new(back));
    }
}

/// The log targets of a proxy; `log global` is replaced by those of the global section.
fn logs(
    common: &mut ProxyCommon,
    lines: Vec<LogLine>,
    has_format: bool,
    global: &Global,
    context: &mut Context<'_>,
) {
    let mut nothing = None;
    for line in lines {
        match line {
            LogLine::Global(span) => {
                nothing = global.log_targets.is_empty().then_some(span);
                common.log_targets.extend(global.log_targets.clone());
            }
            LogLine::Target(target) => common.log_targets.push(target),
        }
    }
    if let Some(span) = nothing
        && has_format
        && common.log_targets.is_empty()
    {
        let message = format!(
            "log format ignored for proxy '{}' since it has no log address",
            common.name
        );
        let warning = Diagnostic::warning("no-log-target", message)
            .at(span)
            .help("the global section has no 'log' line");
        context.report(warning);
    }
}

/// The pages of one `errorfiles` line.
fn pages(common: &mut ProxyCommon, used: &ErrorGroupUse, context: &mut Context<'_>) {
    let Some(group) = context.declarations.error_groups.get(&used.group) else {
        return;
    };
    for (status, page) in group.iter() {
        let is_wanted = used.statuses.is_empty() || used.statuses.contains(&status);
        if is_wanted && !used.except.contains(&status) {
            common.error_pages.set(status, page.clone());
        }
    }
    let mut asked = used.statuses.iter();
    if let Some(status) = asked.find(|status| group.page(**status).is_none()) {
        let message = format!(
            "proxy '{}' : status '{status}' not declared in http-errors section '{}'",
            common.name, used.group
        );
        context.warn("missing-page", message, used.span);
    }
}

/// Warns of rules that take a page from a group that has none for their status.
fn warn_of_missing_pages(
    proxy: &str,
    missing: &[(String, u16)],
    span: Option<Span>,
    context: &mut Context<'_>,
) {
    for (group, status) in missing {
        let message = format!(
            "Proxy '{proxy}': status '{status}' referenced by an http reply not declared in \
             http-errors section '{group}'."
        );
        let mut warning = Diagnostic::warning("missing-page", message);
        warning.span = span;
        context.report(warning);
    }
}

/// The whole response that a group has for a status.
fn page_bytes(group: &str, status: u16, context: &Context<'_>) -> Option<Arc<[u8]>> {
    match context.declarations.error_groups.get(group)?.page(status)? {
        ErrorPage::Raw { bytes, .. } => Some(bytes.as_slice().into()),
        ErrorPage::Location { .. } | ErrorPage::Reply(_) => None,
    }
}
