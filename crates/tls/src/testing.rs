//! Certificates and files for the tests of this crate.

use std::collections::BTreeMap;
use std::time::Duration;

use rcgen::{
    CertificateParams, CertifiedIssuer, DnType, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_ED25519, PKCS_RSA_SHA256, SignatureAlgorithm,
};
use rustls::pki_types::UnixTime;
use rustls::server::Acceptor;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConnection, ServerConnection};

use crate::bind::BindCertificates;
use crate::files::CertificateFileReader;
use crate::hello::{HelloOutcome, parse_client_hello};
use crate::options::{HandshakeOptions, TlsVersion};

pub(crate) const EC: &SignatureAlgorithm = &PKCS_ECDSA_P256_SHA256;
pub(crate) const ED: &SignatureAlgorithm = &PKCS_ED25519;
pub(crate) const RSA: &SignatureAlgorithm = &PKCS_RSA_SHA256;

/// Files by their path; a directory is what has files below it.
#[derive(Default)]
pub(crate) struct MemoryFiles(pub(crate) BTreeMap<String, Vec<u8>>);

impl MemoryFiles {
    pub(crate) fn add(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.0.insert(path.to_owned(), content.into());
    }
}

impl MemoryFiles {
    pub(crate) fn remove(&mut self, path: &str) {
        self.0.remove(path);
    }
}

impl CertificateFileReader for MemoryFiles {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(self.0.get(path).cloned())
    }

    fn list(&self, path: &str) -> Result<Option<Vec<String>>, String> {
        let below = format!("{}/", path.trim_end_matches('/'));
        let names: Vec<String> = self
            .0
            .keys()
            .filter_map(|file| file.strip_prefix(&below))
            .filter(|name| !name.contains('/'))
            .map(str::to_owned)
            .collect();
        Ok((!names.is_empty()).then_some(names))
    }
}

/// A certificate in PEM, and its key.
pub(crate) struct Pem {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Pem {
    pub(crate) fn both(&self) -> String {
        format!("{}{}", self.certificate, self.key)
    }
}

pub(crate) fn params(common_name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name.remove(DnType::CommonName);
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params
}

/// A certificate that signs itself.
pub(crate) fn self_signed(algorithm: &'static SignatureAlgorithm, cn: &str, names: &[&str]) -> Pem {
    let key = KeyPair::generate_for(algorithm).expect("a key");
    let certificate = params(cn, names).self_signed(&key).expect("a certificate");
    Pem {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    }
}

pub(crate) type Authority = CertifiedIssuer<'static, KeyPair>;

/// An authority that signs itself.
pub(crate) fn root(cn: &str) -> Authority {
    let mut params = params(cn, &[]);
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = KeyPair::generate_for(EC).expect("a key");
    CertifiedIssuer::self_signed(params, key).expect("a certificate")
}

/// An authority below another one.
pub(crate) fn intermediate(cn: &str, above: &Issuer<'_, KeyPair>) -> Authority {
    let mut params = params(cn, &[]);
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = KeyPair::generate_for(EC).expect("a key");
    CertifiedIssuer::signed_by(params, key, above).expect("a certificate")
}

/// A certificate signed by an authority.
pub(crate) fn signed(params: &CertificateParams, by: &Issuer<'_, KeyPair>) -> Pem {
    let key = KeyPair::generate_for(EC).expect("a key");
    let certificate = params.signed_by(&key, by).expect("a certificate");
    Pem {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    }
}

/// A clock that stands still.
#[derive(Debug)]
pub(crate) struct FixedTime;

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(
            1_800_000_000,
        )))
    }
}

/// Options by the words of a line, each with its value.
pub(crate) fn options(text: &str) -> HandshakeOptions {
    let mut options = HandshakeOptions::default();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let value = words.next().expect("a value");
        let text = Some(value.to_owned());
        let version = || match value {
            "TLSv1.2" => Some(TlsVersion::Tls12),
            "TLSv1.3" => Some(TlsVersion::Tls13),
            _ => None,
        };
        match word {
            "alpn" => options.alpn = value.split(',').map(str::to_owned).collect(),
            "ciphers" => options.ciphers = text,
            "ciphersuites" => options.ciphersuites = text,
            "client-sigalgs" => options.client_signature_algorithms = text,
            "curves" => options.curves = text,
            "ecdhe" => options.ecdhe = text,
            "sigalgs" => options.signature_algorithms = text,
            "ssl-max-ver" => options.version_max = version(),
            "ssl-min-ver" => options.version_min = version(),
            _ => panic!("no option of a handshake: {word}"),
        }
    }
    options
}

/// A whole handshake in memory. `None`: there is no certificate for the client.
pub(crate) fn handshake(
    bind: &BindCertificates,
    client: &mut ClientConnection,
) -> Option<Result<ServerConnection, rustls::Error>> {
    let mut raw = Vec::new();
    client.write_tls(&mut raw).expect("memory");
    let HelloOutcome::Complete(hello) = parse_client_hello(&raw) else {
        panic!("rustls writes whole hellos");
    };
    let choice = bind.choose(&hello)?;
    let mut acceptor = Acceptor::default();
    acceptor.read_tls(&mut &raw[..]).expect("memory");
    let accepted = acceptor
        .accept()
        .expect("a good hello")
        .expect("a whole one");
    let mut server = match accepted.into_connection(choice.tls_settings.config) {
        Ok(server) => server,
        Err((error, _)) => return Some(Err(error)),
    };
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        server.write_tls(&mut bytes).expect("memory");
        client.read_tls(&mut &bytes[..]).expect("memory");
        client
            .process_new_packets()
            .expect("a client that takes everything");
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).expect("memory");
        server.read_tls(&mut &bytes[..]).expect("memory");
        if let Err(error) = server.process_new_packets() {
            return Some(Err(error));
        }
    }
    // The tickets of TLS 1.3 follow the handshake.
    let mut bytes = Vec::new();
    server.write_tls(&mut bytes).expect("memory");
    client.read_tls(&mut &bytes[..]).expect("memory");
    client.process_new_packets().expect("good records");
    Some(Ok(server))
}
