//! Servers: one line each, `default-server` already applied.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use ballast_expr::{Expr, LogFormat};

use crate::{
    Address, CheckMethod, CopyOnWrite, HttpProtocol, IsExplicit, Origin, PortSpec, ServerTls,
    WebsocketProtocol,
};

/// A `server`, or one instance of a `server-template`.
///
/// What a line says of itself alone is here. Its other words are its [`ServerSettings`], which lines
/// share: they are read as if they were fields of the server, and written so too.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Name, unique in its backend.
    pub name: String,
    /// `id` (HAProxy's "puid"), unique in its backend; consistent hashing depends on it.
    pub id: u32,
    /// Whether `id` gave the number.
    pub id_is_explicit: IsExplicit,
    /// `guid`.
    pub guid: Option<String>,
    /// Where the line is.
    pub origin: Origin,
    /// Its address. A name that is still here could not be resolved at start: the server has no
    /// address yet and begins in maintenance.
    pub address: Address,
    /// The host name that `address` was resolved from.
    pub host_name: Option<String>,
    /// Whether the port depends on the client's destination port.
    pub port_mapping: PortSpec,
    /// `weight`, 0 to 256; 1 by default.
    pub weight: u16,
    /// `backup`.
    pub backup: bool,
    /// `disabled`: begins in maintenance.
    pub disabled: bool,
    /// `disabled` is among its words: a server that a command added begins in maintenance without it.
    pub says_disabled: IsExplicit,
    /// `cookie`: the value that identifies this server.
    pub cookie: Option<String>,
    /// The other words of the line.
    pub settings: CopyOnWrite<ServerSettings>,
}

/// What most `server` lines of a backend have in common: the words of `default-server`, and those
/// that each line repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// `maxconn`; 0 is no limit.
    pub connection_count_max: u32,
    /// `minconn`; 0 means none: the limit is not dynamic.
    pub connection_count_min: u32,
    /// `maxqueue`; 0 is no limit.
    pub queue_count_max: u32,
    /// Health checks of this server.
    pub checks: ServerChecks,
    /// `track [<backend>/]<server>`.
    pub track: Option<(String, String)>,
    /// `slowstart`.
    pub slow_start: Duration,
    /// `on-marked-down`.
    pub on_marked_down: OnMarkedDown,
    /// `on-marked-up`.
    pub on_marked_up: OnMarkedUp,
    /// `init-addr`, in order; `last,libc` when empty.
    pub init_addr: Vec<InitAddr>,
    /// `init-state`.
    pub init_state: InitState,
    /// `send-proxy*`.
    pub send_proxy: Option<ProxyProtocol>,
    /// `proto`; when `None` it is what TLS negotiated, or HTTP/1.
    pub protocol: Option<HttpProtocol>,
    /// `ws`.
    pub websocket_protocol: WebsocketProtocol,
    /// `source`, with its `interface` and `usesrc`.
    pub source: Option<SourceAddress>,
    /// `socks4`: the SOCKS4 proxy that connections go through.
    pub socks4: Option<SocketAddr>,
    /// `namespace`.
    pub namespace: Option<String>,
    /// `tfo`.
    pub tcp_fast_open: bool,
    /// `tcp-ut`.
    pub tcp_user_timeout: Option<Duration>,
    /// `cc`.
    pub congestion_algorithm: Option<String>,
    /// `redir`: GET and HEAD requests are redirected to this prefix.
    pub redirect_prefix: Option<String>,
    /// `strict-maxconn`: `maxconn` limits connections, too, idle ones included.
    pub has_strict_maxconn: bool,
    /// `pool-max-conn`: how many idle connections are kept; `None` is no limit, 0 none.
    pub idle_count_max: Option<u32>,
    /// `pool-purge-delay`; 5 s by default.
    pub idle_purge_delay: Duration,
    /// `idle-ping`: how long a connection of HTTP/2 without streams may be silent before it is sent a
    /// PING; `None` is never.
    pub idle_ping: Option<Duration>,
    /// `max-reuse`: exchanges one connection may carry; `None` is no limit.
    pub reuse_count_max: Option<u32>,
    /// `hash-key`.
    pub hash_key: HashKey,
    /// `non-stick`.
    pub non_stick: bool,
    /// `ssl`, `check-ssl` and the words that act on them; `None` for a clear server.
    pub tls: Option<Box<ServerTls>>,
    /// `pool-conn-name`: what must be equal for a kept connection to be used again; `sni` when
    /// `None`.
    pub pool_connection_name: Option<Expr>,
}

impl Server {
    /// A server with the documented defaults, except for name and address.
    pub fn new(name: String, address: Address) -> Self {
        Self {
            name,
            id: 0,
            id_is_explicit: IsExplicit::default(),
            guid: None,
            origin: Origin::default(),
            address,
            host_name: None,
            port_mapping: PortSpec::default(),
            weight: 1,
            backup: false,
            disabled: false,
            says_disabled: IsExplicit::default(),
            cookie: None,
            settings: CopyOnWrite::default(),
        }
    }

    /// Shares the settings of another server where both have the same.
    pub fn share_settings(&mut self, other: &Self) {
        if self.settings == other.settings {
            self.settings = other.settings.clone();
        }
    }
}

impl Deref for Server {
    type Target = ServerSettings;

    fn deref(&self) -> &ServerSettings {
        &self.settings
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut ServerSettings {
        &mut self.settings
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            connection_count_max: 0,
            connection_count_min: 0,
            queue_count_max: 0,
            checks: ServerChecks::default(),
            track: None,
            slow_start: Duration::ZERO,
            on_marked_down: OnMarkedDown::default(),
            on_marked_up: OnMarkedUp::default(),
            init_addr: Vec::new(),
            init_state: InitState::default(),
            send_proxy: None,
            protocol: None,
            websocket_protocol: WebsocketProtocol::default(),
            source: None,
            socks4: None,
            namespace: None,
            tcp_fast_open: false,
            tcp_user_timeout: None,
            congestion_algorithm: None,
            redirect_prefix: None,
            has_strict_maxconn: false,
            idle_count_max: None,
            idle_purge_delay: Duration::from_secs(5),
            idle_ping: None,
            reuse_count_max: None,
            hash_key: HashKey::default(),
            non_stick: false,
            tls: None,
            pool_connection_name: None,
        }
    }
}

/// Health checks of one server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerChecks {
    /// `check`.
    pub enabled: bool,
    /// `healthcheck`: the check of that section, in place of its backend's.
    pub method: Option<Arc<CheckMethod>>,
    /// `addr`: checked instead of the server's own address.
    pub address: Option<Address>,
    /// `port`: checked instead of the server's own port.
    pub port: Option<u16>,
    /// `inter`; 2 s by default.
    pub interval: Duration,
    /// `fastinter`; [`Self::interval`] when `None`.
    pub fast_interval: Option<Duration>,
    /// `downinter`; [`Self::interval`] when `None`.
    pub down_interval: Option<Duration>,
    /// `rise`; 2 by default.
    pub rise: u32,
    /// `fall`; 3 by default.
    pub fall: u32,
    /// `check-send-proxy`.
    pub sends_proxy_header: bool,
    /// `check-via-socks4`: through the proxy of [`ServerSettings::socks4`], if there is one.
    pub via_socks4: bool,
    /// `check-proto`: the version of HTTP that checks speak; when `None` it is what traffic speaks.
    pub protocol: Option<HttpProtocol>,
    /// `observe`.
    pub observe: Option<Observe>,
    /// `error-limit`; 10 by default.
    pub error_limit: u32,
    /// `on-error`.
    pub on_error: OnError,
    /// `agent-check`.
    pub agent_enabled: bool,
    /// `agent-addr`.
    pub agent_address: Option<Address>,
    /// `agent-port`.
    pub agent_port: Option<u16>,
    /// `agent-inter`; [`Self::interval`] when `None`.
    pub agent_interval: Option<Duration>,
    /// `agent-send`.
    pub agent_send: Option<String>,
}

impl Default for ServerChecks {
    fn default() -> Self {
        Self {
            enabled: false,
            method: None,
            address: None,
            port: None,
            interval: Duration::from_secs(2),
            fast_interval: None,
            down_interval: None,
            rise: 2,
            fall: 3,
            sends_proxy_header: false,
            via_socks4: false,
            protocol: None,
            observe: None,
            error_limit: 10,
            on_error: OnError::default(),
            agent_enabled: false,
            agent_address: None,
            agent_port: None,
            agent_interval: None,
            agent_send: None,
        }
    }
}

/// `observe`: which failures of traffic count as failed checks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Observe {
    /// `layer4`: connections that fail.
    Layer4,
    /// `layer7`: also unusable responses and 5xx except 501 and 505.
    Layer7,
}

/// `on-error`: what happens after `error-limit` observed failures.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnError {
    /// `fastinter`.
    FastInter,
    /// `fail-check`, the default.
    #[default]
    FailCheck,
    /// `sudden-death`.
    SuddenDeath,
    /// `mark-down`.
    MarkDown,
}

/// `on-marked-down`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnMarkedDown {
    /// Nothing: sessions continue.
    #[default]
    Nothing,
    /// `shutdown-sessions`.
    ShutdownSessions,
}

/// `on-marked-up`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnMarkedUp {
    /// Nothing: backups finish their sessions.
    #[default]
    Nothing,
    /// `shutdown-backup-sessions`.
    ShutdownBackupSessions,
}

/// One method of `init-addr`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InitAddr {
    /// `last`: from the state file.
    Last,
    /// `libc`: the system's resolver.
    Libc,
    /// `none`: start without an address, in maintenance.
    None,
    /// A fixed address.
    Address(std::net::IpAddr),
}

/// `init-state`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum InitState {
    /// `fully-up`.
    FullyUp,
    /// `up`, the default.
    #[default]
    Up,
    /// `down`.
    Down,
    /// `fully-down`.
    FullyDown,
}

/// `send-proxy`, `send-proxy-v2` and their options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProxyProtocol {
    /// 1 or 2.
    pub version: u8,
    /// `proxy-v2-options crc32c`.
    pub crc32c: bool,
    /// `proxy-v2-options unique-id`.
    pub unique_id: bool,
    /// `proxy-v2-options authority`.
    pub authority: bool,
    /// `proxy-v2-options ssl` and the options that imply it, or `send-proxy-v2-ssl*`. The four
    /// options below hold with it only.
    pub ssl: bool,
    /// `proxy-v2-options cert-cn`, or `send-proxy-v2-ssl-cn`.
    pub cert_cn: bool,
    /// `proxy-v2-options cert-key`.
    pub cert_key: bool,
    /// `proxy-v2-options cert-sig`.
    pub cert_sig: bool,
    /// `proxy-v2-options ssl-cipher`.
    pub ssl_cipher: bool,
    /// `set-proxy-v2-tlv-fmt(<id>)`: type and value, each of them.
    pub tlvs: Vec<(u8, LogFormat)>,
}

/// `source <addr> [usesrc ...] [interface ...]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceAddress {
    /// The source address; if it is unspecified the system chooses.
    pub address: SocketAddr,
    /// Last port of a range that begins at the address's port.
    pub port_last: Option<u16>,
    /// `usesrc`: connections for clients use another source address, which need not be this
    /// machine's; checks use [`Self::address`].
    pub transparent: Option<TransparentSource>,
    /// `interface`.
    pub interface: Option<String>,
}

/// `usesrc`: the client address that servers see.
#[derive(Clone, Debug, PartialEq)]
pub enum TransparentSource {
    /// `<addr>[:<port>]`.
    Address(SocketAddr),
    /// `client`: the client's address and port.
    Client,
    /// `clientip`: the client's address, with a port chosen by the system.
    ClientIp,
    /// `hdr_ip(<header>[,<occurrence>])`: read from the request.
    Header(Expr),
}

/// `hash-key`: what determines a server's position on the consistent-hash ring.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HashKey {
    /// `id`, the default.
    #[default]
    Id,
    /// `addr`.
    Addr,
    /// `addr-port`.
    AddrPort,
}
