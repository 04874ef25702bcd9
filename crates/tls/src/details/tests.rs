//! Certificates as HAProxy 3.2 with OpenSSL 3.6 tells them: each text below was taken from its
//! samples. The keys of the fixtures are not kept.

use proptest::prelude::*;

use super::*;

fn fixture(name: &str) -> CertificateDetails {
    let der: &[u8] = match name {
        "attributes" => include_bytes!("fixtures/attributes.der"),
        "encodings" => include_bytes!("fixtures/encodings.der"),
        "alternative_names" => include_bytes!("fixtures/alternative_names.der"),
        "several_values" => include_bytes!("fixtures/several_values.der"),
        "zero_byte" => include_bytes!("fixtures/zero_byte.der"),
        "zero_byte_last" => include_bytes!("fixtures/zero_byte_last.der"),
        "empty_name" => include_bytes!("fixtures/empty_name.der"),
        "wide_string" => include_bytes!("fixtures/wide_string.der"),
        other => panic!("{other}"),
    };
    CertificateDetails::read(der).unwrap()
}

fn text(bytes: Option<&[u8]>) -> Option<&str> {
    bytes.map(|bytes| std::str::from_utf8(bytes).unwrap())
}

#[test]
fn a_client_certificate_is_taken_apart() {
    let details = fixture("attributes");
    assert_eq!(details.version, 3);
    assert_eq!(
        &*details.serial,
        [0xf1, 0xe2, 0xd3, 0xc4, 0xb5, 0xa6, 0x97, 0x88, 0x77, 0x66]
    );
    assert_eq!(&*details.not_before, "261122151609Z");
    assert_eq!(&*details.not_after, "810825151609Z");
    assert_eq!(&*details.signature_algorithm, "ecdsa-with-SHA256");
    assert_eq!(&*details.key_algorithm, "rsaEncryption");
    assert_eq!(
        text(details.issuer.whole()),
        Some("/C=FR/O=Acme/CN=Test CA")
    );
    assert_eq!(
        text(details.issuer.rfc2253()),
        Some("CN=Test CA,O=Acme,C=FR")
    );
    assert_eq!(
        text(details.subject.whole()),
        Some(
            "/C=FR/ST=Île \"x\" <y>/L=#town/O=Acme, Inc./OU=One/OU=Two/OU=Three/serialNumber=42\
             /emailAddress=joe@example.com/DC=example/UID=u1/CN= joe"
        )
    );
    assert_eq!(
        text(details.subject.rfc2253()),
        Some(
            "CN=\\ joe,UID=u1,DC=example,emailAddress=joe@example.com,serialNumber=42,OU=Three,\
             OU=Two,OU=One,O=Acme\\, Inc.,L=\\#town,ST=\\C3\\8Ele \\\"x\\\" \\<y\\>,C=FR"
        )
    );
    assert_eq!(
        text(details.alternative_names.as_deref()),
        Some(
            "DNS:client.example, IP Address:127.0.0.1, IP Address:2001:DB8:0:0:0:0:0:1, \
             email:joe@example.com, URI:http://docs.example/x?y, Registered ID:1.2.3.4, \
             DirName:C = DE, O = \"Dir, Org\", CN = Dir, othername:UPN:upn@x"
        )
    );
}

#[test]
fn entries_are_counted_from_either_end() {
    let subject = fixture("attributes").subject;
    for (name, occurrence, value) in [
        ("OU", 1, Some("One")),
        ("ou", 2, Some("Two")),
        ("OU", -1, Some("Three")),
        ("OU", -3, Some("One")),
        ("OU", -4, None),
        ("OU", 4, None),
        ("OU", 0, None),
        ("OU", i64::MIN, None),
        ("commonName", 1, None),
        ("CN", 1, Some(" joe")),
    ] {
        assert_eq!(
            text(subject.entry(name, occurrence)),
            value,
            "{name} {occurrence}"
        );
    }
}

#[test]
fn encodings_are_kept_in_values_and_escaped_in_rfc_2253() {
    let details = fixture("encodings");
    assert_eq!(
        text(details.subject.whole()),
        Some(
            "/C=FR/CN=multi+\"x\"/UID=u;1/1.2.3.4.5=oid\\val/SN= lead trail /GN=日本/street=café\
             /organizationIdentifier=orgid/postalCode=#75/jurisdictionC=FR\
             /emailAddress=a@b\u{1}\u{7f}/pseudonym=/slash=eq"
        )
    );
    assert_eq!(
        text(details.subject.rfc2253()),
        Some(
            "pseudonym=/slash=eq,emailAddress=a@b\\01\\7F,jurisdictionC=FR,postalCode=\\#75,\
             organizationIdentifier=orgid,street=caf\\C3\\83\\C2\\A9,\
             GN=\\E6\\97\\A5\\E6\\9C\\AC,SN=\\ lead trail\\ ,1.2.3.4.5=#0C076F69645C76616C,\
             UID=u\\;1+CN=multi\\+\\\"x\\\",C=FR"
        )
    );
    assert_eq!(
        text(details.subject.entry("1.2.3.4.5", 1)),
        Some("oid\\val")
    );
    assert_eq!(&*details.not_before, "200102030405Z");
    // After 2049 the century is written, and left out all the same.
    assert_eq!(&*details.not_after, "510607080910Z");
    assert_eq!(details.serial[0], 0x7f);
}

#[test]
fn alternative_names_are_openssls() {
    let names = |fixture_name| {
        let details = fixture(fixture_name);
        String::from_utf8(details.alternative_names.unwrap_or_default().into_vec()).unwrap()
    };
    assert_eq!(
        names("encodings"),
        "DNS:a, DNS:b,c, email:x@y, IP Address:0:0:0:0:0:FFFF:102:304, URI:urn:x, \
         Registered ID:commonName, DirName:CN = \"q\\\"+,\", 1.2.3.4.5 = v, \
         othername:<unsupported>, othername:UPN:u@p,q, othername:SmtpUTF8Mailbox:s@t"
    );
    assert_eq!(
        names("alternative_names"),
        "DirName:CN = q\\\"x, DirName:CN = a\\\\b, DirName:CN = \" lead\", DirName:CN = \"#x\", \
         DirName:CN = \"trail \", DirName:CN = \\C3\\A9, DirName:CN = \"a;b<c>d\", \
         DirName:CN = ctl\\01, DirName:CN = a=b/c, DirName:CN = z, othername:XmppAddr:x@y, \
         othername:SRVName:_a.bc, othername:NAIRealm:n@r, othername:<unsupported>, \
         Registered ID:rsaEncryption, Registered ID:1.3.6.1.4.1.99999"
    );
    assert_eq!(
        names("several_values"),
        "DirName:CN = m1 + UID = m2, O = o, DNS:b"
    );
    assert_eq!(fixture("zero_byte").alternative_names, None);
}

#[test]
fn what_hides_behind_a_zero_byte_is_not_told() {
    let subject = fixture("zero_byte").subject;
    assert_eq!(subject.whole(), None);
    assert_eq!(subject.entry("CN", 1), None);
    assert_eq!(text(subject.entry("O", 1)), Some("o"));
    assert_eq!(text(subject.rfc2253()), Some("O=o,CN=good\\00evil"));
    let last = fixture("zero_byte_last").subject;
    assert_eq!(last.whole().map(<[u8]>::len), Some(13));
    assert_eq!(text(last.entry("CN", 1)), Some("good\0"));
    // Two bytes to a character have zeros within.
    let wide = fixture("wide_string").subject;
    assert_eq!(wide.whole(), None);
    assert_eq!(wide.entry("title", 1), None);
    let rfc2253 = text(wide.rfc2253()).unwrap();
    assert!(rfc2253.contains("title=\\C3\\9Cn\\C3\\AF,"), "{rfc2253}");
}

#[test]
fn an_empty_name_has_no_value() {
    let subject = fixture("empty_name").subject;
    assert_eq!((subject.whole(), subject.rfc2253()), (None, None));
    assert_eq!(*fixture("empty_name").serial, [0x80]);
}

#[test]
fn algorithms_have_openssls_names() {
    use rcgen::{KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA512};
    for (algorithm, key, signature) in [
        (&PKCS_ED25519, "ED25519", "ED25519"),
        (
            &PKCS_ECDSA_P384_SHA384,
            "id-ecPublicKey",
            "ecdsa-with-SHA384",
        ),
        (&PKCS_RSA_SHA512, "rsaEncryption", "RSA-SHA512"),
    ] {
        let pair = KeyPair::generate_for(algorithm).unwrap();
        let params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        let certificate = params.self_signed(&pair).unwrap();
        let details = CertificateDetails::read(certificate.der()).unwrap();
        assert_eq!(&*details.key_algorithm, key);
        assert_eq!(&*details.signature_algorithm, signature);
        assert_eq!(
            text(details.alternative_names.as_deref()),
            Some("DNS:a.example")
        );
    }
}

#[test]
fn serial_numbers_have_no_sign() {
    assert_eq!(*unsigned_bytes(&[0]), [0]);
    assert_eq!(*unsigned_bytes(&[0, 0x80]), [0x80]);
    assert_eq!(*unsigned_bytes(&[0xff]), [1]);
    assert_eq!(*unsigned_bytes(&[0xff, 0]), [1, 0]);
    assert_eq!(*unsigned_bytes(&[]), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_bytes_break_the_reader(index in 0_usize..700, byte in any::<u8>(), cut in 0_usize..1400) {
        let mut der = include_bytes!("fixtures/encodings.der").to_vec();
        if let Some(at) = der.get_mut(index) {
            *at = byte;
        }
        der.truncate(cut);
        let _ = CertificateDetails::read(&der);
    }
}
