//! Public keys in files, and the signatures of web tokens that they verify.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ParsedPublicKey,
    RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_2048_8192_SHA384, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384,
    RSA_PSS_2048_8192_SHA512, VerificationAlgorithm,
};

use crate::base64::unbase64;
use crate::files::PatternFileReader;
use crate::message_digest::MessageDigest;
use crate::slot::LinkSlot;

/// How a web token is signed (RFC 7518 section 3.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JwtAlgorithm {
    /// Not at all.
    None,
    /// With a secret.
    Secret(MessageDigest),
    /// With a key whose public half verifies.
    Key(SignatureKind),
}

/// A signature that a public key verifies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum SignatureKind {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// ECDSA with P-521 and SHA-512.
    Es512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
}

/// How many kinds of signatures there are.
const SIGNATURE_KINDS: usize = 9;

impl JwtAlgorithm {
    /// The names of the algorithms.
    pub(crate) const WORDS: [&str; 13] = [
        "HS256", "HS384", "HS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256",
        "RS384", "RS512", "none",
    ];

    /// The algorithm of this name; names have case.
    pub(crate) fn parse(name: &[u8]) -> Option<JwtAlgorithm> {
        use JwtAlgorithm::{Key, Secret};
        Some(match name {
            b"none" => JwtAlgorithm::None,
            b"HS256" => Secret(MessageDigest::Sha256),
            b"HS384" => Secret(MessageDigest::Sha384),
            b"HS512" => Secret(MessageDigest::Sha512),
            b"ES256" => Key(SignatureKind::Es256),
            b"ES384" => Key(SignatureKind::Es384),
            b"ES512" => Key(SignatureKind::Es512),
            b"PS256" => Key(SignatureKind::Ps256),
            b"PS384" => Key(SignatureKind::Ps384),
            b"PS512" => Key(SignatureKind::Ps512),
            b"RS256" => Key(SignatureKind::Rs256),
            b"RS384" => Key(SignatureKind::Rs384),
            b"RS512" => Key(SignatureKind::Rs512),
            _ => return None,
        })
    }
}

impl SignatureKind {
    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            SignatureKind::Es256 => &ECDSA_P256_SHA256_FIXED,
            SignatureKind::Es384 => &ECDSA_P384_SHA384_FIXED,
            SignatureKind::Es512 => &ECDSA_P521_SHA512_FIXED,
            SignatureKind::Ps256 => &RSA_PSS_2048_8192_SHA256,
            SignatureKind::Ps384 => &RSA_PSS_2048_8192_SHA384,
            SignatureKind::Ps512 => &RSA_PSS_2048_8192_SHA512,
            SignatureKind::Rs256 => &RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
            SignatureKind::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
            SignatureKind::Rs512 => &RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
        }
    }
}

/// A public key as its file has it, prepared for each kind of signature when it is first asked.
pub(crate) struct PublicKey {
    der: Vec<u8>,
    prepared: [OnceLock<Option<ParsedPublicKey>>; SIGNATURE_KINDS],
}

impl PublicKey {
    /// Reads `BEGIN PUBLIC KEY` (any key) or `BEGIN RSA PUBLIC KEY` (PKCS#1).
    pub(crate) fn parse(pem: &[u8]) -> Option<PublicKey> {
        let text = std::str::from_utf8(pem).ok()?;
        let labels = ["PUBLIC KEY", "RSA PUBLIC KEY"];
        let body = labels.iter().find_map(|label| {
            let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
            Some(rest.split_once(&format!("-----END {label}-----"))?.0)
        })?;
        let digits: Vec<u8> = body
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        let mut der = Vec::new();
        unbase64(&digits, &mut der, false)?;
        Some(PublicKey {
            der,
            prepared: Default::default(),
        })
    }

    /// Whether `signature` is of `message`. A key of another kind verifies none.
    pub(crate) fn verifies(&self, kind: SignatureKind, message: &[u8], signature: &[u8]) -> bool {
        let prepare = || ParsedPublicKey::new(kind.verification(), &self.der).ok();
        self.prepared[kind as usize]
            .get_or_init(prepare)
            .as_ref()
            .is_some_and(|key| key.verify_sig(message, signature).is_ok())
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &PublicKey) -> bool {
        self.der == other.der
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "public key of {} bytes", self.der.len())
    }
}

/// The public keys that the configuration names, by path: a variable may name one of them.
#[derive(Debug, Default)]
pub(crate) struct PublicKeys {
    by_path: RwLock<HashMap<String, Arc<PublicKey>>>,
}

impl PublicKeys {
    /// Reads the key at `path`, if one is there.
    pub(crate) fn load(&self, path: &str, files: &mut dyn PatternFileReader) {
        let read = files.read(path).ok();
        let key = read.and_then(|pem| PublicKey::parse(&pem));
        let mut keys = self.by_path.write().unwrap_or_else(PoisonError::into_inner);
        match key {
            Some(key) => keys.insert(path.to_owned(), Arc::new(key)),
            None => keys.remove(path),
        };
    }

    /// The key at `path`, if the configuration names it and it could be read.
    pub(crate) fn key(&self, path: &[u8]) -> Option<Arc<PublicKey>> {
        let path = std::str::from_utf8(path).ok()?;
        let keys = self.by_path.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(path).cloned()
    }
}

impl PartialEq for PublicKeys {
    fn eq(&self, other: &PublicKeys) -> bool {
        if std::ptr::eq(self, other) {
            return true;
        }
        // One lock at a time: nobody can wait for two.
        let keys = |all: &PublicKeys| {
            let keys = all.by_path.read().unwrap_or_else(PoisonError::into_inner);
            keys.clone()
        };
        keys(self) == keys(other)
    }
}

/// The public keys that an argument may mean: the one of its path, or any that a variable names. Two
/// are equal when the keys are, so that an expression whose key file was replaced is another one.
/// As with other links, one that is not joined yet is equal to any for the same path.
#[derive(Clone, Debug)]
pub struct LinkedKeys {
    path: Option<Box<str>>,
    all: LinkSlot<Arc<PublicKeys>>,
}

impl LinkedKeys {
    /// The key at `path`, or any where that is not known yet.
    pub(crate) fn unlinked(path: Option<&str>) -> LinkedKeys {
        LinkedKeys {
            path: path.map(Into::into),
            all: LinkSlot::empty(),
        }
    }

    /// Joins it to the keys of the configuration.
    pub(crate) fn link(&mut self, all: &Arc<PublicKeys>) {
        self.all.fill(Arc::clone(all));
    }

    /// The keys of the configuration, once it is joined to them.
    pub(crate) fn linked(&self) -> Option<&PublicKeys> {
        self.all.filled().map(|keys| &**keys)
    }
}

impl PartialEq for LinkedKeys {
    fn eq(&self, other: &LinkedKeys) -> bool {
        self.path == other.path
            && match (self.linked(), other.linked(), &self.path) {
                (Some(one), Some(other), Some(path)) => {
                    one.key(path.as_bytes()) == other.key(path.as_bytes())
                }
                (Some(one), Some(other), None) => one == other,
                (None, ..) | (_, None, _) => true,
            }
    }
}
