//! How signatures of certificates and revocation lists are checked.
//!
//! rustls checks what handshakes and new authorities sign with. Old ones sign over SHA-1, or with RSA
//! keys of fewer than 2048 bits: OpenSSL checks these signatures too, and asks elsewhere whether they
//! are good enough (`check_strength` of the verifier). It does not ask for revocation lists.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA1_ASN1, ECDSA_P256K1_SHA256_ASN1, ECDSA_P521_SHA1_ASN1, ECDSA_P521_SHA224_ASN1,
    RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, UnparsedPublicKey, VerificationAlgorithm,
};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::SignatureVerificationAlgorithm;

use crate::der::{bits, element, sequence};

/// Something signed: a certificate or a revocation list.
pub(crate) struct SignedObject<'a> {
    content: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
}

impl<'a> SignedObject<'a> {
    /// Takes a signed structure apart: content, algorithm, signature.
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let content = element(sequence(der)?.content)?;
        let algorithm = sequence(content.rest)?;
        Some(Self {
            content: content.whole,
            algorithm: algorithm.content,
            signature: bits(algorithm.rest)?,
        })
    }

    /// Checks the signature with a public key (SubjectPublicKeyInfo).
    pub(crate) fn is_signed_by(&self, key: &[u8], algorithms: &WebPkiSupportedAlgorithms) -> bool {
        let Some(key) = PublicKey::read(key) else {
            return false;
        };
        let is_new = algorithms
            .all
            .iter()
            .filter(|known| known.signature_alg_id().as_ref() == self.algorithm)
            .any(|known| key.has_signed(*known, self.content, self.signature));
        is_new
            || OLD_SIGNATURES.iter().any(|old| {
                self.is_made_with(old)
                    && key.algorithm == old.key
                    && UnparsedPublicKey::new(old.check, key.key)
                        .verify(self.content, self.signature)
                        .is_ok()
            })
    }

    /// Whether signatures of this kind can be checked with such a key.
    pub(crate) fn can_be_checked(&self, key: &[u8], key_bits: usize) -> bool {
        let Some(key) = PublicKey::read(key) else {
            return false;
        };
        let is_new = |known: &&dyn SignatureVerificationAlgorithm| {
            known.public_key_alg_id().as_ref() == key.algorithm
                && known.signature_alg_id().as_ref() == self.algorithm
                && (key.algorithm != RSA_KEY || key_bits >= RSA_BITS_MIN)
        };
        let is_old = |old: &OldSignature| self.is_made_with(old) && key.algorithm == old.key;
        algorithms().all.iter().any(is_new) || OLD_SIGNATURES.iter().any(is_old)
    }

    fn is_made_with(&self, old: &OldSignature) -> bool {
        // With or without the NULL that stands for no parameters.
        let parameters = self.algorithm.strip_prefix(old.signature);
        parameters.is_some_and(|parameters| matches!(parameters, [] | [5, 0]))
    }
}

/// A public key, taken apart.
struct PublicKey<'a> {
    algorithm: &'a [u8],
    key: &'a [u8],
}

impl<'a> PublicKey<'a> {
    fn read(der: &'a [u8]) -> Option<Self> {
        let algorithm = sequence(sequence(der)?.content)?;
        Some(Self {
            algorithm: algorithm.content,
            key: bits(algorithm.rest)?,
        })
    }

    fn has_signed(
        &self,
        algorithm: &dyn SignatureVerificationAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        algorithm.public_key_alg_id().as_ref() == self.algorithm
            && algorithm
                .verify_signature(self.key, message, signature)
                .is_ok()
    }
}

/// Checks a signature with a public key (SubjectPublicKeyInfo).
pub(crate) fn is_signature(
    algorithm: &dyn SignatureVerificationAlgorithm,
    key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> bool {
    PublicKey::read(key).is_some_and(|key| key.has_signed(algorithm, message, signature))
}

/// Whether this key (SubjectPublicKeyInfo) of so many bits can check any signature.
pub(crate) fn is_usable_key(key: &[u8], key_bits: usize) -> bool {
    let Some(key) = PublicKey::read(key) else {
        return false;
    };
    let is_new = |known: &&dyn SignatureVerificationAlgorithm| {
        known.public_key_alg_id().as_ref() == key.algorithm
    };
    let is_known = algorithms().all.iter().any(is_new)
        || OLD_SIGNATURES.iter().any(|old| old.key == key.algorithm);
    is_known && (key.algorithm != RSA_KEY || (OLD_RSA_BITS_MIN..=RSA_BITS_MAX).contains(&key_bits))
}

/// What rustls checks.
fn algorithms() -> WebPkiSupportedAlgorithms {
    default_provider().signature_verification_algorithms
}

/// The shortest RSA key that rustls's signatures are checked with.
const RSA_BITS_MIN: usize = 2_048;
/// The shortest and the longest that any is.
const OLD_RSA_BITS_MIN: usize = 1_024;
const RSA_BITS_MAX: usize = 8_192;

/// A way of signing that rustls checks no more.
struct OldSignature {
    /// The algorithm of the signature: its identifier in DER, without parameters.
    signature: &'static [u8],
    /// The algorithm of the key: identifier and parameters in DER.
    key: &'static [u8],
    check: &'static dyn VerificationAlgorithm,
}

/// `rsaEncryption` (RFC 8017, A.1), with the NULL that all write.
const RSA_KEY: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
/// `id-ecPublicKey` on `secp256r1` (RFC 5480, 2.1.1).
const P256_KEY: &[u8] = &[
    6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7,
];
/// `id-ecPublicKey` on `secp521r1`.
const P521_KEY: &[u8] = &[
    6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 5, 0x2b, 0x81, 4, 0, 0x23,
];
/// `id-ecPublicKey` on `secp256k1`.
const P256K1_KEY: &[u8] = &[
    6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 5, 0x2b, 0x81, 4, 0, 0x0a,
];

const OLD_SIGNATURES: [OldSignature; 8] = [
    // sha1WithRSAEncryption
    OldSignature {
        signature: &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5],
        key: RSA_KEY,
        check: &RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
    },
    // The same by the name that OIW gave it
    OldSignature {
        signature: &[6, 5, 0x2b, 0x0e, 3, 2, 0x1d],
        key: RSA_KEY,
        check: &RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
    },
    // sha256WithRSAEncryption, keys below 2048 bits
    OldSignature {
        signature: &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11],
        key: RSA_KEY,
        check: &RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
    },
    // sha512WithRSAEncryption, keys below 2048 bits
    OldSignature {
        signature: &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13],
        key: RSA_KEY,
        check: &RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
    },
    // ecdsa-with-SHA1
    OldSignature {
        signature: &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1],
        key: P256_KEY,
        check: &ECDSA_P256_SHA1_ASN1,
    },
    OldSignature {
        signature: &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1],
        key: P521_KEY,
        check: &ECDSA_P521_SHA1_ASN1,
    },
    // ecdsa-with-SHA224
    OldSignature {
        signature: &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 1],
        key: P521_KEY,
        check: &ECDSA_P521_SHA224_ASN1,
    },
    // ecdsa-with-SHA256
    OldSignature {
        signature: &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2],
        key: P256K1_KEY,
        check: &ECDSA_P256K1_SHA256_ASN1,
    },
];
