use super::*;
use crate::authorities::Authorities;
use crate::certificate::CertificateParts;
use crate::hello::{HelloOutcome, parse_client_hello};
use crate::testing::{Authority, FixedTime, Pem, options, params, root, signed};

fn leaf(pem: &Pem) -> CertificateDer<'static> {
    let parts = CertificateParts::read(pem.certificate.as_bytes()).expect("good");
    parts.certificates[0].clone()
}

/// What a line says of a certificate shown for a name.
fn judged(
    by: &Authority,
    pem: &Pem,
    verify_host: Option<&str>,
    sni: Option<&str>,
) -> Result<(), Error> {
    let mut authorities = Authorities::default();
    authorities.add(by.pem().as_bytes()).expect("good");
    let verifier = ServerVerifier {
        trust: ServerTrust::Required {
            trust: TrustedAuthorities {
                authorities: Some(Arc::new(authorities)),
                ..TrustedAuthorities::default()
            },
            verify_host: verify_host.map(str::to_owned),
        },
        algorithms: provider::default_provider().signature_verification_algorithms,
        schemes: None,
    };
    let now = FixedTime.current_time().expect("a time");
    let leaf = leaf(pem);
    let name = server_name(sni.map(str::as_bytes), true)?;
    verifier
        .verify_server_cert(&leaf, &[], &name, &[], now)
        .map(|_| ())
}

#[test]
fn names_are_judged_where_one_was_asked_for() {
    let authority = root("authority");
    let pem = signed(
        &params("cn.example", &["san.example", "*.wild.example"]),
        &authority,
    );
    let wrong = Err(Error::InvalidCertificate(CertificateError::NotValidForName));
    assert_eq!(judged(&authority, &pem, None, None), Ok(()));
    for (name, is_good) in [
        ("san.example", true),
        ("SAN.example", true),
        // The subject's name counts beside others.
        ("cn.example", true),
        ("a.wild.example", true),
        ("wild.example", false),
        ("a.b.wild.example", false),
        ("other.example", false),
    ] {
        let expected = if is_good { Ok(()) } else { wrong.clone() };
        assert_eq!(
            judged(&authority, &pem, None, Some(name)),
            expected,
            "{name}"
        );
        assert_eq!(
            judged(&authority, &pem, Some(name), None),
            expected,
            "{name}"
        );
    }
    // The name that is sent wins over `verifyhost`.
    assert_eq!(
        judged(&authority, &pem, Some("cn.example"), Some("x.y")),
        wrong
    );
    assert_eq!(
        judged(&authority, &pem, Some("x.y"), Some("cn.example")),
        Ok(())
    );
}

#[test]
fn a_chain_is_judged_without_a_browsers_rules() {
    let (authority, other) = (root("authority"), root("other"));
    let unknown = Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
    let pem = signed(&params("no usage, no names", &[]), &authority);
    assert_eq!(judged(&authority, &pem, None, None), Ok(()));
    assert_eq!(judged(&other, &pem, None, None), unknown);
    let mut client = params("for clients", &[]);
    client.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let pem = signed(&client, &authority);
    let unfit = Err(Error::InvalidCertificate(CertificateError::InvalidPurpose));
    assert_eq!(judged(&authority, &pem, None, None), unfit);
    let mut early = params("of the future", &[]);
    early.not_before = rcgen::date_time_ymd(2_090, 1, 1);
    // OpenSSL's alert for it is bad_certificate.
    let bad = Err(Error::InvalidCertificate(CertificateError::BadEncoding));
    let pem = signed(&early, &authority);
    assert_eq!(judged(&authority, &pem, None, None), bad);
}

#[test]
fn a_name_that_cannot_be_sent_is_never_left_unverified() {
    let sent = |name: &str| {
        let name = server_name(Some(name.as_bytes()), true).unwrap();
        name.to_str().into_owned()
    };
    assert_eq!(sent("a.example"), "a.example");
    assert_eq!(sent("A_b.example"), "A_b.example");
    assert_eq!(sent("a.example:443"), "a.example");
    assert_eq!(sent(""), "0.0.0.0");
    assert!(server_name(None, true).is_ok());
    for name in [
        "192.0.2.1",
        "192.0.2.1:443",
        "[2001:db8::1]:443",
        "a.example:x",
        ":443",
        "::1",
        "a b",
        "a\u{e9}.example",
        ".",
        "*",
    ] {
        assert!(server_name(Some(name.as_bytes()), true).is_err(), "{name}");
        let name = server_name(Some(name.as_bytes()), false).unwrap();
        assert_eq!(name.to_str(), "0.0.0.0");
    }
    assert!(server_name(Some(b"a\xff.example"), true).is_err());
}

/// Servers choose their certificate, and end the handshake, by what the hello lists.
#[test]
fn a_hello_lists_suites_of_its_versions_only() {
    for (words, versions) in [
        ("", [true, true]),
        ("ssl-max-ver TLSv1.2", [true, false]),
        (
            "ssl-max-ver TLSv1.2 ciphers ECDHE-RSA-AES256-GCM-SHA384",
            [true, false],
        ),
        ("ssl-min-ver TLSv1.3", [false, true]),
        (
            "ssl-min-ver TLSv1.3 ciphersuites TLS_AES_128_GCM_SHA256",
            [false, true],
        ),
    ] {
        let parts = ServerLineParts {
            time: Arc::new(FixedTime),
            trust: ServerTrust::Any,
            certificate: None,
            tickets: true,
            session_names_max: 0,
            record_bytes_max: 0,
        };
        let settings = ServerTlsSettings::new(&options(words), &parts).expect("good");
        let name = server_name(None, false).expect("none");
        let config = Arc::clone(settings.config());
        let mut client = rustls::ClientConnection::new(config, name).expect("good");
        let mut raw = Vec::new();
        client.write_tls(&mut raw).expect("memory");
        let HelloOutcome::Complete(hello) = parse_client_hello(&raw) else {
            panic!("rustls writes whole hellos");
        };
        // TLS 1.2 has the number for renegotiation (RFC 5746, 3.3) beside its suites.
        let is_new = |suite: &u16| suite >> 8 == 0x13;
        let suites: Vec<u16> = hello.ciphers().filter(|suite| *suite != 0x00ff).collect();
        let found = [!suites.iter().all(is_new), suites.iter().any(is_new)];
        assert_eq!(found, versions, "{words}: {suites:x?}");
    }
}
