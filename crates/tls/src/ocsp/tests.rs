use std::fs;
use std::process::Command;

use rcgen::{KeyPair, SerialNumber};

use super::*;
use crate::certificate::{Certificate, CertificateParts};
use crate::testing::{params, root};

/// Seconds since 1970 that lie within, and long after, the life of a response made now.
const LATE: i64 = 1 << 33;

/// A responder: openssl with an index of one certificate. `None` where there is no openssl.
fn response(index: &str, extra: &[&str]) -> Option<(Vec<u8>, CertificateParts)> {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let authority = root("authority");
    let mut leaf = params("leaf", &[]);
    leaf.serial_number = Some(SerialNumber::from(0x77));
    let key = KeyPair::generate().expect("a key");
    let pem = leaf.signed_by(&key, &authority).expect("signed").pem();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).expect("written");
    write("ca", &authority.pem());
    write("ca.key", &authority.key().serialize_pem());
    write("leaf", &pem);
    write("index", index);
    let run = |words: &[&str]| {
        let output = Command::new("openssl")
            .arg("ocsp")
            .args(words)
            .current_dir(at)
            .output();
        output.is_ok_and(|output| output.status.success())
    };
    let request = [
        "-issuer",
        "ca",
        "-cert",
        "leaf",
        "-no_nonce",
        "-reqout",
        "request",
    ];
    let answer = [
        "-index", "index", "-CA", "ca", "-rsigner", "ca", "-rkey", "ca.key", "-reqin", "request",
    ];
    let is_made = run(&[&request[..], extra].concat())
        && run(&[&answer[..], &["-respout", "response", "-ndays", "7"]].concat());
    if !is_made {
        eprintln!("SKIPPED: there is no `openssl ocsp` to make a response");
        return None;
    }
    let content = format!("{pem}{}{}", key.serialize_pem(), authority.pem());
    let parts = CertificateParts::read(content.as_bytes()).expect("good");
    Some((fs::read(at.join("response")).expect("made"), parts))
}

const VALID: &str = "V\t491231235959Z\t\t77\tunknown\t/CN=leaf\n";

fn read(response: &[u8], parts: &CertificateParts) -> Result<OcspResponse, OcspError> {
    OcspResponse::read(response, &parts.certificates[0], parts.certificates.get(1))
}

#[test]
fn a_good_answer_for_the_certificate_is_stapled() {
    let Some((der, mut parts)) = response(VALID, &[]) else {
        return;
    };
    let good = read(&der, &parts).expect("good");
    assert_eq!((good.der(), good.is_revoked()), (&der[..], false));
    let next = good.next_update();
    assert_eq!(next - good.this_update(), 7 * 86_400);
    assert!(good.is_valid_at(next) && good.is_valid_at(good.this_update()));
    assert!(!good.is_valid_at(LATE) && !good.is_valid_at(0));

    let alone = CertificateParts {
        certificates: vec![parts.certificates[0].clone()],
        ..CertificateParts::default()
    };
    assert_eq!(read(&der, &alone), Err(OcspError::NoIssuer));
    let other = CertificateParts {
        certificates: vec![parts.certificates[1].clone(); 2],
        ..CertificateParts::default()
    };
    assert_eq!(read(&der, &other), Err(OcspError::OtherCertificate));
    for cut in 0..der.len() {
        assert!(read(&der[..cut], &parts).is_err());
    }

    parts.ocsp = Some(der.clone().into());
    let make = |parts: CertificateParts| Certificate::new(parts, |_, rest| rest.into());
    let certificate = make(parts.clone()).expect("good");
    assert_eq!(certificate.ocsp.as_deref(), Some(&good));
    parts.ocsp = Some(der[1..].into());
    let certificate = make(parts).expect("served without");
    assert_eq!(
        (certificate.ocsp, certificate.ocsp_error),
        (None, Some(OcspError::Broken))
    );
}

#[test]
fn a_revoked_certificate_is_told_to_be_so() {
    let revoked = "R\t491231235959Z\t200101000000Z\t77\tunknown\t/CN=leaf\n";
    let Some((der, parts)) = response(revoked, &[]) else {
        return;
    };
    assert!(read(&der, &parts).expect("an answer").is_revoked());
}

#[test]
fn any_other_answer_is_refused() {
    let other = "V\t491231235959Z\t\t78\tunknown\t/CN=other\n";
    for (index, extra, error) in [
        (other, &[][..], OcspError::Unknown),
        (VALID, &["-sha256", "-cert", "leaf"], OcspError::NotSingle),
    ] {
        let Some((der, parts)) = response(index, extra) else {
            return;
        };
        assert_eq!(read(&der, &parts), Err(error));
    }
    let unsuccessful = [0x30, 0x03, 0x0a, 0x01, 0x03];
    let parts = CertificateParts {
        certificates: vec![CertificateDer::from(vec![0])],
        ..CertificateParts::default()
    };
    assert_eq!(
        read(&unsuccessful, &parts),
        Err(OcspError::Unsuccessful { status: 3 })
    );
}
