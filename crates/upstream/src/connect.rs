//! Opening a connection to a server.

use std::fmt;
use std::net::IpAddr;

use ballast_engine::{Backend, Server};

use ballast_model::{self as model, TransparentSource};
use ballast_mux::{Limits, ServerConnection};
use ballast_net::{self as net, ConnectOptions, KeepAlive, Source};
use ballast_wire::proxy_encode::{V2Facts, V2Options, encode_v1, encode_v2};
use ballast_worker::Stream;

use crate::{Link, Path};

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

/// What a new connection takes with it of the exchange it is opened for.
#[derive(Clone, Debug, Default)]
pub struct Told<'a> {
    /// The identifier of `unique-id-format`.
    pub unique_id: Option<&'a [u8]>,
    /// The address that `usesrc hdr_ip` found in the request.
    pub source: Option<IpAddr>,
    /// The values of `set-proxy-v2-tlv-fmt`, in the order of the server's line.
    pub tlvs: Vec<Vec<u8>>,
}

/// Connects to a server. The PROXY header, when the server wants one, is gathered and leaves
/// with the first bytes. How long to wait is the caller's affair.
///
/// # Errors
/// [`ConnectError`].
pub async fn connect(
    backend: &Backend,
    server: &Server,
    path: &Path,
    told: &Told<'_>,
    limits: Limits,
) -> Result<Link, ConnectError> {
    let epoch = server.state.address_epoch();
    let reach = server.state.reach();
    let address = reach.address.as_ref().ok_or(ConnectError::NoAddress)?;
    let target = path
        .target(reach.port.unwrap_or(server.model.port), address)
        .ok_or(ConnectError::NoAddress)?;
    drop(reach);
    let options = options(backend, server, Some((path, told)));
    let stream = Stream::connect(&target, &options)
        .await
        .map_err(ConnectError::Refused)?;
    let mut connection = ServerConnection::new(stream, limits);
    connection.epoch = epoch;
    if let Some(proxy) = &server.model.send_proxy {
        proxy_header(proxy, path, told, connection.outbound.head())?;
    }
    Ok(Link::new(server, connection))
}

/// Whether connections to the server carry something of the client in them and can therefore
/// not serve another client.
pub(crate) fn is_private(backend: &Backend, server: &Server) -> bool {
    server.model.send_proxy.is_some()
        || source(backend, server).is_some_and(|source| match source.transparent {
            None | Some(TransparentSource::Address(_)) => false,
            Some(
                TransparentSource::Client
                | TransparentSource::ClientIp
                | TransparentSource::Header(_),
            ) => true,
        })
}

fn source<'a>(backend: &'a Backend, server: &'a Server) -> Option<&'a model::SourceAddress> {
    server
        .model
        .source
        .as_ref()
        .or(backend.model.source.as_ref())
}

/// Where a connection leaves from: `exchange` is what it is opened for, `None` for a probe, which
/// leaves from our own address (configuration manual, "source").
fn leaves_from(source: &model::SourceAddress, exchange: Option<(&Path, &Told<'_>)>) -> Source {
    let foreign = exchange.and_then(|(path, told)| match source.transparent.as_ref()? {
        TransparentSource::Address(address) => Some(*address),
        TransparentSource::Client => path.source,
        TransparentSource::ClientIp => Some((path.source?.ip(), 0).into()),
        TransparentSource::Header(_) => Some((told.source?, 0).into()),
    });
    match foreign {
        Some(address) => Source {
            address,
            port_last: None,
            transparent: true,
        },
        None => Source {
            address: source.address,
            port_last: source.port_last,
            transparent: false,
        },
    }
}

/// The options of a connection to the server; `exchange` as for [`leaves_from`].
pub(crate) fn options(
    backend: &Backend,
    server: &Server,
    exchange: Option<(&Path, &Told<'_>)>,
) -> ConnectOptions {
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
        receive_buffer: backend.socket_buffers.receive,
        send_buffer: backend.socket_buffers.send,
        smart_connect: backend.model.options.smart_connect,
        source: source.map(|source| leaves_from(source, exchange)),
        user_timeout: model.user_timeout,
        ..ConnectOptions::default()
    }
}

fn proxy_header(
    proxy: &model::ProxyProtocol,
    path: &Path,
    told: &Told<'_>,
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
    let kinds = proxy.tlvs.iter().map(|(kind, _)| *kind);
    let values = told.tlvs.iter().map(Vec::as_slice);
    let custom: Vec<(u8, &[u8])> = kinds.zip(values).collect();
    let facts = V2Facts {
        custom: &custom,
        unique_id: proxy
            .unique_id
            .then_some(told.unique_id.unwrap_or_default()),
        ..V2Facts::default()
    };
    encode_v2(out, path.both(), options, &facts).map_err(|_| ConnectError::ProxyHeader)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ballast_engine::{Generation, Process, Registry};
    use ballast_expr::Expr;

    use super::*;

    fn house(transparent: Option<TransparentSource>) -> Generation {
        let mut config = model::Config::default();
        let global = Arc::make_mut(&mut config.global);
        global.tune.receive_buffer_server = Some(20_000);
        global.tune.send_buffer_server = Some(30_000);
        let address = model::Address::Inet("192.0.2.9:80".parse().unwrap());
        let mut server = model::Server::new("s".into(), address);
        server.source = Some(model::SourceAddress {
            address: "192.0.2.1:1000".parse().unwrap(),
            port_last: Some(2000),
            transparent,
            interface: None,
        });
        config.backends.push(Arc::new(model::Backend {
            servers: vec![Arc::new(server)],
            ..model::Backend::default()
        }));
        let registry = Registry::new(1, Arc::new(Process::new(1, 10)));
        Generation::compile(1, Arc::new(config), &registry)
    }

    #[test]
    fn a_probe_leaves_from_our_address_and_an_exchange_from_where_usesrc_says() {
        let path = Path {
            source: Some("198.51.100.7:4444".parse().unwrap()),
            destination: None,
        };
        let told = Told {
            source: Some("203.0.113.5".parse().unwrap()),
            ..Told::default()
        };
        let header = TransparentSource::Header(Expr::parse("req.hdr_ip(x)").unwrap());
        let fixed = TransparentSource::Address("203.0.113.9:77".parse().unwrap());
        for (transparent, address, private) in [
            (None, "192.0.2.1:1000", false),
            (Some(TransparentSource::Client), "198.51.100.7:4444", true),
            (Some(TransparentSource::ClientIp), "198.51.100.7:0", true),
            (Some(header), "203.0.113.5:0", true),
            (Some(fixed), "203.0.113.9:77", false),
        ] {
            let is_foreign = transparent.is_some();
            let house = house(transparent);
            let (backend, server) = (&house.backends[0], &house.backends[0].servers[0]);
            assert_eq!(is_private(backend, server), private);
            let own = Source {
                address: "192.0.2.1:1000".parse().unwrap(),
                port_last: Some(2000),
                transparent: false,
            };
            let probe = options(backend, server, None);
            assert_eq!(probe.source, Some(own));
            assert_eq!(probe.receive_buffer, Some(20_000));
            assert_eq!(probe.send_buffer, Some(30_000));
            let found = options(backend, server, Some((&path, &told)))
                .source
                .unwrap();
            assert_eq!(found.address, address.parse().unwrap());
            assert_eq!(found.transparent, is_foreign);
            assert_eq!(found.port_last, (!is_foreign).then_some(2000));
            // A client without an address, a request without the header: our own.
            let nobody = (&Path::default(), &Told::default());
            let found = options(backend, server, Some(nobody)).source.unwrap();
            assert!(found == own || address == "203.0.113.9:77");
        }
    }

    #[test]
    fn values_of_the_line_go_into_the_header_in_its_order() {
        let format = |text: &str| {
            ballast_expr::LogFormat::parse(text, ballast_expr::Usage::Text).expect("a format")
        };
        let proxy = model::ProxyProtocol {
            version: 2,
            crc32c: false,
            unique_id: false,
            authority: false,
            ssl: false,
            tlvs: vec![(0xE1, format("a")), (0x20, format("b"))],
        };
        let told = Told {
            tlvs: vec![b"one".to_vec(), Vec::new()],
            ..Told::default()
        };
        let mut out = Vec::new();
        proxy_header(&proxy, &Path::default(), &told, &mut out).unwrap();
        assert_eq!(&out[16..], b"\xE1\0\x03one\x20\0\0");
    }
}
