// The expected bytes were sent by HAProxy 2.6.12.

use proptest::prelude::*;

use super::*;
use crate::proxy::parse;
use crate::proxy_header::ProxyHeaderParse;

fn ends(source: &str, destination: &str) -> Option<(SocketAddr, SocketAddr)> {
    Some((source.parse().unwrap(), destination.parse().unwrap()))
}

fn v1(endpoints: Option<(SocketAddr, SocketAddr)>) -> String {
    let mut out = Vec::new();
    encode_v1(&mut out, endpoints);
    String::from_utf8(out).unwrap()
}

fn v2(endpoints: Option<(SocketAddr, SocketAddr)>, words: &[&str], facts: &V2Facts<'_>) -> Vec<u8> {
    let mut options = V2Options::default();
    for word in words {
        assert!(options.enable(word), "{word}");
    }
    let mut out = b"before".to_vec();
    encode_v2(&mut out, endpoints, options, facts).unwrap();
    let header = out.split_off(6);
    assert_eq!(out, b"before");
    header
}

#[test]
fn lines_as_haproxy_writes_them() {
    assert_eq!(
        v1(ends("127.0.0.1:56862", "127.0.0.1:18911")),
        "PROXY TCP4 127.0.0.1 127.0.0.1 56862 18911\r\n"
    );
    assert_eq!(
        v1(ends("[::1]:49686", "[::1]:18911")),
        "PROXY TCP6 ::1 ::1 49686 18911\r\n"
    );
    assert_eq!(
        v1(ends("[2001:db8::1]:56914", "127.0.0.1:18911")),
        "PROXY TCP6 2001:db8::1 ::ffff:127.0.0.1 56914 18911\r\n"
    );
    assert_eq!(v1(None), "PROXY UNKNOWN\r\n");
}

#[test]
fn blocks_as_haproxy_writes_them() {
    let client = ends("127.0.0.1:56888", "127.0.0.1:18911");
    assert_eq!(
        v2(
            ends("127.0.0.1:56874", "127.0.0.1:18911"),
            &[],
            &V2Facts::default()
        ),
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01\xde\x2a\x49\xdf"
    );
    let facts = V2Facts {
        unique_id: Some(b"abc127.0.0.1"),
        ..V2Facts::default()
    };
    assert_eq!(
        v2(client, &V2Options::WORDS, &facts),
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x2a\x7f\0\0\x01\x7f\0\0\x01\xde\x38\x49\xdf\
          \x03\0\x04\xe2\xa4\xc5\xba\x05\0\x0cabc127.0.0.1\x20\0\x05\0\0\0\0\0"
    );
    // Health checks and clients on unix sockets.
    assert_eq!(
        v2(None, &["crc32c", "ssl", "unique-id"], &V2Facts::default()),
        b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\x0f\x03\0\x04\x88\x9d\xa1\xdf\x20\0\x05\0\0\0\0\0"
    );
    assert_eq!(
        v2(None, &[], &V2Facts::default()),
        b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"
    );
    let mixed = v2(
        ends("[2001:db8::1]:56926", "127.0.0.1:18911"),
        &[],
        &V2Facts::default(),
    );
    assert_eq!(
        mixed[12..],
        *b"\x21\x21\0\x24\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\
           \0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\x01\xde\x5e\x49\xdf"
    );
}

#[test]
fn tls_as_haproxy_writes_it() {
    let facts = V2Facts {
        alpn: Some(b"http/1.1"),
        authority: Some(b"sni.example"),
        unique_id: Some(b"abc"),
        ssl: Some(SslFacts {
            version: b"TLSv1.3",
            certificate_in_connection: true,
            certificate_in_session: true,
            verify_result: 0,
            common_name: Some(b"client one"),
            cipher: Some(b"TLS_AES_256_GCM_SHA384"),
            signature_algorithm: Some(b"RSA-SHA256"),
            key_algorithm: Some(b"RSA2048"),
        }),
        ..V2Facts::default()
    };
    let client = ends("127.0.0.1:1", "127.0.0.1:2");
    let all = v2(client, &V2Options::WORDS, &facts);
    assert_eq!(all[14..16], [0, 0x81]);
    assert_eq!(
        all[35..],
        *b"\x01\0\x08http/1.1\x02\0\x0bsni.example\x05\0\x03abc\x20\0\x4c\x07\0\0\0\0\
           !\0\x07TLSv1.3\"\0\nclient one%\0\x07RSA2048$\0\nRSA-SHA256\
           #\0\x16TLS_AES_256_GCM_SHA384"
    );
    let cipher = v2(client, &["ssl-cipher"], &facts);
    assert_eq!(
        cipher[28..],
        *b"\x01\0\x08http/1.1\x20\0(\x07\0\0\0\0!\0\x07TLSv1.3#\0\x16TLS_AES_256_GCM_SHA384"
    );
    assert_eq!(v2(client, &[], &facts)[28..], *b"\x01\0\x08http/1.1");
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_nothing() {
    let big = vec![b'x'; 40000];
    let facts = V2Facts {
        custom: &[(0xE0, &big), (0xE1, &big)],
        ..V2Facts::default()
    };
    let mut out = b"before".to_vec();
    let refused = encode_v2(&mut out, None, V2Options::default(), &facts);
    assert_eq!((refused, &out[..]), (Err(TooLong), &b"before"[..]));
    assert!(!V2Options::default().enable("ssl-version"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_written_is_read(
        source in any::<SocketAddr>(),
        destination in any::<SocketAddr>(),
        custom in proptest::collection::vec(any::<u8>(), 0..300),
        crc32c in any::<bool>(),
    ) {
        let same = |(a, b): (SocketAddr, SocketAddr)| {
            let mixed = source.is_ipv4() != destination.is_ipv4();
            let expect = |s: SocketAddr| match s.ip() {
                IpAddr::V4(v4) if mixed => SocketAddr::from((v4.to_ipv6_mapped(), s.port())),
                other => SocketAddr::new(other, s.port()),
            };
            (a, b) == (expect(source), expect(destination))
        };
        let mut out = Vec::new();
        encode_v1(&mut out, Some((source, destination)));
        let Ok(ProxyHeaderParse::Complete { header, bytes }) = parse(&out, 107) else {
            return Err(TestCaseError::fail("version 1"));
        };
        prop_assert_eq!(bytes, out.len());
        prop_assert!(same(header.endpoints().unwrap()));

        let options = V2Options { crc32c, ..V2Options::default() };
        let facts = V2Facts { custom: &[(0xE5, &custom)], ..V2Facts::default() };
        let mut out = Vec::new();
        encode_v2(&mut out, Some((source, destination)), options, &facts).unwrap();
        let Ok(ProxyHeaderParse::Complete { header, bytes }) = parse(&out, 536) else {
            return Err(TestCaseError::fail("version 2"));
        };
        prop_assert_eq!(bytes, out.len());
        prop_assert!(same(header.endpoints().unwrap()));
        prop_assert_eq!(header.tlvs.find(0xE5), Some(&custom[..]));
    }
}
