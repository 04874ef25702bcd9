//! What 5,000 certificates cost to load and to hold: run by hand, in release.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use ballast_tls::bind::{BindCertificates, BindEntry};
use ballast_tls::files::CertificateFileReader;
use ballast_tls::hello::{HelloOutcome, parse_client_hello};
use ballast_tls::options::HandshakeOptions;
use ballast_tls::rustls::server::NoServerSessionStorage;
use ballast_tls::rustls::time_provider::DefaultTimeProvider;
use ballast_tls::server_config::{BindParts, BindTlsSettings};
use ballast_tls::store::{CertificateStore, StoredCertificate};
use ballast_tls::tickets::TicketKeys;
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256};

const CERTIFICATES: usize = 5_000;

struct MemoryFiles(HashMap<String, Vec<u8>>);

impl CertificateFileReader for MemoryFiles {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(self.0.get(path).cloned())
    }

    fn list(&self, path: &str) -> Result<Option<Vec<String>>, String> {
        let names = self.0.keys().filter_map(|file| file.strip_prefix("/d/"));
        Ok((path == "/d").then(|| names.map(str::to_owned).collect()))
    }
}

/// Resident memory, kB.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// What it costs to choose a certificate, with the configuration for its handshake.
fn choose(found: &[Arc<StoredCertificate>]) {
    let parts = BindParts {
        time: Arc::new(DefaultTimeProvider),
        verifier: None,
        ticket_keys: Some(Arc::new(TicketKeys::random())),
        sessions: Arc::new(NoServerSessionStorage {}),
        scope: "".into(),
        session_lifetime_s: 300,
        prefer_client_ciphers: false,
        early_data_bytes_max: 0,
        record_bytes_max: 0,
    };
    let tls_settings =
        Arc::new(BindTlsSettings::new(&HandshakeOptions::default(), &parts).unwrap());
    let entries = found.iter().map(|certificate| BindEntry {
        certificate: Arc::clone(certificate),
        filters: None,
        is_default: false,
        tls_settings: Arc::clone(&tls_settings),
        row: None,
    });
    let start = Instant::now();
    let bind = BindCertificates::new(entries.collect(), false);
    let indexed = start.elapsed();
    let raw = std::fs::read("../../fuzz/seeds/client_hello/tls13").unwrap();
    let start = Instant::now();
    for _ in 0..CERTIFICATES {
        let HelloOutcome::Complete(hello) = parse_client_hello(&raw) else {
            unreachable!("a seed is whole");
        };
        assert!(bind.choose(&hello).is_some());
    }
    let chosen = start.elapsed() / u32::try_from(CERTIFICATES).unwrap();
    println!("indexed in {indexed:?}, a hello is read and answered in {chosen:?}");
}

#[test]
#[ignore = "measures, so it says something in release and alone only"]
fn five_thousand_certificates() {
    let key = || KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, key()).unwrap();
    let content = |number: usize| {
        let names = vec![
            format!("www.site{number}.example"),
            format!("site{number}.example"),
        ];
        let key = key();
        let leaf = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &authority)
            .unwrap();
        (leaf.pem() + &key.serialize_pem() + &authority.pem()).into_bytes()
    };
    let files = (0..CERTIFICATES).map(|number| (format!("/d/{number}.pem"), content(number)));
    let files = MemoryFiles(files.collect());
    let before = resident();
    let start = Instant::now();
    let mut store = CertificateStore::default();
    let found = store.load_crt(&files, "/d").unwrap();
    let took = start.elapsed();
    assert_eq!(found.len(), CERTIFICATES);
    choose(&found);
    println!(
        "{} certificates: {took:?}, {} kB",
        found.len(),
        resident() - before
    );
}
