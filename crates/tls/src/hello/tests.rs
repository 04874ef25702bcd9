use proptest::prelude::*;

use super::*;

/// A hello as a client writes it, with these extensions.
fn message(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; RANDOM_BYTES]);
    body.extend([2, 0xaa, 0xbb]);
    body.extend([0, 4, 0x13, 0x01, 0xc0, 0x2b]);
    body.extend([1, 0]);
    let list: Vec<u8> = extensions
        .iter()
        .flat_map(|(number, content)| {
            let length = u16::try_from(content.len()).expect("short");
            [&number.to_be_bytes()[..], &length.to_be_bytes(), content].concat()
        })
        .collect();
    if !list.is_empty() {
        body.extend(u16::try_from(list.len()).expect("short").to_be_bytes());
        body.extend(list);
    }
    let length = u32::try_from(body.len()).expect("short").to_be_bytes();
    [&[1, length[1], length[2], length[3]], &body[..]].concat()
}

/// The message in records of at most `piece` bytes.
fn records(message: &[u8], piece: usize) -> Vec<u8> {
    message
        .chunks(piece)
        .flat_map(|part| {
            let length = u16::try_from(part.len()).expect("short").to_be_bytes();
            [&[22, 3, 1, length[0], length[1]], part].concat()
        })
        .collect()
}

fn server_name(name: &str) -> Vec<u8> {
    let length = u16::try_from(name.len()).expect("short");
    let list = (length + 3).to_be_bytes();
    [&list[..], &[0], &length.to_be_bytes(), name.as_bytes()].concat()
}

fn sample() -> Vec<u8> {
    message(&[
        (extension::SERVER_NAME, server_name("www.Example.org")),
        (extension::SUPPORTED_GROUPS, vec![0, 4, 0x11, 0xec, 0, 29]),
        (extension::EC_POINT_FORMATS, vec![1, 0]),
        (extension::SIGNATURE_ALGORITHMS, vec![0, 4, 4, 3, 8, 4]),
        (extension::ALPN, b"\x00\x0c\x02h2\x08http/1.1".to_vec()),
        (extension::SESSION_TICKET, vec![]),
        (
            extension::SUPPORTED_VERSIONS,
            vec![6, 0x7a, 0x7a, 3, 4, 3, 3],
        ),
        (extension::EARLY_DATA, vec![]),
    ])
}

fn complete(raw: &[u8]) -> ClientHello<'_> {
    match parse_client_hello(raw) {
        HelloOutcome::Complete(hello) => hello,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hello_tells_what_is_asked_of_it() {
    let raw = records(&sample(), 16_000);
    let hello = complete(&raw);
    assert_eq!(
        (hello.record_version(), hello.legacy_version()),
        (0x301, 0x303)
    );
    assert_eq!(hello.version_max(), 0x304);
    assert_eq!(hello.server_name(), Some(&b"www.Example.org"[..]));
    assert_eq!(hello.session_id(), [0xaa, 0xbb]);
    assert_eq!(hello.ciphers().collect::<Vec<_>>(), [0x1301, 0xc02b]);
    assert_eq!(hello.alpn().collect::<Vec<_>>(), [&b"h2"[..], b"http/1.1"]);
    assert_eq!(hello.group_list(), [0x11, 0xec, 0, 29]);
    assert_eq!(hello.point_formats(), [0]);
    assert_eq!(
        hello.signature_algorithms().collect::<Vec<_>>(),
        [0x403, 0x804]
    );
    assert_eq!(hello.session_ticket(), Some(&[][..]));
    assert!(hello.has_early_data() && !hello.has_pre_shared_key());
    let numbers: Vec<u16> = hello.extensions().map(|(number, _)| number).collect();
    assert_eq!(numbers, [0, 10, 11, 13, 16, 35, 43, 42]);
    assert_eq!(hello.raw_bytes(), raw.len());
}

#[test]
fn every_cut_is_incomplete_and_every_split_is_the_same() {
    let message = sample();
    for piece in [1, 6, 7, 50, 16_000] {
        let raw = records(&message, piece);
        for cut in 0..raw.len() {
            assert_eq!(
                parse_client_hello(&raw[..cut]),
                HelloOutcome::Incomplete,
                "{cut}"
            );
        }
        let hello = complete(&raw);
        assert_eq!(hello.server_name(), Some(&b"www.Example.org"[..]));
        assert_eq!(hello.raw_bytes(), raw.len());
    }
}

#[test]
fn what_is_no_tls_is_named_by_its_byte() {
    for (raw, offset, byte) in [
        (&b"GET / HTTP/1.1\r\n"[..], 0, b'G'),
        (&[0x80, 0x2e, 1][..], 0, 0x80),
        (&[22, 2, 0][..], 1, 2),
    ] {
        let expected = HelloOutcome::NotTls(NotTls { offset, byte });
        assert_eq!(parse_client_hello(raw), expected);
    }
    assert_eq!(parse_client_hello(b""), HelloOutcome::Incomplete);
}

#[test]
fn what_is_broken_is_refused() {
    let double = message(&[
        (extension::EARLY_DATA, vec![]),
        (extension::EARLY_DATA, vec![]),
    ]);
    let odd = message(&[(extension::SUPPORTED_GROUPS, vec![0, 3, 0, 29, 1])]);
    let mut over = message(&[(extension::SERVER_NAME, server_name("a.b"))]);
    let last = over.len();
    over[last - 4] = 9;
    let mut long = sample();
    long[1] = 1;
    let padded = message(&[(0x15, vec![0; HELLO_RECORDS_MAX])]);
    for (raw, why) in [
        (records(&double, 16_000), BrokenHello::Extensions),
        (records(&odd, 16_000), BrokenHello::Length),
        (records(&over, 16_000), BrokenHello::Length),
        (records(&long, 16_000), BrokenHello::TooLong),
        (records(&padded, 1), BrokenHello::TooLong),
        (vec![22, 3, 1, 0, 0, 22], BrokenHello::Record),
        (vec![22, 3, 1, 0x40, 1, 1], BrokenHello::LongRecord),
        (
            vec![22, 3, 1, 0, 4, 2],
            BrokenHello::OtherMessage { message_type: 2 },
        ),
    ] {
        assert_eq!(parse_client_hello(&raw), HelloOutcome::Broken(why));
    }
}

#[test]
fn grease_is_told_from_what_has_a_meaning() {
    assert!([0x0a0a, 0x1a1a, 0xfafa].into_iter().all(is_grease));
    assert!(![0x0304, 0x0a1a, 0x1301, 0x3a4a].into_iter().any(is_grease));
}

proptest! {
    #[test]
    fn no_input_panics(raw in prop::collection::vec(any::<u8>(), 0..200), start in 0..9_usize) {
        let mut bytes = records(&sample(), 16_000);
        let _ = parse_client_hello(&raw);
        let at = start * 17;
        bytes.splice(at..(at + raw.len()).min(bytes.len()), raw);
        if let HelloOutcome::Complete(hello) = parse_client_hello(&bytes) {
            let _ = (hello.version_max(), hello.alpn().count(), hello.extensions().count());
            prop_assert!(hello.raw_bytes() <= bytes.len());
        }
    }
}
