//! Samples of proxies, servers and the process, manual 7.3.2.

use crate::args::ArgKind::{Backend, Frontend, Server, Text};
use crate::fetch::{Fetch, NONE, args, row};
use crate::handlers::{constant, exchange, proxy};
use crate::phase::Phases;
use crate::value::Kind;

const BACKEND: Phases = Phases::BACKEND;
const CLIENT: Phases = Phases::CLIENT;
const CONNECTION: Phases = Phases::CONNECTION;
const RUNNING: Phases = Phases::RUNNING;
const SERVER: Phases = Phases::SERVER;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Fetch] = &[
    row("accept_date", args(0, &[Text]), Kind::Int, CONNECTION, Some(exchange::accept_date)),
    row("avg_queue", args(1, &[Backend]), Kind::Int, RUNNING, Some(proxy::avg_queue)),
    row("be_conn", args(1, &[Backend]), Kind::Int, RUNNING, Some(proxy::be_conn)),
    row("be_conn_free", args(1, &[Backend]), Kind::Int, RUNNING, Some(proxy::be_conn_free)),
    row("be_connect_timeout", NONE, Kind::Int, BACKEND, None),
    row("be_id", NONE, Kind::Int, BACKEND, Some(proxy::be_id)),
    row("be_max_retries", NONE, Kind::Int, BACKEND, None),
    row("be_name", NONE, Kind::Str, BACKEND, Some(proxy::be_name)),
    row("be_queue_timeout", NONE, Kind::Int, BACKEND, None),
    row("be_server_timeout", NONE, Kind::Int, BACKEND, None),
    row("be_sess_rate", args(1, &[Backend]), Kind::Int, RUNNING, Some(proxy::be_sess_rate)),
    row("be_tarpit_timeout", NONE, Kind::Int, BACKEND, None),
    row("be_tunnel_timeout", NONE, Kind::Int, BACKEND, None),
    row("connslots", args(1, &[Backend]), Kind::Int, RUNNING, Some(proxy::connslots)),
    row("cpu_calls", NONE, Kind::Int, RUNNING, None),
    row("cpu_ns_avg", NONE, Kind::Int, RUNNING, None),
    row("cpu_ns_tot", NONE, Kind::Int, RUNNING, None),
    row("cpu_usage_grp", NONE, Kind::Int, RUNNING, None),
    row("cpu_usage_proc", NONE, Kind::Int, RUNNING, None),
    row("cpu_usage_thr", NONE, Kind::Int, RUNNING, None),
    row("cur_client_timeout", NONE, Kind::Int, CLIENT, None),
    row("cur_connect_timeout", NONE, Kind::Int, BACKEND, None),
    row("cur_max_retries", NONE, Kind::Int, BACKEND, None),
    row("cur_queue_timeout", NONE, Kind::Int, BACKEND, None),
    row("cur_server_timeout", NONE, Kind::Int, BACKEND, None),
    row("cur_tarpit_timeout", NONE, Kind::Int, CONNECTION, None),
    row("cur_tunnel_timeout", NONE, Kind::Int, BACKEND, None),
    row("fe_client_timeout", NONE, Kind::Int, CLIENT, None),
    row("fe_conn", args(1, &[Frontend]), Kind::Int, RUNNING, Some(proxy::fe_conn)),
    row("fe_defbe", NONE, Kind::Str, CLIENT, Some(proxy::fe_defbe)),
    row("fe_id", NONE, Kind::Int, CLIENT, Some(proxy::fe_id)),
    row("fe_name", NONE, Kind::Str, CLIENT, Some(proxy::fe_name)),
    row("fe_req_rate", args(1, &[Frontend]), Kind::Int, RUNNING, Some(proxy::fe_req_rate)),
    row("fe_sess_rate", args(1, &[Frontend]), Kind::Int, RUNNING, Some(proxy::fe_sess_rate)),
    row("fe_tarpit_timeout", NONE, Kind::Int, CLIENT, None),
    row("last_entity", NONE, Kind::Str, RUNNING, None),
    row("last_rule_file", NONE, Kind::Str, RUNNING, None),
    row("last_rule_line", NONE, Kind::Int, RUNNING, None),
    row("lat_ns_avg", NONE, Kind::Int, RUNNING, None),
    row("lat_ns_tot", NONE, Kind::Int, RUNNING, None),
    row("nbsrv", args(1, &[Backend]), Kind::Int, RUNNING, Some(proxy::nbsrv)),
    row("prio_class", NONE, Kind::Int, RUNNING, None),
    row("prio_offset", NONE, Kind::Int, RUNNING, None),
    row("queue", args(1, &[Backend]), Kind::Int, RUNNING, Some(proxy::queue)),
    row("spoe.engine-id", NONE, Kind::Str, RUNNING, None),
    row("srv_conn", args(1, &[Server]), Kind::Int, RUNNING, Some(proxy::srv_conn)),
    row("srv_conn_free", args(1, &[Server]), Kind::Int, RUNNING, Some(proxy::srv_conn_free)),
    row("srv_id", NONE, Kind::Int, SERVER, Some(proxy::srv_id)),
    row("srv_is_up", args(1, &[Server]), Kind::Bool, RUNNING, Some(proxy::srv_is_up)),
    row("srv_iweight", args(1, &[Server]), Kind::Int, RUNNING, Some(proxy::srv_iweight)),
    row("srv_name", NONE, Kind::Str, SERVER, Some(proxy::srv_name)),
    row("srv_queue", args(1, &[Server]), Kind::Int, RUNNING, Some(proxy::srv_queue)),
    row("srv_sess_rate", args(1, &[Server]), Kind::Int, RUNNING, Some(proxy::srv_sess_rate)),
    row("srv_uweight", args(1, &[Server]), Kind::Int, RUNNING, Some(proxy::srv_uweight)),
    row("srv_weight", args(1, &[Server]), Kind::Int, RUNNING, Some(proxy::srv_weight)),
    row("stopping", NONE, Kind::Bool, RUNNING, Some(constant::stopping)),
    row("term_events", NONE, Kind::Str, RUNNING, None),
    row("waiting_entity", NONE, Kind::Str, RUNNING, None),
];
