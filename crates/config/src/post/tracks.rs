//! Checks `track`: the tracked servers exist, have checks or track another server themselves, the
//! backends agree on `disable-on-404`, and there is no cycle. One pass, however long the chains are.
//!
//! Source: HAProxy configuration manual, section 5.2, "track"; the wording is HAProxy's.

use std::collections::HashMap;

use ballast_model::Server;
use ballast_syntax::Severity;

use super::index::DraftIndex;
use crate::build::Drafts;
use crate::context::Context;
use crate::draft::{ProxyDraft, ServerDraft};

/// A server that tracks another.
struct TrackingServer<'d> {
    proxy: &'d ProxyDraft,
    backend: &'d str,
    draft: &'d ServerDraft,
    /// The tracked backend and server.
    target: (&'d str, &'d str),
}

impl<'d> TrackingServer<'d> {
    fn key(&self) -> (&'d str, &'d str) {
        (self.backend, self.draft.server.name.as_str())
    }
}

/// Checks all servers.
pub(super) fn check(drafts: &Drafts, context: &mut Context<'_>) {
    let tracking_servers = tracking_servers(drafts);
    if tracking_servers.is_empty() {
        return;
    }
    let index = DraftIndex::new(drafts);
    let mut faults: Vec<_> = tracking_servers
        .iter()
        .map(|one| fault(one, &index))
        .collect();
    for last in find_cycles(&tracking_servers) {
        let (one, target) = (&tracking_servers[last], tracking_servers[last].target);
        faults[last].get_or_insert_with(|| {
            format!(
                "unable to track {}/{} as it belongs to a tracking chain looping back to {}/{}.",
                target.0, target.1, one.backend, one.draft.server.name
            )
        });
    }
    for (one, fault) in tracking_servers.iter().zip(faults) {
        let Some(fault) = fault else {
            continue;
        };
        let message = format!(
            "'server {}/{}' : {fault}",
            one.backend, one.draft.server.name
        );
        let span = one.draft.track_span.or(one.draft.span);
        super::report(context, Severity::Alert, "bad-track", message, span);
    }
}

fn tracking_servers(drafts: &Drafts) -> Vec<TrackingServer<'_>> {
    let mut tracking_servers = Vec::new();
    for draft in drafts.proxies.iter().filter(|draft| draft.is_back()) {
        for one in &draft.servers {
            let Some((backend, server)) = &one.server.track else {
                continue;
            };
            let backend = if backend.is_empty() {
                &draft.name
            } else {
                backend
            };
            tracking_servers.push(TrackingServer {
                proxy: draft,
                backend: &draft.name,
                draft: one,
                target: (backend, server),
            });
        }
    }
    tracking_servers
}

/// The error in the target of a `track`.
fn fault(one: &TrackingServer<'_>, index: &DraftIndex<'_>) -> Option<String> {
    let (backend, server) = one.target;
    let Some(proxy) = index.backend(backend) else {
        return Some(format!(
            "unable to find required proxy '{backend}' for tracking."
        ));
    };
    let Some(target) = index.server(backend, server) else {
        return Some(format!(
            "unable to find required server '{server}' for tracking."
        ));
    };
    let checks = &target.server.checks;
    let is_believed = checks.enabled || checks.agent_enabled || target.server.track.is_some();
    if !is_believed {
        return Some(format!(
            "unable to use {backend}/{server} for tracking as it does not have any check nor \
             agent enabled."
        ));
    }
    // What a 404 does to the tracked server holds for the tracking one, too. (HAProxy joins two words.)
    let disables = |draft: &ProxyDraft, server: &Server| match &server.checks.method {
        None => draft.section_state.check.disables_on_404(),
        Some(check) => check.disables_on_404(),
    };
    (disables(proxy, &target.server) != disables(one.proxy, &one.draft.server)).then(|| {
        format!(
            "unable to use {backend}/{server} fortracking: disable-on-404 option inconsistency."
        )
    })
}

/// For each cycle, the last follower in the file: it closes the cycle.
fn find_cycles(tracking_servers: &[TrackingServer<'_>]) -> Vec<usize> {
    let mut indexes = HashMap::new();
    for (index, one) in tracking_servers.iter().enumerate() {
        indexes.entry(one.key()).or_insert(index);
    }
    let next = |index: usize| indexes.get(&tracking_servers[index].target).copied();
    let mut found = Vec::new();
    // Which walk visited a server first; a walk ends where it or another one has been.
    let mut walks: Vec<Option<usize>> = vec![None; tracking_servers.len()];
    for start in 0..tracking_servers.len() {
        let mut at = Some(start);
        while let Some(index) = at.filter(|index| walks[*index].is_none()) {
            walks[index] = Some(start);
            at = next(index);
        }
        let Some(entry) = at.filter(|index| walks[*index] == Some(start)) else {
            continue;
        };
        let circle = std::iter::successors(next(entry), |index| {
            next(*index).filter(|_| *index != entry)
        });
        found.extend(circle.max());
    }
    found
}
