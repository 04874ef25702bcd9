//! Numbers that a command may set in place of the configuration's.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number set by command, or none: then the configuration's is used. It outlives every
/// generation.
#[derive(Debug)]
pub struct OverrideCell(AtomicU64);

/// Larger than every number that can be set.
const NOT_OVERRIDDEN: u64 = u64::MAX;

impl Default for OverrideCell {
    fn default() -> Self {
        Self(AtomicU64::new(NOT_OVERRIDDEN))
    }
}

impl OverrideCell {
    /// What was set.
    pub fn value(&self) -> Option<u32> {
        u32::try_from(self.0.load(Ordering::Relaxed)).ok()
    }

    /// The number that was set, else `written`.
    pub fn or(&self, written: u32) -> u32 {
        self.value().unwrap_or(written)
    }

    /// Sets it; `None` returns to the configuration's number.
    pub fn set(&self, value: Option<u32>) {
        let value = value.map_or(NOT_OVERRIDDEN, u64::from);
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Limits per second of the whole process, as operators set them (`set rate-limit`).
#[derive(Debug, Default)]
pub struct RateLimits {
    /// Connections, over `maxconnrate`; 0 is no limit.
    pub connections: OverrideCell,
    /// Sessions, over `maxsessrate`; 0 is no limit.
    pub sessions: OverrideCell,
    /// TLS sessions, over `maxsslrate`; 0 is no limit.
    pub ssl_sessions: OverrideCell,
    /// Bytes to compress, over `maxcomprate`; 0 is no limit.
    pub compression_bytes: OverrideCell,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ballast_model as model;

    use super::*;
    use crate::{GateState, Generation, Process, Registry};

    #[test]
    fn overrides_outlive_the_next_generation() {
        let address = |text: &str| model::Address::Inet(text.parse().unwrap());
        let mut backend = model::Backend {
            servers: vec![Arc::new(model::Server::new(
                "s".into(),
                address("127.0.0.1:1"),
            ))],
            dynamic_cookie_key: Some("written".into()),
            ..model::Backend::default()
        };
        backend.common.name = "b".into();
        let mut frontend = model::Frontend::default();
        frontend.common.name = "f".into();
        let config = Arc::new(model::Config {
            backends: vec![Arc::new(backend)],
            frontends: vec![Arc::new(frontend)],
            ..model::Config::default()
        });
        let registry = Registry::new(1, Arc::new(Process::new(1, 100)));
        let first = Generation::compile(1, Arc::clone(&config), &registry);
        let (front, back) = (&first.frontends[0], &first.backends[0]);
        back.change_dynamic_cookies(|cookies| cookies.on = Some(true));
        let written = back.servers[0].cookie().clone().unwrap();
        registry.process().override_connection_limit(Some(7));
        front.state.override_connection_limit(Some(5));
        front.state.gate.set(GateState::Paused);
        let state = &back.servers[0].state;
        state.set_current_address(Some(address("127.0.0.9:9")), None);
        state.change_checks(|checks| checks.check_port = Some(99));
        state.limit_connections(Some(3));
        back.change_dynamic_cookies(|cookies| cookies.key = Some("hand".into()));
        let set = back.servers[0].cookie().clone().unwrap();
        assert_ne!(written, set);

        // Each line is changed: nothing of the first generation is taken over as it is.
        let mut next = (*config).clone();
        Arc::make_mut(&mut next.frontends[0]).backlog = Some(5);
        let changed = Arc::make_mut(&mut next.backends[0]);
        changed.retry_count_max = 9;
        Arc::make_mut(&mut changed.servers[0]).queue_count_max = 9;
        let second = Generation::compile_next(Arc::new(next), &registry, &first);
        second.take_over(Some(&first), &registry);
        assert!(!Arc::ptr_eq(&second.frontends[0], front));
        assert!(!Arc::ptr_eq(
            &second.backends[0].servers[0],
            &back.servers[0]
        ));
        let (front, back) = (&second.frontends[0], &second.backends[0]);
        let server = &back.servers[0];
        assert_eq!(registry.process().connection_count_max(), 7);
        assert_eq!(front.state.connection_count_max(), 5);
        assert_eq!(front.state.gate.state(), GateState::Paused);
        assert_eq!(
            server.state.current_address().address,
            Some(address("127.0.0.9:9"))
        );
        assert_eq!(server.checks().port, Some(99));
        assert_eq!(server.state.connection_count_max(&server.model), 3);
        assert_eq!(server.cookie().clone(), Some(Arc::clone(&set)));
        assert_eq!(back.server_of_cookie(set.as_bytes()), Some(0));
        assert_eq!(back.server_of_cookie(written.as_bytes()), None);
    }

    #[test]
    fn an_override_goes_before_the_configuration_until_it_is_dropped() {
        let limit = OverrideCell::default();
        assert_eq!((limit.value(), limit.or(7)), (None, 7));
        for set in [0, 5, u32::MAX] {
            limit.set(Some(set));
            assert_eq!(limit.or(7), set);
        }
        limit.set(None);
        assert_eq!(limit.or(7), 7);
    }
}
