//! The examples of RFC 7541, appendix C, as they stand there: decoded, with the table after each;
//! and encoded by our encoder, decoded again. Those of integers (C.1) are beside the code.

use crate::hpack::{FieldIndexing, FieldSink, HpackDecoder, HpackEncoder, HpackError};

#[derive(Default)]
pub(super) struct List(pub(super) Vec<(String, String)>);

impl FieldSink for List {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.push((text(name), text(value)));
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn decoded(decoder: &mut HpackDecoder, block: &[u8]) -> Result<Vec<(String, String)>, HpackError> {
    let mut list = List::default();
    decoder.decode(block, &mut list).map(|()| list.0)
}

/// A field as `name: value`.
fn lines(list: &[(String, String)]) -> Vec<String> {
    list.iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect()
}

/// What the table holds, newest first, asked by index.
fn table(decoder: &mut HpackDecoder) -> Vec<String> {
    (62..)
        .map_while(|index| decoded(decoder, &[0x80 | index]).ok())
        .flat_map(|list| lines(&list))
        .collect()
}

struct Example {
    hex: &'static str,
    fields: &'static [&'static str],
    table: &'static [&'static str],
}

fn check(size: usize, examples: &[Example]) {
    let mut decoder = HpackDecoder::new(size);
    for example in examples {
        let list = decoded(&mut decoder, &bytes(example.hex)).unwrap();
        assert_eq!(lines(&list), example.fields);
        assert_eq!(table(&mut decoder), example.table);
    }
}

#[test]
fn c_2_single_fields() {
    for (hex, field, kept) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key: custom-header",
            true,
        ),
        (
            "040c 2f73 616d 706c 652f 7061 7468",
            ":path: /sample/path",
            false,
        ),
        (
            "1008 7061 7373 776f 7264 0673 6563 7265 74",
            "password: secret",
            false,
        ),
        ("82", ":method: GET", false),
    ] {
        let mut decoder = HpackDecoder::new(4096);
        assert_eq!(lines(&decoded(&mut decoder, &bytes(hex)).unwrap()), [field]);
        assert_eq!(!table(&mut decoder).is_empty(), kept, "{field}");
    }
}

const REQUESTS: [&[&str]; 3] = [
    &[
        ":method: GET",
        ":scheme: http",
        ":path: /",
        ":authority: www.example.com",
    ],
    &[
        ":method: GET",
        ":scheme: http",
        ":path: /",
        ":authority: www.example.com",
        "cache-control: no-cache",
    ],
    &[
        ":method: GET",
        ":scheme: https",
        ":path: /index.html",
        ":authority: www.example.com",
        "custom-key: custom-value",
    ],
];

const REQUEST_TABLES: [&[&str]; 3] = [
    &[":authority: www.example.com"],
    &["cache-control: no-cache", ":authority: www.example.com"],
    &[
        "custom-key: custom-value",
        "cache-control: no-cache",
        ":authority: www.example.com",
    ],
];

fn requests(blocks: [&'static str; 3]) {
    let examples: Vec<Example> = (0..3)
        .map(|at| Example {
            hex: blocks[at],
            fields: REQUESTS[at],
            table: REQUEST_TABLES[at],
        })
        .collect();
    check(4096, &examples);
}

#[test]
fn c_3_requests_without_huffman() {
    requests([
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ]);
}

#[test]
fn c_4_requests_with_huffman() {
    requests([
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ]);
}

const RESPONSES: [&[&str]; 3] = [
    &[
        ":status: 302",
        "cache-control: private",
        "date: Mon, 21 Oct 2013 20:13:21 GMT",
        "location: https://www.example.com",
    ],
    &[
        ":status: 307",
        "cache-control: private",
        "date: Mon, 21 Oct 2013 20:13:21 GMT",
        "location: https://www.example.com",
    ],
    &[
        ":status: 200",
        "cache-control: private",
        "date: Mon, 21 Oct 2013 20:13:22 GMT",
        "location: https://www.example.com",
        "content-encoding: gzip",
        "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
    ],
];

const RESPONSE_TABLES: [&[&str]; 3] = [
    &[
        "location: https://www.example.com",
        "date: Mon, 21 Oct 2013 20:13:21 GMT",
        "cache-control: private",
        ":status: 302",
    ],
    &[
        ":status: 307",
        "location: https://www.example.com",
        "date: Mon, 21 Oct 2013 20:13:21 GMT",
        "cache-control: private",
    ],
    &[
        "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        "content-encoding: gzip",
        "date: Mon, 21 Oct 2013 20:13:22 GMT",
    ],
];

fn responses(blocks: [&'static str; 3]) {
    let examples: Vec<Example> = (0..3)
        .map(|at| Example {
            hex: blocks[at],
            fields: RESPONSES[at],
            table: RESPONSE_TABLES[at],
        })
        .collect();
    // The table of the examples has 256 bytes: entries are evicted.
    check(256, &examples);
}

#[test]
fn c_5_responses_without_huffman() {
    responses([
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a \
         3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 \
         677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 \
         553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
    ]);
}

#[test]
fn c_6_responses_with_huffman() {
    responses([
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e \
         919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 \
         821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed \
         4ee5 b106 3d50 07",
    ]);
}

#[test]
fn what_we_encode_is_what_was_meant() {
    let mut encoder = HpackEncoder::new(4096);
    let mut decoder = HpackDecoder::new(4096);
    let mut sizes = Vec::new();
    for list in REQUESTS.iter().chain(&RESPONSES).cycle().take(12) {
        let mut block = Vec::new();
        encoder.begin(&mut block);
        for line in *list {
            let (name, value) = line.rsplit_once(": ").unwrap();
            let (name, value) = match line.strip_prefix("date: ") {
                Some(date) => ("date", date),
                None => (name, value),
            };
            encoder.encode(name.as_bytes(), value.as_bytes(), &mut block);
        }
        sizes.push(block.len());
        let got = decoded(&mut decoder, &block).unwrap();
        assert_eq!(lines(&got), *list);
    }
    // What repeats is short the second time.
    assert!(sizes[6] < sizes[0], "{sizes:?}");
}

#[test]
fn a_table_follows_every_change_of_its_limit() {
    let mut encoder = HpackEncoder::new(4096);
    let mut decoder = HpackDecoder::new(4096);
    let round = |encoder: &mut HpackEncoder, decoder: &mut HpackDecoder, expected: &[u8]| {
        let mut block = Vec::new();
        encoder.begin(&mut block);
        assert_eq!(block, expected);
        encoder.encode(b"server", b"one", &mut block);
        encoder.encode(b"vary", b"accept", &mut block);
        let got = decoded(decoder, &block).unwrap();
        assert_eq!(lines(&got), ["server: one", "vary: accept"]);
    };
    round(&mut encoder, &mut decoder, &[]);
    // Reduced and raised again between two blocks: both are said (section 4.2).
    encoder.set_size_limit(0);
    encoder.set_size_limit(4096);
    round(&mut encoder, &mut decoder, &[0x20, 0x3f, 0xe1, 0x1f]);
    encoder.set_size_limit(100);
    round(&mut encoder, &mut decoder, &[0x3f, 0x45]);
    encoder.set_size_limit(100);
    round(&mut encoder, &mut decoder, &[]);
    // The peer allows more than we use.
    encoder.set_size_limit(1 << 20);
    round(&mut encoder, &mut decoder, &[0x3f, 0xe1, 0x1f]);
    // A small table of ours is announced.
    let mut small = HpackEncoder::new(64);
    let mut decoder = HpackDecoder::new(4096);
    round(&mut small, &mut decoder, &[0x3f, 0x21]);
}

#[test]
fn size_updates_are_judged() {
    let mut decoder = HpackDecoder::new(4096);
    let late = decoded(&mut decoder, &[0x82, 0x20]);
    assert_eq!(late, Err(HpackError::SizeUpdateLate));
    let too_large = decoded(&mut HpackDecoder::new(4096), &[0x3f, 0xe2, 0x1f]);
    assert_eq!(too_large, Err(HpackError::SizeUpdateTooLarge));
    assert!(decoded(&mut HpackDecoder::new(4096), &[0x3f, 0xe1, 0x1f]).is_ok());
    // A limit that was reduced must be followed.
    let mut reduced = HpackDecoder::new(4096);
    reduced.set_size_limit(100);
    assert_eq!(
        decoded(&mut reduced, &[0x82]),
        Err(HpackError::SizeUpdateMissing)
    );
    let mut reduced = HpackDecoder::new(4096);
    reduced.set_size_limit(100);
    assert!(decoded(&mut reduced, &[0x3f, 0x45, 0x82]).is_ok());
    assert!(decoded(&mut reduced, &[0x82]).is_ok());
}

#[test]
fn indexes_and_lengths_are_judged() {
    for (hex, expected) in [
        ("80", HpackError::IndexInvalid),
        ("be", HpackError::IndexInvalid),
        ("7f00 0161", HpackError::IndexInvalid),
        ("00", HpackError::Truncated),
        ("0001 61", HpackError::Truncated),
        ("0001 6105 6262", HpackError::Truncated),
        ("007f ffff ff7f", HpackError::Truncated),
        ("ffff ffff ffff", HpackError::IntegerTooLarge),
    ] {
        let got = decoded(&mut HpackDecoder::new(4096), &bytes(hex));
        assert_eq!(got, Err(expected), "{hex}");
    }
}

#[test]
fn secrets_enter_no_table() {
    for (name, value) in [
        ("authorization", "Basic dTpw"),
        ("proxy-authorization", "x"),
        ("cookie", "id=12"),
        ("set-cookie", "id=12"),
    ] {
        let indexing = FieldIndexing::of(name.as_bytes(), value.as_bytes());
        assert_eq!(indexing, FieldIndexing::Never, "{name}");
        let mut out = Vec::new();
        HpackEncoder::new(4096).encode(name.as_bytes(), value.as_bytes(), &mut out);
        assert_eq!(out[0] & 0xf0, 0x10, "{name}");
    }
}
