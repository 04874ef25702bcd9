//! Who may resume what: a session belongs to the verifier, the authorities and the name with which
//! it was made, whatever keys and stores bind lines share.

use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Resumption, Tls12ClientSessionValue,
    Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, NamedGroup};

use super::*;
use crate::authorities::{Authorities, TrustedAuthorities};
use crate::bind::{BindCertificates, BindEntry};
use crate::certificate::CertificateParts;
use crate::client_config::{ServerLineParts, ServerTlsSettings, ServerTrust};
use crate::options::VerifyMode;
use crate::store::{CertificateStore, StoredCertificate};
use crate::testing::{
    Authority, EC, FixedTime, Pem, handshake, options, params, root, self_signed, signed,
};
use crate::verify_error::IgnoredErrors;

/// What bind lines share.
struct Shared {
    keys: Option<Arc<TicketKeys>>,
    sessions: Arc<dyn StoresServerSessions>,
}

fn tickets() -> Shared {
    Shared {
        keys: Some(Arc::new(TicketKeys::random())),
        sessions: Arc::new(NoServerSessionStorage {}),
    }
}

fn store() -> Shared {
    Shared {
        keys: None,
        sessions: ServerSessionMemoryCache::new(64),
    }
}

fn certificate(pem: &Pem) -> Certificate {
    let parts = CertificateParts::read(pem.both().as_bytes()).expect("good");
    CertificateStore::default()
        .build_certificate(parts)
        .expect("good")
}

fn verifier(mode: VerifyMode, by: &Authority) -> Arc<ClientVerifier> {
    let mut authorities = Authorities::default();
    authorities.add(by.pem().as_bytes()).expect("good");
    let trust = TrustedAuthorities {
        authorities: Some(Arc::new(authorities)),
        ..TrustedAuthorities::default()
    };
    let none = IgnoredErrors::default();
    Arc::new(ClientVerifier::new(mode, trust, none, none, true, None))
}

fn bind(shared: &Shared, verifier: Option<Arc<ClientVerifier>>) -> BindCertificates {
    let parts = BindParts {
        time: Arc::new(FixedTime),
        verifier,
        ticket_keys: shared.keys.clone(),
        sessions: Arc::clone(&shared.sessions),
        scope: "".into(),
        session_lifetime_s: 300,
        prefer_client_ciphers: false,
        early_data_bytes_max: 0,
        record_bytes_max: 0,
    };
    let tls_settings =
        Arc::new(BindTlsSettings::new(&HandshakeOptions::default(), &parts).expect("good"));
    let pem = self_signed(EC, "a.org", &["b.org"]);
    let entry = BindEntry {
        certificate: Arc::new(StoredCertificate::new("a", Arc::new(certificate(&pem)))),
        filters: None,
        is_default: false,
        tls_settings,
        row: None,
    };
    BindCertificates::new(vec![entry], false)
}

/// Sessions for one name, given for every name: a client that lies.
#[derive(Debug)]
struct OneName(ClientSessionMemoryCache);

impl OneName {
    fn name() -> ServerName<'static> {
        ServerName::try_from("one.example").expect("a name")
    }
}

impl ClientSessionStore for OneName {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.0.set_kx_hint(Self::name(), group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.0.kx_hint(&Self::name())
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.0.set_tls12_session(Self::name(), value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.0.tls12_session(&Self::name())
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.0.remove_tls12_session(&Self::name());
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(Self::name(), value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(&Self::name())
    }
}

/// A client with a memory: every session it has ever got is tried anywhere.
fn client(version: &str, shown: Option<&Pem>) -> Arc<ClientConfig> {
    let parts = ServerLineParts {
        time: Arc::new(FixedTime),
        trust: ServerTrust::Any,
        certificate: shown.map(|pem| Arc::new(certificate(pem))),
        tickets: true,
        session_names_max: 8,
        record_bytes_max: 0,
    };
    let text = format!("ssl-min-ver {version} ssl-max-ver {version}");
    let tls_settings = ServerTlsSettings::new(&options(&text), &parts).expect("good");
    let mut config = ClientConfig::clone(tls_settings.config());
    let store = OneName(ClientSessionMemoryCache::new(8));
    config.resumption = Resumption::store(Arc::new(store));
    Arc::new(config)
}

/// The kind of handshake, `None` when the server ends it.
fn connect(
    bind: &BindCertificates,
    client: &Arc<ClientConfig>,
    name: &'static str,
) -> Option<HandshakeKind> {
    let name = ServerName::try_from(name).expect("a name");
    let mut client = ClientConnection::new(Arc::clone(client), name).expect("a client");
    let server = handshake(bind, &mut client).expect("a certificate").ok()?;
    server.handshake_kind()
}

const RESUMED: Option<HandshakeKind> = Some(HandshakeKind::Resumed);
const FULL: Option<HandshakeKind> = Some(HandshakeKind::Full);

fn each_way(check: impl Fn(&str, &Shared)) {
    for version in ["TLSv1.2", "TLSv1.3"] {
        check(version, &tickets());
        check(version, &store());
    }
}

#[test]
fn lines_that_share_keys_share_sessions() {
    each_way(|version, shared| {
        let (one, other) = (bind(shared, None), bind(shared, None));
        let client = client(version, None);
        assert_eq!(connect(&one, &client, "a.org"), FULL);
        assert_eq!(connect(&one, &client, "a.org"), RESUMED);
        assert_eq!(connect(&other, &client, "a.org"), RESUMED);
    });
}

#[test]
fn a_session_belongs_to_its_name() {
    each_way(|version, shared| {
        let bind = bind(shared, None);
        let client = client(version, None);
        assert_eq!(connect(&bind, &client, "a.org"), FULL);
        assert_eq!(connect(&bind, &client, "b.org"), FULL);
    });
}

#[test]
fn a_session_of_an_open_line_opens_no_closed_one() {
    let authority = root("authority");
    each_way(|version, shared| {
        let open = bind(shared, None);
        let optional = bind(shared, Some(verifier(VerifyMode::Optional, &authority)));
        let closed = bind(shared, Some(verifier(VerifyMode::Required, &authority)));
        let client = client(version, None);
        assert_eq!(connect(&open, &client, "a.org"), FULL);
        assert_eq!(connect(&closed, &client, "a.org"), None);
        assert!(connect(&open, &client, "a.org").is_some());
        assert_eq!(connect(&optional, &client, "a.org"), FULL);
        assert_eq!(connect(&closed, &client, "a.org"), None);
    });
}

#[test]
fn a_session_belongs_to_the_authorities_that_let_it_in() {
    let (authority, other) = (root("authority"), root("other"));
    let shown = signed(&params("client", &[]), &authority);
    each_way(|version, shared| {
        let closed = bind(shared, Some(verifier(VerifyMode::Required, &authority)));
        let same = bind(shared, Some(verifier(VerifyMode::Required, &authority)));
        let elsewhere = bind(shared, Some(verifier(VerifyMode::Required, &other)));
        let client = client(version, Some(&shown));
        assert_eq!(connect(&closed, &client, "a.org"), FULL);
        assert_eq!(connect(&closed, &client, "a.org"), RESUMED);
        assert_eq!(connect(&same, &client, "a.org"), RESUMED);
        assert_eq!(connect(&elsewhere, &client, "a.org"), None);
    });
}

#[test]
fn keys_rotate_under_sessions() {
    let shared = tickets();
    let keys = shared.keys.clone().expect("keys");
    let bind = bind(&shared, None);
    let client = client("TLSv1.3", None);
    assert_eq!(connect(&bind, &client, "a.org"), FULL);
    for turn in 0..5 {
        let key = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, [turn; 80]);
        keys.push(&key).expect("good");
        assert_eq!(connect(&bind, &client, "a.org"), RESUMED, "{turn}");
    }
    (0..3).for_each(|_| keys.push(&TicketKeys::random().reveal()[0]).unwrap());
    assert_eq!(connect(&bind, &client, "a.org"), FULL);
}

#[test]
fn what_was_found_of_a_certificate_is_kept() {
    let authority = root("authority");
    let shown = self_signed(EC, "nobody", &[]);
    let mut authorities = Authorities::default();
    authorities.add(authority.pem().as_bytes()).expect("good");
    let trust = TrustedAuthorities {
        authorities: Some(Arc::new(authorities)),
        ..TrustedAuthorities::default()
    };
    let all = IgnoredErrors::parse("all").expect("good");
    let verifier = ClientVerifier::new(VerifyMode::Required, trust, all, all, true, None);
    let bind = bind(&tickets(), Some(Arc::new(verifier)));
    let client = client("TLSv1.3", Some(&shown));
    let name = ServerName::try_from("a.org").expect("a name");
    let mut client = ClientConnection::new(client, name).expect("a client");
    let mut raw = Vec::new();
    client.write_tls(&mut raw).expect("memory");
    let hello = crate::hello::parse_client_hello(&raw);
    let crate::hello::HelloOutcome::Complete(hello) = hello else {
        panic!("{hello:?}");
    };
    let verification = bind
        .choose(&hello)
        .expect("one")
        .tls_settings
        .verification
        .expect("asked");
    assert_eq!(verification.verdict(), None);
    let leaf = CertificateParts::read(shown.certificate.as_bytes())
        .expect("good")
        .certificates;
    let now =
        rustls::pki_types::UnixTime::since_unix_epoch(std::time::Duration::from_secs(1 << 31));
    let judged = ClientCertVerifier::verify_client_cert(&*verification, &leaf[0], &[], now);
    assert!(judged.is_ok());
    let verdict = verification.verdict().expect("judged");
    assert_eq!((verdict.error.0, verdict.is_refused), (18, false));
}

#[test]
fn a_client_that_resumes_gets_one_ticket_for_the_one_it_used() {
    let open = bind(&tickets(), None);
    let config = client("TLSv1.3", None);
    for expected in [2, 1, 1] {
        let name = ServerName::try_from("a.org").expect("a name");
        let mut client = ClientConnection::new(Arc::clone(&config), name).expect("a client");
        let server = handshake(&open, &mut client);
        server.expect("a certificate").expect("a handshake");
        assert_eq!(client.tls13_tickets_received(), expected);
    }
}
