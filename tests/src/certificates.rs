//! Certificates for tests, made when a test runs: no key is ever stored in the repository.
//!
//! ```
//! use ballast_tests::certificates::{Authority, KeyType, Profile};
//!
//! let authority = Authority::new("a test");
//! let site = authority.issue(&Profile::server(&["a.example", "*.b.example"]));
//! let old = authority.issue(&Profile {
//!     days: -20..=-10,
//!     key: KeyType::Rsa2048,
//!     ..Profile::server(&["a.example"])
//! });
//! assert!(site.bundle().contains("PRIVATE KEY"), "what `crt` of a `bind` line reads");
//! assert_ne!(site.certificate, old.certificate);
//! assert!(authority.certificate().contains("BEGIN CERTIFICATE"), "what `ca-file` reads");
//! ```

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PKCS_RSA_SHA256, RsaKeySize, date_time_ymd,
};

/// The type of a key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum KeyType {
    /// ECDSA on P-256. Cheap to make: thousands a second.
    #[default]
    P256,
    /// RSA with 2048 bits. Making one takes a tenth of a second and more.
    Rsa2048,
}

/// Who a certificate is for (its extended key usage).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Usage {
    /// A client, which shows it when a server asks.
    Client,
    /// A server.
    Server,
}

/// What a certificate says.
#[derive(Clone, Debug)]
pub struct Profile<'a> {
    /// The common name of the subject.
    pub common_name: &'a str,
    /// The subject's alternative names: DNS names, also with a wildcard, and IP addresses.
    pub names: &'a [&'a str],
    /// The type of its key, which is made with it.
    pub key: KeyType,
    /// When it is valid, in days from now.
    pub days: RangeInclusive<i32>,
    /// Who it is for.
    pub usage: Usage,
}

impl<'a> Profile<'a> {
    /// A server's certificate for these names, with a P-256 key, valid now. The first name is
    /// its common name, too.
    #[must_use]
    pub fn server(names: &'a [&'a str]) -> Self {
        Self {
            common_name: names.first().copied().unwrap_or_default(),
            names,
            key: KeyType::default(),
            days: -1..=30,
            usage: Usage::Server,
        }
    }

    /// A client's certificate, with a P-256 key, valid now.
    #[must_use]
    pub fn client(common_name: &'a str) -> Self {
        Self {
            common_name,
            names: &[],
            key: KeyType::default(),
            days: -1..=30,
            usage: Usage::Client,
        }
    }
}

/// A certificate with its key, as PEM text.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate alone.
    pub certificate: String,
    /// The certificates between it and the root, the nearest first; usually none.
    pub intermediates: String,
    /// Its key (PKCS #8).
    pub key: String,
}

impl Certificate {
    /// Certificate, intermediates and key in one text: what `crt` of a `bind` line reads.
    #[must_use]
    pub fn bundle(&self) -> String {
        [&*self.certificate, &*self.intermediates, &*self.key].concat()
    }

    /// Writes [`Self::bundle`] to a file, and returns its path.
    ///
    /// # Panics
    ///
    /// When the file cannot be written.
    pub fn write(&self, directory: &Path, name: &str) -> PathBuf {
        let path = directory.join(name);
        fs::write(&path, self.bundle()).expect("a bundle is written");
        path
    }
}

/// A certificate authority: a root, or one below a root.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// PEM of itself and of those above it, but not of the root.
    intermediates: String,
}

impl Authority {
    /// A root with this common name and a P-256 key.
    ///
    /// # Panics
    ///
    /// When no key can be made.
    #[must_use]
    pub fn new(common_name: &str) -> Self {
        let issuer = CertifiedIssuer::self_signed(authority(common_name), key(KeyType::P256));
        Self {
            issuer: issuer.expect("a root signs itself"),
            intermediates: String::new(),
        }
    }

    /// An authority whose certificate this one signs: what it issues needs a chain.
    ///
    /// # Panics
    ///
    /// When no key can be made.
    #[must_use]
    pub fn intermediate(&self, common_name: &str) -> Self {
        let (params, key) = (authority(common_name), key(KeyType::P256));
        let issuer = CertifiedIssuer::signed_by(params, key, &self.issuer);
        let issuer = issuer.expect("an authority signs");
        Self {
            intermediates: [&*issuer.pem(), &*self.intermediates].concat(),
            issuer,
        }
    }

    /// Its certificate, as PEM text: what `ca-file` reads.
    #[must_use]
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// Writes [`Self::certificate`] to a file, and returns its path.
    ///
    /// # Panics
    ///
    /// When the file cannot be written.
    pub fn write(&self, directory: &Path, name: &str) -> PathBuf {
        let path = directory.join(name);
        fs::write(&path, self.certificate()).expect("a certificate is written");
        path
    }

    /// Makes a key and signs a certificate for it.
    ///
    /// # Panics
    ///
    /// When a name of the profile is none.
    #[must_use]
    pub fn issue(&self, profile: &Profile<'_>) -> Certificate {
        let names: Vec<String> = profile.names.iter().map(|name| (*name).into()).collect();
        let mut params = CertificateParams::new(names).expect("names of ASCII letters");
        params
            .distinguished_name
            .push(DnType::CommonName, profile.common_name);
        set_validity(&mut params, &profile.days);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![match profile.usage {
            Usage::Client => ExtendedKeyUsagePurpose::ClientAuth,
            Usage::Server => ExtendedKeyUsagePurpose::ServerAuth,
        }];
        let key = key(profile.key);
        let signed = params.signed_by(&key, &self.issuer);
        Certificate {
            certificate: signed.expect("an authority signs").pem(),
            intermediates: self.intermediates.clone(),
            key: key.serialize_pem(),
        }
    }
}

fn authority(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut params, &(-2..=3650));
    params
}

fn key(of: KeyType) -> KeyPair {
    let key = match of {
        KeyType::P256 => KeyPair::generate(),
        KeyType::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
    };
    key.expect("the library makes such keys")
}

/// Sets from when to when it is valid, in days from now.
fn set_validity(params: &mut CertificateParams, days: &RangeInclusive<i32>) {
    const DAY_SECONDS: i64 = 86_400;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.expect("the clock is past 1970").as_secs();
    let after = |days: i32| {
        let seconds = now.checked_add_signed(i64::from(days) * DAY_SECONDS);
        let seconds = seconds.expect("a time after 1970");
        date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
    };
    params.not_before = after(*days.start());
    params.not_after = after(*days.end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_holds_the_certificate_its_chain_and_its_key() {
        let root = Authority::new("root");
        let below = root.intermediate("below");
        let rsa = Profile {
            key: KeyType::Rsa2048,
            ..Profile::server(&["a.example", "127.0.0.1"])
        };
        let count = |text: &str, what: &str| text.matches(&format!("BEGIN {what}")).count();
        for (certificate, chain) in [(root.issue(&rsa), 1), (below.issue(&rsa), 2)] {
            let bundle = certificate.bundle();
            assert_eq!(count(&bundle, "CERTIFICATE"), chain);
            assert_eq!(count(&bundle, "PRIVATE KEY"), 1);
        }
    }
}
