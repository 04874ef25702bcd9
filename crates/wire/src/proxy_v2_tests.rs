use super::*;

const V4: [u8; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 0, 11, 0, 22];

fn block(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [&SIGNATURE[..], &[command, family], &length, body].concat()
}

fn tlv(value_kind: u8, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).unwrap().to_be_bytes();
    [&[value_kind], &length[..], value].concat()
}

fn with(values: &[u8]) -> Vec<u8> {
    block(0x21, 0x11, &[&V4[..], values].concat())
}

fn header(input: &[u8]) -> Result<ProxyHeader<'_>, ProxyHeaderError> {
    match parse(input, 16384)? {
        ProxyHeaderParse::Complete { header, bytes } => {
            assert_eq!(bytes, input.len());
            Ok(header)
        }
        ProxyHeaderParse::Incomplete { .. } => panic!("incomplete: {}", input.escape_ascii()),
    }
}

fn ends(input: &[u8]) -> Option<(String, String)> {
    let (source, destination) = header(input).unwrap().endpoints()?;
    Some((source.to_string(), destination.to_string()))
}

#[test]
fn addresses_of_each_family() {
    let some = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
    assert_eq!(ends(&with(b"")), some("1.2.3.4:11", "5.6.7.8:22"));
    let mut v6 = [0; 36];
    v6[15] = 1;
    v6[31] = 2;
    v6[33] = 11;
    v6[35] = 22;
    assert_eq!(ends(&block(0x21, 0x21, &v6)), some("[::1]:11", "[::2]:22"));
    // Families that a TCP listener cannot have: the socket's addresses are used.
    assert_eq!(ends(&block(0x21, 0x12, &V4)), None);
    assert_eq!(ends(&block(0x21, 0x10, &V4)), None);
    assert_eq!(ends(&block(0x21, 0x00, b"")), None);
    assert_eq!(ends(&block(0x21, 0x00, b"abc")), None);
    let mut unix = [0; 216];
    unix[..2].copy_from_slice(b"/a");
    unix[108..111].copy_from_slice(b"\0ab");
    let input = block(0x21, 0x31, &unix);
    assert_eq!(
        header(&input).unwrap().addresses,
        Addresses::Unix {
            transport: ProxyTransport::Stream,
            source: b"/a",
            destination: b"\0ab",
        }
    );
    assert_eq!(ends(&input), None);
}

#[test]
fn local_discards_the_block() {
    for (family, body) in [
        (0x00, &b""[..]),
        (0x11, &V4),
        (0x51, &V4),
        (0x00, b"\x02\0\xff"),
    ] {
        let input = block(0x20, family, body);
        let header = header(&input).unwrap();
        assert_eq!(header.command, ProxyCommand::Local);
        assert_eq!(header.addresses, Addresses::Unknown);
        assert!(header.tlvs.is_empty());
    }
}

#[test]
fn refused_blocks() {
    for (input, error) in [
        (block(0x22, 0x11, &V4), ProxyHeaderError::Command),
        (block(0x11, 0x11, &V4), ProxyHeaderError::Version),
        (block(0x21, 0x41, &V4), ProxyHeaderError::Family),
        (block(0x21, 0x13, &V4), ProxyHeaderError::Family),
        (block(0x21, 0x11, &V4[..11]), ProxyHeaderError::Truncated),
        (block(0x21, 0x21, &V4), ProxyHeaderError::Truncated),
        (block(0x21, 0x31, &[0; 215]), ProxyHeaderError::Truncated),
        (with(b"\x02\0\x07abc"), ProxyHeaderError::Truncated),
        (with(b"\x02"), ProxyHeaderError::Truncated),
        (with(b"\x02\0"), ProxyHeaderError::Truncated),
        (
            with(&tlv(kind::UNIQUE_ID, &[b'u'; 129])),
            ProxyHeaderError::Value,
        ),
        (
            with(&tlv(kind::AUTHORITY, &[b'u'; 256])),
            ProxyHeaderError::Value,
        ),
        (
            with(&tlv(kind::CRC32C, b"abcd")),
            ProxyHeaderError::Checksum,
        ),
        (with(&tlv(kind::CRC32C, b"abc")), ProxyHeaderError::Checksum),
        (
            with(&tlv(kind::CRC32C, b"abcde")),
            ProxyHeaderError::Checksum,
        ),
    ] {
        assert_eq!(header(&input), Err(error), "{}", input.escape_ascii());
    }
    let long = with(&tlv(kind::NOOP, &[0; 20000]));
    assert_eq!(parse(&long[..16], 16384), Err(ProxyHeaderError::TooLong));
    assert_eq!(
        parse(&with(b"")[..16], 28),
        Ok(ProxyHeaderParse::Incomplete { bytes_needed: 12 })
    );
    assert_eq!(
        parse(b"\r\n\r\n\0\r\nQUIX", 99),
        Err(ProxyHeaderError::Signature)
    );
}

#[test]
fn values_are_read() {
    let version = tlv(kind::SSL_VERSION, b"TLSv1.3");
    let name = tlv(kind::SSL_CN, b"client one");
    let ssl = [&b"\x07\0\0\0\x05"[..], &version, &name].concat();
    let input = with(
        &[
            tlv(kind::AUTHORITY, b"first"),
            tlv(kind::NOOP, b"zz"),
            tlv(kind::AUTHORITY, b"second"),
            tlv(kind::UNIQUE_ID, &[b'u'; 128]),
            tlv(kind::SSL, &ssl),
            tlv(kind::NETNS, b"blue"),
            tlv(0xE0, b""),
        ]
        .concat(),
    );
    let header = header(&input).unwrap();
    assert_eq!(header.tlvs.authority(), Some(&b"first"[..]));
    assert_eq!(header.tlvs.unique_id(), Some(&[b'u'; 128][..]));
    assert_eq!(header.tlvs.namespace(), Some(&b"blue"[..]));
    assert_eq!(header.tlvs.find(0xE0), Some(&b""[..]));
    assert_eq!(header.tlvs.find(0xE1), None);
    assert_eq!(header.tlvs.iter().count(), 7);
    let ssl = header.tlvs.ssl().unwrap();
    assert_eq!((ssl.client, ssl.verify), (7, 5));
    assert_eq!(ssl.version(), Some(&b"TLSv1.3"[..]));
    assert_eq!(ssl.common_name(), Some(&b"client one"[..]));
    assert_eq!(ssl.values().iter().count(), 2);
    // A value with an unexpected format is ignored, which is no error.
    let short = with(&tlv(kind::SSL, b"\x01"));
    assert_eq!(parse_tlvs(&short).ssl(), None);
}

#[test]
fn values_of_a_type_are_found_one_after_the_other() {
    let input = with(&[tlv(0xE0, b"a"), tlv(0xE1, b""), tlv(0xE0, b"bc")].concat());
    let tlvs = parse_tlvs(&input);
    assert_eq!(tlvs.find_from(0xE0, 0), Some((&b"a"[..], 4)));
    assert_eq!(tlvs.find_from(0xE0, 4), Some((&b"bc"[..], 12)));
    assert_eq!(tlvs.find_from(0xE0, 12), None);
    assert_eq!(tlvs.find_from(0xE0, 13), None);
}

fn parse_tlvs(input: &[u8]) -> Tlvs<'_> {
    header(input).unwrap().tlvs
}

// Sent by HAProxy 2.6.12 with `proxy-v2-options crc32c`.
#[test]
fn a_checksum_made_by_haproxy_is_verified() {
    let mut input = block(
        0x21,
        0x11,
        b"\x7f\0\0\x01\x7f\0\0\x01\xde\x3c\x49\xdf\x03\0\x04\xd1\x6a\xc0\x11",
    );
    assert!(header(&input).is_ok());
    input[27] ^= 1;
    assert_eq!(header(&input), Err(ProxyHeaderError::Checksum));
}

#[test]
fn any_beginning_is_incomplete() {
    let input = with(&tlv(kind::AUTHORITY, b"ex.com"));
    for cut in 0..input.len() {
        match parse(&input[..cut], 16384) {
            Ok(ProxyHeaderParse::Incomplete { bytes_needed }) => {
                assert!(bytes_needed > 0 && cut + bytes_needed <= input.len());
            }
            other => panic!("{cut}: {other:?}"),
        }
    }
}

proptest::proptest! {
    #[test]
    fn nothing_panics_and_what_is_whole_is_bounded(
        tail in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
        family in proptest::sample::select(vec![0u8, 0x11, 0x12, 0x21, 0x31, 0x33]),
    ) {
        let mut input = SIGNATURE.to_vec();
        input.extend([0x21, family]);
        input.extend(tail);
        if let Ok(ProxyHeaderParse::Complete { header, bytes }) = parse(&input, 536) {
            proptest::prop_assert!(bytes <= input.len() && bytes <= 536);
            let size: usize = header.tlvs.iter().map(|(_, v)| v.len() + 3).sum();
            proptest::prop_assert_eq!(size, header.tlvs.bytes.len());
        }
    }
}
