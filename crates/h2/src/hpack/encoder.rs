//! Encoding header fields (RFC 7541 sections 4.2, 6 and 7.1).
//!
//! A proxy sends most fields as it got them. Those that repeat from message to message go into the
//! dynamic table: they cost a search, and one byte. Those that rarely repeat would only evict
//! others. Values that somebody might guess byte by byte are never put into a table, here or by the
//! next hop (section 7.1.3).

use super::static_table::{self, STATIC_COUNT};
use super::table::{DynamicTable, ENTRY_EXTRA_BYTES, EntryName};
use super::{huffman, integer};

/// How a field is to be encoded (section 6.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FieldIndexing {
    /// It enters the table.
    Incremental,
    /// It does not.
    Without,
    /// It enters no table on the way either.
    Never,
}

impl FieldIndexing {
    /// The indexing for a field of this name. The name is in lower case.
    pub fn of(name: &[u8], value: &[u8]) -> FieldIndexing {
        Self::of_known(static_table::index_of(name), name, value)
    }

    /// As [`Self::of`]; `index` is the first entry of the static table with this name, or 0.
    #[inline]
    fn of_known(index: usize, name: &[u8], value: &[u8]) -> FieldIndexing {
        let is_repeated = match index {
            0 => is_repeated(name),
            COOKIE | SET_COOKIE if value.len() < GUESSED_BYTES_MAX => return FieldIndexing::Never,
            AUTHORIZATION | PROXY_AUTHORIZATION => return FieldIndexing::Never,
            _ => REPEATED >> index & 1 == 1,
        };
        if is_repeated {
            FieldIndexing::Incremental
        } else {
            FieldIndexing::Without
        }
    }
}

const AUTHORIZATION: usize = 23;
const COOKIE: usize = 32;
const PROXY_AUTHORIZATION: usize = 49;
const SET_COOKIE: usize = 55;

/// The entries of the static table whose values repeat from message to message, a bit for each.
const REPEATED: u64 = repeated(&[
    ":authority",
    ":scheme",
    "accept",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "access-control-allow-origin",
    "cache-control",
    "content-encoding",
    "content-language",
    "content-type",
    "date",
    "host",
    "server",
    "strict-transport-security",
    "user-agent",
    "vary",
    "via",
]);

const fn repeated(names: &[&str]) -> u64 {
    let mut bits = 0;
    let mut at = 0;
    while at < names.len() {
        bits |= 1 << static_table::const_index_of(names[at].as_bytes());
        at += 1;
    }
    bits
}

/// The same for names that the static table does not have.
fn is_repeated(name: &[u8]) -> bool {
    matches!(
        name,
        b"access-control-allow-credentials"
            | b"access-control-allow-headers"
            | b"access-control-allow-methods"
            | b"access-control-expose-headers"
            | b"access-control-max-age"
            | b"alt-svc"
            | b"content-security-policy"
            | b"origin"
            | b"permissions-policy"
            | b"referrer-policy"
            | b"te"
            | b"upgrade-insecure-requests"
            | b"x-content-type-options"
            | b"x-forwarded-host"
            | b"x-forwarded-port"
            | b"x-forwarded-proto"
            | b"x-frame-options"
            | b"x-powered-by"
            | b"x-xss-protection"
    )
}

/// Cookies below this many bytes are never indexed: RFC 7541 section 7.1.3 speaks of short or
/// low-entropy values.
const GUESSED_BYTES_MAX: usize = 20;

/// The state of one direction of a connection.
#[derive(Debug)]
pub struct HpackEncoder {
    table: DynamicTable,
    /// The largest table we use, whatever the peer allows.
    own_limit: usize,
    /// The smallest limit since the last block, and the present one, when it has changed (section
    /// 4.2).
    update: Option<(usize, usize)>,
    /// The number of the entry last added for each hash of name and value: a search is one
    /// comparison, and an entry that shares its hash with a later one is not found.
    latest: Vec<u32>,
}

/// More than a table of the usual size has entries.
const HASHES: usize = 128;

impl HpackEncoder {
    /// The peer's limit before its first SETTINGS (RFC 9113 section 6.5.2).
    pub const SIZE_LIMIT_AT_FIRST: usize = 4096;

    /// An encoder with an empty table of at most `own_limit` bytes.
    pub fn new(own_limit: usize) -> HpackEncoder {
        let size = own_limit.min(Self::SIZE_LIMIT_AT_FIRST);
        HpackEncoder {
            table: DynamicTable::new(size),
            own_limit,
            // A table smaller than the peer expects is announced in the first block.
            update: (size < Self::SIZE_LIMIT_AT_FIRST).then_some((size, size)),
            latest: Vec::new(),
        }
    }

    /// The peer's `SETTINGS_HEADER_TABLE_SIZE`. The next block begins with the size updates that
    /// section 4.2 asks for: the smallest limit in between, then the last one.
    pub fn set_size_limit(&mut self, peer_limit: usize) {
        let limit = peer_limit.min(self.own_limit);
        let smallest = match self.update {
            None if limit == self.table.size_max() => return,
            None => limit,
            Some((smallest, _)) => smallest.min(limit),
        };
        self.update = Some((smallest, limit));
        if limit < self.table.size_max() {
            self.table.resize(limit);
        }
    }

    /// Begins a header block: appends the size updates that are due (section 4.2).
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let Some((smallest, limit)) = self.update.take() else {
            return;
        };
        if smallest < limit {
            integer::encode(out, smallest, 5, 0x20);
        }
        integer::encode(out, limit, 5, 0x20);
        self.table.resize(smallest);
        self.table.resize(limit);
    }

    /// Appends a field with the indexing that suits its name.
    pub fn encode(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let index = static_table::index_of(name);
        let indexing = FieldIndexing::of_known(index, name, value);
        self.encode_known(index, indexing, name, value, out);
    }

    /// Appends a field. The name is in lower case.
    pub fn encode_as(
        &mut self,
        indexing: FieldIndexing,
        name: &[u8],
        value: &[u8],
        out: &mut Vec<u8>,
    ) {
        self.encode_known(static_table::index_of(name), indexing, name, value, out);
    }

    /// Appends `:status`: the usual ones are in the static table, and others enter no table.
    pub(crate) fn encode_status(&mut self, status: u16, out: &mut Vec<u8>) {
        if let Some(index) = static_table::index_of_status(status) {
            integer::encode(out, index, 7, 0x80);
            return;
        }
        let digit = |number: u16| b'0' + u8::try_from(number % 10).unwrap_or(0);
        let digits = [digit(status / 100), digit(status / 10), digit(status)];
        self.encode_as(FieldIndexing::Without, b":status", &digits, out);
    }

    #[inline]
    fn encode_known(
        &mut self,
        name_index: usize,
        indexing: FieldIndexing,
        name: &[u8],
        value: &[u8],
        out: &mut Vec<u8>,
    ) {
        let is_sensitive = indexing == FieldIndexing::Never;
        if (1..=static_table::LAST_VALUE).contains(&name_index)
            && !is_sensitive
            && let Some(index) = static_table::index_of_pair(name_index, value)
        {
            integer::encode(out, index, 7, 0x80);
            return;
        }
        match indexing {
            FieldIndexing::Incremental => self.incremental(name_index, name, value, out),
            FieldIndexing::Without => literal(0x00, 4, name_index, name, value, out),
            FieldIndexing::Never => literal(0x10, 4, name_index, name, value, out),
        }
    }

    /// Section 6.1 when the table has the field, else section 6.2.1.
    fn incremental(&mut self, name_index: usize, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let slot = slot_of(name, value);
        let number = self.latest.get(slot).copied().unwrap_or(0);
        if let Some(place) = self.table.place_of(number, name, value) {
            integer::encode(out, STATIC_COUNT + 1 + place, 7, 0x80);
            return;
        }
        // What takes more than a quarter of the table would evict too much.
        let size = name.len() + value.len() + ENTRY_EXTRA_BYTES;
        if size > self.table.size_max() / 4 {
            literal(0x00, 4, name_index, name, value, out);
            return;
        }
        literal(0x40, 6, name_index, name, value, out);
        self.table.insert(EntryName::New(name), value);
        self.latest.resize(HASHES, 0);
        self.latest[slot] = self.table.added();
    }
}

/// Section 6.2: `first` and `bits` say which kind.
fn literal(first: u8, bits: u32, name_index: usize, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    integer::encode(out, name_index, bits, first);
    // What enters a table is sent once and used often: only there the code pays.
    let is_kept = first == 0x40;
    if name_index == 0 {
        string(name, is_kept, out);
    }
    string(value, is_kept, out);
}

/// Section 5.2.
fn string(text: &[u8], may_compress: bool, out: &mut Vec<u8>) {
    if may_compress {
        let bytes = huffman::encoded_bytes(text);
        if bytes < text.len() {
            integer::encode(out, bytes, 7, 0x80);
            huffman::encode(text, out);
            return;
        }
    }
    integer::encode(out, text.len(), 7, 0);
    out.extend_from_slice(text);
}

/// A number below [`HASHES`] that differs for most fields. It decides nothing: whatever it finds is
/// compared.
#[inline]
fn slot_of(name: &[u8], value: &[u8]) -> usize {
    let length = u64::try_from(name.len()).unwrap_or(0);
    let hash = mix(mix(0x811c_9dc5 ^ length, name), value);
    // The high bits are mixed best.
    (hash >> (u64::BITS - HASHES.ilog2())) as usize
}

/// Mixes a text into a hash, in words; the last word may have bytes of the one before it.
#[inline]
fn mix(hash: u64, text: &[u8]) -> u64 {
    let step =
        |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if let Some(last) = text.last_chunk::<8>() {
        let (words, _) = text.as_chunks::<8>();
        let hash = words
            .iter()
            .fold(hash, |hash, word| step(hash, u64::from_le_bytes(*word)));
        return step(hash, u64::from_le_bytes(*last));
    }
    match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            let first = u64::from(u32::from_le_bytes(*first));
            step(hash, first << 32 | u64::from(u32::from_le_bytes(*last)))
        }
        _ => text
            .iter()
            .fold(hash, |hash, byte| step(hash, u64::from(*byte))),
    }
}
