//! Ids of proxies, binds and servers: given ones must be unique, the others are assigned in order.
//!
//! Consistent hashing depends on the ids of servers and statistics show all ids, so they are
//! assigned as in HAProxy: by one counter that also advances for objects with their own id.

use std::collections::{HashMap, HashSet};

use ballast_model::IsExplicit;
use ballast_syntax::{Diagnostic, Severity};

use crate::build::Drafts;
use crate::context::Context;
use crate::draft::ProxyDraft;

/// Assigns all ids.
pub(super) fn assign(drafts: &mut Drafts, context: &mut Context<'_>) {
    // HAProxy's internal frontend for command sockets comes first, if there are any.
    let first = 1 + u32::from(!drafts.global.stats_sockets.is_empty());
    let mut used: HashMap<u32, String> = HashMap::new();
    for draft in &drafts.proxies {
        let Some((id, span)) = draft.id else {
            continue;
        };
        if let Some(other) = used.get(&id) {
            let message = format!(
                "{} has the same numerical ID (uuid) {id} as {other}.",
                draft.title()
            );
            context.report(Diagnostic::alert("duplicate-id", message).at(span));
        }
        used.entry(id).or_insert_with(|| draft.title());
    }
    guids(drafts, context);
    let taken = used.into_keys().collect();
    let mut allocator = IdAllocator { next: first, taken };
    for draft in &mut drafts.proxies {
        draft.common.id = allocator.assign(draft.id.map(|(id, _)| id));
        draft.common.id_is_explicit = IsExplicit(draft.id.is_some());
        binds(draft, context);
        servers(draft, context);
    }
}

/// Refuses a `guid` that something else has.
fn guids(drafts: &Drafts, context: &mut Context<'_>) {
    let mut owners: HashMap<&str, String> = HashMap::new();
    for draft in &drafts.proxies {
        let own = draft.common.guid.iter();
        let own = own.map(|guid| (guid, format!("proxy {}", draft.name), None, draft.span));
        let servers = draft.servers.iter().filter_map(|one| {
            let name = format!("{}/{}", draft.name, one.server.name);
            let guid = one.server.guid.as_ref()?;
            Some((guid, format!("server {name}"), Some(name), one.span))
        });
        for (guid, title, server, span) in own.chain(servers) {
            if let Some(owner) = owners.get(guid.as_str()) {
                let message = match server {
                    Some(name) => {
                        format!("'server {name}' : 'guid': duplicate entry with {owner}.")
                    }
                    None => format!("'guid': duplicate entry with {owner}"),
                };
                let alert = Diagnostic::alert("duplicate-id", message);
                context.report(match span {
                    Some(span) => alert.at(span),
                    None => alert,
                });
                continue;
            }
            owners.insert(guid, title);
        }
    }
}

fn binds(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    let title = draft.title();
    let mut taken = HashSet::new();
    for bind in &draft.binds {
        let Some(id) = bind.id else {
            continue;
        };
        if !taken.insert(id) {
            let message = format!("{title} : 'bind' : custom id {id} already used");
            context.report(Diagnostic::alert("duplicate-id", message).at(bind.span));
        }
    }
    let mut allocator = IdAllocator { next: 1, taken };
    for bind in &mut draft.binds {
        bind.bind.id = allocator.assign(bind.id);
    }
}

fn servers(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    let mut taken: HashMap<u32, usize> = HashMap::new();
    for (at, one) in draft.servers.iter().enumerate() {
        let id = one.server.id;
        if id == 0 {
            continue;
        }
        if let Some(other) = taken.get(&id) {
            let other = &draft.servers[*other];
            let location = other
                .span
                .map_or_else(String::new, |span| context.file_and_line(span));
            let message = format!(
                "'server {}/{}' : 'id' : custom id {id} already used at {location} ('server {}').",
                draft.name, one.server.name, other.server.name
            );
            let span = one.id_span.or(one.span);
            super::report(context, Severity::Alert, "duplicate-id", message, span);
        }
        taken.entry(id).or_insert(at);
    }
    let taken = taken.into_keys().collect();
    let mut allocator = IdAllocator { next: 1, taken };
    for one in &mut draft.servers {
        let given = (one.server.id > 0).then_some(one.server.id);
        one.server.id_is_explicit = IsExplicit(given.is_some());
        one.server.id = allocator.assign(given);
    }
}

/// Assigns the next free id.
struct IdAllocator {
    next: u32,
    taken: HashSet<u32>,
}

impl IdAllocator {
    /// The given id, or the next free one.
    fn assign(&mut self, given: Option<u32>) -> u32 {
        let id = given.unwrap_or_else(|| {
            while self.taken.contains(&self.next) {
                self.next = self.next.saturating_add(1);
            }
            self.next
        });
        self.next = self.next.saturating_add(1);
        id
    }
}
