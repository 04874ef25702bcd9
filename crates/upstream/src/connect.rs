//! Opening a connection to a server.

use std::fmt;

use ballast_engine::{Backend, Server};

use ballast_model as model;
use ballast_mux::{Limits, ServerConnection};
use ballast_net::{self as net, ConnectOptions, KeepAlive, Source};
use ballast_wire::proxy_encode::{V2Facts, V2Options, encode_v1, encode_v2};
use ballast_worker::Stream;

use crate::Path;

/// A connection that did not come to be.
#[derive(Debug)]
pub enum ConnectError {
    /// The server has no address yet.
    NoAddress,
    /// The system or the server refused.
    Refused(net::Error),
    /// The PROXY header would pass its bound.
    ProxyHeader,
}

impl ConnectError {
    /// Whether the want is ours (descriptors, memory, ports) and says nothing about the server.
    pub fn is_our_want(&self) -> bool {
        matches!(self, Self::Refused(error) if error.kind().is_local_resource())
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAddress => out.write_str("the server has no address"),
            Self::Refused(error) => error.fmt(out),
            Self::ProxyHeader => out.write_str("the PROXY header would be too long"),
        }
    }
}

impl std::error::Error for ConnectError {}

/// Connects to a server. The PROXY header, when the server wants one, is gathered and leaves
/// with the first bytes. How long to wait is the caller's affair.
///
/// # Errors
/// [`ConnectError`].
pub async fn connect(
    backend: &Backend,
    server: &Server,
    path: &Path,
    unique_id: Option<&[u8]>,
    limits: Limits,
) -> Result<Box<ServerConnection>, ConnectError> {
    let reach = server.state.reach();
    let address = reach.address.as_ref().ok_or(ConnectError::NoAddress)?;
    let target = path
        .target(&server.model, address)
        .ok_or(ConnectError::NoAddress)?;
    drop(reach);
    let options = options(backend, server, path);
    let stream = Stream::connect(&target, &options)
        .await
        .map_err(ConnectError::Refused)?;
    // In a box: it goes from hand to hand for as long as it lives.
    let mut connection = Box::new(ServerConnection::new(stream, limits));
    if let Some(proxy) = &server.model.send_proxy {
        proxy_header(proxy, path, unique_id, connection.outbound.head())?;
    }
    Ok(connection)
}

/// Whether connections to the server carry something of the client in them and can therefore
/// not serve another client.
pub(crate) fn is_private(backend: &Backend, server: &Server) -> bool {
    server.model.send_proxy.is_some()
        || source(backend, server).is_some_and(|source| source.use_client.is_some())
}

fn source<'a>(backend: &'a Backend, server: &'a Server) -> Option<&'a model::SourceAddress> {
    server
        .model
        .source
        .as_ref()
        .or(backend.model.source.as_ref())
}

pub(crate) fn options(backend: &Backend, server: &Server, path: &Path) -> ConnectOptions {
    let model = &server.model;
    let keepalive = backend.model.keepalive;
    let source = source(backend, server);
    let boxed = |word: &String| word.as_str().into();
    ConnectOptions {
        congestion: model.congestion.as_ref().map(boxed),
        fast_open: model.fast_open,
        interface: source
            .and_then(|source| source.interface.as_ref())
            .or(model.interface.as_ref())
            .map(boxed),
        keepalive: keepalive.enabled.then_some(KeepAlive {
            idle: keepalive.idle,
            interval: keepalive.interval,
            count: keepalive.probe_count,
        }),
        smart_connect: backend.model.options.smart_connect,
        source: source.map(|source| match (source.use_client, path.source) {
            (Some(keep_port), Some(client)) => {
                let port = if keep_port { client.port() } else { 0 };
                Source {
                    address: (client.ip(), port).into(),
                    transparent: true,
                }
            }
            _ => Source {
                address: source.address,
                transparent: false,
            },
        }),
        user_timeout: model.user_timeout,
        ..ConnectOptions::default()
    }
}

fn proxy_header(
    proxy: &model::ProxyProtocol,
    path: &Path,
    unique_id: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> Result<(), ConnectError> {
    if proxy.version == 1 {
        encode_v1(out, path.both());
        return Ok(());
    }
    let options = V2Options {
        authority: proxy.authority,
        crc32c: proxy.crc32c,
        ssl: proxy.ssl,
        unique_id: proxy.unique_id,
        ..V2Options::default()
    };
    let facts = V2Facts {
        unique_id: proxy.unique_id.then_some(unique_id.unwrap_or_default()),
        ..V2Facts::default()
    };
    encode_v2(out, path.both(), options, &facts).map_err(|_| ConnectError::ProxyHeader)
}
