use std::io::{Read, Write};
use std::sync::LazyLock;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{ServerName, UnixTime};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, NamedGroup, ProtocolVersion};

use super::*;
use crate::bind::{BindCertificates, BindEntry};
use crate::client_config::{ServerLineParts, ServerTlsSettings, ServerTrust, server_name};
use crate::names::NameFilters;
use crate::store::{CertificateStore, StoredCertificate};
use crate::testing::{EC, FixedTime, MemoryFiles, RSA, handshake, options, self_signed};

fn parts() -> BindParts {
    BindParts {
        time: Arc::new(FixedTime),
        verifier: None,
        ticket_keys: None,
        scope: "".into(),
        session_lifetime_s: 300,
        sessions: Arc::new(NoServerSessionStorage {}),
        prefer_client_ciphers: false,
        early_data_bytes_max: 16_384,
        record_bytes_max: 0,
    }
}

/// Takes whatever certificate it is shown.
#[derive(Debug)]
struct AnyServer(Vec<SignatureScheme>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}

const SCHEMES: [SignatureScheme; 4] = [
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PKCS1_SHA256,
];

fn client(
    suites: Vec<SupportedCipherSuite>,
    schemes: &[SignatureScheme],
    name: &str,
) -> ClientConnection {
    let provider = CryptoProvider {
        cipher_suites: suites,
        kx_groups: default_groups(),
        ..aws_lc_rs::default_provider()
    };
    let mut config = ClientConfig::builder_with_details(Arc::new(provider), Arc::new(FixedTime))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer(schemes.to_vec())))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    ClientConnection::new(Arc::new(config), name).expect("a client")
}

fn bind(tls_settings: &str) -> BindCertificates {
    let tls_settings =
        Arc::new(BindTlsSettings::new(&options(tls_settings), &parts()).expect("good settings"));
    let mut files = MemoryFiles::default();
    files.add("/e", self_signed(EC, "a.org", &[]).both());
    files.add("/r", self_signed(RSA, "a.org", &[]).both());
    let mut store = CertificateStore::default();
    let entries = ["/e", "/r"].map(|path| {
        let certificate = store.load_crt(&files, path).expect("good").remove(0);
        BindEntry {
            certificate,
            filters: None,
            is_default: false,
            tls_settings: Arc::clone(&tls_settings),
            row: None,
        }
    });
    BindCertificates::new(entries.into(), false)
}

fn all_suites() -> Vec<SupportedCipherSuite> {
    [default_ciphersuites(), default_ciphers()].concat()
}

#[test]
fn entries_are_found_by_the_name_of_their_certificate() {
    let line = bind("alpn h2");
    let [e, r] = line.entries() else {
        panic!("two entries");
    };
    let mut again = e.clone();
    again.filters = Some(NameFilters::default());
    let line = line.with_entries(vec![r.clone(), e.clone(), again]);
    let filters = |name: &str| -> Vec<bool> {
        let entries = line.with_certificate(name);
        entries.map(|entry| entry.filters.is_some()).collect()
    };
    assert_eq!(filters("/e"), [false, true], "in the order of the line");
    assert_eq!(filters("/r"), [false]);
    assert_eq!(filters("/a"), [] as [bool; 0]);
    assert_eq!(filters("/s"), [] as [bool; 0]);
}

#[test]
fn options_become_settings() {
    let done = |tls_settings: &str| {
        let mut client = client(all_suites(), &SCHEMES, "a.org");
        let server = handshake(&bind(tls_settings), &mut client)
            .expect("a certificate")
            .expect("done");
        (client, server)
    };
    let (client, server) = done("alpn http/1.1,h2");
    assert_eq!(server.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    assert_eq!(server.alpn_protocol(), Some(&b"http/1.1"[..]));
    let group = client
        .negotiated_key_exchange_group()
        .map(|group| group.name());
    assert_eq!(group, Some(NamedGroup::X25519MLKEM768));
    let (client, server) = done("ssl-max-ver TLSv1.2 ciphers AES128 curves P-384");
    assert_eq!(server.protocol_version(), Some(ProtocolVersion::TLSv1_2));
    let suite = server.negotiated_cipher_suite().map(|suite| suite.suite());
    assert_eq!(
        suite.and_then(crate::ciphers::openssl_name),
        Some("ECDHE-ECDSA-AES128-GCM-SHA256")
    );
    let group = client
        .negotiated_key_exchange_group()
        .map(|group| group.name());
    assert_eq!(
        (group, server.alpn_protocol()),
        (Some(NamedGroup::secp384r1), None)
    );
    let (_, server) = done("ciphersuites TLS_CHACHA20_POLY1305_SHA256");
    let suite = server.negotiated_cipher_suite().map(|suite| suite.suite());
    assert_eq!(
        suite.and_then(crate::ciphers::openssl_name),
        Some("TLS_CHACHA20_POLY1305_SHA256")
    );
}

#[test]
fn a_client_that_puts_chacha_first_gets_it() {
    let mut suites = all_suites();
    suites.rotate_left(1);
    let mut with_chacha_first = client(suites, &SCHEMES, "a.org");
    let server = handshake(&bind(""), &mut with_chacha_first);
    let server = server.expect("a certificate").expect("done");
    let suite = server.negotiated_cipher_suite().map(|suite| suite.suite());
    assert_eq!(
        suite.and_then(crate::ciphers::openssl_name),
        Some("TLS_CHACHA20_POLY1305_SHA256")
    );
}

#[test]
fn twins_are_told_apart_and_signatures_limited() {
    let bind = bind("sigalgs ECDSA+SHA256:rsa_pss_rsae_sha384");
    let leaf = |schemes: &[SignatureScheme]| {
        let mut client = client(all_suites(), schemes, "a.org");
        let done = handshake(&bind, &mut client).expect("a certificate");
        done.map(|_| client.peer_certificates().expect("shown")[0].clone())
            .ok()
    };
    let current = |entry: usize| bind.entries()[entry].certificate.current().leaf().clone();
    assert_eq!(leaf(&SCHEMES), Some(current(0)));
    assert_eq!(leaf(&SCHEMES[1..]), Some(current(1)));
    assert_eq!(leaf(&SCHEMES[1..2]), None);
}

#[test]
fn a_session_of_a_hidden_name_belongs_to_it() {
    let (plain, mut scoped) = (parts(), parts());
    scoped.scope = "listen".into();
    let mut contexts = Vec::new();
    for parts in [&plain, &scoped] {
        for name in [None, Some(&b"a..b"[..]), Some(b"app:443")] {
            let context = parts.resumption_context(name);
            assert!(!contexts.contains(&context), "{name:?}");
            contexts.push(context);
        }
    }
}

#[test]
fn what_cannot_be_carried_out_is_refused() {
    let refused = |text: &str| {
        BindTlsSettings::new(&options(text), &parts())
            .map(|_| ())
            .expect_err("refused")
            .to_string()
    };
    assert_eq!(
        refused("ssl-min-ver TLSv1.3 ssl-max-ver TLSv1.2"),
        "no version of TLS is left between TLSv1.3 and TLSv1.2 (TLSv1.2 and TLSv1.3 exist)"
    );
    assert!(refused("ciphers AES128-SHA").starts_with("'ciphers': nothing of 'AES128-SHA'"));
    assert_eq!(refused("curves FOO"), "'curves': 'FOO' is not known");
    let tls_settings = BindTlsSettings::new(&options("curves P-521:P-256 ecdhe FOO"), &parts());
    let missing = MissingWord {
        option: "curves",
        word: "P-521".to_owned(),
    };
    assert_eq!(
        tls_settings.expect("one group is left").missing_words(),
        [missing]
    );
}

#[test]
fn a_renewed_certificate_is_served_without_a_new_list() {
    let bind = bind("");
    let mut store = CertificateStore::default();
    let parts =
        crate::certificate::CertificateParts::read(self_signed(EC, "a.org", &[]).both().as_bytes());
    let renewed = Arc::new(store.build_certificate(parts.expect("good")).expect("good"));
    let stored: &StoredCertificate = &bind.entries()[0].certificate;
    assert!(stored.replace(Arc::clone(&renewed)));
    let mut client = client(all_suites(), &SCHEMES, "a.org");
    let mut server = handshake(&bind, &mut client)
        .expect("a certificate")
        .expect("done");
    assert_eq!(
        client.peer_certificates().expect("shown")[0],
        *renewed.leaf()
    );
    server.writer().write_all(b"hello").expect("memory");
    let mut bytes = Vec::new();
    server.write_tls(&mut bytes).expect("memory");
    client.read_tls(&mut &bytes[..]).expect("memory");
    client.process_new_packets().expect("good records");
    let mut told = [0; 5];
    client.reader().read_exact(&mut told).expect("five bytes");
    assert_eq!(&told, b"hello");
}

#[test]
fn sigalgs_of_a_server_line_limit_both_sides() {
    let bind = bind("");
    let tls_settings = |text: &str| {
        let pem = self_signed(EC, "c", &[]);
        let shown = crate::certificate::CertificateParts::read(pem.both().as_bytes());
        let mut store = CertificateStore::default();
        let parts = ServerLineParts {
            time: Arc::new(FixedTime),
            trust: ServerTrust::Any,
            certificate: Some(Arc::new(
                store.build_certificate(shown.expect("good")).expect("good"),
            )),
            tickets: true,
            session_names_max: 0,
            record_bytes_max: 0,
        };
        ServerTlsSettings::new(&options(text), &parts).expect("good")
    };
    for (list, entry) in [("ECDSA+SHA256", 0), ("RSA-PSS+SHA256", 1)] {
        let tls_settings = tls_settings(&format!("sigalgs {list}"));
        let name = server_name(Some(b"a.org"), false).expect("a name");
        let mut client =
            ClientConnection::new(Arc::clone(tls_settings.config()), name).expect("one");
        handshake(&bind, &mut client)
            .expect("a certificate")
            .expect("done");
        let expected = bind.entries()[entry].certificate.current();
        assert_eq!(
            client.peer_certificates().expect("shown")[0],
            *expected.leaf()
        );
    }
    let signs = |list: &str| {
        let tls_settings = tls_settings(&format!("client-sigalgs {list}"));
        let shown = tls_settings
            .config()
            .client_auth_cert_resolver
            .resolve(&[], &[]);
        let key = Arc::clone(&shown.expect("a certificate").key);
        key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256])
            .is_some()
    };
    assert!(signs("ECDSA+SHA256"));
    assert!(!signs("RSA-PSS+SHA256"));
}

#[test]
fn what_the_process_gives_to_all_lines_makes_other_settings() {
    let tls_settings = |change: &dyn Fn(&mut BindParts)| {
        let mut parts = BindParts {
            sessions: Arc::clone(&NO_SESSIONS),
            ..parts()
        };
        change(&mut parts);
        BindTlsSettings::new(&options(""), &parts).expect("good")
    };
    let before = tls_settings(&|_| {});
    assert!(before.has_same_surroundings(&tls_settings(&|_| {})));
    assert!(!before.has_same_surroundings(&tls_settings(&|parts| parts.session_lifetime_s = 20)));
    assert!(!before.has_same_surroundings(&tls_settings(&|parts| {
        parts.sessions = ServerSessionMemoryCache::new(8);
    })));
}

static NO_SESSIONS: LazyLock<Arc<dyn StoresServerSessions>> =
    LazyLock::new(|| Arc::new(NoServerSessionStorage {}));
