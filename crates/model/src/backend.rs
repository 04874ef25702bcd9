//! Backends: servers, balancing, persistence, timeouts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ballast_expr::{Condition, ConditionIndex, Expr, LinkSlot, LogFormat};

use crate::{CheckMethod, ForwardedHeader, Keepalive, ProxyCommon, Server};

/// A `backend`, or the back half of a `listen`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Backend {
    /// Name, mode, and other fields that frontends have too.
    pub common: ProxyCommon,
    /// `server` lines and expanded `server-template` lines, in order.
    pub servers: Vec<Arc<Server>>,
    /// `dispatch`.
    pub dispatch: Option<SocketAddr>,
    /// What stands for a server of requests that persistence gives none, where `balance` is not said:
    /// the address of `dispatch`, or the one that the client wanted (`option transparent`).
    pub direct: Option<Arc<Server>>,
    /// `balance`.
    pub balance: Balance,
    /// `hash-type`.
    pub hash_type: HashType,
    /// `hash-balance-factor`: percent of the mean load a server may take; 0 is off.
    pub hash_balance_factor: u32,
    /// `hash-preserve-affinity`.
    pub hash_affinity: HashAffinity,
    /// `cookie`.
    pub cookie: Option<CookiePersistence>,
    /// `persist rdp-cookie`: the name of the RDP client's cookie that names a server.
    pub rdp_cookie_name: Option<String>,
    /// `dynamic-cookie-key`.
    pub dynamic_cookie_key: Option<String>,
    /// `timeout connect` and its siblings.
    pub timeouts: BackendTimeouts,
    /// `retries`; 3 by default.
    pub retry_count_max: u32,
    /// `option redispatch`.
    pub redispatch: Option<Redispatch>,
    /// `retry-on`.
    pub retry_on: RetryOn,
    /// `fullconn`; a tenth of the frontends' `maxconn` when `None`.
    pub full_connections: Option<u32>,
    /// `http-reuse`.
    pub http_reuse: HttpReuse,
    /// Health checks of the servers.
    pub check: CheckMethod,
    /// `use-server` rules, in order.
    pub use_servers: Vec<UseServer>,
    /// The index of their conditions, made when they are linked.
    pub use_server_index: LinkSlot<Arc<ConditionIndex>>,
    /// `force-persist` and `ignore-persist`, in order: the first whose condition holds decides.
    pub persistence_rules: Vec<PersistenceRule>,
    /// `stick` rules, in order.
    pub stick_rules: Vec<StickRule>,
    /// `http-send-name-header`: the field that carries the server's name.
    pub name_header: Option<String>,
    /// `option forwarded`.
    pub forwarded: Option<ForwardedHeader>,
    /// TCP keep-alive towards servers.
    pub keepalive: Keepalive,
    /// `source` of the section, for servers that set none.
    pub source: Option<crate::SourceAddress>,
    /// Boolean options of backends only.
    pub options: BackendOptions,
    /// `max-keep-alive-queue`.
    pub keep_alive_queue_max: Option<u32>,
    /// `load-server-state-from-file`: the file from which the states of its servers are read at
    /// start.
    pub server_states: Option<ServerStates>,
}

/// `load-server-state-from-file`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ServerStates {
    /// `global`: the file of the process ([`crate::Global::server_state_file`]).
    Global,
    /// `local`: this file, after `server-state-base`.
    Local(String),
}

/// Boolean `option` words of backends only.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct BackendOptions {
    /// `option allbackups`: all backup servers share the load.
    pub all_backups: bool,
    /// `option persist`: a cookie's server is tried even when it is down.
    pub persist: bool,
    /// `option prefer-last-server`.
    pub prefer_last_server: bool,
    /// `option http-pretend-keepalive`.
    pub pretend_keepalive: bool,
    /// `option checkcache`.
    pub check_cache: bool,
    /// `option log-health-checks`.
    pub log_health_checks: bool,
    /// `option tcp-smart-connect`.
    pub smart_connect: bool,
    /// `option h1-case-adjust-bogus-server`.
    pub case_adjust: bool,
    /// `option transparent`: the client's destination is used as the server.
    pub transparent: bool,
    /// `option http-drop-request-trailers`.
    pub drop_request_trailers: bool,
}

/// Timeouts of a backend. `None` is no limit, except where a field says otherwise.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BackendTimeouts {
    /// `timeout connect`.
    pub connect: Option<Duration>,
    /// `timeout server`.
    pub server: Option<Duration>,
    /// `timeout server-fin`; [`Self::server`] when `None`.
    pub server_fin: Option<Duration>,
    /// `timeout queue`; [`Self::connect`] when `None`.
    pub queue: Option<Duration>,
    /// `timeout tunnel`; client and server timeouts when `None`.
    pub tunnel: Option<Duration>,
    /// `timeout check`; bounds the read of a probe's answer.
    pub check: Option<Duration>,
    /// `timeout tarpit`; [`Self::connect`] when `None`.
    pub tarpit: Option<Duration>,
    /// `timeout http-request` and `http-keep-alive` of a backend apply when its request waits for
    /// the body (`option http-buffer-request`).
    pub http_request: Option<Duration>,
    /// `timeout http-keep-alive` of the backend.
    pub http_keep_alive: Option<Duration>,
}

/// `balance`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Balance {
    /// `roundrobin`: by weight, weights change live. The default with `mode http` too.
    #[default]
    RoundRobin,
    /// `static-rr`: by weight, fixed.
    StaticRoundRobin,
    /// `leastconn`.
    LeastConnections,
    /// `first`: fill the first server before the next.
    First,
    /// `source`: by client address.
    Source,
    /// `uri [whole] [len N] [depth N] [path-only]`.
    Uri(UriKey),
    /// `url_param <name> [check_post]`: the parameter of this name, in the query or in the body of a POST.
    UrlParam(String),
    /// `hdr(<name>) [use_domain_only]`.
    Header {
        /// The header's name.
        name: String,
        /// Hash only the domain part of a host name.
        domain_only: bool,
    },
    /// `rdp-cookie(<name>)`.
    RdpCookie(String),
    /// `random(<draws>)`.
    Random(u32),
    /// `hash <expression>`.
    Hash(Expr),
    /// `sticky`, of `mode log` backends.
    Sticky,
}

impl Balance {
    /// The word that statistics show.
    pub fn word(&self) -> &'static str {
        match self {
            Self::RoundRobin => "roundrobin",
            Self::StaticRoundRobin => "static-rr",
            Self::LeastConnections => "leastconn",
            Self::First => "first",
            Self::Source => "source",
            Self::Uri(_) => "uri",
            Self::UrlParam { .. } => "url_param",
            Self::Header { .. } => "hdr",
            Self::RdpCookie(_) => "rdp-cookie",
            Self::Random(_) => "random",
            Self::Hash(_) => "hash",
            Self::Sticky => "sticky",
        }
    }
}

/// The part of the URI that `balance uri` hashes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UriKey {
    /// `whole`: the query string too.
    pub whole: bool,
    /// `path-only`: an authority before the path is left out.
    pub path_only: bool,
    /// `len`: at most this many bytes.
    pub length_max: Option<u32>,
    /// `depth`: at most this many directories.
    pub depth_max: Option<u32>,
}

/// `hash-preserve-affinity`: which servers a request with a key passes over.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HashAffinity {
    /// None for its load.
    #[default]
    Always,
    /// Those that have reached their `maxconn`.
    Maxconn,
    /// Those whose queue has reached their `maxqueue`.
    Maxqueue,
}

/// `hash-type <method> <function> <modifier>`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HashType {
    /// `consistent` instead of `map-based`.
    pub consistent: bool,
    /// The hash function.
    pub function: HashFunction,
    /// `avalanche`. Also the meaning of `hash-type avalanche` alone.
    pub avalanche: bool,
}

/// The hash functions of `hash-type`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HashFunction {
    /// `sdbm`, the default.
    #[default]
    Sdbm,
    /// `djb2`.
    Djb2,
    /// `wt6`.
    Wt6,
    /// `crc32`.
    Crc32,
    /// `none`: the key is a number itself.
    None,
}

/// `cookie` (configuration manual, section 4.2).
#[derive(Clone, Debug, PartialEq)]
pub struct CookiePersistence {
    /// Cookie name.
    pub name: String,
    /// `rewrite`, `insert`, `prefix`, or none of them: the cookie is only read.
    pub mode: CookieMode,
    /// `indirect`.
    pub indirect: bool,
    /// `nocache`.
    pub nocache: bool,
    /// `postonly`.
    pub postonly: bool,
    /// `preserve`.
    pub preserve: bool,
    /// `httponly`.
    pub httponly: bool,
    /// `secure`.
    pub secure: bool,
    /// `domain`, each of them.
    pub domains: Vec<String>,
    /// `maxidle`.
    pub idle_max: Option<Duration>,
    /// `maxlife`.
    pub life_max: Option<Duration>,
    /// `dynamic`.
    pub dynamic: bool,
    /// `attr`, each of them.
    pub attributes: Vec<String>,
}

/// How `cookie` changes responses.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CookieMode {
    /// None of the words: the cookie is read and never written.
    #[default]
    Passive,
    /// `rewrite`.
    Rewrite,
    /// `insert`.
    Insert,
    /// `prefix`.
    Prefix,
}

/// `option redispatch [interval]`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Redispatch {
    /// Positive: on every n-th retry. Negative: on the n-th before the last; -1, the default, is
    /// the last retry. 0: never.
    pub interval: i32,
}

/// `retry-on`: which failures are retried.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RetryOn {
    /// `conn-failure`, the default.
    pub conn_failure: bool,
    /// `empty-response`.
    pub empty_response: bool,
    /// `junk-response`.
    pub junk_response: bool,
    /// `response-timeout`.
    pub response_timeout: bool,
    /// Numeric statuses.
    pub statuses: Vec<u16>,
}

impl Default for RetryOn {
    fn default() -> Self {
        Self {
            conn_failure: true,
            empty_response: false,
            junk_response: false,
            response_timeout: false,
            statuses: Vec::new(),
        }
    }
}

impl RetryOn {
    /// Whether anything but connecting may be retried, so that the request must be kept.
    pub fn after_send(&self) -> bool {
        self.empty_response
            || self.junk_response
            || self.response_timeout
            || !self.statuses.is_empty()
    }

    /// Whether a request is sent again whatever a server does that closes an idle connection meanwhile.
    /// Under `http-reuse safe` and `aggressive` any idle connection serves first requests then: HAProxy
    /// looks at these three words alone, and not at `retries` or the method.
    pub fn makes_reuse_harmless(&self) -> bool {
        self.conn_failure && self.empty_response && self.response_timeout
    }
}

/// `http-reuse`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HttpReuse {
    /// `never`.
    Never,
    /// `safe`: the first request of a client's connection goes over a new connection, except where
    /// [`RetryOn::makes_reuse_harmless`].
    #[default]
    Safe,
    /// `aggressive`: connections that were reused once serve first requests, too.
    Aggressive,
    /// `always`.
    Always,
}

/// `force-persist` or `ignore-persist`.
#[derive(Clone, Debug, PartialEq)]
pub struct PersistenceRule {
    /// Which of the two.
    pub action: PersistenceAction,
    /// When.
    pub condition: Condition,
}

/// The effect of a persistence rule on a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PersistenceAction {
    /// `force-persist`: its server is used even when it is down, and never another.
    Force,
    /// `ignore-persist`: the cookie is ignored, and none is set.
    Ignore,
}

/// A `stick` rule.
#[derive(Clone, Debug, PartialEq)]
pub struct StickRule {
    /// What it does.
    pub action: StickAction,
    /// The key that it looks up or remembers.
    pub key: Expr,
    /// The name of the table: the section's own where the line names none.
    pub table: String,
    /// When; always if `None`.
    pub condition: Option<Condition>,
}

/// What a `stick` rule does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StickAction {
    /// `stick on`: both of the next two.
    On,
    /// `stick match`: looks up the server of the request.
    Match,
    /// `stick store-request`: remembers the server of the request.
    StoreRequest,
    /// `stick store-response`: remembers the server by its response.
    StoreResponse,
}

impl StickAction {
    /// Whether it looks up the server of a request.
    pub const fn matches(self) -> bool {
        matches!(self, Self::On | Self::Match)
    }

    /// Whether it remembers the server of a request.
    pub const fn stores_request(self) -> bool {
        matches!(self, Self::On | Self::StoreRequest)
    }
}

/// `use-server <name> if|unless <condition>`.
#[derive(Clone, Debug, PartialEq)]
pub struct UseServer {
    /// Which server.
    pub target: UseServerTarget,
    /// When; always if `None`.
    pub condition: Option<Condition>,
}

/// A server's name, fixed or computed.
#[derive(Clone, Debug, PartialEq)]
pub enum UseServerTarget {
    /// A name of the same backend.
    Static(String),
    /// A log-format string.
    Dynamic(LogFormat),
}
