//! What a connection was opened with, and therefore which exchanges may reuse it.
//!
//! A connection is opened from its [`Key`] and nothing else. An exchange reuses an idle connection
//! only when it would have opened an equal one: no request leaves on a connection to another
//! address, from another address or under another client's name. HAProxy compares a hash of the
//! same values (configuration manual, "http-reuse").

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ballast_engine::{Backend, Connecting, Server};
use ballast_model::{self as model, TransparentSource};
use ballast_mux::Limits;

use crate::Path;

/// Values of an exchange that go into the connection opened for it.
#[derive(Clone, Debug, Default)]
pub struct ExchangeValues<'a> {
    /// The identifier of `unique-id-format`.
    pub unique_id: Option<&'a [u8]>,
    /// The address that `usesrc hdr_ip` read from the request.
    pub source: Option<IpAddr>,
    /// The values of `set-proxy-v2-tlv-fmt`, in the order of the server's line.
    pub tlvs: Vec<Vec<u8>>,
}

/// What an exchange requires of its connection, beside what the configuration says. For a server
/// whose connections are all alike, nothing here was computed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Particulars {
    /// The limits of messages on it.
    pub(crate) limits: Limits,
    /// The address of the server it was computed for
    /// ([`ballast_engine::ServerState::address_epoch`]).
    pub(crate) epoch: u32,
    pub(crate) target: Target,
    pub(crate) source: Source,
    pub(crate) proxy_header_content: Option<ProxyHeaderContent>,
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct ConnectionEnds {
    target: Target,
    source: Source,
}

impl ConnectionEnds {
    /// Whether both ends are independent of the client.
    pub(crate) fn are_usual(&self) -> bool {
        self.target == Target::Own && self.source == Source::Own
    }
}

/// The address a connection is opened to.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Target {
    /// The server's own address, the same for every client.
    Own,
    /// An address derived from the client's destination.
    Of(SocketAddr),
    /// The client's port plus the offset is not a port.
    Nowhere,
}

/// The address a connection is opened from.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Source {
    /// Our own address, as the line says.
    Own,
    /// An address set by `usesrc`.
    Foreign(SocketAddr),
    /// The client's own address and port: no other client can share the connection.
    Client(SocketAddr),
}

/// The content of a PROXY header.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ProxyHeaderContent {
    pub(crate) ends: Option<(SocketAddr, SocketAddr)>,
    pub(crate) unique_id: Option<Box<[u8]>>,
    pub(crate) tlvs: Vec<Vec<u8>>,
}

impl Particulars {
    /// What an exchange requires of a connection to `server`.
    pub fn of(
        backend: &Backend,
        server: &Server,
        path: &Path,
        told: ExchangeValues<'_>,
        limits: Limits,
    ) -> Self {
        // Read before the address: if the address changes in between, the epoch is outdated and the
        // connection is not reused.
        let epoch = server.state.address_epoch();
        let ExchangeValues {
            unique_id,
            source: named,
            tlvs,
        } = told;
        let line = source(&backend.connecting, &server.model);
        let foreign = |address: Option<IpAddr>| {
            address.map_or(Source::Own, |ip| Source::Foreign(SocketAddr::new(ip, 0)))
        };
        Self {
            limits,
            epoch,
            target: target(server, path),
            source: match line.and_then(|line| line.transparent.as_ref()) {
                None => Source::Own,
                Some(TransparentSource::Address(address)) => Source::Foreign(*address),
                Some(TransparentSource::Client) => path.source.map_or(Source::Own, Source::Client),
                Some(TransparentSource::ClientIp) => foreign(path.source_ip()),
                Some(TransparentSource::Header(_)) => foreign(named),
            },
            proxy_header_content: server.model.send_proxy.as_ref().map(|proxy| {
                ProxyHeaderContent {
                    ends: path.both(),
                    unique_id: proxy
                        .unique_id
                        .then(|| unique_id.unwrap_or_default().into()),
                    tlvs,
                }
            }),
        }
    }

    /// The two ends of the connection.
    pub(crate) fn ends(&self) -> ConnectionEnds {
        ConnectionEnds {
            target: self.target,
            source: self.source,
        }
    }

    /// Whether the connection carries something that no other client can ask for. Such a connection
    /// stays with its client and is never shared.
    pub(crate) fn is_of_one_client(&self) -> bool {
        self.proxy_header_content.is_some() || matches!(self.source, Source::Client(_))
    }
}

/// The address of the server, where it depends on the client (configuration manual, "server").
fn target(server: &Server, path: &Path) -> Target {
    let reach = server.state.reach();
    let Some(model::Address::Inet(address)) = &reach.address else {
        return Target::Own;
    };
    let port = reach.port.unwrap_or(server.model.port);
    if !Path::is_followed(port, address) {
        return Target::Own;
    }
    path.followed(port, address)
        .map_or(Target::Nowhere, Target::Of)
}

/// The `source` of a server's connections.
pub(crate) fn source<'a>(
    section: &'a Connecting,
    line: &'a model::Server,
) -> Option<&'a model::SourceAddress> {
    line.source.as_ref().or(section.source.as_ref())
}

/// Everything that a connection is opened from.
#[derive(Clone, Debug)]
pub struct Key {
    pub(crate) line: Arc<model::Server>,
    pub(crate) section: Arc<Connecting>,
    pub(crate) particulars: Particulars,
}

impl Key {
    /// The key of a connection to be opened.
    pub fn new(backend: &Backend, server: &Server, particulars: Particulars) -> Self {
        Self {
            line: Arc::clone(&server.model),
            section: Arc::clone(&backend.connecting),
            particulars,
        }
    }

    /// Whether an exchange that requires `wanted` would open the same connection. The configuration
    /// may have changed since this one was opened, and its particulars may differ.
    pub(crate) fn fits(&self, backend: &Backend, server: &Server, wanted: &Particulars) -> bool {
        let Self {
            line,
            section,
            particulars,
        } = self;
        particulars == wanted
            && (Arc::ptr_eq(section, &backend.connecting) || *section == backend.connecting)
            && (Arc::ptr_eq(line, &server.model) || connects_alike(line, &server.model))
    }
}

/// Whether two `server` lines open the same connections. Every field of the model is named, so that
/// nobody adds one without deciding whether it belongs to the key.
fn connects_alike(one: &model::Server, other: &model::Server) -> bool {
    let model::Server {
        congestion,
        fast_open,
        interface,
        namespace,
        send_proxy,
        source,
        user_timeout,
        // The epoch covers the address, the target covers the port.
        address: _,
        host_name: _,
        port: _,
        // Fields that do not affect how a connection is opened.
        name: _,
        id: _,
        id_is_given: _,
        guid: _,
        origin: _,
        weight: _,
        backup: _,
        disabled: _,
        cookie: _,
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
        idle_purge: _,
        reuse_count_max: _,
        hash_key: _,
        non_stick: _,
    } = one;
    *congestion == other.congestion
        && *fast_open == other.fast_open
        && *interface == other.interface
        && *namespace == other.namespace
        && *send_proxy == other.send_proxy
        && *source == other.source
        && *user_timeout == other.user_timeout
}
