//! Health checks: probes servers, judges the results, and applies the consequences.
//!
//! ```text
//!   schedule: when ──► program: what (tcp, http, protocol, external, agent)
//!                          │ Verdict
//!   observe (traffic) ─────┤
//!   set server ────────────┴──► HealthController ──► Health ──► Effects: balancing, queues, pools,
//!                                                      lines, servers that track this one
//! ```
//!
//! One task probes one server, on the worker that its number selects. [`Health`] decides the state
//! of the server; the [`HealthController`] is the only place that applies the consequences, whatever
//! the source.
//!
//! Source: configuration manual, sections 4.2 (`http-check`, `tcp-check`, `option *chk`) and
//! 5.2 (`check` and its siblings); texts compared with what HAProxy logs.
//!
//! [`Health`]: ballast_health::Health

mod agent;
mod controller;
mod event_log;
mod expect;
mod external;
mod facts;
mod http;
mod probe_run;
mod program;
mod protocol;
mod request;
mod schedule;
mod tcp;
#[cfg(test)]
mod tests;
mod variables;

use std::cell::RefCell;
use std::sync::Arc;

use ballast_engine::Backend;

pub use ballast_health::Observation;
pub use controller::HealthController;
pub use event_log::{BackendSets, EventLog, ServerEvent, ServerEvents};
pub use schedule::{Probes, start};

thread_local! {
    static THREAD_CONTROLLER: RefCell<Option<Arc<HealthController>>> = const { RefCell::new(None) };
}

/// Sets the controller that [`observe`] uses on this worker.
fn set_thread_controller(controller: &Arc<HealthController>) {
    THREAD_CONTROLLER.set(Some(Arc::clone(controller)));
}

/// Reports what traffic showed of a server (`observe`): connections that succeeded or failed, good
/// and bad responses. Costs one look at the configuration when the server does not observe. May be
/// called for every exchange, on any worker where [`start`] was called.
pub fn observe(backend: &Backend, server_index: usize, what: Observation) {
    let Some(server) = backend.servers.get(server_index) else {
        return;
    };
    if server.model.checks.observe.is_none() {
        return;
    }
    if let Some(controller) = THREAD_CONTROLLER.with_borrow(Option::clone) {
        controller.note_observation(backend, server, what);
    }
}

/// An unpredictable number to spread things out; not for secrets.
fn random_number() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}
