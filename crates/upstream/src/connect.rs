//! Opening a connection to a server.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;

use ballast_engine::{
    ConnectSettings, H2ConnectionCount, H2Counts, Server, ServerTls, Sni, TlsConnectionCount,
    server_protocol, websocket_alpn,
};
use ballast_model::{self as model, HttpProtocol};
use ballast_mux::{Limits, ServerConnection, ServerStreams, StreamSettings};
use ballast_net::{self as net, ConnectOptions, KeepAlive, PacketOptions};
use ballast_tls::openssl_error::OpensslError;
use ballast_transport::{HandshakeFailure, Transport};
use ballast_wire::proxy_encode::{SslFacts, V2Facts, V2Options, encode_v1, encode_v2};
use ballast_worker::{Stream, spawn_service, worker_index};

use crate::Lease;
use crate::key::{
    self, ClientTlsSession, ConnectSource, ConnectTarget, ConnectionKey, ConnectionName,
    ConnectionRequirements, ProxyHeaderContent,
};
use crate::lease::OpenedTls;
use crate::socks4::{self, Socks4Failure};
use crate::tls::{ServerHandshake, is_other_name};
use crate::{pool, shared, strict_maxconn};

/// Why a connection could not be opened.
#[derive(Debug)]
pub enum ConnectError {
    /// The server has no address yet.
    NoAddress,
    /// The server has as many connections as it may have, and none of them is idle (`strict-maxconn`).
    NoPlace,
    /// The system or the server refused.
    Refused(net::SystemCallError),
    /// The PROXY header would be longer than allowed.
    ProxyHeader,
    /// The SOCKS4 proxy did not connect to the server.
    Socks4(Socks4Failure),
    /// The process has as many TLS connections as it may have (`maxsslconn`).
    TooManyTls,
    /// There is a connection, and no TLS on it.
    Handshake(HandshakeFailure),
    /// As [`Self::Handshake`]: the certificate is for another name than the one that `sni` gave.
    OtherName(HandshakeFailure),
}

impl ConnectError {
    /// What went wrong with TLS, in OpenSSL's terms; `None` where TLS itself did not fail.
    pub fn tls_error(&self) -> Option<OpensslError> {
        match self {
            Self::Handshake(failure) | Self::OtherName(failure) => Some(match failure {
                HandshakeFailure::Tls(error) => OpensslError::of(error),
                HandshakeFailure::Closed { .. } | HandshakeFailure::Left => OpensslError::NONE,
            }),
            _ => None,
        }
    }

    /// Whether the cause is a local shortage (descriptors, memory, ports) and says nothing about
    /// the server.
    pub fn is_local_shortage(&self) -> bool {
        matches!(self, Self::Refused(error) if error.kind().is_local_resource())
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAddress => out.write_str("the server has no address"),
            Self::NoPlace => out.write_str("the server has no room for a connection"),
            Self::Refused(error) => error.fmt(out),
            Self::Socks4(failure) => failure.fmt(out),
            Self::ProxyHeader => out.write_str("the PROXY header would be too long"),
            Self::TooManyTls => out.write_str("Too many SSL connections"),
            Self::Handshake(_) | Self::OtherName(_) => out.write_str("SSL handshake failure"),
        }
    }
}

impl std::error::Error for ConnectError {}

/// Opens the connection that `key` describes, with its TLS handshake. The PROXY header, when the
/// server wants one, comes before the handshake; on a clear connection it is sent with the first
/// bytes. The caller limits how long it may take.
///
/// # Errors
/// [`ConnectError`].
pub fn connect(
    server: &Arc<Server>,
    key: ConnectionKey,
) -> impl Future<Output = Result<Lease, ConnectError>> {
    // No `async fn`: its future would store the key twice.
    let target = target(server, &key.requirements.target);
    async move {
        // Its fields are named where they are used: a reference to each would be a part of the future.
        let wanted = &key.requirements;
        let tls = match server.traffic_tls() {
            None => None,
            Some(tls) => {
                let count = server.tls_counters.enter();
                Some((&**tls, count.ok_or(ConnectError::TooManyTls)?))
            }
        };
        let place = if server.model.has_strict_maxconn {
            // Boxed: few servers have such a limit, and every exchange would have room for the wait.
            let place = Box::pin(strict_maxconn::place(server)).await;
            Some(place.ok_or(ConnectError::NoPlace)?)
        } else {
            None
        };
        pool::make_room(server);
        let options = options(&key.section, &key.line, wanted.source, wanted.packets);
        let target = target.as_ref().ok_or(ConnectError::NoAddress)?;
        let stream = match key.line.socks4 {
            None => Stream::connect(target, &options)
                .await
                .map_err(ConnectError::Refused)?,
            // Boxed: few servers are behind such a proxy, and every exchange would have room for it.
            Some(proxy) => Box::pin(through_socks4(proxy, target, &options)).await?,
        };
        let mut header = Vec::new();
        if let (Some(proxy), Some(proxy_header_content)) =
            (&key.line.send_proxy, &wanted.proxy_header_content)
        {
            proxy_header(proxy, proxy_header_content, &mut header)?;
        }
        let (transport, tls) = match tls {
            None => (stream.into(), None),
            Some(tls) => {
                // Boxed: the state of a handshake is large, and every exchange would have room
                // for it.
                let sealed = Box::pin(handshake(stream, &header, server, tls, wanted));
                let (transport, opened) = sealed.await?;
                header.clear();
                (transport, Some(opened))
            }
        };
        let negotiated = tls.as_ref().and_then(|tls| tls.facts.protocol.as_deref());
        let protocol = server_protocol(&key.line, wanted.is_websocket, negotiated);
        let mut connection = match (protocol, wanted.streams) {
            (HttpProtocol::Http2, Some(streams)) => {
                let settings = (streams, wanted.limits);
                let connection = carrying_streams(transport, settings, &header, &key.h2);
                if let Some(streams) = connection.streams().filter(|_| wanted.asks_protocol) {
                    // Only who says so takes extended CONNECT (RFC 8441, section 3).
                    Box::pin(streams.settings_known()).await;
                }
                connection
            }
            _ => {
                let mut connection = ServerConnection::new(transport, wanted.limits);
                if !header.is_empty() {
                    *connection.preamble() = header;
                }
                connection
            }
        };
        let section = &key.section;
        connection.set_output_format(section.name_cases.as_ref(), section.drop_request_trailers);
        let lease = Lease::new(server, connection, key, (tls, place));
        shared::enter(server, &lease);
        Ok(lease)
    }
}

/// A connection to `target` that goes through a proxy.
async fn through_socks4(
    proxy: SocketAddr,
    target: &net::Address,
    options: &ConnectOptions,
) -> Result<Stream, ConnectError> {
    let destination = socks4::destination(target).map_err(ConnectError::Socks4)?;
    let stream = Stream::connect(&net::Address::Ip(proxy), options)
        .await
        .map_err(ConnectError::Refused)?;
    let passed = socks4::pass(&stream, destination).await;
    passed.map_err(ConnectError::Socks4)?;
    Ok(stream)
}

/// A stream of a connection that speaks HTTP/2 from now on, carried by a task of its own.
pub(crate) fn carrying_streams(
    transport: Transport,
    (settings, limits): (StreamSettings, Limits),
    preamble: &[u8],
    counts: &Arc<H2Counts>,
) -> ServerConnection {
    let (streams, mut driver) = ServerStreams::start(transport, settings, preamble);
    let mut count = H2ConnectionCount::enter(counts, worker_index().unwrap_or(0), false);
    spawn_service(async move {
        poll_fn(|cx| {
            let polled = driver.poll(cx);
            let (counters, open_count) = driver.counts();
            count.update(&counters, open_count);
            polled
        })
        .await;
    });
    ServerConnection::on_stream(&streams, limits)
}

/// Sends the PROXY header, and makes the handshake.
async fn handshake(
    stream: Stream,
    header: &[u8],
    server: &Server,
    (tls, count): (&ServerTls, TlsConnectionCount),
    requirements: &ConnectionRequirements,
) -> Result<(Transport, OpenedTls), ConnectError> {
    let name = match (&requirements.sni, tls.sni()) {
        (ConnectionName::Configured, Sni::Fixed(name)) => name.as_deref().map(str::as_bytes),
        (ConnectionName::Configured, Sni::PerExchange) => None,
        (ConnectionName::OfExchange(name), _) => name.as_deref(),
    };
    let protocol = requirements
        .is_websocket
        .then(|| websocket_alpn(&server.model))
        .flatten();
    let protocol = protocol.map(|protocol| [protocol.to_owned()]);
    let failed = |failure| match name.is_some_and(|name| !name.is_empty()) {
        true if is_other_name(&failure) => ConnectError::OtherName(failure),
        _ => ConnectError::Handshake(failure),
    };
    let handshake = ServerHandshake::new(server, name)
        .map_err(failed)?
        .offer(protocol.as_ref().map(<[String; 1]>::as_slice));
    let server_name = name.filter(|_| handshake.sends_name()).map(Into::into);
    let sent = stream.write_all(header).await;
    sent.map_err(|_| failed(HandshakeFailure::Closed { had_bytes: false }))?;
    let config = Arc::clone(handshake.config());
    let (transport, facts) = handshake.run(stream).await.map_err(failed)?;
    let opened = OpenedTls {
        config,
        facts: Arc::new(facts),
        server_name,
        _count: count,
    };
    Ok((transport, opened))
}

/// The address to connect to, if there is one.
fn target(server: &Server, target: &ConnectTarget) -> Option<net::Address> {
    match target {
        ConnectTarget::FromClient(address) => Some(net::Address::Ip(*address)),
        ConnectTarget::Configured => {
            let current = server.state.current_address();
            let address = current.address.as_ref()?;
            net_address(address, address.port())
        }
        ConnectTarget::NoPort => None,
    }
}

/// An address to connect to; `None` when it has no port or cannot be connected to.
pub(crate) fn net_address(address: &model::Address, port: Option<u16>) -> Option<net::Address> {
    Some(match address {
        model::Address::Inet(known) => net::Address::Ip(SocketAddr::new(known.ip(), port?)),
        model::Address::Unix(path) => net::Address::Unix(model::path_of_text(path)),
        model::Address::Abstract(name) => net::Address::Abstract {
            name: name.as_bytes().into(),
            padded: true,
        },
        model::Address::AbstractUnpadded(name) => net::Address::Abstract {
            name: name.as_bytes().into(),
            padded: false,
        },
        model::Address::Name { .. } | model::Address::Fd(_) | model::Address::SocketPair(_) => {
            return None;
        }
    })
}

/// The options of a connection to the server; `source` is the configured one for a probe
/// (configuration manual, "source").
pub(crate) fn options(
    section: &ConnectSettings,
    line: &model::Server,
    source: ConnectSource,
    packets: PacketOptions,
) -> ConnectOptions {
    let ConnectSettings {
        keepalive,
        source: _,
        smart_connect,
        // These affect what is written on a connection, not how it is opened.
        drop_request_trailers: _,
        name_cases: _,
        socket_buffers,
    } = section;
    let written = key::source(section, line);
    let own = written.map(|written| net::LocalAddress {
        address: written.address,
        port_last: written.port_last,
        transparent: false,
    });
    let boxed = |word: &String| word.as_str().into();
    // No field is left to its default: adding one means deciding whether it belongs to the key.
    ConnectOptions {
        congestion: line.congestion_algorithm.as_ref().map(boxed),
        fast_open: line.tcp_fast_open,
        interface: written
            .and_then(|written| written.interface.as_ref())
            .map(boxed),
        keepalive: keepalive.enabled.then_some(KeepAlive {
            idle: keepalive.idle,
            interval: keepalive.interval,
            count: keepalive.probe_count,
        }),
        packets,
        mss: None,
        namespace: None,
        receive_buffer: socket_buffers.receive,
        send_buffer: socket_buffers.send,
        smart_connect: *smart_connect,
        source: match source {
            ConnectSource::Configured => own,
            ConnectSource::Transparent(address) | ConnectSource::Client(address) => {
                Some(net::LocalAddress {
                    address,
                    port_last: None,
                    transparent: true,
                })
            }
        },
        user_timeout: line.tcp_user_timeout,
    }
}

fn proxy_header(
    proxy: &model::ProxyProtocol,
    proxy_header_content: &ProxyHeaderContent,
    out: &mut Vec<u8>,
) -> Result<(), ConnectError> {
    if proxy.version == 1 {
        encode_v1(out, proxy_header_content.ends);
        return Ok(());
    }
    let options = V2Options {
        authority: proxy.authority,
        cert_cn: proxy.cert_cn,
        cert_key: proxy.cert_key,
        cert_sig: proxy.cert_sig,
        crc32c: proxy.crc32c,
        ssl: proxy.ssl,
        ssl_cipher: proxy.ssl_cipher,
        unique_id: proxy.unique_id,
    };
    let kinds = proxy.tlvs.iter().map(|(kind, _)| *kind);
    let values = proxy_header_content.tlvs.iter().map(Vec::as_slice);
    let custom: Vec<(u8, &[u8])> = kinds.zip(values).collect();
    let client_tls = &proxy_header_content.client_tls;
    let session = client_tls.session.as_deref();
    let facts = V2Facts {
        alpn: client_tls.protocol.as_deref(),
        authority: client_tls.authority.as_deref(),
        custom: &custom,
        namespace: None,
        ssl: session.map(ssl_facts),
        unique_id: proxy_header_content.unique_id.as_deref(),
    };
    encode_v2(out, proxy_header_content.ends, options, &facts)
        .map_err(|_| ConnectError::ProxyHeader)
}

fn ssl_facts(session: &ClientTlsSession) -> SslFacts<'_> {
    SslFacts {
        version: session.version.as_bytes(),
        certificate_in_connection: session.shown_in_connection,
        certificate_in_session: session.shown_in_session,
        verify_result: session.verify_result,
        common_name: session.common_name.as_deref(),
        cipher: session.cipher.map(str::as_bytes),
        signature_algorithm: session.signature_algorithm.as_deref().map(str::as_bytes),
        key_algorithm: session.key.as_deref().map(str::as_bytes),
    }
}

#[cfg(test)]
mod tests {
    use ballast_engine::{Generation, Process, Registry};
    use ballast_expr::Expr;
    use ballast_model::TransparentSource;
    use ballast_mux::Limits;

    use super::*;
    use crate::{ClientAddresses, ExchangeValues};

    fn generation(transparent: Option<TransparentSource>) -> Generation {
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
        let client = ClientAddresses {
            source: Some("198.51.100.7:4444".parse().unwrap()),
            destination: None,
        };
        let values = ExchangeValues {
            source: Some("203.0.113.5".parse().unwrap()),
            ..ExchangeValues::default()
        };
        let header = TransparentSource::Header(Expr::parse("req.hdr_ip(x)").unwrap());
        let fixed = TransparentSource::Address("203.0.113.9:77".parse().unwrap());
        for (transparent, address, of_one_client) in [
            (None, "192.0.2.1:1000", false),
            (Some(TransparentSource::Client), "198.51.100.7:4444", true),
            (Some(TransparentSource::ClientIp), "198.51.100.7:0", false),
            (Some(header), "203.0.113.5:0", false),
            (Some(fixed), "203.0.113.9:77", false),
        ] {
            let is_foreign = transparent.is_some();
            let generation = generation(transparent);
            let (backend, server) = (&generation.backends[0], &generation.backends[0].servers[0]);
            let own = net::LocalAddress {
                address: "192.0.2.1:1000".parse().unwrap(),
                port_last: Some(2000),
                transparent: false,
            };
            let none = PacketOptions::default();
            let options = |source| options(&backend.connecting, &server.model, source, none);
            let probe = options(ConnectSource::Configured);
            assert_eq!(probe.source, Some(own));
            assert_eq!(probe.receive_buffer, Some(20_000));
            assert_eq!(probe.send_buffer, Some(30_000));
            let wanted = |client: &ClientAddresses, values: &ExchangeValues<'_>| {
                ConnectionRequirements::of(
                    backend,
                    server,
                    client,
                    values.clone(),
                    Limits::default(),
                )
            };
            let told_of = wanted(&client, &values);
            assert_eq!(told_of.is_of_one_client(), of_one_client);
            let found = options(told_of.source).source.unwrap();
            assert_eq!(found.address, address.parse().unwrap());
            assert_eq!(found.transparent, is_foreign);
            assert_eq!(found.port_last, (!is_foreign).then_some(2000));
            // A client without an address, or a request without the header: our own address is
            // used.
            let nobody = wanted(&ClientAddresses::default(), &ExchangeValues::default());
            let found = options(nobody.source).source.unwrap();
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
            tlvs: vec![(0xE1, format("a")), (0x20, format("b"))],
            ..model::ProxyProtocol::default()
        };
        let proxy_header_content = ProxyHeaderContent {
            tlvs: vec![b"one".to_vec(), Vec::new()],
            ..ProxyHeaderContent::default()
        };
        let mut out = Vec::new();
        proxy_header(&proxy, &proxy_header_content, &mut out).unwrap();
        assert_eq!(&out[16..], b"\xE1\0\x03one\x20\0\0");
    }
}
