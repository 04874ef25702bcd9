// tidy: table, because a metric is a row.
//! What the metrics exporter tells: names, kinds, and which column each is read from.
//!
//! The names are those of HAProxy's exporter, so that dashboards and alerts need no change.

/// The format of a number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ValueFormat {
    /// As it is; `NaN` where there is none.
    Number,
    /// As it is, of HTTP proxies alone.
    Http,
    /// As it is, or 0, of servers that are checked.
    CheckCode,
    /// As it is, or 0, of servers that have an agent.
    AgentCode,
    /// Milliseconds, as seconds.
    Milliseconds,
    /// The same, not at all where there is none.
    KnownMilliseconds,
    /// Responses by class: the columns from `hrsp_1xx` to `hrsp_other`.
    Responses,
    /// One line per state, 1 for the one that is.
    Status,
    /// One line per outcome of a check, 1 for the last.
    CheckStatus,
    /// The same of the agent.
    AgentStatus,
    /// Servers by their state.
    ServersByStatus,
    /// Servers by the outcome of their last check.
    ServersByCheck,
}

/// One metric of proxies, listeners, servers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetricColumn {
    /// The name after `haproxy_frontend_` and its siblings.
    pub(crate) name: &'static str,
    /// The column it is read from.
    pub(crate) column: &'static str,
    /// Whether it only ever grows.
    pub(crate) counts: bool,
    pub(crate) format: ValueFormat,
}

const fn row(
    name: &'static str,
    column: &'static str,
    counts: bool,
    format: ValueFormat,
) -> MetricColumn {
    MetricColumn {
        name,
        column,
        counts,
        format,
    }
}

const fn gauge(name: &'static str, column: &'static str) -> MetricColumn {
    row(name, column, false, ValueFormat::Number)
}

const fn counter(name: &'static str, column: &'static str) -> MetricColumn {
    row(name, column, true, ValueFormat::Number)
}

/// A counter that HTTP proxies alone have.
const fn http(name: &'static str, column: &'static str) -> MetricColumn {
    row(name, column, true, ValueFormat::Http)
}

const fn seconds(name: &'static str, column: &'static str) -> MetricColumn {
    row(name, column, false, ValueFormat::Milliseconds)
}

pub(crate) static FRONTEND: &[MetricColumn] = &[
    gauge("current_sessions", "scur"),
    gauge("max_sessions", "smax"),
    gauge("limit_sessions", "slim"),
    counter("sessions_total", "stot"),
    counter("bytes_in_total", "bin"),
    counter("bytes_out_total", "bout"),
    counter("requests_denied_total", "dreq"),
    counter("responses_denied_total", "dresp"),
    counter("request_errors_total", "ereq"),
    row("status", "status", false, ValueFormat::Status),
    gauge("current_session_rate", "rate"),
    gauge("limit_session_rate", "rate_lim"),
    gauge("max_session_rate", "rate_max"),
    row(
        "http_responses_total",
        "hrsp_1xx",
        true,
        ValueFormat::Responses,
    ),
    row(
        "http_requests_rate_max",
        "req_rate_max",
        false,
        ValueFormat::Http,
    ),
    http("http_requests_total", "req_tot"),
    http("http_comp_bytes_in_total", "comp_in"),
    http("http_comp_bytes_out_total", "comp_out"),
    http("http_comp_bytes_bypassed_total", "comp_byp"),
    http("http_comp_responses_total", "comp_rsp"),
    gauge("connections_rate_max", "conn_rate_max"),
    counter("connections_total", "conn_tot"),
    http("intercepted_requests_total", "intercepted"),
    counter("denied_connections_total", "dcon"),
    counter("denied_sessions_total", "dses"),
    counter("failed_header_rewriting_total", "wrew"),
    http("http_cache_lookups_total", "cache_lookups"),
    http("http_cache_hits_total", "cache_hits"),
    counter("internal_errors_total", "eint"),
    counter("req_bytes_in_total", "reqbin"),
    counter("req_bytes_out_total", "reqbout"),
    counter("res_bytes_in_total", "resbin"),
    counter("res_bytes_out_total", "resbout"),
];

pub(crate) static LISTENER: &[MetricColumn] = &[
    gauge("current_sessions", "scur"),
    gauge("max_sessions", "smax"),
    gauge("limit_sessions", "slim"),
    counter("sessions_total", "stot"),
    counter("bytes_in_total", "bin"),
    counter("bytes_out_total", "bout"),
    counter("requests_denied_total", "dreq"),
    counter("responses_denied_total", "dresp"),
    counter("request_errors_total", "ereq"),
    row("status", "status", false, ValueFormat::Status),
    counter("connections_total", "conn_tot"),
    counter("denied_connections_total", "dcon"),
    counter("denied_sessions_total", "dses"),
    counter("failed_header_rewriting_total", "wrew"),
    counter("internal_errors_total", "eint"),
];

pub(crate) static BACKEND: &[MetricColumn] = &[
    gauge("current_queue", "qcur"),
    gauge("max_queue", "qmax"),
    gauge("current_sessions", "scur"),
    gauge("max_sessions", "smax"),
    gauge("limit_sessions", "slim"),
    counter("sessions_total", "stot"),
    counter("bytes_in_total", "bin"),
    counter("bytes_out_total", "bout"),
    counter("requests_denied_total", "dreq"),
    counter("responses_denied_total", "dresp"),
    counter("connection_errors_total", "econ"),
    counter("response_errors_total", "eresp"),
    counter("retry_warnings_total", "wretr"),
    counter("redispatch_warnings_total", "wredis"),
    row("status", "status", false, ValueFormat::Status),
    gauge("weight", "weight"),
    gauge("active_servers", "act"),
    gauge("backup_servers", "bck"),
    counter("check_up_down_total", "chkdown"),
    gauge("check_last_change_seconds", "lastchg"),
    counter("downtime_seconds_total", "downtime"),
    counter("loadbalanced_total", "lbtot"),
    gauge("current_session_rate", "rate"),
    gauge("max_session_rate", "rate_max"),
    row(
        "http_responses_total",
        "hrsp_1xx",
        true,
        ValueFormat::Responses,
    ),
    http("http_requests_total", "req_tot"),
    counter("client_aborts_total", "cli_abrt"),
    counter("server_aborts_total", "srv_abrt"),
    http("http_comp_bytes_in_total", "comp_in"),
    http("http_comp_bytes_out_total", "comp_out"),
    http("http_comp_bytes_bypassed_total", "comp_byp"),
    http("http_comp_responses_total", "comp_rsp"),
    gauge("last_session_seconds", "lastsess"),
    seconds("queue_time_average_seconds", "qtime"),
    seconds("connect_time_average_seconds", "ctime"),
    seconds("response_time_average_seconds", "rtime"),
    seconds("total_time_average_seconds", "ttime"),
    counter("failed_header_rewriting_total", "wrew"),
    counter("connection_attempts_total", "connect"),
    counter("connection_reuses_total", "reuse"),
    http("http_cache_lookups_total", "cache_lookups"),
    http("http_cache_hits_total", "cache_hits"),
    seconds("max_queue_time_seconds", "qtime_max"),
    seconds("max_connect_time_seconds", "ctime_max"),
    seconds("max_response_time_seconds", "rtime_max"),
    seconds("max_total_time_seconds", "ttime_max"),
    counter("internal_errors_total", "eint"),
    gauge("uweight", "uweight"),
    row(
        "agg_server_status",
        "agg_server_status",
        false,
        ValueFormat::ServersByStatus,
    ),
    row(
        "agg_server_check_status",
        "agg_server_check_status",
        false,
        ValueFormat::ServersByStatus,
    ),
    row(
        "agg_check_status",
        "agg_check_status",
        false,
        ValueFormat::ServersByCheck,
    ),
    counter("req_bytes_in_total", "reqbin"),
    counter("req_bytes_out_total", "reqbout"),
    counter("res_bytes_in_total", "resbin"),
    counter("res_bytes_out_total", "resbout"),
];

pub(crate) static SERVER: &[MetricColumn] = &[
    gauge("current_queue", "qcur"),
    gauge("max_queue", "qmax"),
    gauge("current_sessions", "scur"),
    gauge("max_sessions", "smax"),
    gauge("limit_sessions", "slim"),
    counter("sessions_total", "stot"),
    counter("bytes_in_total", "bin"),
    counter("bytes_out_total", "bout"),
    counter("responses_denied_total", "dresp"),
    counter("connection_errors_total", "econ"),
    counter("response_errors_total", "eresp"),
    counter("retry_warnings_total", "wretr"),
    counter("redispatch_warnings_total", "wredis"),
    row("status", "status", false, ValueFormat::Status),
    gauge("weight", "weight"),
    gauge("active", "act"),
    gauge("backup", "bck"),
    counter("check_failures_total", "chkfail"),
    counter("check_up_down_total", "chkdown"),
    gauge("check_last_change_seconds", "lastchg"),
    counter("downtime_seconds_total", "downtime"),
    gauge("queue_limit", "qlimit"),
    gauge("current_throttle", "throttle"),
    counter("loadbalanced_total", "lbtot"),
    gauge("current_session_rate", "rate"),
    gauge("max_session_rate", "rate_max"),
    row(
        "check_status",
        "check_status",
        false,
        ValueFormat::CheckStatus,
    ),
    row("check_code", "check_code", false, ValueFormat::CheckCode),
    row(
        "check_duration_seconds",
        "check_duration",
        false,
        ValueFormat::KnownMilliseconds,
    ),
    row(
        "http_responses_total",
        "hrsp_1xx",
        true,
        ValueFormat::Responses,
    ),
    http("http_requests_total", "req_tot"),
    counter("client_aborts_total", "cli_abrt"),
    counter("server_aborts_total", "srv_abrt"),
    gauge("last_session_seconds", "lastsess"),
    seconds("queue_time_average_seconds", "qtime"),
    seconds("connect_time_average_seconds", "ctime"),
    seconds("response_time_average_seconds", "rtime"),
    seconds("total_time_average_seconds", "ttime"),
    row(
        "agent_status",
        "agent_status",
        false,
        ValueFormat::AgentStatus,
    ),
    row("agent_code", "agent_code", false, ValueFormat::AgentCode),
    counter("failed_header_rewriting_total", "wrew"),
    counter("connection_attempts_total", "connect"),
    counter("connection_reuses_total", "reuse"),
    gauge("idle_connections_current", "srv_icur"),
    gauge("idle_connections_limit", "src_ilim"),
    seconds("max_queue_time_seconds", "qtime_max"),
    seconds("max_connect_time_seconds", "ctime_max"),
    seconds("max_response_time_seconds", "rtime_max"),
    seconds("max_total_time_seconds", "ttime_max"),
    counter("internal_errors_total", "eint"),
    gauge("unsafe_idle_connections_current", "idle_conn_cur"),
    gauge("safe_idle_connections_current", "safe_conn_cur"),
    gauge("used_connections_current", "used_conn_cur"),
    gauge("need_connections_current", "need_conn_est"),
    gauge("uweight", "uweight"),
    counter("req_bytes_in_total", "reqbin"),
    counter("req_bytes_out_total", "reqbout"),
    counter("res_bytes_in_total", "resbin"),
    counter("res_bytes_out_total", "resbout"),
];

/// The process: the name after `haproxy_process_`, the line of `show info`, whether it only
/// grows.
pub(crate) static PROCESS: &[(&str, &str, bool)] = &[
    ("nbthread", "Nbthread", false),
    ("nbproc", "Nbproc", false),
    ("relative_process_id", "Process_num", false),
    ("uptime_seconds", "Uptime_sec", false),
    ("pool_failures_total", "PoolFailed", true),
    ("max_fds", "Ulimit-n", false),
    ("max_sockets", "Maxsock", false),
    ("max_connections", "Maxconn", false),
    ("hard_max_connections", "Hard_maxconn", false),
    ("current_connections", "CurrConns", false),
    ("connections_total", "CumConns", true),
    ("requests_total", "CumReq", true),
    ("max_ssl_connections", "MaxSslConns", false),
    ("current_ssl_connections", "CurrSslConns", false),
    ("ssl_connections_total", "CumSslConns", true),
    ("max_pipes", "Maxpipes", false),
    ("pipes_used_total", "PipesUsed", true),
    ("pipes_free_total", "PipesFree", true),
    ("current_connection_rate", "ConnRate", false),
    ("limit_connection_rate", "ConnRateLimit", false),
    ("max_connection_rate", "MaxConnRate", false),
    ("current_session_rate", "SessRate", false),
    ("limit_session_rate", "SessRateLimit", false),
    ("max_session_rate", "MaxSessRate", false),
    ("current_ssl_rate", "SslRate", false),
    ("limit_ssl_rate", "SslRateLimit", false),
    ("max_ssl_rate", "MaxSslRate", false),
    ("current_frontend_ssl_key_rate", "SslFrontendKeyRate", false),
    ("max_frontend_ssl_key_rate", "SslFrontendMaxKeyRate", false),
    ("frontend_ssl_reuse", "SslFrontendSessionReuse_pct", false),
    ("current_backend_ssl_key_rate", "SslBackendKeyRate", false),
    ("max_backend_ssl_key_rate", "SslBackendMaxKeyRate", false),
    ("ssl_cache_lookups_total", "SslCacheLookups", true),
    ("ssl_cache_misses_total", "SslCacheMisses", true),
    ("http_comp_bytes_in_total", "CompressBpsIn", true),
    ("http_comp_bytes_out_total", "CompressBpsOut", true),
    ("limit_http_comp", "CompressBpsRateLim", false),
    ("current_zlib_memory", "ZlibMemUsage", false),
    ("max_zlib_memory", "MaxZlibMemUsage", false),
    ("current_tasks", "Tasks", false),
    ("current_run_queue", "Run_queue", false),
    ("idle_time_percent", "Idle_pct", false),
    ("node", "node", false),
    ("description", "description", false),
    ("stopping", "Stopping", false),
    ("jobs", "Jobs", false),
    ("unstoppable_jobs", "Unstoppable Jobs", false),
    ("listeners", "Listeners", false),
    ("active_peers", "ActivePeers", false),
    ("connected_peers", "ConnectedPeers", false),
    ("dropped_logs_total", "DroppedLogs", true),
    ("busy_polling_enabled", "BusyPolling", false),
    ("failed_resolutions", "FailedResolutions", true),
    ("bytes_out_total", "TotalBytesOut", true),
    ("spliced_bytes_out_total", "TotalSplicedBytesOut", true),
    ("bytes_out_rate", "BytesOutRate", false),
    ("recv_logs_total", "CumRecvLogs", true),
    ("build_info", "Build info", false),
    ("max_memory_bytes", "Memmax_bytes", false),
    ("pool_allocated_bytes", "PoolAlloc_bytes", false),
    ("pool_used_bytes", "PoolUsed_bytes", false),
    ("start_time_seconds", "Start_time_sec", false),
    ("total_warnings", "TotalWarnings", true),
];
