//! Tables as sheets: what one process writes of a table for the next one to read.
//!
//! A sheet names its data types by their words, so that the two processes may store different ones
//! and be of different versions. Times are ages: the processes have different clocks. What an entry
//! counts of open connections (`conn_cur`) is left out: they stay with the process that has them.
//!
//! Format, with numbers as little-endian: magic, version; the name (length, bytes); the kind of keys
//! and their length; the number of types, each with its word, its elements and its period; then for
//! each entry a 1, its key (length, bytes), its age, and its data; a 0 at the end.

use crate::clock::age_ms;
use crate::data::{DataKind, DataType, StoredType};
use crate::entry::{Entry, EntryMut};
use crate::key::{Key, KeyType};
use crate::scan::ScanCursor;
use crate::table::Table;

/// A sheet does not grow beyond this, in bytes; entries after that are left out.
pub const SHEET_BYTES_MAX: usize = 256 << 20;
/// Slots that are written under one lock.
const SLOTS_PER_LOCK: usize = 128;
const MAGIC: &[u8; 4] = b"BLST";
const VERSION: u8 = 1;

/// A sheet that cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SheetError {
    /// It is none, or of another version.
    Foreign,
    /// It ends within an entry, or a value makes no sense. The entries before are read.
    Malformed,
    /// The keys of the table are of another kind now.
    OtherKeys,
}

impl std::fmt::Display for SheetError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            SheetError::Foreign => "it is of another version",
            SheetError::Malformed => "it is malformed",
            SheetError::OtherKeys => "its keys are of another type now",
        })
    }
}

impl std::error::Error for SheetError {}

/// The name of the table that a sheet is of.
///
/// # Errors
/// [`SheetError::Foreign`], [`SheetError::Malformed`].
pub fn sheet_name(sheet: &[u8]) -> Result<&str, SheetError> {
    Reader::begin(sheet).map(|(name, _)| name)
}

impl Table {
    /// Writes all entries. The table may change meanwhile: each entry is as it is when it is written.
    /// `has_time` is asked again and again: the rest is left out when it says no.
    /// Returns how many were left out for that, or because the sheet would become too long.
    pub fn write_sheet(
        &self,
        now_ms: u32,
        into: &mut Vec<u8>,
        mut has_time: impl FnMut() -> bool,
    ) -> usize {
        let settings = self.settings();
        into.extend_from_slice(MAGIC);
        into.push(VERSION);
        text(self.name(), into);
        let (kind, len) = kind_of(settings.key);
        into.push(kind);
        into.extend_from_slice(&len.to_le_bytes());
        let types: Vec<StoredType> = settings
            .stored
            .iter()
            .copied()
            .filter(|one| one.data_type != DataType::ConnCur)
            .collect();
        into.extend_from_slice(&count(types.len()).to_le_bytes());
        for one in &types {
            text(one.data_type.word(), into);
            into.extend_from_slice(&one.elements.to_le_bytes());
            into.extend_from_slice(&one.period_ms.to_le_bytes());
        }
        let (mut cursor, mut scratch) = (ScanCursor::default(), Vec::new());
        let (mut written, mut left_out) = (0, 0);
        while self.scan(&mut cursor, SLOTS_PER_LOCK, now_ms, |entry| {
            if into.len() < SHEET_BYTES_MAX {
                write_entry(&entry, &types, now_ms, &mut scratch, into);
                written += 1;
            } else {
                left_out += 1;
            }
        }) {
            if !has_time() {
                left_out = (self.used() as usize).saturating_sub(written);
                break;
            }
        }
        into.push(0);
        left_out
    }

    /// Adds the entries of a sheet that this table does not have, the newest if not all have room.
    /// Returns how many were added. Data types of other periods or elements are read as far as both
    /// store them.
    ///
    /// # Errors
    /// [`SheetError`].
    pub fn read_sheet(&self, sheet: &[u8], now_ms: u32) -> Result<usize, SheetError> {
        let (_, mut reader) = Reader::begin(sheet)?;
        let (kind, len) = (reader.byte()?, reader.number()?);
        if kind_of(self.key_type()).0 != kind {
            return Err(SheetError::OtherKeys);
        }
        let types = reader.types()?;
        // Entries are put in from the oldest to the newest: this is their order of age.
        let mut places: Vec<(u32, usize)> = Vec::new();
        let mut end = Ok(());
        loop {
            match reader.byte() {
                Ok(0) => break,
                Ok(1) => {}
                _ => {
                    end = Err(SheetError::Malformed);
                    break;
                }
            }
            let place = reader.at;
            match reader.entry(kind, len, &types, |_, age| age) {
                Ok(age) => places.push((age, place)),
                Err(error) => {
                    end = Err(error);
                    break;
                }
            }
        }
        places.sort_unstable_by_key(|(age, _)| std::cmp::Reverse(*age));
        let size = self.settings().size as usize;
        let first = places.len().saturating_sub(size);
        let mut added = 0;
        for (_, place) in &places[first..] {
            reader.at = *place;
            added += usize::from(self.read_entry(&mut reader, kind, len, &types, now_ms));
        }
        end.map(|()| added)
    }

    fn read_entry(
        &self,
        reader: &mut Reader<'_>,
        kind: u8,
        len: u32,
        types: &[StoredType],
        now_ms: u32,
    ) -> bool {
        let start = reader.at;
        let Ok((key, age)) = reader.entry(kind, len, types, |key, age| (key, age)) else {
            return false;
        };
        let is_known = self.lookup(key, now_ms, |_| ()).is_some();
        let is_over = self
            .settings()
            .expire_ms
            .is_some_and(|expire| age >= expire);
        if is_known || is_over {
            return false;
        }
        let Some(entry) = self.track(key, now_ms.wrapping_sub(age)) else {
            return false;
        };
        reader.at = start;
        let filled = entry.update_untouched(now_ms, |entry| reader.fill(types, entry, now_ms));
        filled.is_some_and(|filled| filled.is_ok())
    }
}

fn count(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

fn text(text: &str, into: &mut Vec<u8>) {
    let cut = text.floor_char_boundary(usize::from(u16::MAX));
    into.extend_from_slice(&count(cut).to_le_bytes());
    into.extend_from_slice(&text.as_bytes()[..cut]);
}

fn kind_of(key: KeyType) -> (u8, u32) {
    match key {
        KeyType::Ipv4 => (0, 4),
        KeyType::Ipv6 => (1, 16),
        KeyType::Integer => (2, 4),
        KeyType::String { len } => (3, len),
        KeyType::Binary { len } => (4, len),
    }
}

fn write_entry(
    entry: &Entry<'_>,
    types: &[StoredType],
    now_ms: u32,
    scratch: &mut Vec<u8>,
    into: &mut Vec<u8>,
) {
    into.push(1);
    let mut bytes = |bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        into.extend_from_slice(&length.to_le_bytes());
        into.extend_from_slice(bytes);
    };
    match entry.key(scratch) {
        Key::Ipv4(address) => bytes(&address.octets()),
        Key::Ipv6(address) => bytes(&address.octets()),
        Key::Integer(number) => bytes(&number.to_le_bytes()),
        Key::Bytes(key) => bytes(key),
    }
    into.extend_from_slice(&entry.idle_ms().to_le_bytes());
    for one in types {
        for element in 0..one.elements {
            match one.data_type.kind() {
                DataKind::Text => {
                    let key = entry.server_key();
                    text(key.as_deref().unwrap_or(""), into);
                }
                DataKind::Rate => {
                    let words = entry.rate_words(one.data_type, element).unwrap_or([0; 3]);
                    let age = age_ms(words[0], now_ms);
                    for number in [age, words[1], words[2]] {
                        into.extend_from_slice(&number.to_le_bytes());
                    }
                }
                DataKind::Number | DataKind::LargeNumber => {
                    let value = entry.get(one.data_type, element).unwrap_or(0);
                    into.extend_from_slice(&value.to_le_bytes());
                }
            }
        }
    }
}

struct Reader<'s> {
    sheet: &'s [u8],
    at: usize,
}

impl<'s> Reader<'s> {
    fn begin(sheet: &'s [u8]) -> Result<(&'s str, Reader<'s>), SheetError> {
        let mut reader = Reader { sheet, at: 0 };
        if reader.take(MAGIC.len())? != MAGIC || reader.byte()? != VERSION {
            return Err(SheetError::Foreign);
        }
        let name = reader.text()?;
        Ok((name, reader))
    }

    fn take(&mut self, length: usize) -> Result<&'s [u8], SheetError> {
        let end = self.at.checked_add(length).ok_or(SheetError::Malformed)?;
        let taken = self.sheet.get(self.at..end).ok_or(SheetError::Malformed)?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SheetError> {
        let taken = self.take(N)?;
        taken.first_chunk().copied().ok_or(SheetError::Malformed)
    }

    fn byte(&mut self) -> Result<u8, SheetError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn short(&mut self) -> Result<u16, SheetError> {
        self.array().map(u16::from_le_bytes)
    }

    fn number(&mut self) -> Result<u32, SheetError> {
        self.array().map(u32::from_le_bytes)
    }

    fn text(&mut self) -> Result<&'s str, SheetError> {
        let length = usize::from(self.short()?);
        std::str::from_utf8(self.take(length)?).map_err(|_| SheetError::Malformed)
    }

    fn types(&mut self) -> Result<Vec<StoredType>, SheetError> {
        let mut types = Vec::new();
        for _ in 0..self.short()? {
            let data_type = DataType::by_word(self.text()?).ok_or(SheetError::Foreign)?;
            let (elements, period_ms) = (self.short()?, self.number()?);
            if elements == 0 || elements > DataType::ELEMENTS_MAX {
                return Err(SheetError::Malformed);
            }
            types.push(StoredType {
                data_type,
                elements,
                period_ms,
            });
        }
        Ok(types)
    }

    /// Passes over an entry, and gives its key and its age.
    fn entry<R>(
        &mut self,
        kind: u8,
        len: u32,
        types: &[StoredType],
        read: impl FnOnce(Key<'s>, u32) -> R,
    ) -> Result<R, SheetError> {
        let length = self.number()?;
        if length > len {
            return Err(SheetError::Malformed);
        }
        let bytes = self.take(length as usize)?;
        let key = key(kind, bytes).ok_or(SheetError::Malformed)?;
        let age = self.number()?;
        for one in types {
            for _ in 0..one.elements {
                match one.data_type.kind() {
                    DataKind::Text => drop(self.text()?),
                    DataKind::Rate => drop(self.take(12)?),
                    DataKind::Number | DataKind::LargeNumber => drop(self.take(8)?),
                }
            }
        }
        Ok(read(key, age))
    }

    /// Puts the data of an entry into that of a table.
    fn fill(
        &mut self,
        types: &[StoredType],
        entry: &mut EntryMut<'_>,
        now_ms: u32,
    ) -> Result<(), SheetError> {
        let length = self.number()?;
        self.take(length as usize)?;
        self.number()?;
        for one in types {
            let stored = *one;
            for element in 0..stored.elements {
                match stored.data_type.kind() {
                    DataKind::Text => {
                        let text = self.text()?;
                        if !text.is_empty() {
                            entry.set_server_key(text);
                        }
                    }
                    DataKind::Rate => {
                        let words = [self.number()?, self.number()?, self.number()?];
                        let period = entry.as_entry().period_ms(stored.data_type);
                        if period == Some(stored.period_ms) {
                            let start = now_ms.wrapping_sub(words[0]);
                            let words = [start, words[1], words[2]];
                            entry.set_rate_words(stored.data_type, element, words);
                        }
                    }
                    DataKind::Number | DataKind::LargeNumber => {
                        let value = self.array().map(u64::from_le_bytes)?;
                        entry.set(stored.data_type, element, value);
                    }
                }
            }
        }
        Ok(())
    }
}

fn key(kind: u8, bytes: &[u8]) -> Option<Key<'_>> {
    Some(match kind {
        0 => Key::Ipv4((*bytes.first_chunk::<4>()?).into()),
        1 => Key::Ipv6((*bytes.first_chunk::<16>()?).into()),
        2 => Key::Integer(u32::from_le_bytes(*bytes.first_chunk::<4>()?)),
        3 | 4 => Key::Bytes(bytes),
        _ => return None,
    })
}
