//! Decoding header blocks (RFC 7541 sections 3 and 6).

use super::table::{DynamicTable, EntryName};
use super::{HpackError, huffman, integer};

/// What takes the fields of a header block, one after the other.
pub trait FieldSink {
    /// A field. Sinks that have refused the list simply ignore the rest: the table stays right.
    fn field(&mut self, name: &[u8], value: &[u8]);
}

/// How the sender wants a literal to be kept (section 6.2).
#[derive(Clone, Copy, Eq, PartialEq)]
enum Literal {
    /// It enters the table.
    Indexed,
    /// It does not.
    Plain,
}

/// The state of one direction of a connection: the dynamic table, and what limits it.
#[derive(Debug)]
pub struct HpackDecoder {
    table: DynamicTable,
    /// Our `SETTINGS_HEADER_TABLE_SIZE`.
    size_limit: usize,
    /// Whether our limit was reduced below the table's size: the next block begins with an update.
    is_update_due: bool,
    /// The bytes of names and values of a block at which decoding ends.
    list_bytes_max: usize,
    /// Strings that were Huffman-coded: name, then value.
    scratch: Vec<u8>,
}

impl HpackDecoder {
    /// A decoder with an empty table of at most `size_limit` bytes, our
    /// `SETTINGS_HEADER_TABLE_SIZE`.
    pub fn new(size_limit: usize) -> HpackDecoder {
        HpackDecoder {
            table: DynamicTable::new(size_limit),
            size_limit,
            is_update_due: false,
            list_bytes_max: usize::MAX,
            scratch: Vec::new(),
        }
    }

    /// Sets how many bytes the names and values of a block may have together: a small block may stand
    /// for a list a thousand times its size. A longer one is an error of the connection, since the table
    /// misses what follows.
    pub fn set_list_limit(&mut self, list_bytes_max: usize) {
        self.list_bytes_max = list_bytes_max;
    }

    /// Sets our limit, once the peer has acknowledged it (section 4.2).
    pub fn set_size_limit(&mut self, size_limit: usize) {
        self.size_limit = size_limit;
        self.is_update_due = size_limit < self.table.size_max();
    }

    /// Gives up the memory that is only needed while blocks are decoded.
    pub(crate) fn take_memory(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.scratch)
    }

    /// Uses this memory, if there is none.
    pub(crate) fn set_memory(&mut self, memory: Vec<u8>) {
        if self.scratch.capacity() == 0 {
            self.scratch = memory;
        }
    }

    /// Decodes a whole header block. Each field goes to `sink` before the next is read. The memory
    /// used besides the table is bounded by the block: a string is at most 8/5 of its code.
    ///
    /// # Errors
    /// [`HpackError`]: the connection must end.
    pub fn decode(&mut self, block: &[u8], sink: &mut impl FieldSink) -> Result<(), HpackError> {
        let mut input = block;
        while let [first, ..] = input
            && first & 0xe0 == 0x20
        {
            self.size_update(&mut input)?;
        }
        if self.is_update_due {
            return Err(HpackError::SizeUpdateMissing);
        }
        let mut list_bytes = 0_usize;
        while let [first, ..] = input {
            let field_bytes;
            if first & 0x80 != 0 {
                // Section 6.1.
                let index = integer::decode(&mut input, 7)?;
                let (name, value) = self.table.indexed(index).ok_or(HpackError::IndexInvalid)?;
                sink.field(name, value);
                field_bytes = name.len() + value.len();
            } else if first & 0x40 != 0 {
                // Section 6.2.1.
                field_bytes = self.literal(&mut input, 6, Literal::Indexed, sink)?;
            } else if first & 0x20 == 0 {
                // Sections 6.2.2 and 6.2.3, which differ for whoever encodes it again.
                field_bytes = self.literal(&mut input, 4, Literal::Plain, sink)?;
            } else {
                return Err(HpackError::SizeUpdateLate);
            }
            list_bytes = list_bytes.saturating_add(field_bytes);
            if list_bytes > self.list_bytes_max {
                return Err(HpackError::ListTooLong);
            }
        }
        Ok(())
    }

    /// Section 6.3.
    fn size_update(&mut self, input: &mut &[u8]) -> Result<(), HpackError> {
        let size = integer::decode(input, 5)?;
        if size > self.size_limit {
            return Err(HpackError::SizeUpdateTooLarge);
        }
        self.table.resize(size);
        self.is_update_due = false;
        Ok(())
    }

    /// Section 6.2: an index or a name, then a value. Returns the bytes of both.
    #[inline]
    fn literal(
        &mut self,
        input: &mut &[u8],
        bits: u32,
        kind: Literal,
        sink: &mut impl FieldSink,
    ) -> Result<usize, HpackError> {
        let index = integer::decode(input, bits)?;
        self.scratch.clear();
        let new_name = if index == 0 {
            Some(string(input, &mut self.scratch)?)
        } else {
            None
        };
        let value = string(input, &mut self.scratch)?;
        let value = value.bytes(&self.scratch);
        let name = match &new_name {
            Some(name) => name.bytes(&self.scratch),
            None => self.table.indexed(index).ok_or(HpackError::IndexInvalid)?.0,
        };
        sink.field(name, value);
        let field_bytes = name.len() + value.len();
        if kind == Literal::Indexed {
            let name = match &new_name {
                Some(name) => EntryName::New(name.bytes(&self.scratch)),
                None => EntryName::Indexed(index),
            };
            self.table.insert(name, value);
        }
        Ok(field_bytes)
    }
}

/// A string literal: where its bytes are.
enum Text<'a> {
    Plain(&'a [u8]),
    /// A range of the scratch memory.
    Decoded(usize, usize),
}

impl<'a> Text<'a> {
    fn bytes(&self, scratch: &'a [u8]) -> &'a [u8] {
        match self {
            Text::Plain(bytes) => bytes,
            Text::Decoded(start, end) => scratch.get(*start..*end).unwrap_or_default(),
        }
    }
}

/// Section 5.2.
#[inline]
fn string<'a>(input: &mut &'a [u8], scratch: &mut Vec<u8>) -> Result<Text<'a>, HpackError> {
    let is_huffman = input.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer::decode(input, 7)?;
    let (bytes, rest) = input
        .split_at_checked(length)
        .ok_or(HpackError::Truncated)?;
    *input = rest;
    if !is_huffman {
        return Ok(Text::Plain(bytes));
    }
    let start = scratch.len();
    huffman::decode(bytes, scratch)?;
    Ok(Text::Decoded(start, scratch.len()))
}
