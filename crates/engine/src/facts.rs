//! What expressions may ask of frontends, backends and servers.

use std::time::Duration;

use ballast_expr::{BackendFacts, FrontendFacts, ServerFacts};

use crate::{Backend, Frontend, Server};

fn number(value: u32) -> i64 {
    i64::from(value)
}

/// A timeout in milliseconds; 0 for none.
fn timeout_ms(timeout: Option<Duration>) -> i64 {
    timeout.map_or(0, |timeout| {
        i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX)
    })
}

impl FrontendFacts for Frontend {
    fn name(&self) -> &str {
        self.name()
    }

    fn id(&self) -> i64 {
        number(self.model.common.id)
    }

    fn client_timeout_ms(&self) -> i64 {
        timeout_ms(self.model.timeouts.client)
    }

    fn default_backend_name(&self) -> Option<&str> {
        self.model.default_backend.as_deref()
    }

    fn connections(&self) -> i64 {
        number(self.state.sessions.current())
    }

    fn request_rate(&self, now_ms: u32) -> i64 {
        number(self.state.request_rate.per_second(now_ms))
    }

    fn session_rate(&self, now_ms: u32) -> i64 {
        number(self.state.session_rate.per_second(now_ms))
    }
}

impl BackendFacts for Backend {
    fn name(&self) -> &str {
        self.name()
    }

    fn id(&self) -> i64 {
        number(self.model.common.id)
    }

    fn server_timeout_ms(&self) -> i64 {
        timeout_ms(self.model.timeouts.server)
    }

    fn tunnel_timeout_ms(&self) -> i64 {
        timeout_ms(self.model.timeouts.tunnel)
    }

    fn server_named(&self, name: &str) -> Option<&dyn ServerFacts> {
        let server_index = self.server_named(name)?;
        Some(&*self.servers[server_index])
    }

    fn effective_weight(&self, server: &str) -> Option<i64> {
        let server = &self.servers[self.server_named(server)?];
        Some(number(self.effective_weight(server)))
    }

    fn connections(&self) -> i64 {
        number(self.state.sessions.current())
    }

    fn connections_free(&self) -> i64 {
        free(self, false)
    }

    fn slots_free(&self) -> i64 {
        free(self, true)
    }

    fn queue(&self) -> i64 {
        let servers = self
            .servers
            .iter()
            .map(|server| server.state.queue.current());
        number(self.state.queue.current()) + servers.map(i64::from).sum::<i64>()
    }

    fn average_queue(&self) -> i64 {
        let usable = BackendFacts::usable_servers(self);
        if usable == 0 {
            return self.queue() * 999;
        }
        (self.queue() + usable - 1) / usable
    }

    fn session_rate(&self, now_ms: u32) -> i64 {
        number(self.state.session_rate.per_second(now_ms))
    }

    fn usable_servers(&self) -> i64 {
        let (active, backups) = self.usable_servers();
        i64::try_from(if active > 0 { active } else { backups }).unwrap_or(i64::MAX)
    }
}

/// Places that the usable servers have left, with their queues when `queues`; -1 when any of
/// them has no bound.
fn free(backend: &Backend, queues: bool) -> i64 {
    let mut sum = 0;
    for server in backend
        .servers
        .iter()
        .filter(|server| server.state.is_usable())
    {
        let (max, queue_max) = (
            server.model.connection_count_max,
            server.model.queue_count_max,
        );
        if max == 0 || (queues && queue_max == 0) {
            return -1;
        }
        sum += number(max.saturating_sub(server.state.sessions.current()));
        if queues {
            sum += number(queue_max.saturating_sub(server.state.queue.current()));
        }
    }
    sum
}

impl ServerFacts for Server {
    fn name(&self) -> &str {
        self.name()
    }

    fn id(&self) -> i64 {
        number(self.model.id)
    }

    fn is_up(&self) -> bool {
        self.state.is_usable()
    }

    fn connections(&self) -> i64 {
        number(self.state.sessions.current())
    }

    fn connections_free(&self) -> i64 {
        match self.model.connection_count_max {
            0 => -1,
            max => number(max.saturating_sub(self.state.sessions.current())),
        }
    }

    fn queue(&self) -> i64 {
        number(self.state.queue.current())
    }

    fn session_rate(&self, now_ms: u32) -> i64 {
        number(self.state.session_rate.per_second(now_ms))
    }

    fn initial_weight(&self) -> i64 {
        i64::from(self.model.weight)
    }

    fn weight(&self) -> i64 {
        number(self.state.weight())
    }
}
