//! Cipher suites, groups and versions by name.

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{ALL_CIPHER_SUITES, ALL_KX_GROUPS, kx_group};
use rustls::{CipherSuite, NamedGroup, ProtocolVersion, SupportedCipherSuite};

/// The groups that are offered without `--groups`: those of today's browsers, in their order. The
/// hybrid of X25519 and ML-KEM comes first: a server that prefers it would otherwise send a
/// HelloRetryRequest, which costs a round trip.
pub(crate) fn default_groups() -> Vec<&'static dyn SupportedKxGroup> {
    vec![
        kx_group::X25519MLKEM768,
        kx_group::X25519,
        kx_group::SECP256R1,
        kx_group::SECP384R1,
    ]
}

/// The cipher suites: number, name in the standards, name in OpenSSL. rustls has the names of the
/// standards, except that those of TLS 1.3 begin with `TLS13_` instead of `TLS_`.
const CIPHER_SUITES: [(CipherSuite, &str, &str); 9] = [
    (
        CipherSuite::TLS13_AES_128_GCM_SHA256,
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_128_GCM_SHA256",
    ),
    (
        CipherSuite::TLS13_AES_256_GCM_SHA384,
        "TLS_AES_256_GCM_SHA384",
        "TLS_AES_256_GCM_SHA384",
    ),
    (
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_CHACHA20_POLY1305_SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "ECDHE-RSA-AES128-GCM-SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "ECDHE-RSA-CHACHA20-POLY1305",
    ),
];

/// The name of a suite in reports: that of the standards.
pub(crate) fn suite_name(suite: CipherSuite) -> &'static str {
    let row = CIPHER_SUITES.iter().find(|(number, ..)| *number == suite);
    row.map_or("unknown", |(_, name, _)| *name)
}

/// The name of a group in reports.
pub(crate) fn group_name(group: NamedGroup) -> &'static str {
    group.as_str().unwrap_or("unknown")
}

/// The name of a version in reports, as OpenSSL and HAProxy write it.
pub(crate) fn version_name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        _ => "unknown",
    }
}

/// Suites by their names in rustls, the standards or OpenSSL, separated by colons or commas.
///
/// # Errors
///
/// The first name that is unknown.
pub(crate) fn suites(list: &str) -> Result<Vec<SupportedCipherSuite>, String> {
    names(list)
        .map(|word| {
            let row = CIPHER_SUITES.iter().find(|(number, standard, openssl)| {
                [*standard, *openssl, number.as_str().unwrap_or_default()]
                    .iter()
                    .any(|name| name.eq_ignore_ascii_case(word))
            });
            row.and_then(|(number, ..)| {
                let suite = ALL_CIPHER_SUITES.iter();
                suite.copied().find(|suite| suite.suite() == *number)
            })
            .ok_or_else(|| word.to_owned())
        })
        .collect()
}

/// Groups by their names in rustls, the standards or OpenSSL, separated by colons or commas.
///
/// # Errors
///
/// The first name that is unknown.
pub(crate) fn groups(list: &str) -> Result<Vec<&'static dyn SupportedKxGroup>, String> {
    names(list)
        .map(|word| {
            let name = match word.to_ascii_lowercase().as_str() {
                "p-256" | "prime256v1" => "secp256r1".to_owned(),
                "p-384" => "secp384r1".to_owned(),
                other => other.to_owned(),
            };
            let group = ALL_KX_GROUPS.iter();
            group
                .copied()
                .find(|group| group_name(group.name()).eq_ignore_ascii_case(&name))
                .ok_or_else(|| word.to_owned())
        })
        .collect()
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split([':', ',']).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_has_three_names() {
        let list = "TLS13_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256:tls_aes_128_gcm_sha256";
        for suite in suites(list).unwrap() {
            assert_eq!(suite.suite(), CipherSuite::TLS13_AES_128_GCM_SHA256);
        }
        let old = suites("ECDHE-RSA-AES256-GCM-SHA384").unwrap()[0].suite();
        assert_eq!(suite_name(old), "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384");
        assert_eq!(suites("RC4-MD5").unwrap_err(), "RC4-MD5");
    }

    #[test]
    fn every_suite_of_the_library_has_its_row() {
        for suite in ALL_CIPHER_SUITES {
            assert_ne!(suite_name(suite.suite()), "unknown", "{suite:?}");
        }
    }

    #[test]
    fn groups_have_names_too() {
        let named: Vec<&str> = groups("X25519:P-256,prime256v1:secp384r1:x25519mlkem768")
            .unwrap()
            .iter()
            .map(|group| group_name(group.name()))
            .collect();
        let expected = [
            "X25519",
            "secp256r1",
            "secp256r1",
            "secp384r1",
            "X25519MLKEM768",
        ];
        assert_eq!(named, expected);
        assert_eq!(groups("P-192").unwrap_err(), "P-192");
    }
}
