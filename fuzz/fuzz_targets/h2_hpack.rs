//! Header blocks: the tables of both directions stay alike, and lists are encoded without loss.
#![no_main]

use ballast_h2::{FieldIndexing, FieldSink, HpackDecoder, HpackEncoder};
use libfuzzer_sys::fuzz_target;

/// Fields kept of one block: an index of a byte may stand for kilobytes.
const FIELDS_MAX: usize = 1000;

#[derive(Default)]
struct List(Vec<(Vec<u8>, Vec<u8>)>);

impl FieldSink for List {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.0.len() < FIELDS_MAX {
            self.0.push((name.to_vec(), value.to_vec()));
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut decoder = HpackDecoder::new(4096);
    let mut encoder = HpackEncoder::new(4096);
    let mut reader = HpackDecoder::new(4096);
    let mut input = data;
    // Blocks with a length of two bytes before each, and a byte for the encoder.
    while let [high, low, limit, rest @ ..] = input {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (block, after) = rest.split_at(length);
        input = after;
        let mut list = List::default();
        if decoder.decode(block, &mut list).is_err() {
            return;
        }
        if limit & 1 == 1 {
            encoder.set_size_limit(usize::from(*limit) * 32);
        }
        let mut encoded = Vec::new();
        encoder.begin(&mut encoded);
        for (at, (name, value)) in list.0.iter().enumerate() {
            let indexing = match at % 4 {
                0 => FieldIndexing::Incremental,
                1 => FieldIndexing::Without,
                2 => FieldIndexing::Never,
                _ => FieldIndexing::of(name, value),
            };
            encoder.encode_as(indexing, name, value, &mut encoded);
        }
        let mut again = List::default();
        reader
            .decode(&encoded, &mut again)
            .expect("what we encode can be decoded");
        assert_eq!(list.0, again.0);
    }
});
