//! Samples over a session made here. Values of HAProxy 3.2 with OpenSSL 3.6.

use super::*;
use crate::facts::{AddressPair, ConnectionFacts, Facts, PeerVerification, Time, TlsError};
use crate::{Expr, HTTPS_LOG_FORMAT, LogFormat, Scratch, Usage, Value, eval, fetches};

#[derive(Default)]
struct World {
    client: Option<Session>,
    server: Option<Session>,
}

/// A connection that may carry TLS.
struct Session {
    version: Option<u16>,
    cipher: Option<u16>,
    is_resumed: bool,
    error: TlsError,
    verification: PeerVerification,
    has_hello: bool,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            version: Some(0x0304),
            cipher: Some(0x1302),
            is_resumed: false,
            error: TlsError::default(),
            verification: PeerVerification {
                result: Some(0),
                ..PeerVerification::default()
            },
            has_hello: true,
        }
    }
}

struct Certificate;

impl CertificateFacts for Certificate {
    fn der(&self) -> &[u8] {
        b"abc"
    }
    fn version(&self) -> i64 {
        3
    }
    fn serial(&self) -> &[u8] {
        &[0x80, 1]
    }
    fn not_before(&self) -> &str {
        "261122151609Z"
    }
    fn not_after(&self) -> &str {
        "810825151609Z"
    }
    fn signature_algorithm(&self) -> &str {
        "ecdsa-with-SHA256"
    }
    fn key_algorithm(&self) -> &str {
        "rsaEncryption"
    }
    fn alternative_names(&self) -> Option<&[u8]> {
        Some(b"DNS:a, DNS:b")
    }
    fn subject(&self, part: NamePart<'_>) -> Option<&[u8]> {
        match part {
            NamePart::Whole => Some(b"/C=FR/OU=One/OU=Two"),
            NamePart::Rfc2253 => Some(b"OU=Two,OU=One,C=FR"),
            NamePart::Entry {
                name: "OU",
                occurrence: 1 | -2,
            } => Some(b"One"),
            NamePart::Entry {
                name: "OU",
                occurrence: 2 | -1,
            } => Some(b"Two"),
            NamePart::Entry { .. } => None,
        }
    }
    fn issuer(&self, _: NamePart<'_>) -> Option<&[u8]> {
        Some(b"/CN=CA")
    }
}

impl TlsSessionFacts for Session {
    fn version(&self) -> Option<u16> {
        self.version
    }
    fn cipher(&self) -> Option<u16> {
        self.cipher
    }
    fn group(&self) -> Option<u16> {
        Some(0x11ec)
    }
    fn protocol(&self) -> Option<&[u8]> {
        Some(b"http/1.1")
    }
    fn server_name(&self) -> Option<&[u8]> {
        Some(b"www.example")
    }
    fn is_resumed(&self) -> bool {
        self.is_resumed
    }
    fn session_id(&self) -> Option<&[u8]> {
        Some(&[7; 32])
    }
    fn random(&self, of: Side) -> Option<&[u8]> {
        Some(match of {
            Side::Client => &[1; 32],
            Side::Server => &[2; 32],
        })
    }
    fn secret(&self, label: &str) -> Option<&[u8]> {
        (label == "EXPORTER_SECRET").then_some(&[0xab, 0xcd])
    }
    fn certificate(&self, _: CertificateOwner) -> Option<&dyn CertificateFacts> {
        Some(&Certificate)
    }
    fn peer_chain(&self, each: &mut dyn FnMut(&[u8])) {
        each(b"leaf");
        each(b"above");
    }
    fn verification(&self) -> PeerVerification {
        self.verification
    }
    fn error(&self) -> TlsError {
        self.error
    }
    fn hello(&self) -> Option<HelloFacts<'_>> {
        self.has_hello.then_some(HelloFacts {
            version: 771,
            all_ciphers: CIPHERS,
            ciphers: CIPHERS,
            extensions: &[0, 0, 0x0a, 0x0a, 0, 10],
            groups: &[0x1a, 0x1a, 0x77, 0x77, 0, 29],
            point_formats: &[0, 1],
            versions: &[0x2a, 0x2a, 3, 4],
            signature_schemes: &[],
        })
    }
}

const CIPHERS: &[u8] = &[
    0x0a, 0x0a, 0x99, 0x99, 0x13, 0x01, 0xc0, 0x2f, 0x00, 0xff, 0x56, 0x00, 0x5a, 0x5a,
];

struct Connection<'a>(&'a Option<Session>);

impl ConnectionFacts for Connection<'_> {
    fn address_pair(&self) -> AddressPair<'_> {
        AddressPair::default()
    }
    fn tls(&self) -> Option<&dyn TlsSessionFacts> {
        self.0.as_ref().map(|session| session as _)
    }
}

struct Sides<'a>(Connection<'a>, Connection<'a>);

impl Facts for Sides<'_> {
    fn now(&self) -> Time {
        Time::default()
    }
    fn random(&self) -> u64 {
        0
    }
    fn connection(&self, to: Side) -> Option<&dyn ConnectionFacts> {
        Some(match to {
            Side::Client => &self.0,
            Side::Server => &self.1,
        })
    }
}

impl World {
    fn ask(&self, text: &str) -> Option<String> {
        let sides = Sides(Connection(&self.client), Connection(&self.server));
        let expr = Expr::parse(text).unwrap();
        let mut scratch = Scratch::new();
        let value: Value<'_> = eval(&expr, &sides, &mut scratch)?;
        let mut out = Vec::new();
        value.append_to(&mut out);
        Some(String::from_utf8_lossy(&out).into_owned())
    }

    fn line(&self, format: &str) -> String {
        let sides = Sides(Connection(&self.client), Connection(&self.server));
        let format = LogFormat::parse(format, Usage::Log).unwrap();
        let mut out = Vec::new();
        format.render(&sides, &mut Scratch::new(), &mut out);
        String::from_utf8(out).unwrap()
    }
}

fn with(client: Session) -> World {
    World {
        client: Some(client),
        server: Some(Session::default()),
    }
}

#[test]
fn a_session_tells_what_was_agreed_on() {
    let world = with(Session::default());
    for (sample, value) in [
        ("ssl_fc", "1"),
        ("ssl_fc_protocol", "TLSv1.3"),
        ("ssl_bc_cipher", "TLS_AES_256_GCM_SHA384"),
        ("ssl_fc_alg_keysize", "256"),
        ("ssl_bc_use_keysize", "256"),
        ("ssl_fc_curve", "X25519MLKEM768"),
        ("ssl_fc_alpn", "http/1.1"),
        ("ssl_fc_sni", "www.example"),
        ("ssl_fc_has_sni", "1"),
        ("ssl_fc_is_resumed", "0"),
        ("ssl_fc_client_random,hex", &"01".repeat(32)),
        ("ssl_bc_server_random,hex", &"02".repeat(32)),
        ("ssl_fc_session_id,hex", &"07".repeat(32)),
        ("ssl_fc_exporter_secret", "abcd"),
        ("ssl_fc_early_rcvd", "0"),
        ("ssl_fc_err", "0"),
    ] {
        assert_eq!(world.ask(sample).as_deref(), Some(value), "{sample}");
    }
    for sample in [
        "ssl_fc_err_str",
        "ssl_fc_npn",
        "ssl_fc_client_traffic_secret_0",
    ] {
        assert_eq!(world.ask(sample), None, "{sample}");
    }
}

#[test]
fn certificates_are_taken_apart() {
    let world = with(Session::default());
    for (sample, value) in [
        ("ssl_c_s_dn", "/C=FR/OU=One/OU=Two"),
        ("ssl_s_s_dn(,0,rfc2253)", "OU=Two,OU=One,C=FR"),
        ("ssl_f_s_dn(OU)", "One"),
        ("ssl_f_s_dn(OU,-1)", "Two"),
        ("ssl_f_s_dn(OU,2,rfc2253)", "Two"),
        ("ssl_c_r_dn(OU,2)", "Two"),
        ("ssl_f_i_dn", "/CN=CA"),
        ("ssl_c_serial,hex", "8001"),
        ("ssl_c_sha1,hex", "A9993E364706816ABA3E25717850C26C9CD0D89D"),
        ("ssl_f_notbefore", "261122151609Z"),
        ("ssl_c_version", "3"),
        ("ssl_c_san", "DNS:a, DNS:b"),
        ("ssl_c_chain_der", "above"),
        ("ssl_s_chain_der", "leafabove"),
        ("ssl_c_used", "1"),
        ("ssl_fc_has_crt", "1"),
        ("ssl_c_verify", "0"),
    ] {
        assert_eq!(world.ask(sample).as_deref(), Some(value), "{sample}");
    }
    assert_eq!(world.ask("ssl_f_s_dn(OU,0)"), None);
    let resumed = with(Session {
        is_resumed: true,
        ..Session::default()
    });
    assert_eq!(resumed.ask("ssl_c_used").as_deref(), Some("1"));
    assert_eq!(resumed.ask("ssl_fc_has_crt").as_deref(), Some("0"));
}

#[test]
fn what_the_client_offers_is_listed_with_and_without_grease() {
    let world = with(Session::default());
    for (sample, value) in [
        ("ssl_fc_protocol_hello_id", "771"),
        ("ssl_fc_cipherlist_hex", "0A0A99991301C02F00FF56005A5A"),
        ("ssl_fc_cipherlist_bin(2),hex", "99991301C02F00FF5600"),
        (
            "ssl_fc_cipherlist_str(1)",
            "UNKNOWN(9999),TLS_AES_128_GCM_SHA256,ECDHE-RSA-AES128-GCM-SHA256,\
             TLS_EMPTY_RENEGOTIATION_INFO_SCSV,TLS_FALLBACK_SCSV",
        ),
        ("ssl_fc_cipherlist_xxh", "-4277296879050373345"),
        ("ssl_fc_extlist_bin(1),be2dec(-,2)", "0-10"),
        ("ssl_fc_eclist_bin,hex", "1A1A7777001D"),
        ("ssl_fc_ecformats_bin,be2dec(-,1)", "0-1"),
        ("ssl_fc_supported_versions_bin(1),hex", "0304"),
    ] {
        assert_eq!(world.ask(sample).as_deref(), Some(value), "{sample}");
    }
    assert_eq!(world.ask("ssl_fc_sigalgs_bin"), None);
    let world = with(Session {
        has_hello: false,
        ..Session::default()
    });
    assert_eq!(world.ask("ssl_fc_cipherlist_bin"), None);
    assert_eq!(world.ask("ssl_fc_protocol_hello_id"), None);
}

#[test]
fn a_clear_connection_has_flags_and_no_values() {
    let world = World::default();
    let no = [
        "ssl_fc",
        "ssl_fc_has_sni",
        "ssl_fc_is_resumed",
        "ssl_bc",
        "ssl_bc_is_resumed",
    ];
    for row in fetches().filter(|row| row.word.starts_with("ssl_") && row.is_implemented()) {
        let value = world.ask(row.word);
        assert_eq!(
            value.as_deref(),
            no.contains(&row.word).then_some("0"),
            "{}",
            row.word
        );
    }
}

#[test]
fn a_handshake_that_failed_has_an_error_and_nothing_agreed_on() {
    let world = with(Session {
        version: None,
        cipher: None,
        error: TlsError {
            number: 0x0a00_00c1,
            reason: "no shared cipher",
        },
        verification: PeerVerification {
            leaf_error: 18,
            ..PeerVerification::default()
        },
        ..Session::default()
    });
    assert_eq!(
        world.ask("ssl_fc_err,hex").as_deref(),
        Some("000000000A0000C1")
    );
    let text = world.ask("ssl_fc_err_str");
    assert_eq!(
        text.as_deref(),
        Some("error:0A0000C1:SSL routines::no shared cipher")
    );
    assert_eq!(world.ask("ssl_c_verify"), None);
    assert_eq!(world.ask("ssl_c_err").as_deref(), Some("18"));
    assert_eq!(world.line("%sslv/%sslc"), "-/-");
}

#[test]
fn the_https_log_ends_with_the_session() {
    let end = |world: &World| {
        let line = world.line(HTTPS_LOG_FORMAT);
        line.rsplit("\" ").next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        end(&with(Session::default())),
        "0/0000000000000000/0/0/0 www.example/TLSv1.3/TLS_AES_256_GCM_SHA384"
    );
    assert_eq!(end(&World::default()), "0/-/-/-/0 -/-/-");
}

#[test]
fn names_are_sorted() {
    assert_eq!(
        tls_ciphers::name(0xc030),
        Some("ECDHE-RSA-AES256-GCM-SHA384")
    );
    assert_eq!(tls_ciphers::name(0x0a0a), None);
    assert_eq!(tls_ciphers::key_bits(0xc02f), 128);
}
