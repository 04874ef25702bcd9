use ballast_engine::{Backend, Generation, Process, Registry};
use ballast_expr::Expr;
use ballast_message::{BodyLength, HeadLimits, Method, Request, Response};
use ballast_model as model;
use ballast_mux::{Limits, WaitLimit};
use ballast_tls::rustls::AlertDescription;
use ballast_worker::{Deadline, block_on};

use super::*;
use crate::testing::{SeenHandshake, TlsOrigin};
use crate::{
    ClientAddresses, ConnectError, ConnectionKey, ConnectionRequirements, ExchangeEnd,
    ExchangeValues, Lease, connect, pool,
};

/// A generation with one server, whose line says this of TLS.
fn generation(origin: &TlsOrigin, line: model::ServerTls) -> Generation {
    let mut server = model::Server::new("s".into(), model::Address::Inet(origin.address));
    server.tls = Some(Box::new(line));
    let mut config = model::Config::default();
    config.backends.push(Arc::new(model::Backend {
        servers: vec![Arc::new(server)],
        http_reuse: model::HttpReuse::Always,
        ..model::Backend::default()
    }));
    let registry = Registry::new(1, Arc::new(Process::new(1, 10)));
    Generation::compile(1, Arc::new(config), &registry)
}

fn line(sni: Option<&str>) -> model::ServerTls {
    model::ServerTls {
        traffic: true,
        verify: true,
        sni: sni.map(|expr| Expr::parse(expr).unwrap()),
        ..model::ServerTls::default()
    }
}

fn requirements(backend: &Backend, name: Option<&str>) -> ConnectionRequirements {
    let values = ExchangeValues {
        sni: name.map(|name| name.as_bytes().into()),
        ..ExchangeValues::default()
    };
    let (client, limits) = (ClientAddresses::default(), Limits::default());
    ConnectionRequirements::of(backend, &backend.servers[0], &client, values, limits)
}

async fn open(backend: &Backend, name: Option<&str>) -> Result<Lease, ConnectError> {
    let server = &backend.servers[0];
    let key = ConnectionKey::new(backend, server, requirements(backend, name));
    connect(server, key).await
}

/// Sends a request and receives its response.
async fn ask(mut lease: Lease) -> Lease {
    let deadline = Deadline::new();
    let wait = WaitLimit::until(&deadline, None);
    let mut request = Request::new(HeadLimits::default());
    request.set_method(b"GET").unwrap();
    request.set_target(b"/").unwrap();
    lease.begin(&request, BodyLength::None, None);
    let mut duplex = lease.duplex();
    duplex.sink.end_body(&wait, None).await.unwrap();
    let mut response = Response::new(HeadLimits::default());
    let head = duplex.source.response(&wait, Method::Get, &mut response);
    head.await.unwrap();
    assert_eq!(response.status(), 200);
    while duplex.source.piece(&wait).await.unwrap().is_some() {}
    let end = ExchangeEnd {
        is_whole: true,
        is_persistent: true,
        is_authenticated_as_client: false,
    };
    lease.end(end).unwrap()
}

fn seen(sni: Option<&str>, resumed: bool) -> SeenHandshake {
    SeenHandshake {
        sni: sni.map(str::to_owned),
        protocol: None,
        resumed,
        alert: None,
    }
}

#[test]
fn sessions_are_resumed_by_name_and_connections_shared_by_name() {
    let origin = TlsOrigin::start(&[]);
    let generation = generation(&origin, line(Some("req.hdr(host)")));
    let (backend, now) = (&generation.backends[0], std::time::Instant::now());
    let server = &backend.servers[0];
    server.tls.as_ref().unwrap().configure(origin.trust());
    block_on(async {
        for (name, resumed) in [
            (Some("a.example"), false),
            (Some("b.example"), false),
            (Some("a.example"), true),
            (Some("b.example"), true),
            (None, false),
            (None, true),
        ] {
            let lease = ask(open(backend, name).await.unwrap()).await;
            assert_eq!(origin.handshake(), seen(name, resumed));
            assert_eq!(lease.tls().unwrap().is_resumed, resumed);
            if resumed {
                drop(lease);
                continue;
            }
            pool::give(server, lease, now);
            for other in [Some("a.example"), Some("b.example"), None] {
                let taken = pool::take(backend, server, false, &requirements(backend, other));
                assert_eq!(taken.is_some(), other == name, "{name:?} {other:?}");
                if let Some(lease) = taken {
                    pool::give(server, ask(lease).await, now);
                }
            }
            pool::clear(server);
        }
    })
    .unwrap();
}

#[test]
fn a_connection_of_another_configuration_is_not_used_again() {
    let origin = TlsOrigin::start(&[]);
    let generation = generation(&origin, line(Some("str(a.example)")));
    let backend = &generation.backends[0];
    let server = &backend.servers[0];
    let tls = server.tls.as_ref().unwrap();
    block_on(async {
        assert!(matches!(
            open(backend, None).await,
            Err(ConnectError::Handshake(_))
        ));
        tls.configure(origin.trust());
        let lease = ask(open(backend, None).await.unwrap()).await;
        // Nothing was sent before there was a configuration. Each connection has a thread at the origin.
        let both = [origin.handshake(), origin.handshake()];
        assert!(both.contains(&seen(None, false)), "{both:?}");
        assert!(both.contains(&seen(Some("a.example"), false)), "{both:?}");
        let wanted = requirements(backend, None);
        assert!(lease.fits(backend, server, &wanted));
        let lease = lease.renew().unwrap();
        tls.configure(origin.trust());
        assert!(!lease.fits(backend, server, &wanted));
    })
    .unwrap();
}

#[test]
fn a_certificate_that_is_not_trusted_or_of_another_name_is_no_connection() {
    let origin = TlsOrigin::start(&[]);
    for (config, sni, alert, text) in [
        (
            TlsOrigin::distrust(),
            "str(a.example)",
            AlertDescription::UnknownCA,
            "SSL handshake failure",
        ),
        (
            origin.trust(),
            "str(c.example)",
            AlertDescription::BadCertificate,
            "Server presented an SSL certificate different from the expected one",
        ),
    ] {
        let generation = generation(&origin, line(Some(sni)));
        let backend = &generation.backends[0];
        let server = &backend.servers[0];
        server.tls.as_ref().unwrap().configure(config);
        let opened = block_on(open(backend, None)).unwrap();
        let (failure, is_of_name) = match opened {
            Err(ConnectError::Handshake(failure)) => (failure, false),
            Err(ConnectError::OtherName(failure)) => (failure, true),
            opened => panic!("{opened:?}"),
        };
        assert_eq!(is_of_name, alert == AlertDescription::BadCertificate);
        assert_eq!(failure_text(&failure, true), text);
        assert_eq!(origin.handshake().alert, Some(alert));
        assert_eq!(server.state.connections.current(), 0);
    }
}
