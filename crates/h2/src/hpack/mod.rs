//! Compression of header fields (RFC 7541).

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod static_table;
mod table;

use std::fmt;

pub use decoder::{FieldSink, HpackDecoder};
pub use encoder::{FieldIndexing, HpackEncoder};

/// Why a header block cannot be decoded. The tables of both sides differ from then on: the
/// connection ends (RFC 9113 section 4.3).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum HpackError {
    /// A string with the end-of-string code, or with wrong padding (section 5.2).
    HuffmanInvalid,
    /// An index that no table has (sections 2.3.3 and 6.1).
    IndexInvalid,
    /// An integer that no length or index needs (section 5.1).
    IntegerTooLarge,
    /// A size update after a field (section 4.2).
    SizeUpdateLate,
    /// A size update above the limit we announced (section 6.3).
    SizeUpdateTooLarge,
    /// A reduced limit that was acknowledged and is not followed (section 4.2).
    SizeUpdateMissing,
    /// The list of fields is much longer than any head may be.
    ListTooLong,
    /// The block ends within a field.
    Truncated,
}

impl fmt::Display for HpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HpackError::HuffmanInvalid => "invalid Huffman code",
            HpackError::IndexInvalid => "invalid index",
            HpackError::IntegerTooLarge => "an integer is too large",
            HpackError::SizeUpdateLate => "a size update after a field",
            HpackError::SizeUpdateTooLarge => "a size update above the limit",
            HpackError::SizeUpdateMissing => "a size update is missing",
            HpackError::ListTooLong => "the list of fields is too long",
            HpackError::Truncated => "the header block is truncated",
        })
    }
}

impl std::error::Error for HpackError {}

#[cfg(test)]
pub(crate) use integer::encode as write_integer;
