//! The columns of `show stat` that are always there, in their order.
//!
//! Order and meaning: management manual, section 9.1 "CSV format".

use ballast_engine::Backend;
use ballast_engine::counters::FrontendSums;
use ballast_model as model;

use crate::columns_of_protocols::PROTOCOLS;
use crate::metric::Metric;
use crate::row::{BackendRow, FrontendRow, ServerRow};
use crate::server_health::ProbeResult;
use crate::value::MetricValue;
use crate::value::{CGS, CLP, CNS, KGP, KGS, KNS, MAP, MAVG, MCP, MDP, MGP, MMP, MOP, MRP, SGP};

/// All columns, in order.
pub fn columns() -> impl Iterator<Item = &'static Metric> {
    FIXED.iter().chain(PROTOCOLS)
}

/// All that is counted: the columns, and what metrics tell besides.
pub(crate) fn counted() -> impl Iterator<Item = &'static Metric> {
    columns().chain(BEYOND)
}

/// How many of them are always there: then `-` stands in the CSV.
pub(crate) fn columns_fixed() -> usize {
    FIXED.len()
}

/// A column that counts, read from the sums of a frontend, a listener, a server, a backend.
macro_rules! counted {
    ($name:literal $help:literal $(F $f:ident)? $(L $l:ident)? $(S $s:ident)? $(B $b:ident)?) => {
        Metric::new($name, $help, MCP)
            $(.frontend(|row| MetricValue::U64(row.sums.$f)))?
            $(.listener(|row| MetricValue::U64(row.numbers.sums.$l)))?
            $(.server(|row| MetricValue::U64(row.sums.$s)))?
            $(.backend(|row| MetricValue::U64(row.sums.$b)))?
    };
}

/// A column of HTTP proxies alone.
macro_rules! counted_http {
    ($name:literal $help:literal $(F $f:ident)? $(S $s:ident)? $(B $b:ident)?) => {
        Metric::new($name, $help, MCP)
            $(.frontend(|row| http_front(row, |sums| sums.$f)))?
            $(.server(|row| http_back(&row.backend, row.sums.$s)))?
            $(.backend(|row| http_back(&row.backend, row.sums.$b)))?
    };
}

/// A column of what Ballast does not have yet: nothing ever happened.
macro_rules! never {
    ($name:literal $help:literal) => {
        Metric::new($name, $help, MCP)
            .frontend(|_| MetricValue::U64(0))
            .backend(|_| MetricValue::U64(0))
    };
    (http $name:literal $help:literal) => {
        Metric::new($name, $help, MCP)
            .frontend(|row| http_front(row, |_| 0))
            .backend(|row| http_back(&row.backend, 0))
    };
}

static FIXED: &[Metric] = &[
    Metric::new("pxname", "Name of the proxy", KNS)
        .frontend(|row| MetricValue::text(row.frontend.name()))
        .listener(|row| MetricValue::text(row.frontend.name()))
        .server(|row| MetricValue::text(row.backend.name()))
        .backend(|row| MetricValue::text(row.backend.name())),
    Metric::new(
        "svname",
        "Name of the server or listener, FRONTEND or BACKEND",
        KNS,
    )
    .frontend(|_| MetricValue::text("FRONTEND"))
    .listener(|row| MetricValue::text(&row.name))
    .server(|row| MetricValue::text(row.server.name()))
    .backend(|_| MetricValue::text("BACKEND")),
    Metric::new("qcur", "Requests that wait in the queue", MGP)
        .server(|row| MetricValue::U32(row.server.state.queue.current()))
        .backend(|row| MetricValue::U32(row.backend.state.queue.current())),
    Metric::new("qmax", "The most requests that ever waited at once", MMP)
        .server(|row| MetricValue::U32(row.server.state.queue.highest()))
        .backend(|row| MetricValue::U32(row.backend.state.queue.highest())),
    Metric::new("scur", "Sessions now", MGP)
        .frontend(|row| MetricValue::U32(row.frontend.state.sessions.current()))
        .listener(|row| MetricValue::U32(row.numbers.connections_now))
        .server(|row| MetricValue::U32(row.server.state.sessions.current()))
        .backend(|row| MetricValue::U32(row.backend.state.sessions.current())),
    Metric::new("smax", "The most sessions there ever were at once", MMP)
        .frontend(|row| MetricValue::U32(row.frontend.state.sessions.highest()))
        .listener(|row| MetricValue::U32(row.numbers.connections_highest))
        .server(|row| MetricValue::U32(row.server.state.sessions.highest()))
        .backend(|row| MetricValue::U32(row.backend.state.sessions.highest())),
    Metric::new(
        "slim",
        "Limit of sessions: maxconn, or fullconn of a backend",
        CLP,
    )
    .frontend(|row| MetricValue::U32(row.frontend.state.connection_count_max()))
    .listener(|row| MetricValue::U32(row.bind().connection_count_max.unwrap_or(0)))
    .server(|row| {
        MetricValue::unless_zero(row.server.state.connection_count_max(&row.server.model))
    })
    .backend(|row| MetricValue::U32(row.backend.full_connections)),
    counted!("stot" "Sessions in all" F sessions L sessions S sessions B sessions),
    counted!("bin" "Bytes of requests" F bytes_in L bytes_in S bytes_in B bytes_in),
    counted!("bout" "Bytes of responses" F bytes_out L bytes_out S bytes_out B bytes_out),
    counted!("dreq" "Requests denied by rules"
        F denied_requests L denied_requests B denied_requests),
    counted!("dresp" "Responses denied by rules"
        F denied_responses L denied_responses S denied_responses B denied_responses),
    counted!("ereq" "Requests that were never whole or never valid"
        F failed_requests L failed_requests),
    counted!("econ" "Requests whose connection to a server failed"
        S failed_connections B failed_connections),
    counted!("eresp" "Responses that failed" S failed_responses B failed_responses),
    counted!("wretr" "Connections tried again" S retries B retries),
    counted!("wredis" "Requests given to another server" S redispatches B redispatches),
    Metric::new(
        "status",
        "What it does now: OPEN, UP, DOWN, MAINT and others",
        SGP,
    )
    .frontend(|row| MetricValue::text(row.status()))
    .listener(|row| MetricValue::text(row.status()))
    .server(|row| MetricValue::text(&row.health.status))
    .backend(|row| MetricValue::Str(row.status())),
    Metric::new(
        "weight",
        "Weight as it counts now, in total on a backend",
        MAVG,
    )
    .server(|row| MetricValue::U32(row.effective_weight()))
    .backend(|row| MetricValue::U32(row.weight)),
    Metric::new("act", "Active servers, or whether this is one", SGP)
        .on_backends(MGP)
        .server(|row| MetricValue::U32(u32::from(!row.server.model.backup)))
        .backend(|row| MetricValue::U32(row.active)),
    Metric::new("bck", "Backup servers, or whether this is one", SGP)
        .on_backends(MGP)
        .server(|row| MetricValue::U32(u32::from(row.server.model.backup)))
        .backend(|row| MetricValue::U32(row.backup)),
    Metric::new("chkfail", "Checks that failed while the server was up", MCP)
        .server(|row| checked(row, MetricValue::U64(row.health.failed_checks))),
    Metric::new("chkdown", "Times it went down", MCP)
        .server(|row| checked(row, MetricValue::U64(row.health.down_count)))
        .backend(|row| MetricValue::U64(u64::from(times_down(row)))),
    Metric::new("lastchg", "Seconds since it last went up or down", MAP)
        .server(|row| MetricValue::U32(seconds(row.health.since_change_s)))
        .backend(|row| MetricValue::U32(seconds(row.since_change_s()))),
    Metric::new("downtime", "Seconds it was down in all", MCP)
        .server(|row| checked(row, MetricValue::U32(seconds(row.health.down_s))))
        .backend(|row| match row.backend.servers.is_empty() {
            true => MetricValue::Empty,
            false => MetricValue::U32(seconds(row.down_s())),
        }),
    Metric::new("qlimit", "Limit of the queue: maxqueue", CGS)
        .server(|row| MetricValue::unless_zero(row.server.model.queue_count_max)),
    Metric::new("pid", "Number of the process, always 1", KGP)
        .frontend(|_| MetricValue::U32(1))
        .listener(|_| MetricValue::U32(1))
        .server(|_| MetricValue::U32(1))
        .backend(|_| MetricValue::U32(1)),
    Metric::new("iid", "Number of the proxy", KGS)
        .frontend(|row| MetricValue::U32(row.frontend.model.common.id))
        .listener(|row| MetricValue::U32(row.frontend.model.common.id))
        .server(|row| MetricValue::U32(row.backend.model.common.id))
        .backend(|row| MetricValue::U32(row.backend.model.common.id)),
    Metric::new("sid", "Number of the server or listener in its proxy", KGS)
        .frontend(|_| MetricValue::U32(0))
        .listener(|row| MetricValue::U32(row.bind().id))
        .server(|row| MetricValue::U32(row.server.model.id))
        .backend(|_| MetricValue::U32(0)),
    Metric::new(
        "throttle",
        "Percent of its weight that slow start leaves it",
        MAVG,
    )
    .server(throttle),
    counted!("lbtot" "Times the balancing chose it" S chosen B chosen),
    Metric::new("tracked", "The server whose state it follows", CNS)
        .server(|row| MetricValue::computed_text(row.tracked())),
    Metric::new(
        "type",
        "Kind of row: 0 frontend, 1 backend, 2 server, 3 listener",
        CGS,
    )
    .frontend(|_| MetricValue::U32(0))
    .listener(|_| MetricValue::U32(3))
    .server(|_| MetricValue::U32(2))
    .backend(|_| MetricValue::U32(1)),
    Metric::new("rate", "Sessions in the last second", MRP)
        .frontend(|row| {
            MetricValue::U32(
                row.frontend
                    .state
                    .session_rate
                    .per_second(row.moment.rate_ms),
            )
        })
        .server(|row| {
            MetricValue::U32(row.server.state.session_rate.per_second(row.moment.rate_ms))
        })
        .backend(|row| {
            MetricValue::U32(
                row.backend
                    .state
                    .session_rate
                    .per_second(row.moment.rate_ms),
            )
        }),
    Metric::new("rate_lim", "Limit of sessions per second", CLP)
        .frontend(|row| MetricValue::U32(row.frontend.model.session_rate_max.unwrap_or(0))),
    Metric::new(
        "rate_max",
        "The most sessions there ever were in a second",
        MMP,
    )
    .on_backends(MGP)
    .frontend(|row| MetricValue::U32(row.frontend.state.session_rate.highest()))
    .server(|row| MetricValue::U32(row.server.state.session_rate.highest()))
    .backend(|row| MetricValue::U32(row.backend.state.session_rate.highest())),
    Metric::new("check_status", "What the last health check found", MOP)
        .server(|row| found(row.health.check.as_ref())),
    Metric::new("check_code", "Layer 7 code of the last health check", MOP)
        .server(|row| code(row.health.check.as_ref())),
    Metric::new(
        "check_duration",
        "Milliseconds the last health check took",
        MDP,
    )
    .server(|row| duration(row.health.check.as_ref())),
    counted_http!("hrsp_1xx" "Responses 1xx" F responses_1xx S responses_1xx B responses_1xx),
    counted_http!("hrsp_2xx" "Responses 2xx" F responses_2xx S responses_2xx B responses_2xx),
    counted_http!("hrsp_3xx" "Responses 3xx" F responses_3xx S responses_3xx B responses_3xx),
    counted_http!("hrsp_4xx" "Responses 4xx" F responses_4xx S responses_4xx B responses_4xx),
    counted_http!("hrsp_5xx" "Responses 5xx" F responses_5xx S responses_5xx B responses_5xx),
    counted_http!("hrsp_other" "Responses of any other kind"
        F responses_other S responses_other B responses_other),
    Metric::new(
        "hanafail",
        "Times that traffic spoke against the server (observe)",
        MCP,
    )
    .server(observed),
    Metric::new("req_rate", "Requests in the last second", MRP).frontend(|row| {
        MetricValue::U32(
            row.frontend
                .state
                .request_rate
                .per_second(row.moment.rate_ms),
        )
    }),
    Metric::new(
        "req_rate_max",
        "The most requests there ever were in a second",
        MMP,
    )
    .frontend(|row| MetricValue::U32(row.frontend.state.request_rate.highest())),
    Metric::new("req_tot", "Requests in all", MCP)
        .frontend(|row| MetricValue::U64(row.sums.requests))
        .server(|row| http_back(&row.backend, row.sums.requests))
        .backend(|row| http_back(&row.backend, row.sums.requests)),
    counted!("cli_abrt" "Transfers that the client gave up" S client_aborts B client_aborts),
    counted!("srv_abrt" "Transfers that the server gave up" S server_aborts B server_aborts),
    never!("comp_in" "Bytes of responses given to compression"),
    never!("comp_out" "Bytes that compression made"),
    never!("comp_byp" "Bytes that compression let pass, for want of time or bandwidth"),
    never!("comp_rsp" "Responses that were compressed"),
    Metric::new(
        "lastsess",
        "Seconds since the last session, -1 before the first",
        MAP,
    )
    .server(|row| MetricValue::S32(row.last_session()))
    .backend(|row| MetricValue::S32(row.last_session())),
    Metric::new(
        "last_chk",
        "What the last health check read, or what went wrong",
        MOP,
    )
    .server(|row| info(row.health.check.as_ref())),
    Metric::new(
        "last_agt",
        "What the agent said last, or what went wrong",
        MOP,
    )
    .server(|row| info(row.health.agent.as_ref())),
    Metric::new(
        "qtime",
        "Mean milliseconds in the queue, of the last 1024 requests",
        MAVG,
    )
    .server(|row| MetricValue::U32(row.timings.means_ms[0]))
    .backend(|row| MetricValue::U32(row.timings.means_ms[0])),
    Metric::new(
        "ctime",
        "Mean milliseconds to connect, of the last 1024 requests",
        MAVG,
    )
    .server(|row| MetricValue::U32(row.timings.means_ms[1]))
    .backend(|row| MetricValue::U32(row.timings.means_ms[1])),
    Metric::new(
        "rtime",
        "Mean milliseconds to the response, of the last 1024 requests",
        MAVG,
    )
    .server(|row| MetricValue::U32(row.timings.means_ms[2]))
    .backend(|row| MetricValue::U32(row.timings.means_ms[2])),
    Metric::new(
        "ttime",
        "Mean milliseconds in all, of the last 1024 requests",
        MAVG,
    )
    .server(|row| MetricValue::U32(row.timings.means_ms[3]))
    .backend(|row| MetricValue::U32(row.timings.means_ms[3])),
    Metric::new("agent_status", "What the last agent check found", MOP)
        .server(|row| found(row.health.agent.as_ref())),
    Metric::new("agent_code", "Code of the last agent check", MOP)
        .server(|row| code(row.health.agent.as_ref())),
    Metric::new(
        "agent_duration",
        "Milliseconds the last agent check took",
        MDP,
    )
    .server(|row| {
        // Unlike that of a check it is there from the beginning.
        let agent = row.health.agent.as_ref();
        agent.map_or(MetricValue::Empty, |agent| {
            MetricValue::U64(agent.duration_ms.unwrap_or(0))
        })
    }),
    Metric::new("check_desc", "check_status in words", MOP)
        .server(|row| description(row.health.check.as_ref())),
    Metric::new("agent_desc", "agent_status in words", MOP)
        .server(|row| description(row.health.agent.as_ref())),
    Metric::new(
        "check_rise",
        "Good checks in a row until the server is up",
        CGS,
    )
    .server(|row| of_probe(row.health.check.as_ref(), |probe| probe.rise)),
    Metric::new(
        "check_fall",
        "Bad checks in a row until the server is down",
        CGS,
    )
    .server(|row| of_probe(row.health.check.as_ref(), |probe| probe.fall)),
    Metric::new(
        "check_health",
        "Counter of the checks: 0 to rise + fall - 1",
        CGS,
    )
    .server(|row| of_probe(row.health.check.as_ref(), |probe| probe.health)),
    Metric::new(
        "agent_rise",
        "Good agent checks in a row until the server is up",
        CGS,
    )
    .server(|row| of_probe(row.health.agent.as_ref(), |probe| probe.rise)),
    Metric::new(
        "agent_fall",
        "Bad agent checks in a row until the server is down",
        CGS,
    )
    .server(|row| of_probe(row.health.agent.as_ref(), |probe| probe.fall)),
    Metric::new(
        "agent_health",
        "Counter of the agent checks: 0 to rise + fall - 1",
        CGS,
    )
    .server(|row| of_probe(row.health.agent.as_ref(), |probe| probe.health)),
    Metric::new("addr", "Address and port, or unix", CGS)
        .listener(|row| MetricValue::computed_text(row.address()))
        .server(|row| MetricValue::computed_text(row.address())),
    Metric::new(
        "cookie",
        "Cookie value of a server, cookie name of a backend",
        CNS,
    )
    .server(|row| {
        let cookie = row.server.cookie();
        let cookie = cookie.as_deref().cloned();
        cookie.map_or(MetricValue::Empty, MetricValue::computed_text)
    })
    .backend(|row| cookie_name(&row.backend)),
    Metric::new("mode", "tcp or http", CGS)
        .frontend(|row| MetricValue::text(row.frontend.model.common.mode.word()))
        .listener(|row| MetricValue::text(row.frontend.model.common.mode.word()))
        .server(|row| MetricValue::text(row.backend.model.common.mode.word()))
        .backend(|row| MetricValue::text(row.backend.model.common.mode.word())),
    Metric::new("algo", "Balancing algorithm", CGS)
        .backend(|row| MetricValue::text(row.backend.model.balance.word())),
    Metric::new("conn_rate", "Connections in the last second", MRP).frontend(|row| {
        MetricValue::U32(
            row.frontend
                .state
                .connection_rate
                .per_second(row.moment.rate_ms),
        )
    }),
    Metric::new(
        "conn_rate_max",
        "The most connections there ever were in a second",
        MMP,
    )
    .frontend(|row| MetricValue::U32(row.frontend.state.connection_rate.highest())),
    counted!("conn_tot" "Connections in all" F connections L connections),
    counted_http!("intercepted" "Requests answered without a server" F intercepted),
    counted!("dcon" "Connections denied by rules" F denied_connections L denied_connections),
    counted!("dses" "Sessions denied by rules" F denied_sessions L denied_sessions),
    counted!("wrew" "Header rewrites that failed"
        F failed_rewrites L failed_rewrites S failed_rewrites B failed_rewrites),
    counted!("connect" "Connections opened to servers" S connects B connects),
    counted!("reuse" "Exchanges over a connection that was open already" S reuses B reuses),
    never!(http "cache_lookups" "Look-ups in the cache"),
    never!(http "cache_hits" "Responses from the cache"),
    Metric::new("srv_icur", "Idle connections that may be used again", MGP)
        .server(|row| MetricValue::U32(row.server.state.idle.current())),
    Metric::new("src_ilim", "Limit of idle connections", CLP).server(|row| {
        row.server
            .model
            .idle_count_max
            .map_or(MetricValue::Empty, MetricValue::U32)
    }),
    Metric::new("qtime_max", "The most milliseconds ever in the queue", MMP)
        .server(|row| MetricValue::U32(row.timings.highest_ms[0]))
        .backend(|row| MetricValue::U32(row.timings.highest_ms[0])),
    Metric::new("ctime_max", "The most milliseconds ever to connect", MMP)
        .server(|row| MetricValue::U32(row.timings.highest_ms[1]))
        .backend(|row| MetricValue::U32(row.timings.highest_ms[1])),
    Metric::new("rtime_max", "The most milliseconds ever to a response", MMP)
        .server(|row| MetricValue::U32(row.timings.highest_ms[2]))
        .backend(|row| MetricValue::U32(row.timings.highest_ms[2])),
    Metric::new("ttime_max", "The most milliseconds ever in all", MMP)
        .server(|row| MetricValue::U32(row.timings.highest_ms[3]))
        .backend(|row| MetricValue::U32(row.timings.highest_ms[3])),
    counted!("eint" "Errors of our own"
        F internal_errors L internal_errors S internal_errors B internal_errors),
    Metric::new(
        "idle_conn_cur",
        "Idle connections not known to be safe",
        MGP,
    )
    .server(|row| MetricValue::U32(row.server.state.idle.current())),
    Metric::new("safe_conn_cur", "Idle connections known to be safe", MGP)
        .server(|_| MetricValue::U32(0)),
    Metric::new("used_conn_cur", "Connections in use", MGP)
        .server(|row| MetricValue::U32(used(row))),
    Metric::new(
        "need_conn_est",
        "Connections that will be needed, as far as known",
        MGP,
    )
    .server(|row| MetricValue::U32(needed(row))),
    Metric::new(
        "uweight",
        "Weight without slow start, in total on a backend",
        MAVG,
    )
    .server(|row| MetricValue::U32(row.server.state.weight()))
    .backend(|row| MetricValue::U32(row.weight_user)),
    Metric::new(
        "agg_server_status",
        "Servers by state (of the metrics page)",
        MGP,
    )
    .backend(|_| MetricValue::U32(0)),
    Metric::new(
        "agg_server_check_status",
        "As agg_server_status, by its old name",
        MGP,
    )
    .backend(|_| MetricValue::U32(0)),
    Metric::new(
        "agg_check_status",
        "Checks by outcome (of the metrics page)",
        MGP,
    )
    .backend(|_| MetricValue::U32(0)),
    Metric::new("srid", "Times its name was given to another server", MCP)
        .server(|_| MetricValue::U32(0)),
    Metric::new("sess_other", "Sessions that carry no HTTP", MCP).frontend(|row| {
        MetricValue::U64(if row.frontend.is_http() {
            0
        } else {
            row.sums.sessions
        })
    }),
    Metric::new("h1sess", "Sessions over HTTP/1", MCP).frontend(|row| {
        MetricValue::U64(if row.frontend.is_http() {
            row.http1_sessions()
        } else {
            0
        })
    }),
    Metric::new("h2sess", "Sessions over HTTP/2", MCP)
        .frontend(|row| MetricValue::U64(row.h2.connections)),
    Metric::new("h3sess", "Sessions over HTTP/3", MCP).frontend(|_| MetricValue::U64(0)),
    Metric::new("req_other", "Requests of no known version", MCP).frontend(|_| MetricValue::U64(0)),
    Metric::new("h1req", "Requests over HTTP/1", MCP)
        .frontend(|row| MetricValue::U64(row.http1_requests())),
    Metric::new("h2req", "Requests over HTTP/2", MCP)
        .frontend(|row| MetricValue::U64(row.h2.streams)),
    Metric::new("h3req", "Requests over HTTP/3", MCP).frontend(|_| MetricValue::U64(0)),
    Metric::new("proto", "Protocol it listens for", SGP)
        .listener(|row| MetricValue::text(protocol(&row.bind().address))),
];

/// What HAProxy has counted since 3.3: not in `show stat`, whose columns are those of 3.2, but in
/// metrics, where names that are not asked for hurt nobody.
static BEYOND: &[Metric] = &[
    counted!("reqbin" "Bytes of requests that came from clients"
        F bytes_in L bytes_in S bytes_in B bytes_in),
    counted!("reqbout" "Bytes of requests that went to servers"
        F bytes_to_servers S bytes_in B bytes_in),
    counted!("resbin" "Bytes of responses that came from servers"
        F bytes_from_servers S bytes_from_servers B bytes_from_servers),
    counted!("resbout" "Bytes of responses that went to clients"
        F bytes_out L bytes_out S bytes_out B bytes_out),
];

fn http_front(row: &FrontendRow, read: fn(&FrontendSums) -> u64) -> MetricValue<'static> {
    http(row.frontend.model.common.mode, read(&row.sums))
}

fn http_back(backend: &Backend, counted: u64) -> MetricValue<'static> {
    http(backend.model.common.mode, counted)
}

fn http(mode: model::Mode, counted: u64) -> MetricValue<'static> {
    match mode {
        model::Mode::Http => MetricValue::U64(counted),
        _ => MetricValue::Empty,
    }
}

/// Says something only of servers that are checked.
fn checked<'v>(row: &ServerRow, value: MetricValue<'v>) -> MetricValue<'v> {
    if row.health.is_checked {
        value
    } else {
        MetricValue::Empty
    }
}

fn observed(row: &ServerRow) -> MetricValue<'static> {
    match row.server.model.checks.observe {
        Some(_) => MetricValue::U64(row.health.failed_observations),
        None => MetricValue::Empty,
    }
}

fn throttle(row: &ServerRow) -> MetricValue<'static> {
    match row.server.state.throttle_percent() {
        percent @ 0..100 if !row.health.is_down => MetricValue::U32(percent),
        _ => MetricValue::Empty,
    }
}

fn found(probe: Option<&ProbeResult>) -> MetricValue<'_> {
    probe.map_or(MetricValue::Empty, |probe| match probe.running {
        true if !probe.word.is_empty() => MetricValue::computed_text(format!("* {}", probe.word)),
        _ => MetricValue::text(probe.word),
    })
}

fn description(probe: Option<&ProbeResult>) -> MetricValue<'_> {
    probe.map_or(MetricValue::Empty, |probe| {
        MetricValue::text(probe.description)
    })
}

/// An empty text where a check read nothing.
fn info(probe: Option<&ProbeResult>) -> MetricValue<'_> {
    probe.map_or(MetricValue::Empty, |probe| MetricValue::text(&probe.info))
}

fn code(probe: Option<&ProbeResult>) -> MetricValue<'_> {
    let code = probe.and_then(|probe| probe.code);
    // As in HAProxy: a number of 16 bits with a sign, shown as one of 32 bits without.
    let shown = |code: u16| i32::from(code.cast_signed()).cast_unsigned();
    code.map_or(MetricValue::Empty, |code| MetricValue::U32(shown(code)))
}

fn duration(probe: Option<&ProbeResult>) -> MetricValue<'_> {
    let duration = probe.and_then(|probe| probe.duration_ms);
    duration.map_or(MetricValue::Empty, MetricValue::U64)
}

fn of_probe(probe: Option<&ProbeResult>, read: fn(&ProbeResult) -> u32) -> MetricValue<'_> {
    probe.map_or(MetricValue::Empty, |probe| MetricValue::U32(read(probe)))
}

fn used(row: &ServerRow) -> u32 {
    let state = &row.server.state;
    state
        .connections
        .current()
        .saturating_sub(state.idle.current())
}

/// The connections in use, and one at least for a server that was ever connected to, if only by a
/// check. The estimates of pools are those of each worker, and are not shown here.
fn needed(row: &ServerRow) -> u32 {
    let once = row.health.check.is_some() || row.server.state.connections.highest() > 0;
    used(row).max(u32::from(once))
}

fn cookie_name(backend: &Backend) -> MetricValue<'_> {
    let cookie = backend.model.cookie.as_ref();
    cookie.map_or(MetricValue::Empty, |cookie| MetricValue::text(&cookie.name))
}

fn times_down(row: &BackendRow) -> u32 {
    row.backend
        .state
        .times_down
        .load(std::sync::atomic::Ordering::Relaxed)
}

/// HAProxy's name of the protocol under an address.
fn protocol(address: &model::Address) -> &'static str {
    match address {
        model::Address::Inet(address) if address.is_ipv6() => "tcpv6",
        model::Address::Inet(_) | model::Address::Name { .. } | model::Address::Fd(_) => "tcpv4",
        model::Address::Unix(_) => "unix_stream",
        model::Address::Abstract(_) | model::Address::AbstractUnpadded(_) => "abns_stream",
        model::Address::SocketPair(_) => "sockpair",
    }
}

fn seconds(seconds: u64) -> u32 {
    u32::try_from(seconds).unwrap_or(u32::MAX)
}
