//! Tables as dumps: what one process writes of a table for the next one to read.
//!
//! A dump has some entries of a table, so that none has to hold all of them. It names its data types
//! by their words, so that the two processes may store different ones and be of different versions.
//! Times are ages: the processes have different clocks. What an entry counts of open connections
//! (`conn_cur`) is left out: they stay with the process that has them.
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

/// A dump ends soon after this many bytes; the next one has what follows.
pub const DUMP_BYTES: usize = 256 << 10;
/// A dump takes about this time from one process to the other.
const AT_ONCE_MS: u32 = 50;
/// Slots that are written under one lock, at most.
const SLOTS_PER_LOCK: usize = 128;
/// Bytes that are written under one lock, about.
const BYTES_PER_LOCK: usize = 32 << 10;
const MAGIC: &[u8; 4] = b"BLST";
const VERSION: u8 = 1;

/// A dump that cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TableDumpError {
    /// It is none, or of another version.
    Foreign,
    /// It ends within an entry, or a value makes no sense. The entries before are read.
    Malformed,
    /// The keys of the table are of another kind now.
    OtherKeys,
}

impl std::fmt::Display for TableDumpError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            TableDumpError::Foreign => "it is of another version",
            TableDumpError::Malformed => "it is malformed",
            TableDumpError::OtherKeys => "its keys are of another type now",
        })
    }
}

impl std::error::Error for TableDumpError {}

/// The name of the table that a dump is of.
///
/// # Errors
/// [`TableDumpError::Foreign`], [`TableDumpError::Malformed`].
pub fn dump_name(dump: &[u8]) -> Result<&str, TableDumpError> {
    Reader::begin(dump).map(|(name, _)| name)
}

/// How far the writing of a table's dumps is.
#[derive(Debug, Default)]
pub struct DumpProgress {
    cursor: ScanCursor,
    since_ms: Option<u32>,
}

impl DumpProgress {
    /// Only entries that were touched since this moment are written, however long the writing takes.
    pub fn of_changes(since_ms: u32) -> DumpProgress {
        DumpProgress {
            cursor: ScanCursor::default(),
            since_ms: Some(since_ms),
        }
    }
}

/// What a dump is read for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DumpUse {
    /// To fill a table that nobody uses yet, or to add to one. The table may grow beyond its size
    /// meanwhile, by a quarter and one dump: [`Table::finish_loading`] must follow the last dump.
    Load,
    /// To add to a table that has been in use for this time, in milliseconds. Of two entries that were
    /// touched at about the same time since, the table's stays. A full table gives up the oldest entry of
    /// its shard for one that was touched later only, and none where all of that shard are tracked.
    Merge(u32),
}

impl DumpUse {
    /// Whether an entry that was touched so long ago stays, where that of the dump is of this age.
    pub(crate) fn keeps(self, idle_ms: u32, age_ms: u32) -> bool {
        match self {
            DumpUse::Merge(used_ms) if idle_ms <= used_ms => {
                idle_ms <= age_ms.saturating_add(AT_ONCE_MS)
            }
            _ => idle_ms < age_ms,
        }
    }
}

impl Table {
    /// Writes the next dump: the table may change meanwhile, and each entry is as it is when it is
    /// written. `into` stays empty where nothing is left. Returns whether there may be more.
    pub fn write_dump(&self, progress: &mut DumpProgress, now_ms: u32, into: &mut Vec<u8>) -> bool {
        let settings = self.settings();
        let start = into.len();
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
        let elements: usize = types.iter().map(|one| usize::from(one.elements)).sum();
        let entry_bytes = settings.key.len_bytes() + 12 * (elements + 1);
        let slots = (BYTES_PER_LOCK / entry_bytes).clamp(1, SLOTS_PER_LOCK);
        let (mut scratch, mut written) = (Vec::new(), 0_usize);
        let changed_within_ms = progress
            .since_ms
            .map_or(u32::MAX, |since| now_ms.wrapping_sub(since));
        let is_more = loop {
            let is_more = self.scan(&mut progress.cursor, slots, now_ms, |entry| {
                if entry.idle_ms() <= changed_within_ms {
                    write_entry(&entry, &types, now_ms, &mut scratch, into);
                    written += 1;
                }
            });
            if !is_more || into.len() - start >= DUMP_BYTES {
                break is_more;
            }
        };
        match written {
            0 => into.truncate(start),
            _ => into.push(0),
        }
        is_more
    }

    /// Reads the entries of a dump. One that this table has, too, is replaced if it was touched here
    /// before it was there; what an entry here counts of open connections stays. `written_ms` is when
    /// the dump was written, by the clock of this process: its ages are from then.
    ///
    /// Each entry is compared and replaced under one lock, so that nothing that happens to it here
    /// meanwhile is lost, and nobody sees a part of it. Returns how many were read. Data types of other
    /// periods or elements are read as far as both store them.
    ///
    /// # Errors
    /// [`TableDumpError`].
    pub fn read_dump(
        &self,
        dump: &[u8],
        written_ms: u32,
        dump_use: DumpUse,
    ) -> Result<usize, TableDumpError> {
        let (_, mut reader) = Reader::begin(dump)?;
        let (kind, len) = (reader.byte()?, reader.number()?);
        if kind_of(self.key_type()).0 != kind {
            return Err(TableDumpError::OtherKeys);
        }
        let types = reader.types()?;
        // Entries are put in from the oldest to the newest: this is their order of age.
        let mut positions: Vec<(u32, usize)> = Vec::new();
        let mut end = Ok(());
        loop {
            match reader.byte() {
                Ok(0) => break,
                Ok(1) => {}
                _ => {
                    end = Err(TableDumpError::Malformed);
                    break;
                }
            }
            let position = reader.at;
            match reader.entry(kind, len, &types, |_, age| age) {
                Ok(age) => positions.push((age, position)),
                Err(error) => {
                    end = Err(error);
                    break;
                }
            }
        }
        positions.sort_unstable_by_key(|(age, _)| std::cmp::Reverse(*age));
        let mut read = 0;
        for (_, position) in positions {
            reader.at = position;
            let head = DumpHead {
                kind,
                len,
                types: &types,
            };
            read += usize::from(self.read_entry(&mut reader, head, written_ms, dump_use));
        }
        if dump_use == DumpUse::Load && self.is_far_over_size() {
            self.finish_loading(written_ms);
        }
        end.map(|()| read)
    }

    fn read_entry(
        &self,
        reader: &mut Reader<'_>,
        head: DumpHead<'_>,
        written_ms: u32,
        dump_use: DumpUse,
    ) -> bool {
        let start = reader.at;
        let DumpHead { kind, len, types } = head;
        let Ok((key, age)) = reader.entry(kind, len, types, |key, age| (key, age)) else {
            return false;
        };
        let expire_ms = self.settings().expire_ms;
        if expire_ms.is_some_and(|expire| age >= expire) {
            return false;
        }
        reader.at = start;
        // What cannot be read of an entry was found before the first one was put in.
        self.put_as_of(key, (age, written_ms), dump_use, |entry| {
            let _ = reader.fill(types, entry, written_ms);
        })
    }
}

/// What a dump says of its entries.
#[derive(Clone, Copy)]
struct DumpHead<'s> {
    kind: u8,
    len: u32,
    types: &'s [StoredType],
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
    dump: &'s [u8],
    at: usize,
}

impl<'s> Reader<'s> {
    fn begin(dump: &'s [u8]) -> Result<(&'s str, Reader<'s>), TableDumpError> {
        let mut reader = Reader { dump, at: 0 };
        if reader.take(MAGIC.len())? != MAGIC || reader.byte()? != VERSION {
            return Err(TableDumpError::Foreign);
        }
        let name = reader.text()?;
        Ok((name, reader))
    }

    fn take(&mut self, length: usize) -> Result<&'s [u8], TableDumpError> {
        let end = self
            .at
            .checked_add(length)
            .ok_or(TableDumpError::Malformed)?;
        let taken = self
            .dump
            .get(self.at..end)
            .ok_or(TableDumpError::Malformed)?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], TableDumpError> {
        let taken = self.take(N)?;
        taken
            .first_chunk()
            .copied()
            .ok_or(TableDumpError::Malformed)
    }

    fn byte(&mut self) -> Result<u8, TableDumpError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn short(&mut self) -> Result<u16, TableDumpError> {
        self.array().map(u16::from_le_bytes)
    }

    fn number(&mut self) -> Result<u32, TableDumpError> {
        self.array().map(u32::from_le_bytes)
    }

    fn text(&mut self) -> Result<&'s str, TableDumpError> {
        let length = usize::from(self.short()?);
        std::str::from_utf8(self.take(length)?).map_err(|_| TableDumpError::Malformed)
    }

    fn types(&mut self) -> Result<Vec<StoredType>, TableDumpError> {
        let mut types = Vec::new();
        for _ in 0..self.short()? {
            let data_type = DataType::by_word(self.text()?).ok_or(TableDumpError::Foreign)?;
            let (elements, period_ms) = (self.short()?, self.number()?);
            if elements == 0 || elements > DataType::ELEMENTS_MAX {
                return Err(TableDumpError::Malformed);
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
    ) -> Result<R, TableDumpError> {
        let length = self.number()?;
        if length > len {
            return Err(TableDumpError::Malformed);
        }
        let bytes = self.take(length as usize)?;
        let key = key(kind, bytes).ok_or(TableDumpError::Malformed)?;
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
    ) -> Result<(), TableDumpError> {
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
