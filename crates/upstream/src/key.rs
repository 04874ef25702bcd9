//! What a connection was opened with, and therefore which exchanges may reuse it.
//!
//! A connection is opened from its [`ConnectionKey`] and nothing else. An exchange reuses an idle
//! connection only when it would have opened an equal one: no request leaves on a connection to
//! another address, from another address or under another client's name. HAProxy compares a hash of
//! the same values (configuration manual, "http-reuse").

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ballast_engine::{Backend, ConnectSettings, H2Counts, Server, Sni, websocket_alpn};
use ballast_model::{self as model, TransparentSource};
use ballast_mux::{Limits, StreamSettings};
use ballast_net::PacketOptions;

use crate::ClientAddresses;

/// Values of an exchange that go into the connection opened for it.
#[derive(Clone, Debug, Default)]
pub struct ExchangeValues<'a> {
    /// The identifier of `unique-id-format`.
    pub unique_id: Option<&'a [u8]>,
    /// The address that `usesrc hdr_ip` read from the request.
    pub source: Option<IpAddr>,
    /// The values of `set-proxy-v2-tlv-fmt`, in the order of the server's line.
    pub tlvs: Vec<Vec<u8>>,
    /// What a PROXY header tells of the client's TLS session. Boxed: few servers are told.
    pub client_tls: Option<Box<ClientTlsValues>>,
    /// The value of an `sni` that each exchange evaluates ([`Sni::PerExchange`]).
    pub sni: Option<Arc<[u8]>>,
    /// The value of `pool-conn-name`.
    pub pool_name: Option<Arc<[u8]>>,
    /// `set-bc-mark`, `set-bc-tos`.
    pub packets: PacketOptions,
    /// The client's connection: a number that no other one of this worker has.
    pub session: u64,
    /// Whether the client asks for a WebSocket.
    pub is_websocket: bool,
    /// Whether the client asks for another protocol, a WebSocket or any.
    pub asks_protocol: bool,
}

/// What a PROXY header of version 2 tells of the client's TLS session.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClientTlsValues {
    /// The protocol agreed on by ALPN.
    pub protocol: Option<Box<[u8]>>,
    /// The host name asked for.
    pub authority: Option<Box<[u8]>>,
    /// The session; `None` for a clear connection.
    pub session: Option<Box<ClientTlsSession>>,
}

/// A client's TLS session in a PROXY header: what is not asked for may be left out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClientTlsSession {
    /// Such as `TLSv1.3`.
    pub version: &'static str,
    /// The client showed a certificate over this connection.
    pub shown_in_connection: bool,
    /// The client showed a certificate in this session.
    pub shown_in_session: bool,
    /// OpenSSL's number of the result of its check.
    pub verify_result: u32,
    /// The common name of that certificate.
    pub common_name: Option<Box<[u8]>>,
    /// OpenSSL's name of the cipher.
    pub cipher: Option<&'static str>,
    /// The signature algorithm of our certificate.
    pub signature_algorithm: Option<Box<str>>,
    /// The algorithm of our certificate's key, and its bits.
    pub key: Option<Box<str>>,
}

/// What an exchange requires of its connection, beside what the configuration says. For a server
/// whose connections are all alike, none of it depends on the exchange.
#[derive(Clone, Debug)]
pub struct ConnectionRequirements {
    /// The limits of messages on it.
    pub(crate) limits: Limits,
    /// Which address of the server it was computed for
    /// ([`ballast_engine::ServerState::address_epoch`]).
    pub(crate) epoch: u32,
    pub(crate) target: ConnectTarget,
    pub(crate) source: ConnectSource,
    /// Options of the packets to the server.
    pub(crate) packets: PacketOptions,
    /// What is compared of names: that of `pool-conn-name`, else that of `sni`.
    pub(crate) name: ConnectionName,
    /// The name that a TLS connection sends. It is not compared.
    pub(crate) sni: ConnectionName,
    /// Boxed: most servers get no PROXY header, and a connection moves with its key.
    pub(crate) proxy_header_content: Option<Box<ProxyHeaderContent>>,
    /// The client's connection. It is not compared.
    pub(crate) session: u64,
    /// What a connection that speaks HTTP/2 is held to; none before [`Self::carry_http`]. It is not
    /// compared.
    pub(crate) streams: Option<StreamSettings>,
    /// Whether it is for a WebSocket, where the server may speak another version for those.
    pub(crate) is_websocket: bool,
    /// Whether the client asks for another protocol. It is not compared.
    pub(crate) asks_protocol: bool,
}

/// What connections of one server differ in: the two ends, options of packets, and the name.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct IdleGroupKey {
    target: ConnectTarget,
    source: ConnectSource,
    packets: PacketOptions,
    name: ConnectionName,
}

/// A name of a connection.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum ConnectionName {
    /// The server's line decides, or there is none: the same for every exchange.
    Configured,
    /// What the exchange evaluated; `None` when there was no value.
    OfExchange(Option<Arc<[u8]>>),
}

/// The address a connection is opened to.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum ConnectTarget {
    /// The server's address, the same for every client.
    Configured,
    /// An address derived from the address that the client connected to.
    FromClient(SocketAddr),
    /// The client's port plus the offset is not a port.
    NoPort,
}

/// The address a connection is opened from.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum ConnectSource {
    /// The address of `source`, or the one that the kernel chooses: the same for every client.
    Configured,
    /// An address set by `usesrc`, without the client's port.
    Transparent(SocketAddr),
    /// The client's own address and port: no other client can share the connection.
    Client(SocketAddr),
}

/// The content of a PROXY header.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ProxyHeaderContent {
    pub(crate) ends: Option<(SocketAddr, SocketAddr)>,
    pub(crate) unique_id: Option<Box<[u8]>>,
    pub(crate) tlvs: Vec<Vec<u8>>,
    pub(crate) client_tls: ClientTlsValues,
}

impl ConnectionRequirements {
    /// What an exchange requires of a connection to `server`.
    pub fn of(
        backend: &Backend,
        server: &Server,
        client: &ClientAddresses,
        values: ExchangeValues<'_>,
        limits: Limits,
    ) -> Self {
        // Read before the address: if the address changes in between, the epoch is outdated and the
        // connection is not reused.
        let epoch = server.state.address_epoch();
        let ExchangeValues {
            unique_id,
            source: header_source,
            tlvs,
            client_tls,
            sni,
            pool_name,
            packets,
            session,
            is_websocket,
            asks_protocol,
        } = values;
        let sni = match server.traffic_tls().map(|tls| tls.sni()) {
            Some(Sni::PerExchange) => ConnectionName::OfExchange(sni),
            Some(Sni::Fixed(_)) | None => ConnectionName::Configured,
        };
        let line = source(&backend.connecting, &server.model);
        let transparent = |address: Option<IpAddr>| {
            address.map_or(ConnectSource::Configured, |ip| {
                ConnectSource::Transparent(SocketAddr::new(ip, 0))
            })
        };
        Self {
            limits,
            epoch,
            session,
            streams: None,
            is_websocket: is_websocket && has_websocket_protocol(server),
            asks_protocol,
            target: target(server, client),
            name: match server.model.pool_connection_name {
                Some(_) => ConnectionName::OfExchange(pool_name),
                None => sni.clone(),
            },
            sni,
            packets,
            source: match line.and_then(|line| line.transparent.as_ref()) {
                None => ConnectSource::Configured,
                Some(TransparentSource::Address(address)) => ConnectSource::Transparent(*address),
                Some(TransparentSource::Client) => client
                    .source
                    .map_or(ConnectSource::Configured, ConnectSource::Client),
                Some(TransparentSource::ClientIp) => transparent(client.source_ip()),
                Some(TransparentSource::Header(_)) => transparent(header_source),
            },
            proxy_header_content: server.model.send_proxy.as_ref().map(|proxy| {
                Box::new(ProxyHeaderContent {
                    ends: client.both(),
                    unique_id: proxy
                        .unique_id
                        .then(|| unique_id.unwrap_or_default().into()),
                    tlvs,
                    client_tls: client_tls.map(|told| *told).unwrap_or_default(),
                })
            }),
        }
    }

    /// Says that the connection is opened for HTTP, and what it is held to where it turns out to speak
    /// HTTP/2.
    pub fn carry_http(&mut self, streams: StreamSettings) {
        self.streams = Some(streams);
    }

    /// What the connection differs in from others of its server; `None` where none of that depends on
    /// the exchange.
    #[inline]
    pub(crate) fn idle_group_key(&self) -> Option<IdleGroupKey> {
        let are_configured = self.target == ConnectTarget::Configured
            && self.source == ConnectSource::Configured
            && self.packets.is_empty()
            && self.name == ConnectionName::Configured;
        (!are_configured).then(|| IdleGroupKey {
            target: self.target,
            source: self.source,
            packets: self.packets,
            name: self.name.clone(),
        })
    }

    /// Whether a connection that was opened for this may carry what requires `wanted`.
    fn fits(&self, wanted: &Self) -> bool {
        let Self {
            limits,
            epoch,
            target,
            source,
            packets,
            name,
            sni: _,
            session: _,
            streams: _,
            is_websocket,
            asks_protocol: _,
            proxy_header_content,
        } = self;
        *limits == wanted.limits
            && *epoch == wanted.epoch
            && *target == wanted.target
            && *source == wanted.source
            && *packets == wanted.packets
            && *name == wanted.name
            && *is_websocket == wanted.is_websocket
            && *proxy_header_content == wanted.proxy_header_content
    }

    /// Whether the connection carries the address or the PROXY header of one client. Such a
    /// connection stays with its client and is never shared.
    pub(crate) fn is_of_one_client(&self) -> bool {
        self.proxy_header_content.is_some() || matches!(self.source, ConnectSource::Client(_))
    }
}

/// Whether connections for WebSockets may speak another version of HTTP than others.
fn has_websocket_protocol(server: &Server) -> bool {
    server.model.websocket_protocol != model::WebsocketProtocol::Auto
        || websocket_alpn(&server.model).is_some()
}

/// The address of the server, where it depends on the client (configuration manual, "server").
fn target(server: &Server, client: &ClientAddresses) -> ConnectTarget {
    let current = server.state.current_address();
    let Some(model::Address::Inet(address)) = &current.address else {
        return ConnectTarget::Configured;
    };
    let port = current.port.unwrap_or(server.model.port_mapping);
    if !ClientAddresses::depends_on_client(port, address) {
        return ConnectTarget::Configured;
    }
    client
        .server_address(port, address)
        .map_or(ConnectTarget::NoPort, ConnectTarget::FromClient)
}

/// The `source` of a server's connections.
pub(crate) fn source<'a>(
    section: &'a ConnectSettings,
    line: &'a model::Server,
) -> Option<&'a model::SourceAddress> {
    line.source.as_ref().or(section.source.as_ref())
}

/// Everything that a connection is opened from.
#[derive(Clone, Debug)]
pub struct ConnectionKey {
    pub(crate) line: Arc<model::Server>,
    pub(crate) section: Arc<ConnectSettings>,
    /// Where connections of HTTP/2 are counted.
    pub(crate) h2: Arc<H2Counts>,
    pub(crate) requirements: ConnectionRequirements,
}

impl ConnectionKey {
    /// The key of a connection to be opened.
    pub fn new(backend: &Backend, server: &Server, requirements: ConnectionRequirements) -> Self {
        Self {
            line: Arc::clone(&server.model),
            section: Arc::clone(&backend.connecting),
            h2: Arc::clone(&backend.state.h2),
            requirements,
        }
    }

    /// Whether an exchange that requires `wanted` would open the same connection. The configuration
    /// may have changed since this one was opened, and its particulars may differ.
    pub(crate) fn fits(
        &self,
        backend: &Backend,
        server: &Server,
        wanted: &ConnectionRequirements,
    ) -> bool {
        let Self {
            line,
            section,
            h2: _,
            requirements,
        } = self;
        requirements.fits(wanted)
            && (Arc::ptr_eq(section, &backend.connecting) || *section == backend.connecting)
            && (Arc::ptr_eq(line, &server.model) || connects_alike(line, &server.model))
    }
}

/// Whether two `server` lines open the same connections. Every field of the model is named: who adds
/// one must decide whether it belongs to the key.
fn connects_alike(one: &model::Server, other: &model::Server) -> bool {
    let model::Server {
        settings,
        // The epoch covers the address, the target covers the port.
        address: _,
        host_name: _,
        port_mapping: _,
        // Fields that do not affect how a connection is opened.
        name: _,
        id: _,
        id_is_explicit: _,
        guid: _,
        origin: _,
        weight: _,
        backup: _,
        disabled: _,
        says_disabled: _,
        cookie: _,
    } = one;
    settings.is_shared_with(&other.settings) || settings_connect_alike(settings, other)
}

fn settings_connect_alike(one: &model::ServerSettings, other: &model::ServerSettings) -> bool {
    let model::ServerSettings {
        congestion_algorithm,
        tcp_fast_open,
        namespace,
        protocol,
        websocket_protocol,
        send_proxy,
        source,
        socks4,
        tcp_user_timeout,
        // The lease compares the configuration that the handshake was made with.
        tls: _,
        // The value is compared with that of each exchange.
        pool_connection_name: _,
        // Fields that do not affect how a connection is opened.
        connection_count_max: _,
        connection_count_min: _,
        queue_count_max: _,
        checks: _,
        track: _,
        slow_start: _,
        on_marked_down: _,
        on_marked_up: _,
        init_addr: _,
        init_state: _,
        redirect_prefix: _,
        idle_count_max: _,
        idle_purge_delay: _,
        reuse_count_max: _,
        idle_ping: _,
        hash_key: _,
        non_stick: _,
        has_strict_maxconn: _,
    } = one;
    *congestion_algorithm == other.congestion_algorithm
        && *tcp_fast_open == other.tcp_fast_open
        && *namespace == other.namespace
        && *protocol == other.protocol
        && *websocket_protocol == other.websocket_protocol
        && *send_proxy == other.send_proxy
        && *source == other.source
        && *socks4 == other.socks4
        && *tcp_user_timeout == other.tcp_user_timeout
}
