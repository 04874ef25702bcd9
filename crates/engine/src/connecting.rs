//! The options of a section for connections to its servers.

use std::sync::Arc;

use ballast_message::NameCases;
use ballast_model as model;

/// The options of a backend that apply to every connection to its servers, beside those of the
/// `server` line. Connections that were opened with different options are not interchangeable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectSettings {
    /// TCP keep-alive.
    pub keepalive: model::Keepalive,
    /// `source` of the section, for servers that set none.
    pub source: Option<model::SourceAddress>,
    /// `option tcp-smart-connect`.
    pub smart_connect: bool,
    /// `option http-drop-request-trailers`.
    pub drop_request_trailers: bool,
    /// The case in which servers want field names (`option h1-case-adjust-bogus-server`).
    pub name_cases: Option<Arc<NameCases>>,
    /// The kernel's buffers.
    pub socket_buffers: SocketBuffers,
}

/// Buffer sizes asked of the kernel, in bytes; `None` leaves the kernel's own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SocketBuffers {
    /// `tune.rcvbuf.server`.
    pub receive: Option<u32>,
    /// `tune.sndbuf.server`.
    pub send: Option<u32>,
}

impl ConnectSettings {
    /// The options of `backend`. Every field of the model is named, so that nobody adds one without
    /// saying whether it affects connections.
    pub(crate) fn of(
        backend: &model::Backend,
        name_cases: Option<&Arc<NameCases>>,
        socket_buffers: SocketBuffers,
    ) -> Self {
        let model::Backend {
            // What bounds the messages is part of the limits that a connection is opened with.
            common: _,
            keepalive,
            source,
            options,
            servers: _,
            dispatch: _,
            direct: _,
            balance: _,
            hash_type: _,
            hash_balance_factor: _,
            hash_affinity: _,
            cookie: _,
            rdp_cookie_name: _,
            dynamic_cookie_key: _,
            timeouts: _,
            retry_count_max: _,
            redispatch: _,
            retry_on: _,
            full_connections: _,
            http_reuse: _,
            check: _,
            use_servers: _,
            use_server_index: _,
            persistence_rules: _,
            stick_rules: _,
            name_header: _,
            forwarded: _,
            keep_alive_queue_max: _,
            server_states: _,
        } = backend;
        let model::BackendOptions {
            smart_connect,
            drop_request_trailers,
            // Covered by `name_cases`.
            case_adjust: _,
            all_backups: _,
            persist: _,
            prefer_last_server: _,
            pretend_keepalive: _,
            check_cache: _,
            log_health_checks: _,
            transparent: _,
        } = options;
        Self {
            keepalive: *keepalive,
            source: source.clone(),
            smart_connect: *smart_connect,
            drop_request_trailers: *drop_request_trailers,
            name_cases: name_cases.cloned(),
            socket_buffers,
        }
    }
}
