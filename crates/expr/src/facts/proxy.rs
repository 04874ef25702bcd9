//! Frontends, backends and servers. Figures of limits are -1 where there is no bound; rates are
//! asked with the time of [`ProcessFacts::rate_clock_ms`](super::ProcessFacts::rate_clock_ms).

/// A frontend.
pub trait FrontendFacts {
    /// Its name (`fe_name`).
    fn name(&self) -> &str;

    /// Its number (`fe_id`).
    fn id(&self) -> i64 {
        0
    }

    /// `timeout client` in milliseconds; 0 for none (`fe_client_timeout`).
    fn client_timeout_ms(&self) -> i64 {
        0
    }
    /// The name of its default backend (`fe_defbe`).
    fn default_backend_name(&self) -> Option<&str> {
        None
    }

    /// Current connections (`fe_conn`).
    fn connections(&self) -> i64 {
        0
    }

    /// Requests in the last second (`fe_req_rate`).
    fn request_rate(&self, _now_ms: u32) -> i64 {
        0
    }

    /// Sessions in the last second (`fe_sess_rate`).
    fn session_rate(&self, _now_ms: u32) -> i64 {
        0
    }
}

/// A backend.
pub trait BackendFacts {
    /// Its name (`be_name`).
    fn name(&self) -> &str;

    /// Its number (`be_id`).
    fn id(&self) -> i64 {
        0
    }

    /// `timeout server` in milliseconds; 0 for none (`be_server_timeout`).
    fn server_timeout_ms(&self) -> i64 {
        0
    }
    /// `timeout tunnel` in milliseconds; 0 for none (`be_tunnel_timeout`).
    fn tunnel_timeout_ms(&self) -> i64 {
        0
    }
    /// The server of that name.
    fn server_named(&self, _name: &str) -> Option<&dyn ServerFacts> {
        None
    }

    /// The weight that balancing uses for the server of that name (`srv_weight`).
    fn effective_weight(&self, _server: &str) -> Option<i64> {
        None
    }

    /// Current connections (`be_conn`).
    fn connections(&self) -> i64 {
        0
    }

    /// Connections that the usable servers can still take (`be_conn_free`).
    fn connections_free(&self) -> i64 {
        0
    }

    /// Connections that the usable servers and their queues can still take (`connslots`).
    fn slots_free(&self) -> i64 {
        0
    }

    /// Requests waiting in its own and its servers' queues (`queue`).
    fn queue(&self) -> i64 {
        0
    }

    /// Average queue length per usable server (`avg_queue`).
    fn average_queue(&self) -> i64 {
        0
    }

    /// Sessions in the last second (`be_sess_rate`).
    fn session_rate(&self, _now_ms: u32) -> i64 {
        0
    }

    /// Usable servers (`nbsrv`).
    fn usable_servers(&self) -> i64 {
        0
    }
}

/// A server.
pub trait ServerFacts {
    /// Its name (`srv_name`).
    fn name(&self) -> &str;

    /// Its number (`srv_id`).
    fn id(&self) -> i64 {
        0
    }

    /// It may be used (`srv_is_up`).
    fn is_up(&self) -> bool {
        false
    }

    /// Current connections (`srv_conn`).
    fn connections(&self) -> i64 {
        0
    }

    /// Connections it can still take (`srv_conn_free`).
    fn connections_free(&self) -> i64 {
        0
    }

    /// Requests in its queue (`srv_queue`).
    fn queue(&self) -> i64 {
        0
    }

    /// Sessions in the last second (`srv_sess_rate`).
    fn session_rate(&self, _now_ms: u32) -> i64 {
        0
    }

    /// The weight of its line (`srv_iweight`).
    fn initial_weight(&self) -> i64 {
        0
    }

    /// The weight as the line or an operator set it (`srv_uweight`).
    fn weight(&self) -> i64 {
        0
    }
}
