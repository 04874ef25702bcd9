//! What targets share: certificates with keys that match, which no mutation finds and no seed may
//! hold, because no key is ever stored in the repository.

use std::sync::LazyLock;

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256};

/// Certificate and key on P-256, and with RSA; made when a target starts.
static PIECES: LazyLock<[String; 4]> = LazyLock::new(|| {
    let [ecdsa, rsa] = [&PKCS_ECDSA_P256_SHA256, &PKCS_RSA_SHA256].map(|algorithm| {
        let key = KeyPair::generate_for(algorithm).expect("a key");
        let names = vec!["www.example.com".to_owned(), "*.example.org".to_owned()];
        let certificate = CertificateParams::new(names)
            .and_then(|params| params.self_signed(&key))
            .expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    });
    [ecdsa.0, ecdsa.1, rsa.0, rsa.1]
});

/// The input with PEM in the place of the bytes 1 to 4: a certificate on P-256, its key, a
/// certificate with RSA, its key.
#[must_use]
pub fn with_pem(input: &[u8]) -> Vec<u8> {
    let mut found = Vec::with_capacity(input.len());
    for byte in input {
        match PIECES.get(usize::from(byte.wrapping_sub(1))) {
            Some(piece) => found.extend_from_slice(piece.as_bytes()),
            None => found.push(*byte),
        }
    }
    found
}
