//! From drafts to the model, once every section is known.

use ballast_model::{Config, Global};
use ballast_syntax::SectionKind;

use crate::context::Context;
use crate::draft::{LogLine, ProxyDraft, append_rules};

/// Everything that was read.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    /// `global`.
    pub(crate) global: Global,
    /// What other sections gave.
    pub(crate) config: Config,
    /// Frontends, backends and listens, in order.
    pub(crate) proxies: Vec<ProxyDraft>,
}

/// The model of what was read.
pub(crate) fn build(drafts: Drafts, context: &mut Context<'_>) -> Config {
    let Drafts {
        global,
        mut config,
        proxies,
    } = drafts;
    config.global = global;
    for draft in proxies {
        proxy(draft, &mut config, context);
    }
    config
}

fn proxy(draft: ProxyDraft, config: &mut Config, context: &mut Context<'_>) {
    let (is_front, is_back) = (draft.is_front(), draft.is_back());
    let mut common = draft.common;
    let mut rules = draft.inherited;
    append_rules(&mut rules, std::mem::take(&mut common.rules));
    common.rules = rules;
    for line in draft.logs {
        match line {
            LogLine::Global(_) => common.log_targets.extend(config.global.log_targets.clone()),
            LogLine::Target(target, _) => common.log_targets.push(target),
        }
    }
    for used in draft.error_groups {
        if let Some(group) = context.names.error_groups.get(&used.group) {
            for (status, page) in group.iter() {
                let is_taken = used.statuses.is_empty() || used.statuses.contains(&status);
                if is_taken && !used.except.contains(&status) {
                    common.error_pages.set(status, page.clone());
                }
            }
        }
    }
    if is_front {
        let mut front = draft.front;
        front.common = common.clone();
        front.binds = draft.binds.into_iter().map(|bind| bind.bind).collect();
        if draft.kind == SectionKind::Listen && front.default_backend.is_none() {
            front.default_backend = Some(draft.name.clone());
        }
        config.frontends.push(front);
    }
    if is_back {
        let mut back = draft.back;
        back.common = common;
        back.servers = draft.servers.into_iter().map(|one| one.server).collect();
        for server in &mut back.servers {
            if let Some((backend, _)) = &mut server.track
                && backend.is_empty()
            {
                backend.clone_from(&back.common.name);
            }
        }
        config.backends.push(back);
    }
}
