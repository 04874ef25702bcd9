//! Checks over TLS.

use ballast_health::CheckStatus;
use ballast_model::{CheckConnect, CheckTls, ServerTls};
use ballast_worker::block_on;

use super::*;
use crate::testing::TlsOrigin;

/// The result of one run of a check of a server whose line says this of TLS.
fn found(
    origin: &TlsOrigin,
    line: ServerTls,
    check: CheckMethod,
    change: impl FnOnce(&mut ServerModel),
) -> (CheckStatus, String) {
    let mut one = server("s1", origin.address);
    one.checks.interval = Duration::from_millis(300);
    one.tls = Some(Box::new(line));
    change(&mut one);
    let mut farm = backend("be", vec![one]);
    farm.check = check;
    let verdict = block_on(async {
        let fixture = Fixture::new(vec![farm]);
        let tls = fixture.server(0, 0).tls.as_ref().unwrap();
        tls.configure(origin.trust());
        fixture.run().await
    });
    let verdict = verdict.unwrap();
    (verdict.status, verdict.info)
}

fn probes() -> ServerTls {
    ServerTls {
        probes: true,
        verify: true,
        ..ServerTls::default()
    }
}

fn named(name: &str) -> ServerTls {
    ServerTls {
        check_sni: Some(name.to_owned()),
        check_alpn: Some(vec!["of-check".to_owned()]),
        ..probes()
    }
}

fn tcp(rules: Vec<CheckRule>) -> CheckMethod {
    CheckMethod::Tcp {
        rules,
        word: "tcp-check",
    }
}

fn connect(tls: Option<CheckTls>, default: bool) -> CheckRule {
    CheckRule::Connect(CheckConnect {
        tls,
        default,
        ..CheckConnect::default()
    })
}

#[test]
fn a_connection_is_a_check_of_layer_6_and_the_server_sees_all_of_the_handshake() {
    let origin = TlsOrigin::start(&[]);
    let passed = (CheckStatus::L6Ok, String::new());
    assert_eq!(
        found(&origin, probes(), CheckMethod::Connect, |_| {}),
        passed
    );
    assert_eq!(origin.handshake().sni, None);
    assert_eq!(
        found(&origin, named("b.example"), CheckMethod::Connect, |_| {}),
        passed
    );
    assert_eq!(origin.handshake().sni.as_deref(), Some("b.example"));
    let passed = (CheckStatus::L7Ok, "OK".to_owned());
    assert_eq!(
        found(&origin, probes(), http(Vec::new()), |_| {}).0,
        passed.0
    );
    assert_eq!(origin.handshake().sni, None);
    // Probes that are not to be sealed are not.
    let clear = ServerTls {
        traffic: true,
        probes: false,
        ..probes()
    };
    assert_eq!(
        found(&origin, clear, CheckMethod::Connect, |_| {}).0,
        CheckStatus::L4Ok
    );
}

#[test]
fn failures_are_of_layer_6_with_haproxy_s_texts() {
    let origin = TlsOrigin::start(&[]);
    let other = "Server presented an SSL certificate different from the expected one";
    let result = found(&origin, named("c.example"), CheckMethod::Connect, |_| {});
    assert_eq!(result, (CheckStatus::L6Response, other.to_owned()));
    let failed = (CheckStatus::L6Response, "SSL handshake failure".to_owned());
    for action in [request_then_close, speak_clear, close] {
        let address = super::origin(vec![action]);
        let elsewhere = |one: &mut ServerModel| one.checks.address = Some(Address::Inet(address));
        assert_eq!(
            found(&origin, probes(), CheckMethod::Connect, elsewhere),
            failed
        );
        let rules = vec![connect(Some(CheckTls::default()), false)];
        let (status, text) = found(&origin, probes(), tcp(rules), elsewhere);
        assert_eq!(status, CheckStatus::L6Response);
        assert_eq!(
            text,
            "SSL handshake failure at step 1 of tcp-check (connect)"
        );
    }
    let address = super::origin(vec![silence]);
    let elsewhere = |one: &mut ServerModel| one.checks.address = Some(Address::Inet(address));
    let timeout = (CheckStatus::L6Timeout, String::new());
    assert_eq!(
        found(&origin, probes(), CheckMethod::Connect, elsewhere),
        timeout
    );
    let nobody = closed();
    let elsewhere = |one: &mut ServerModel| one.checks.address = Some(Address::Inet(nobody));
    let refused = (CheckStatus::L4Connection, "Connection refused".to_owned());
    assert_eq!(
        found(&origin, probes(), CheckMethod::Connect, elsewhere),
        refused
    );
}

fn request_then_close(stream: &mut TcpStream) {
    request(stream);
}

fn speak_clear(stream: &mut TcpStream) {
    let _ = stream.write_all(b"+OK ready, who is there?\r\n");
    silence(stream);
}

fn close(_: &mut TcpStream) {}

#[test]
fn a_connect_rule_says_name_and_protocols_and_only_default_takes_those_of_the_line() {
    let origin = TlsOrigin::start(&["of-rule", "of-check"]);
    let own = CheckTls {
        sni: Some("a.example".to_owned()),
        alpn: Some(vec!["of-rule".to_owned()]),
    };
    let bare = CheckTls::default;
    for (rule, handshake) in [
        (
            connect(Some(own.clone()), false),
            Some((Some("a.example"), Some("of-rule"))),
        ),
        (
            connect(Some(own), true),
            Some((Some("a.example"), Some("of-rule"))),
        ),
        (connect(Some(bare()), false), Some((None, None))),
        (
            connect(Some(bare()), true),
            Some((Some("b.example"), Some("of-check"))),
        ),
        (
            connect(None, true),
            Some((Some("b.example"), Some("of-check"))),
        ),
        (connect(None, false), None),
    ] {
        let (status, _) = found(&origin, named("b.example"), tcp(vec![rule]), |_| {});
        match handshake {
            Some((sni, protocol)) => {
                assert_eq!(status, CheckStatus::L6Ok);
                let seen = origin.handshake();
                let seen = (seen.sni.as_deref(), seen.protocol.as_deref());
                assert_eq!(seen, (sni, protocol));
            }
            None => assert_eq!(status, CheckStatus::L4Ok),
        }
    }
}

#[test]
fn the_proxy_header_comes_before_the_handshake() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut begin = [0; 18];
        stream.read_exact(&mut begin).unwrap();
        sender.send(begin).unwrap();
    });
    let origin = TlsOrigin::start(&[]);
    found(&origin, probes(), CheckMethod::Connect, |one| {
        one.checks.address = Some(Address::Inet(address));
        one.checks.sends_proxy_header = true;
    });
    let begin = receiver.recv_timeout(PATIENCE).unwrap();
    assert_eq!(&begin[..15], b"PROXY UNKNOWN\r\n");
    assert_eq!(&begin[15..17], [22, 3]);
}
