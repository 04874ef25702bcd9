//! Certificates and files for the tests of this crate.

use std::collections::BTreeMap;

use rcgen::{
    CertificateParams, CertifiedIssuer, DnType, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_ED25519, PKCS_RSA_SHA256, SignatureAlgorithm,
};

use crate::files::Files;

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

impl Files for MemoryFiles {
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
