use super::*;
use crate::testing::{EC, ED, RSA, self_signed};

fn certificate(content: &str) -> Result<Certificate, CertificateError> {
    let parts = CertificateParts::read(content.as_bytes())?;
    Certificate::new(parts, |_, rest| rest.into())
}

#[test]
fn names_are_those_of_subject_and_alternatives() {
    let pem = self_signed(
        EC,
        "CN.example",
        &["B.example", "*.c.example", "b.EXAMPLE", "192.0.2.1"],
    );
    let certificate = certificate(&pem.both()).expect("good");
    let names: Vec<_> = certificate.names().map(String::from_utf8_lossy).collect();
    assert_eq!(names, ["b.example", "*.c.example", "cn.example"]);
    assert_eq!(certificate.algorithm(), KeyAlgorithm::Ecdsa);
    assert!(certificate.not_before() < certificate.not_after());
    assert_eq!(
        (certificate.sha1().len(), certificate.sha256().len()),
        (20, 32)
    );
    let again = Certificate::new(certificate.parts(), |_, rest| rest.into()).expect("its parts");
    assert_eq!(again.leaf(), certificate.leaf());
}

#[test]
fn every_algorithm_that_is_served_is_told() {
    for (algorithm, told) in [
        (EC, KeyAlgorithm::Ecdsa),
        (RSA, KeyAlgorithm::Rsa),
        (ED, KeyAlgorithm::Other),
    ] {
        let pem = self_signed(algorithm, "a", &[]);
        // The key may come first.
        let content = format!("{}{}", pem.key, pem.certificate);
        assert_eq!(certificate(&content).expect("good").algorithm(), told);
    }
}

#[test]
fn what_cannot_be_served_is_refused_with_its_reason() {
    let (good, other) = (self_signed(EC, "a", &[]), self_signed(EC, "b", &[]));
    let rsa = self_signed(RSA, "c", &[]);
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let broken = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let dsa = "-----BEGIN DSA PRIVATE KEY-----\nAAAA\n-----END DSA PRIVATE KEY-----\n";
    let no_x509 = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (content, reason) in [
        (String::new(), "no certificate found"),
        (good.key.clone(), "no certificate found"),
        (good.certificate.clone(), "no private key found: append it"),
        (
            format!("{}{}", good.certificate, other.key),
            "the private key does not belong",
        ),
        (
            format!("{}{}", good.certificate, rsa.key),
            "the private key does not belong",
        ),
        (
            format!("{}{}", rsa.certificate, good.key),
            "the private key does not belong",
        ),
        (format!("{}{encrypted}", good.certificate), "is encrypted"),
        (
            format!("{}{broken}", good.certificate),
            "the private key cannot be used",
        ),
        (
            format!("{}{dsa}", good.certificate),
            "'DSA PRIVATE KEY' is not supported",
        ),
        (
            format!("\n{no_x509}"),
            "the certificate at line 2 cannot be read",
        ),
        (
            good.both().replace("-----END PRIVATE", "-----END"),
            "has no END line",
        ),
    ] {
        let error = certificate(&content).expect_err(reason);
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn a_key_is_never_shown() {
    let pem = self_signed(EC, "a", &[]);
    let parts = CertificateParts::read(pem.both().as_bytes()).expect("good");
    let der = match &parts.key {
        Some(KeySource::Der(key)) => format!("{:?}", key.secret_der()),
        other => panic!("{other:?}"),
    };
    let certificate = certificate(&pem.both()).expect("good");
    for shown in [format!("{certificate:?}"), format!("{parts:?}")] {
        assert!(!shown.contains(&der[1..der.len() - 1]), "{shown}");
    }
}
