//! Which state file each backend reads at start.
//!
//! Source: HAProxy configuration manual, "server-state-base" and its siblings in section 3.1,
//! "load-server-state-from-file" in section 4.2.

use ballast_model::ServerStates;
use ballast_syntax::Severity;

use crate::build::Drafts;
use crate::context::Context;
use crate::draft::ProxyDraft;

/// Determines the file names, and warns about backends whose file has no name.
pub(super) fn set_file_names(drafts: &mut Drafts, context: &mut Context<'_>) {
    let base = context.declarations.state_base.clone();
    let whole = |name: &str| match &base {
        Some(base) if !name.starts_with('/') => format!("{base}/{name}"),
        _ => name.to_owned(),
    };
    let global = &mut drafts.global.server_state_file;
    *global = global.take().map(|name| whole(&name));
    let is_set = global.is_some();
    for draft in drafts.proxies.iter_mut().filter(|draft| draft.is_back()) {
        match &mut draft.back.server_states {
            None => {}
            Some(ServerStates::Local(file)) => {
                let name = draft
                    .section_state
                    .state_file
                    .as_ref()
                    .unwrap_or(&draft.name);
                *file = whole(name);
            }
            Some(ServerStates::Global) if is_set || draft.common.disabled => {}
            Some(ServerStates::Global) => {
                draft.back.server_states = None;
                let message = format!(
                    "backend '{}' configured to load server state file from global section \
                     'server-state-file' directive. Unfortunately, 'server-state-file' is not set!",
                    draft.name
                );
                let code = "missing-state-file";
                super::report(context, Severity::Warning, code, message, draft.span);
            }
        }
    }
}

/// The state file that a proxy reads; `global` is the one of the process.
pub(super) fn file<'a>(draft: &'a ProxyDraft, global: Option<&'a str>) -> Option<&'a str> {
    match draft.back.server_states.as_ref()? {
        ServerStates::Global => global,
        ServerStates::Local(file) => Some(file),
    }
}
