//! Frontends: where clients connect, and how their requests are routed.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ballast_expr::{Condition, ConditionIndex, LinkSlot, LogFormat};

use crate::{Address, BindTls, HttpProtocol, Keepalive, LogLines, ProxyCommon};

/// A `frontend`, or the front half of a `listen`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frontend {
    /// Name, mode, and other fields that backends have too.
    pub common: ProxyCommon,
    /// `bind` lines, port ranges already expanded.
    pub binds: Vec<Bind>,
    /// `use_backend` rules, in order.
    pub routes: Vec<Route>,
    /// The index of their conditions, made when they are linked.
    pub route_index: LinkSlot<Arc<ConditionIndex>>,
    /// `default_backend`. The front half of a `listen` names itself.
    pub default_backend: Option<String>,
    /// `maxconn`; the process's limit when `None`.
    pub connection_count_max: Option<u32>,
    /// `max-session-srv-conns`: idle connections to servers that may stay with one client's connection; 5
    /// when `None`.
    pub kept_connection_count_max: Option<u32>,
    /// `backlog`; derived from `maxconn` when `None`.
    pub backlog: Option<u32>,
    /// `rate-limit sessions`: accepted per second; unlimited when `None`.
    pub session_rate_max: Option<u32>,
    /// `timeout client` and its siblings.
    pub timeouts: FrontendTimeouts,
    /// `monitor-uri` and `monitor fail`.
    pub monitor: Monitor,
    /// What is logged about exchanges.
    pub log: LogLines,
    /// Captures of requests (`capture request header`, `declare capture request`, `http-request
    /// capture ... len`), by number.
    pub request_captures: Vec<CaptureSlot>,
    /// Captures of responses, by number.
    pub response_captures: Vec<CaptureSlot>,
    /// `capture cookie`.
    pub cookie_capture: Option<CookieCapture>,
    /// TCP keep-alive towards clients.
    pub keepalive: Keepalive,
    /// Boolean options of frontends only.
    pub options: FrontendOptions,
}

/// Boolean `option` words of frontends only.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FrontendOptions {
    /// `option contstats`: counters move during long exchanges too, not only after them.
    pub continuous_stats: bool,
    /// `option http-ignore-probes`.
    pub ignore_probes: bool,
    /// `option http-use-proxy-header`.
    pub use_proxy_header: bool,
    /// `option socket-stats`: one statistics row per bind.
    pub socket_stats: bool,
    /// `option tcp-smart-accept`: the request is acknowledged together with the response. `None`:
    /// in HTTP mode only.
    pub smart_accept: Option<bool>,
    /// `option idle-close-on-response`.
    pub idle_close_on_response: bool,
    /// `option h1-case-adjust-bogus-client`.
    pub case_adjust: bool,
    /// `option http-drop-response-trailers`.
    pub drop_response_trailers: bool,
    /// `option disable-h2-upgrade`: a clear connection that begins with the preface of HTTP/2 is
    /// not of HTTP/2, unless its bind has `proto h2`.
    pub disable_h2_upgrade: bool,
}

/// Timeouts of a frontend. `None` is no limit, except where a field says otherwise.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FrontendTimeouts {
    /// `timeout client`.
    pub client: Option<Duration>,
    /// `timeout client-fin`; [`Self::client`] when `None`.
    pub client_fin: Option<Duration>,
    /// `timeout client-hs`: the longest TLS handshake; [`Self::client`] when `None`.
    pub client_handshake: Option<Duration>,
    /// `timeout http-request`; [`Self::client`] when `None`.
    pub http_request: Option<Duration>,
    /// `timeout http-keep-alive`; [`Self::http_request`] when `None`.
    pub http_keep_alive: Option<Duration>,
    /// `timeout tarpit`, or else `timeout connect`.
    pub tarpit: Option<Duration>,
}

/// One address that a frontend listens on.
#[derive(Clone, Debug, PartialEq)]
pub struct Bind {
    /// Where it listens.
    pub address: Address,
    /// `name`.
    pub name: Option<String>,
    /// `id`, or its position among the frontend's binds, from 1.
    pub id: u32,
    /// Where the bind line stands.
    pub origin: crate::Origin,
    /// `accept-netscaler-cip`: the connection begins with a header of the NetScaler Client IP
    /// insertion protocol that has this magic number.
    pub netscaler_cip_magic: Option<NonZeroU32>,
    /// `accept-proxy`: the connection begins with a PROXY protocol header.
    pub accept_proxy: bool,
    /// `proto`; when `None` it is what TLS negotiated, or what a clear connection begins with.
    pub protocol: Option<HttpProtocol>,
    /// `idle-ping`: how long a connection of HTTP/2 without streams may be silent before it is sent a
    /// PING; `None` is never.
    pub idle_ping: Option<Duration>,
    /// `maxconn` of this bind alone.
    pub connection_count_max: Option<u32>,
    /// `backlog`.
    pub backlog: Option<u32>,
    /// `interface`.
    pub interface: Option<String>,
    /// `namespace`.
    pub namespace: Option<String>,
    /// `v6only`: an IPv6 wildcard does not accept IPv4. `Some(false)` is `v4v6`.
    pub v6_only: Option<bool>,
    /// `tfo`.
    pub tcp_fast_open: bool,
    /// `defer-accept`.
    pub defer_accept: bool,
    /// `transparent`.
    pub transparent: bool,
    /// `mss`.
    pub mss: Option<u16>,
    /// `tcp-ut`.
    pub tcp_user_timeout: Option<Duration>,
    /// `cc`.
    pub congestion_algorithm: Option<String>,
    /// `user`, `group`, `uid`, `gid`, `mode` of a unix socket.
    pub unix_owner: UnixOwner,
    /// `shards`, as a count; 1 by default.
    pub shard_count: u16,
    /// `thread`: the workers that serve this bind, as bits; `None` is all.
    pub threads: Option<Vec<u16>>,
    /// `ssl` and the words that act on it; `None` for a clear bind.
    pub tls: Option<Box<BindTls>>,
}

impl Bind {
    /// A bind on an address, with all defaults.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            name: None,
            id: 1,
            origin: crate::Origin::default(),
            netscaler_cip_magic: None,
            accept_proxy: false,
            protocol: None,
            idle_ping: None,
            connection_count_max: None,
            backlog: None,
            interface: None,
            namespace: None,
            v6_only: None,
            tcp_fast_open: false,
            defer_accept: false,
            transparent: false,
            mss: None,
            tcp_user_timeout: None,
            congestion_algorithm: None,
            unix_owner: UnixOwner::default(),
            shard_count: 1,
            threads: None,
            tls: None,
        }
    }
}

/// Owner and permissions of a unix socket's file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UnixOwner {
    /// `user` or `uid`, as written.
    pub user: Option<String>,
    /// `group` or `gid`, as written.
    pub group: Option<String>,
    /// `mode`, octal in the file.
    pub mode: Option<u32>,
}

/// `use_backend <target> [if|unless <condition>]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Which backend.
    pub target: RouteTarget,
    /// When; always if `None`.
    pub condition: Option<Condition>,
}

/// A backend's name, fixed or computed.
#[derive(Clone, Debug, PartialEq)]
pub enum RouteTarget {
    /// The name of an existing backend.
    Static(String),
    /// A log-format string; if its result is not a backend, the default backend is used.
    Dynamic(LogFormat),
}

/// `monitor-uri` and `monitor fail`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Monitor {
    /// Requests for exactly this URI are answered directly and not logged.
    pub uri: Option<String>,
    /// When any of these holds, the response is 503 instead of 200.
    pub fail: Vec<Condition>,
}

/// A capture: stores a value of a request or a response for logs and rules.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CaptureSlot {
    /// The header to store, compared without case. `None` when rules fill it.
    pub header: Option<String>,
    /// Longer values are cut to this many bytes.
    pub value_bytes_max: u32,
}

/// `capture cookie <name> len <n>`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CookieCapture {
    /// Cookie name, or its beginning.
    pub name: String,
    /// The name ended in `*`: it matches all cookies that begin with it.
    pub prefix: bool,
    /// Longer captures are cut to this many bytes.
    pub value_bytes_max: u32,
}
