//! Private keys written as PEM, always in the form `PRIVATE KEY` (PKCS #8, RFC 5958), as OpenSSL
//! writes them.

use rustls::pki_types::PrivateKeyDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::der::element;
use crate::pem::write_pem;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 2;
const OCTETS: u8 = 4;
/// `[0]`, the curve, and `[1]`, the public key, of an EC key (RFC 5915).
const CURVE: u8 = 0xa0;
/// `SEQUENCE { OBJECT IDENTIFIER rsaEncryption, NULL }`.
const RSA: [u8; 15] = [
    0x30, 0x0d, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0,
];

/// A key as PEM text. `leaf` is its certificate, which says the curve of a key in the old form.
/// `None`: the key is no DER.
#[must_use]
pub(crate) fn private_key_pem(key: &PrivateKeyDer<'_>, leaf: &[u8]) -> Option<String> {
    let der = match key {
        PrivateKeyDer::Pkcs8(der) => der.secret_pkcs8_der().to_vec(),
        PrivateKeyDer::Pkcs1(der) => wrap(&RSA, der.secret_pkcs1_der()),
        PrivateKeyDer::Sec1(der) => {
            let (_, leaf) = X509Certificate::from_der(leaf).ok()?;
            let spki = leaf.public_key().raw;
            let (SEQUENCE, spki, _) = next(spki)? else {
                return None;
            };
            let (SEQUENCE, algorithm, _) = next(spki)? else {
                return None;
            };
            wrap(
                &field(SEQUENCE, algorithm),
                &without_curve(der.secret_sec1_der())?,
            )
        }
        _ => return None,
    };
    Some(write_pem("PRIVATE KEY", &der))
}

/// Whether it is a `PrivateKeyInfo` or a `OneAsymmetricKey` (RFC 5958): a version, the algorithm, a key.
/// OpenSSL reads these whatever the label of their section says.
pub(crate) fn is_private_key_info(der: &[u8]) -> bool {
    let read = || {
        let (SEQUENCE, fields, _) = next(der)? else {
            return None;
        };
        let (INTEGER, _, rest) = next(fields)? else {
            return None;
        };
        let (SEQUENCE, _, rest) = next(rest)? else {
            return None;
        };
        let (OCTETS, _, _) = next(rest)? else {
            return None;
        };
        Some(())
    };
    read().is_some()
}

/// The identifier of `rsaEncryption`.
const RSA_OID: [u8; 11] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
/// The identifier of `id-ecPublicKey`.
const EC_OID: [u8; 9] = [6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];

/// A `PrivateKeyInfo` as the library reads it: RSA with the NULL that stands for no parameters, and EC
/// without the public key that version 2 has behind it.
pub(crate) fn readable_private_key(der: Vec<u8>) -> PrivateKeyDer<'static> {
    let rewritten = || {
        let (_, fields, _) = next(&der)?;
        let (_, version, rest) = next(fields)?;
        let (_, algorithm, rest) = next(rest)?;
        let (_, key, _) = next(rest)?;
        match algorithm {
            rsa if *rsa == RSA_OID => Some(wrap(&RSA, key)),
            ec if ec.starts_with(&EC_OID) && version == [1] => {
                Some(wrap(&field(SEQUENCE, algorithm), key))
            }
            _ => None,
        }
    };
    let rewritten = rewritten();
    PrivateKeyDer::Pkcs8(rewritten.unwrap_or(der).into())
}

/// `PrivateKeyInfo` of an algorithm and a key.
fn wrap(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let version = field(INTEGER, &[0]);
    field(
        SEQUENCE,
        &[&version, algorithm, &field(OCTETS, key)].concat(),
    )
}

/// An EC key without its curve: the algorithm beside it says it.
fn without_curve(der: &[u8]) -> Option<Vec<u8>> {
    let (SEQUENCE, mut fields, _) = next(der)? else {
        return None;
    };
    let mut kept = Vec::new();
    while !fields.is_empty() {
        let (tag, value, rest) = next(fields)?;
        if tag != CURVE {
            kept.extend(field(tag, value));
        }
        fields = rest;
    }
    Some(field(SEQUENCE, &kept))
}

/// A field of DER: its tag, its value, and what follows it.
pub(crate) fn next(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    element(der).map(|found| (found.tag, found.content, found.rest))
}

/// A field of DER. Values are shorter than 16 MB.
fn field(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut der = vec![tag];
    let length = value.len();
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => der.push(short),
        _ => {
            let bytes = length.to_be_bytes();
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let bytes = &bytes[zeros..];
            der.push(0x80 | u8::try_from(bytes.len()).unwrap_or_default());
            der.extend_from_slice(bytes);
        }
    }
    der.extend_from_slice(value);
    der
}
